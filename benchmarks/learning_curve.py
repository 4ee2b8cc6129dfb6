"""How a run learned: its metrics in windows of updates, as numbers and as a drawing, and whether it ever jumped.

Of a run that learns to share steps (section 3.3), also how its layers merge and what that does to the likelihood. Of
several runs, how they differ.
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from benchmarks import command
from benchmarks.pictures import panels
from insnet.cli import terminal
from insnet.cli.benchmark import ResultOption, report
from insnet.files import RECIPE_FILE, read_json_object
from insnet.training.metrics import METRICS_FILE, read_metrics
from insnet.training.recipe import load_recipe

_NOT_DRAWN = ("update", "tokens", "learning_rate", "gradient_norm")
_LAYERS, _LIKELIHOODS = "layers_per_insertion", ("layered_loss", "sequential_loss")
_VALID = "valid_"

Row = dict[str, float]


def measure(run: str | Path, *, windows: int = 100) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (valid_loss, valid_token, ..., largest_rise; of layers first_NAME and last_NAME) and the curves.

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
        **_movements(valid),
    }
    return headline, {"model": _shape(Path(run)), "windows": _rounded(smooth), "valid": _rounded(valid)}


def measure_together(runs: Sequence[str | Path], *, windows: int = 100) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (NAME_valid_loss, ...; NAME being a run's folder) and the curves of several runs."""
    names = [Path(run).name for run in runs]
    if len(set(names)) < len(names):
        raise ValueError(
            f"two runs are called {next(n for n in names if names.count(n) > 1)}: rename one of the folders"
        )
    measured = {name: measure(run, windows=windows) for name, run in zip(names, runs, strict=True)}
    headline = {f"{name}_{key}": value for name, (found, _) in measured.items() for key, value in found.items()}
    return headline, {"runs": {name: detail for name, (_, detail) in measured.items()}}


def seeds_of(runs: Sequence[str | Path]) -> list[int]:
    """The seeds that runs were trained with, each once."""
    return sorted({load_recipe(Path(run) / RECIPE_FILE).train.seed for run in runs})


def _movements(valid: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Where layers and likelihoods stood at the first evaluation and at the last."""
    moved: dict[str, float] = {}
    for name in (_LAYERS, *_LIKELIHOODS):
        values = [line[_VALID + name] for line in valid if _VALID + name in line]
        moved |= {f"first_{name}": values[0], f"last_{name}": values[-1]} if values else {}
    return moved


def in_windows(lines: Sequence[Mapping[str, float]], windows: int) -> list[Row]:
    """The means of equally many updates each; the last update of a window stands for it."""
    size = -(-len(lines) // windows)
    pieces = [lines[start : start + size] for start in range(0, len(lines), size)]
    pieces = pieces if len(pieces) == 1 or len(pieces[-1]) == size else pieces[:-1]  # half a window is noisier
    return [{**_means(piece), "update": piece[-1]["update"], "tokens": piece[-1]["tokens"]} for piece in pieces]


def _rounded(lines: Sequence[Mapping[str, float]]) -> list[Row]:
    """Four digits of every figure: as many as a curve shows, and a third of the bytes of a results file."""
    return [
        {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in line.items()}
        for line in lines
    ]


def draw(detail: Mapping[str, Any], path: str | Path) -> None:
    """The curves as a picture: every loss while learning, and on the valid split; of layers, how they merge, and both
    likelihoods in one panel."""
    groups = panels_of(detail["windows"])
    with panels(len(groups), path) as axes:
        for axis, (title, names) in zip(axes, groups.items(), strict=True):
            for number, name in enumerate(names):
                which = f", {name.removesuffix('_loss')}" if len(names) > 1 else ""
                grey, colour = str(0.6 + 0.2 * number), f"C{number}"
                axis.plot(*_points(detail["windows"], name), color=grey, linewidth=1, label=f"training{which}")
                valid = _points(detail["valid"], _VALID + name)
                axis.plot(*valid, "o-", color=colour, markersize=3, label=f"valid{which}")
            axis.set(title=title, xlabel="update", ylabel="" if names == (_LAYERS,) else "nats")
            if axis is axes[-1] or len(names) > 1:
                axis.legend(frameon=False, fontsize=7)


def draw_together(details: Mapping[str, Mapping[str, Any]], path: str | Path) -> None:
    """Several runs, by name, as a picture: losses while learning and on the valid split, and the size of gradients, by
    which a run that diverges is known early."""
    with panels(3, path) as [learned, valid, gradients]:
        for name, detail in details.items():
            learned.plot(*_points(detail["windows"], "loss"), linewidth=1, label=name)
            valid.plot(*_points(detail["valid"], f"{_VALID}loss"), "o-", linewidth=1, markersize=3, label=name)
            gradients.plot(*_points(detail["windows"], "gradient_norm"), linewidth=1, label=name)
        learned.set(title="training loss", xlabel="update", ylabel="nats")
        valid.set(title="valid loss", xlabel="update", ylabel="nats")
        gradients.set(title="gradient norm", xlabel="update", yscale="log")
        learned.legend(frameon=False, fontsize=7)


def panels_of(windows: Sequence[Mapping[str, float]]) -> dict[str, tuple[str, ...]]:
    """Titles, and the names to be drawn together under each.

    >>> panels_of([{"update": 1, "loss": 2.0}, {"update": 2, "loss": 1.0, "layered_loss": 1.0, "sequential_loss": 1.5}])
    {'loss': ('loss',), 'nats per insertion': ('layered_loss', 'sequential_loss')}
    """
    names = list(dict.fromkeys(name for window in windows for name in window if name not in _NOT_DRAWN))
    apart = {name.replace("_", " "): (name,) for name in names if name not in _LIKELIHOODS}
    together = tuple(name for name in _LIKELIHOODS if name in names)
    return apart | ({"nats per insertion": together} if together else {})


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


def main(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="A run folder, or several to compare.")],
    windows: Annotated[int, typer.Option(min=2, help="Into how many stretches the updates are put.")] = 50,
    plot: command.PlotOption = None,
    output: ResultOption = None,
) -> None:
    """How a run learned, or several: losses by stretches of updates, and on the valid split."""
    if len(runs) == 1:
        headline, detail = measure(runs[0], windows=windows)
    else:
        headline, detail = measure_together(runs, windows=windows)
    if plot is not None:
        draw_together(detail["runs"], plot) if "runs" in detail else draw(detail, plot)
        terminal.note(f"drawn: {plot}")
    what, seeds = f"the metrics of {', '.join(run.name for run in runs)}", seeds_of(runs)
    report(what, seeds, output, headline, detail, command=command.command_line())


if __name__ == "__main__":
    command.run(main)
