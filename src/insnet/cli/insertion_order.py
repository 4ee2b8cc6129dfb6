"""`insnet benchmark insertion-order`."""

from pathlib import Path
from typing import Annotated

import typer

from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, report


def insertion_order(
    model: Annotated[str, typer.Argument(help="A model by name or folder.")],
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="A folder with the split, and train.txt.")],
    split: Annotated[str, typer.Option(help="Which part of the data the keywords come from.")] = "valid",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many sentences.")] = None,
    keywords_per_line: Annotated[
        int, typer.Option(min=0, help="Keywords to draw from a sentence, if there is no SPLIT.keywords.txt.")
    ] = 4,
    text: Annotated[
        Path | None,
        typer.Option("--text", metavar="FILE", help="What to count word frequencies in; left out, the train split."),
    ] = None,
    order: Annotated[str, typer.Option(help="Of several that the model has learned; left out, its first.")] = "",
    seed: Annotated[int, typer.Option(help="The seed of the texts.")] = 0,
    batch_size: options.BatchSizeOption = 64,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Measure which words a model inserts first: by corpus frequency, function words, punctuation."""
    from insnet.benchmarks.insertion_order import WordRanks, measure
    from insnet.evaluate import read_task
    from insnet.shelf import load
    from insnet.text.corpus import find_split, read_lines

    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    ranks = WordRanks.count(read_lines(find_split(data, "train") if text is None else text))
    writer = load(model, device=device)
    with terminal.progress_bar("generating", total=2 * len(task.keywords)) as bar:
        found = measure(writer, task, ranks, order=order, seed=seed, batch_size=batch_size, on_written=bar.advance)
    report(f"{task.data}/{task.split}, {len(task.keywords)} keyword lists", seed, output, *found)
