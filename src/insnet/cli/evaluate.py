"""`insnet evaluate`."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from insnet.cli import options, terminal
from insnet.cli.benchmark import numbers
from insnet.cli.decoding_options import as_settings, takes_decoding_options
from insnet.cli.writer import load_writer

if TYPE_CHECKING:
    from insnet.evaluation.report import Report


@takes_decoding_options
def evaluate(
    model: Annotated[str, typer.Argument(help="A model by name or folder.")],
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="A folder with test.txt (or .xz, .gz).")],
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many sentences.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the texts.")] = 0,
    seeds: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Several seeds instead of one; figures are their means.")
    ] = None,
    keywords_per_line: Annotated[
        int, typer.Option(min=0, help="Keywords to draw from a sentence, if there is no SPLIT.keywords.txt.")
    ] = 7,
    batch_size: options.BatchSizeOption = 64,
    as_json: options.JsonOption = False,
    output: options.OutputFolderOption = None,
    result: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a results file, NAME.json, with figures to publish.")
    ] = None,
    judged: Annotated[bool, typer.Option("--judge", help="Also the perplexity to SmolLM2, which is slow.")] = False,
    judge_folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Another judge: a causal language model that transformers reads.")
    ] = None,
    grammar: Annotated[
        bool,
        typer.Option("--grammar", help="Also the share that Link Grammar parses whole (Debian: link-grammar)."),
    ] = False,
    device: options.DeviceOption = options.Device.auto,
    mode: options.ModeOption = None,
    length: options.LengthOption = None,
    *,
    decoding: dict[str, Any],
) -> None:
    """Write a text for every keyword list of a data split and score it against the original.

    Texts are scored as the model writes them: slurs and sexual words are kept out only with --decent.

    insnet evaluate tour --data data/tour --split test
    """
    settings = {**as_settings({"mode": mode, "length": options.parse_length(length)}), **decoding}
    all_seeds = [seed] if seeds is None else list(numbers(seeds))
    from insnet.evaluation.report import write_figures, write_report
    from insnet.evaluation.task import decoding_settings, evaluate_task, read_task

    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    writer = load_writer(model, device)
    judge = None
    if judged or judge_folder is not None:
        from insnet.evaluation.judge import load_judge

        judge = load_judge(judge_folder, device=writer.device)
    with terminal.progress_bar("generating", total=len(task.references) * len(all_seeds)) as bar:
        given = {**settings, "batch_size": batch_size, "judge": judge, "parse": grammar, "on_written": bar.advance}
        reports, outputs = zip(*(evaluate_task(writer, task, seed=each, **given) for each in all_seeds), strict=True)
    if as_json:
        for report in reports:
            terminal.print_json(asdict(report))
    else:
        _print(reports)
    if output is not None:
        for report, texts in zip(reports, outputs, strict=True):
            place = output if len(reports) == 1 else output / f"seed_{report.seed}"
            terminal.note(f"written: {write_report(report, texts, place)}")
    if result is not None:
        command, used = ["insnet", *sys.argv[1:]], decoding_settings(writer, **settings)
        terminal.note(f"written: {write_figures(result, reports, outputs[0], command=command, settings=used)}")


def _print(reports: "Sequence[Report]") -> None:
    """A table of the scores; those of several seeds side by side, after their means."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    several = len(reports) > 1
    table.add_column("score")
    for title in ["mean", *(f"seed {report.seed}" for report in reports)] if several else ["value"]:
        table.add_column(title, justify="right")
    for name, first in asdict(reports[0]).items():
        if isinstance(first, float):
            values = [getattr(report, name) for report in reports]
            shown = [sum(values) / len(values), *values] if several else values
            table.add_row(name.replace("_", " "), *(f"{value:.4g}" for value in shown))
    console = Console(highlight=False)
    report = reports[0]
    named = ", ".join(str(report.seed) for report in reports)
    title = f"{report.model} on {report.data}/{report.split}, {report.sentences} sentences, seed{'s' * several} {named}"
    console.print(title, style="bold cyan", markup=False)
    console.print(table)
    console.print(report.signature, style="dim", soft_wrap=True)
