"""`insnet evaluate`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from insnet.cli import options, terminal

if TYPE_CHECKING:
    from insnet.evaluation.report import Report


def evaluate(
    model: Annotated[str, typer.Argument(help="A model by name or folder.")],
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="A folder with test.txt (or .xz, .gz).")],
    split: Annotated[str, typer.Option(help="Which part of the data.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many sentences.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the texts.")] = 0,
    keywords_per_line: Annotated[
        int, typer.Option(min=0, help="Keywords to draw from a sentence, if there is no SPLIT.keywords.txt.")
    ] = 7,
    batch_size: options.BatchSizeOption = 64,
    as_json: options.JsonOption = False,
    output: options.OutputFolderOption = None,
    device: options.DeviceOption = options.Device.auto,
    mode: options.ModeOption = options.Mode.sequential,
    length: options.LengthOption = None,
    temperature: options.TemperatureOption = None,
    top_k: options.TopKOption = None,
    top_p: options.TopPOption = None,
    slot_mass: options.SlotMassOption = None,
    stopping: options.StoppingOption = None,
) -> None:
    """Write a text for every keyword list of a data split and score it against the original.

    insnet evaluate tour --data data/tour --split test
    """
    settings = options.decoding_settings(
        mode=mode,
        length=options.parse_length(length),
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        slot_mass=slot_mass,
        stopping=stopping,
    )
    from insnet.evaluate import evaluate_task, read_task
    from insnet.evaluation.report import write_report
    from insnet.shelf import load

    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    writer = load(model, device=device)
    with terminal.progress_bar("generating", total=len(task.references)) as bar:
        report, outputs = evaluate_task(
            writer, task, seed=seed, batch_size=batch_size, on_written=bar.advance, **settings
        )
    if as_json:
        terminal.print_json(asdict(report))
    else:
        _print(report)
    if output is not None:
        terminal.note(f"written: {write_report(report, outputs, output)}")


def _print(report: "Report") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("score")
    table.add_column("value", justify="right")
    for name, value in asdict(report).items():
        if isinstance(value, float):
            table.add_row(name.replace("_", " "), f"{value:.4g}")
    console = Console(highlight=False)
    title = f"{report.model} on {report.data}/{report.split}, {report.sentences} sentences, seed {report.seed}"
    console.print(title, style="bold cyan", markup=False)
    console.print(table)
    console.print(report.signature, style="dim")
