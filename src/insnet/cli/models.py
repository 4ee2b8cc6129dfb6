"""`insnet models`."""

from dataclasses import asdict

from insnet.cli import options, terminal

MOST_TELLING = ("bleu4", "coverage", "length_ratio", "judge_ppl")


def models(as_json: options.JsonOption = False) -> None:
    """List the installed models, with size, data, licence and some scores; --json and their cards have all."""
    from insnet.shelf import models as installed

    cards = installed()
    if as_json:
        for card in cards:
            terminal.print_json(asdict(card))
        return
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
