"""`insnet benchmark stopping`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, report


def stopping(
    model: Annotated[str, typer.Argument(help="A model by name or folder.")],
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="A folder with the split.")],
    split: Annotated[str, typer.Option(help="Which part of the data; rules are chosen on valid.")] = "valid",
    untruncated: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Text like the model's own, to compare untruncated lengths with; else DATA."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many sentences.")] = None,
    keywords_per_line: Annotated[
        int, typer.Option(min=0, help="Keywords to draw from a sentence, if there is no SPLIT.keywords.txt.")
    ] = 4,
    quantiles: Annotated[
        str, typer.Option(help="Quantiles of a counted length to try, several with commas.")
    ] = "0.5,0.6,0.7",
    seed: Annotated[int, typer.Option(help="The seed of the texts.")] = 0,
    batch_size: options.BatchSizeOption = 64,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Measure length and quality under every stopping rule, and the length of untruncated texts."""
    from insnet.benchmarks.stopping import measure, texts_to_write
    from insnet.evaluate import read_task
    from insnet.shelf import load

    chosen = _shares(quantiles)
    read = partial(read_task, split=split, limit=limit, keywords_per_line=keywords_per_line)
    task, whole = read(data), None if untruncated is None else read(untruncated)
    writer = load(model, device=device)
    with terminal.progress_bar("generating", total=texts_to_write(writer, task, chosen, whole)) as bar:
        found = measure(
            writer,
            task,
            whole_task=whole,
            quantiles=chosen,
            seed=seed,
            batch_size=batch_size,
            on_written=bar.advance,
        )
    report(f"{task.data}/{task.split}, {len(task.keywords)} keyword lists", seed, output, *found)


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"cannot read {text!r}; expected numbers with commas, as in 0.5,0.6") from None
