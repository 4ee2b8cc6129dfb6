"""From fully sequential to highly parallel: quality against the sequential ratio, rounds over insertions.

Two spectra, by the same measure. The paper's has a model for every tolerance tau, each with a top-k of its own; ours
has one model, and one switch that is turned at decoding time.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from benchmarks import command
from benchmarks.decodings import UNIFORM, name_of_settings, read_settings
from benchmarks.drawing import Drawing, DrawnText
from benchmarks.paper import SERIES as PAPER_SERIES
from benchmarks.paper import spectrum_points
from benchmarks.pictures import panels
from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, numbers
from insnet.evaluation.task import Task, decoding_settings, model_name, read_task, score_results
from insnet.model import Model
from insnet.shelf import load

TOP_K_OF_TAU = {10.0: 1, 3.0: 1, 1.0: 3, 0.3: 3, -math.inf: 5}
"""What the paper draws tokens from, for each tolerance (section 4)."""
DEFAULT_SETTINGS = ("parallel_mass=0.3/0.5/0.7/0.9/0.95", "uniform")
_SCORES = ("bleu2", "bleu4", "nist4", "length_ratio", "coverage", "distinct2", "self_bleu")
_IN_HEADLINE = ("bleu4", "length_ratio", "coverage", "distinct2", "sequential_ratio", "rounds_per_word")

Row = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One way to write, to be measured."""

    name: str
    series: str
    """Points of one series are joined by a line."""
    model: str
    """By name or folder."""
    settings: dict[str, Any]
    """Options of `generate_batch`."""


def points_of_model(model: str, settings: Sequence[str]) -> list[Point]:
    """One model, one insertion per step and by every combination of settings, as in "parallel_mass=0.5/0.9 top_k=1"."""
    points = [Point("sequential", "sequential", model, {"mode": "sequential"})]
    for combination in itertools.chain.from_iterable(map(read_settings, settings)):
        name, series = name_of_settings(combination), " + ".join(combination)
        if combination == UNIFORM:
            name, series = "uniform", "uniform"
        points.append(Point(name, series, model, {"mode": "parallel", **combination}))
    return points


def points_of_taus(folder_of_tau: Mapping[float, str]) -> list[Point]:
    """A model for every tolerance, each with the paper's top-k; -inf writes one insertion per step, inf is uniform."""
    return [
        Point(f"tau_{tau:g}", "a model for every tau", folder, settings_of_tau(tau))
        for tau, folder in sorted(folder_of_tau.items())
    ]


def read_tau(text: str) -> tuple[float, str]:
    """A tolerance and the folder of its model.

    >>> read_tau("10=runs/tau10")
    (10.0, 'runs/tau10')
    """
    tau, _, folder = text.partition("=")
    try:
        number = float(tau)
    except ValueError:
        number = math.nan
    if math.isnan(number) or not folder:
        raise ValueError(f"cannot read {text!r}; expected TAU=DIR, as in 10=runs/tau10 or -inf=tour")
    return number, folder


def settings_of_tau(tau: float) -> dict[str, Any]:
    """How a model of this tolerance decodes."""
    top_k = {"top_k": TOP_K_OF_TAU[tau]} if tau in TOP_K_OF_TAU else {}
    uniform = UNIFORM if tau == math.inf else {}
    return {"mode": "sequential" if tau == -math.inf else "parallel", **top_k, **uniform}


def measure(
    points: Sequence[Point],
    task: Task,
    load: Callable[[str], Model],
    drawing: Drawing,
) -> tuple[dict[str, float], dict[str, Any], dict[str, list[str]]]:
    """The headline (bleu4_NAME, sequential_ratio_NAME, ...), the detail behind it, and each point's texts of the first
    seed."""
    names = [point.name for point in points]
    if len(set(names)) < len(names):
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)} is asked for twice; give it once")
    models = {name: load(name) for name in dict.fromkeys(point.model for point in points)}
    configs = [decoding_settings(models[point.model], **point.settings) for point in points]  # refused before all else
    rows: list[Row] = []
    texts: dict[str, list[str]] = {}
    for point, config in zip(points, configs, strict=True):
        model = models[point.model]
        draws = drawing.draw(model, task, point.settings)
        scores = [described(model, task, each.texts, seed) for each, seed in zip(draws, drawing.seeds, strict=True)]
        means = {name: fmean(row[name] for row in scores) for name in scores[0]}
        texts[point.name] = [text.text for text in draws[0].texts]
        named = {"name": point.name, "series": point.series, "model": model_name(model)}
        rows.append({**named, "settings": point.settings, **means, "config": config})
    headline = {f"{score}_{row['name']}": row[score] for row in rows for score in _IN_HEADLINE if score in row}
    return headline, {"split": task.split, "sentences": len(task.references), "points": rows}, texts


def described(model: Model, task: Task, results: Sequence[DrawnText], seed: int) -> dict[str, float]:
    """The scores of some texts and how parallel they were written; scores that a task has not are left out."""
    report = score_results(model, task, results, seed=seed)
    scores = {name: getattr(report, name) for name in _SCORES}
    rounds = sum(result.steps for result in results)
    insertions = sum(result.insertions for result in results)
    return {
        **{name: score for name, score in scores.items() if score is not None},
        "rounds": report.steps,
        "insertions": insertions / len(results),
        "sequential_ratio": rounds / max(insertions, 1),
        "rounds_per_word": rounds / max(sum(len(result.text.split()) for result in results), 1),
    }


def draw(points: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """BLEU-4 against the sequential ratio as a picture: a line for each series, a name at each point."""
    with panels(1, path, size=(6, 4)) as [axis]:
        for series in dict.fromkeys(point["series"] for point in points):
            own = sorted((p for p in points if p["series"] == series), key=lambda point: point["sequential_ratio"])
            ratio, quality = [p["sequential_ratio"] for p in own], [p["bleu4"] for p in own]
            look, color = ("s", "grey") if series == PAPER_SERIES else ("o-", None)
            axis.plot(ratio, quality, look, color=color, markersize=4, linewidth=1, label=series)
            for point in own if len(own) > 1 else []:
                axis.annotate(_short(point, own), (point["sequential_ratio"], point["bleu4"]), fontsize=7, alpha=0.7)
        axis.set(xlabel="rounds / insertions", ylabel="BLEU-4", xlim=(0, None))
        axis.legend(frameon=False)


def _short(point: Mapping[str, Any], series: Sequence[Mapping[str, Any]]) -> str:
    """What tells a point from the others of its series."""
    if point["name"].startswith("tau_") or point["series"] == PAPER_SERIES:
        return str(point["name"].removeprefix("tau_"))
    own = point["settings"].items()
    return ", ".join(str(value) for name, value in own if any(p["settings"][name] != value for p in series))


def main(
    data: command.DataOption,
    model: Annotated[
        str | None, typer.Argument(help="A model by name or folder, to be decoded one by one and in several ways.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help='What to try with MODEL, as in "parallel_mass=0.7/0.9 top_k=1" or uniform (InsNet-uniform).',
        ),
    ] = None,
    tau: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAU=DIR",
            help="A model for each tolerance, with the paper's top-k: 10=runs/tau10; inf is InsNet-uniform.",
        ),
    ] = None,
    split: command.SplitOption = "valid",
    limit: command.LimitOption = None,
    keywords_per_line: command.KeywordsOption = 4,
    seeds: command.SeedsOption = "0",
    batch_size: options.BatchSizeOption = 64,
    keep: command.KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
    plot: command.PlotOption = None,
    paper: Annotated[
        str | None, typer.Option(metavar="DATA", help="Draw the paper's points beside ours: yelp or news.")
    ] = None,
    output: ResultOption = None,
) -> None:
    """Quality against rounds: one model from one insertion per step to many, or one model for each tau.

    python -m benchmarks.spectrum tour --data data/tour --plot spectrum.png
    """
    if model is None and not tau:
        raise typer.BadParameter("give MODEL, or --tau TAU=DIR for each of several models")
    if model is None and settings:
        raise typer.BadParameter("--settings are for MODEL; those of --tau are the paper's")
    if paper is not None and plot is None:
        raise typer.BadParameter("--paper adds to a picture: name one with --plot FILE")
    all_seeds, of_paper = numbers(seeds), [] if paper is None else spectrum_points(paper)
    points = points_of_taus(_folder_of_tau(tau or []))
    if model is not None:
        points = [*points_of_model(model, settings or DEFAULT_SETTINGS), *points]
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    with command.with_bar(Drawing(all_seeds, batch_size, keep), points, task) as drawing:
        headline, detail, texts = measure(points, task, lambda name: load(name, device=device), drawing)
    if plot is not None:
        draw([*detail["points"], *of_paper], plot)
        terminal.note(f"drawn: {plot}")
    command.report_on(task, all_seeds, output, headline, detail, texts)


def _folder_of_tau(texts: Sequence[str]) -> dict[float, str]:
    try:
        return dict(read_tau(text) for text in texts)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


if __name__ == "__main__":
    command.run(main)
