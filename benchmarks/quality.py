"""The paper's main table for one data set: a model at its best, by the paper's decoding, and beside Plan-and-Write."""

from typing import Annotated, Any

import typer

from benchmarks import command
from benchmarks.decodings import PAPER_DECODING, SCORES, Decoding, check_stops_by_itself, draw, stops_by_itself
from benchmarks.drawing import Drawing
from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, numbers
from insnet.evaluation.judge import Judge
from insnet.evaluation.report import headline
from insnet.evaluation.task import Task, read_task
from insnet.model import Model
from insnet.shelf import load

FAITHFUL, BASELINE = "faithful", "ar"
"""What the figures of the paper's decoding and of the left-to-right baseline begin with."""


def ways(best: Decoding, *, baseline: Decoding | None = None, faithful: Model | None = None) -> dict[str, Decoding]:
    """What is to be measured, by what its figures begin with; `faithful` decodes as the paper does."""
    found = {"": best}
    if faithful is not None:
        check_stops_by_itself(faithful, "the model to decode as the paper does")
        found[FAITHFUL] = Decoding(faithful, PAPER_DECODING)
    if baseline is not None:
        found[BASELINE] = baseline
    return found


def measure(
    ways: dict[str, Decoding],
    task: Task,
    drawing: Drawing,
    judge: Judge | None = None,
) -> tuple[dict[str, float], dict[str, Any], dict[str, list[str]]]:
    """The headline (bleu2, ..., faithful_bleu2, ..., ar_bleu2, ...), the detail behind it, and each way's texts of the
    first seed."""
    for way in ways.values():
        way.all_settings()  # refused before anything is written
    drawn = {name: draw(way, task, drawing, judge) for name, way in ways.items()}
    figures, detail = headline(drawn[""].reports), drawn[""].detail()
    for name in (name for name in drawn if name):
        figures |= drawn[name].scores(SCORES, f"{name}_{{}}")
        detail[name] = drawn[name].detail()
    if FAITHFUL in drawn:
        figures[f"{FAITHFUL}_nonterminating"] = drawn[FAITHFUL].nonterminating
    return figures, detail, {name: each.texts for name, each in drawn.items()}


def main(
    model: command.ModelArgument,
    data: command.DataOption,
    split: command.SplitOption = "test",
    seeds: command.SeedsOption = "0,1,2",
    settings: command.SettingsOption = "",
    faithful: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Decode this model as the paper does, if MODEL was given its length."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="RUN", help="A left-to-right model (Plan-and-Write) to compare with.")
    ] = None,
    baseline_settings: Annotated[str, typer.Option(metavar="TEXT", help="Decoding settings of --baseline.")] = "",
    judged: command.JudgedOption = False,
    judge_folder: command.JudgeFolderOption = None,
    limit: command.LimitOption = None,
    keywords_per_line: command.KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: command.KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """A model at its best and by the paper's decoding, beside a left-to-right model: the paper's main table.

    python -m benchmarks.quality tour --data data/tour --split valid --seeds 0
    """
    all_seeds = numbers(seeds)
    chosen, of_baseline = command.one_setting(settings), command.one_setting(baseline_settings)
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    writer = load(model, device=device)
    to_measure = ways(
        Decoding(writer, chosen),
        baseline=None if baseline is None else Decoding(load(baseline, device=device), of_baseline),
        faithful=_faithful(writer) if faithful is None else load(faithful, device=device),
    )
    judge = command.wanted_judge(judged, judge_folder, writer)
    with command.with_bar(Drawing(all_seeds, batch_size, keep), to_measure, task) as drawing:
        found = measure(to_measure, task, drawing, judge)
    command.report_on(task, all_seeds, output, *found)


def _faithful(model: Model) -> Model | None:
    """The model itself, if it can stop as the paper's do."""
    if stops_by_itself(model):
        return model
    terminal.note(
        "the paper's decoding is left out: this model has no stop probability to follow; "
        "--faithful RUN names an InsNet with a binary stop head"
    )
    return None


if __name__ == "__main__":
    command.run(main)
