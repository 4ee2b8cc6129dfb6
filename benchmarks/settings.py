"""Which decoding settings suit a model: several beside its own, on the same texts; a question for the valid split."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from benchmarks import command
from benchmarks.decodings import SCORES, Decoding, draw, name_of_settings, read_settings
from benchmarks.drawing import Drawing
from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, numbers
from insnet.evaluation.judge import Judge
from insnet.evaluation.task import Task, read_task
from insnet.model import Model
from insnet.shelf import load

OWN = "own"
"""What the model's own settings are called."""


def measure(
    model: Model,
    choices: Sequence[Mapping[str, Any]],
    task: Task,
    drawing: Drawing,
    judge: Judge | None = None,
    *,
    on_measured: Callable[[str, Mapping[str, float]], None] | None = None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (bleu4_NAME, ...) and the detail behind it, the model's own settings first; `on_measured` receives
    each choice as soon as it is known."""
    ways = {name_of_settings(settings) or OWN: Decoding(model, settings) for settings in ({}, *choices)}
    if len(ways) <= len(choices):
        raise ValueError("the same settings are asked for twice; give them once")
    for way in ways.values():
        way.all_settings()  # refused before anything is written
    figures: dict[str, float] = {}
    detail: dict[str, Any] = {"split": task.split, "sentences": len(task.references), "choices": {}}
    for name, way in ways.items():
        drawn = draw(way, task, drawing, judge)
        figures |= drawn.scores(SCORES, f"{{}}_{name}")
        detail["choices"][name] = drawn.detail()
        if on_measured is not None:
            on_measured(name, drawn.scores(SCORES))
    return figures, detail


def main(
    model: command.ModelArgument,
    data: command.DataOption,
    tried: Annotated[
        list[str],
        typer.Option("--try", metavar="TEXT", help='Settings to try, as in "temperature=0.7/0.9 candidates=8".'),
    ],
    split: command.SplitOption = "valid",
    seeds: command.SeedsOption = "0",
    judged: command.JudgedOption = False,
    judge_folder: command.JudgeFolderOption = None,
    limit: command.LimitOption = None,
    keywords_per_line: command.KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: command.KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """A model's own decoding settings and others on the same texts, to choose from.

    python -m benchmarks.settings tour --data data/tour --try "temperature=0.7/0.9" --try "candidates=8 top_k=0"
    """
    all_seeds, choices = numbers(seeds), [choice for text in tried for choice in read_settings(text)]
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    writer = load(model, device=device)
    judge = command.wanted_judge(judged, judge_folder, writer)
    with command.with_bar(Drawing(all_seeds, batch_size, keep), [{}, *choices], task) as drawing:
        found = measure(writer, choices, task, drawing, judge, on_measured=_print_scores)
    command.report_on(task, all_seeds, output, *found)


def _print_scores(name: str, scores: Mapping[str, float]) -> None:
    terminal.note(f"{name}: " + ", ".join(f"{score} {value:.4g}" for score, value in scores.items()))


if __name__ == "__main__":
    command.run(main)
