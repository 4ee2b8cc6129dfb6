"""How a run learned: its metrics in windows of updates, as numbers and as a drawing, and whether it ever jumped."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from insnet.files import read_json_object
from insnet.training.metrics import METRICS_FILE, read_metrics

_NOT_DRAWN = ("update", "tokens", "learning_rate", "gradient_norm")
_VALID = "valid_"

Row = dict[str, float]


def measure(run: str | Path, *, windows: int = 100) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (valid_loss, valid_token, ..., largest_rise) and the curves behind it.

    `largest_rise` is by how many nats the loss of a window ever exceeded the window before: batches hold texts of like
    length, so single updates differ by more than that.
    """
    lines = read_metrics(Path(run))
    learned = [line for line in lines if "loss" in line]
    valid = [line for line in lines if f"{_VALID}loss" in line]
    if not learned or not valid:
        raise ValueError(f"{Path(run) / METRICS_FILE} has no learning curve: train the run until its first evaluation")
    smooth = in_windows(learned, windows)
    best = min(valid, key=lambda line: line[f"{_VALID}loss"])
    rises = [after["loss"] - before["loss"] for before, after in itertools.pairwise(smooth)]
    headline = {
        **{name: value for name, value in best.items() if name.startswith(_VALID)},
        "updates": learned[-1]["update"],
        "insertions": learned[-1]["tokens"],
        "largest_rise": max([0.0, *rises]),
    }
    return headline, {"model": _shape(Path(run)), "windows": smooth, "valid": valid}


def in_windows(lines: Sequence[Mapping[str, float]], windows: int) -> list[Row]:
    """The means of equally many updates each; the last update of a window stands for it."""
    size = -(-len(lines) // windows)
    pieces = [lines[start : start + size] for start in range(0, len(lines), size)]
    pieces = pieces if len(pieces) == 1 or len(pieces[-1]) == size else pieces[:-1]  # half a window is noisier
    return [{**_means(piece), "update": piece[-1]["update"], "tokens": piece[-1]["tokens"]} for piece in pieces]


def draw(detail: Mapping[str, Any], path: str | Path) -> None:
    """The curves as a picture: every loss while learning, and on the valid split."""
    import matplotlib

    matplotlib.use("svg" if str(path).endswith(".svg") else "agg")
    import matplotlib.pyplot as plt

    windows, valid = detail["windows"], detail["valid"]
    names = [name for name in windows[0] if name not in _NOT_DRAWN]
    with plt.rc_context({"svg.hashsalt": "insnet", "font.size": 9}):
        figure, axes = plt.subplots(1, len(names), figsize=(2.6 * len(names), 2.4), layout="constrained")
        for axis, name in zip(axes, names, strict=True):
            axis.plot(*_points(windows, name), color="0.6", linewidth=1, label="training")
            axis.plot(*_points(valid, _VALID + name), "o-", color="tab:blue", markersize=3, label="valid")
            axis.set(title=name.replace("_", " "), xlabel="update")
        axes[0].set_ylabel("nats")
        axes[-1].legend(frameon=False)
        figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)
        plt.close(figure)


def _means(lines: Sequence[Mapping[str, float]]) -> Row:
    """The mean of every number that any of the lines has."""
    names = dict.fromkeys(name for line in lines for name in line)
    return {name: fmean(line[name] for line in lines if name in line) for name in names}


def _points(rows: Sequence[Mapping[str, float]], name: str) -> tuple[list[float], list[float]]:
    present = [row for row in rows if name in row]
    return [row["update"] for row in present], [row[name] for row in present]


def _shape(run: Path) -> dict[str, Any]:
    """What was trained, as its config.json says."""
    path = run / "config.json"
    return read_json_object(path) if path.is_file() else {}
