"""What a small model makes of keyword lists, one by one and in parallel: words kept, parses, rounds per word."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import command
from benchmarks.default_model import form_of, rounds_per_word
from insnet.cli import terminal
from insnet.cli.benchmark import ResultOption, report
from insnet.decoding.config import MODES
from insnet.evaluation.task import model_name
from insnet.model import Model
from insnet.shelf import load
from insnet.text.corpus import read_keyword_lists
from insnet.threads import set_threads


def measure(
    model: Model, lists: Sequence[list[str]], seed: int, on_written: Any = None
) -> tuple[dict[str, float], list[str]]:
    """The headline (parallel_parses, sequential_rounds_per_word, ...), and the texts of all modes."""
    figures: dict[str, float] = {}
    texts: list[str] = []
    for mode in MODES:
        results = model.generate_batch(lists, seed=seed, mode=mode, on_written=on_written)
        of_mode = {**form_of(results, lists), "rounds_per_word": rounds_per_word(results)}
        figures |= {f"{mode}_{name}": value for name, value in of_mode.items()}
        texts += [result.text for result in results]
    return figures, texts


def main(
    model: command.ModelArgument,
    lists: Annotated[Path, typer.Option(help="Keyword lists to write for, one per line.")],
    seed: command.SeedOption = 0,
    output: ResultOption = None,
) -> None:
    """What a small model makes of keyword lists, one by one and in parallel.

    python -m benchmarks.fresh_lists general --lists benchmarks/lists/fresh.txt
    """
    set_threads()
    wanted = [keywords for keywords in read_keyword_lists(lists) if keywords]
    writer = load(model, device="cpu")
    with terminal.progress_bar("generating", total=len(MODES) * len(wanted)) as bar:
        figures, texts = measure(writer, wanted, seed, bar.advance)
    detail = {"model": model_name(writer), "settings": writer.generation.flat()}
    data = f"{lists.name}, {len(wanted)} keyword lists"
    report(data, seed, output, figures, detail, outputs=texts, command=command.command_line())


if __name__ == "__main__":
    command.run(main)
