"""`insnet score`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from insnet.cli import options, terminal
from insnet.cli.writer import load_writer

if TYPE_CHECKING:
    from insnet.model import Model, Score


def score(
    text: Annotated[str | None, typer.Argument(help="A finished sentence.")] = None,
    input_file: Annotated[Path | None, typer.Option("--input", metavar="FILE", help="One text per line.")] = None,
    orders: Annotated[int, typer.Option(min=1, help="Insertion orders to average over; more are more exact.")] = 16,
    seed: Annotated[int, typer.Option(help="Which orders are drawn.")] = 0,
    as_json: options.JsonOption = False,
    model: options.ModelOption = None,
    device: options.DeviceOption = options.Device.auto,
    offline: options.OfflineOption = False,
) -> None:
    """Say how likely a text is: a lower bound of its log-likelihood, in nats.

    insnet score "A finished sentence ."
    """
    if (text is None) == (input_file is None):
        raise typer.BadParameter("give a text or --input, one of the two")
    scorer = load_writer(model, device, offline=offline)
    if text is not None:
        found = scorer.score(text, orders=orders, seed=seed)
        terminal.print_json(vars(found)) if as_json else _print(found)
    else:
        assert input_file is not None
        _score_file(input_file, scorer, orders, seed, as_json=as_json)


def _print(score: "Score") -> None:
    at_least = "" if score.is_exact else "at least "
    print(f"{at_least}{score.log_prob:.2f} nats; {score.nats_per_token:.3f} nats per token, {score.tokens} tokens")
    if score.unknown_tokens:
        terminal.note(f"{score.unknown_tokens} of them are not in the model's vocabulary: the score says little")


def _score_file(path: Path, model: "Model", orders: int, seed: int, *, as_json: bool) -> None:
    """One line for each text: JSON, or nats per token and the text; one that cannot be scored spoils no other."""
    from insnet.text.corpus import read_lines

    refused = lines = 0
    for lines, text in enumerate(read_lines(path), start=1):
        try:
            score = model.score(text, orders=orders, seed=seed)
        except ValueError as error:
            refused += 1
            terminal.note(f"{path}, line {lines}: {error}")
            terminal.print_json({"text": text, "error": str(error)}) if as_json else print(f"-\t{text}", flush=True)
        else:
            line = f"{score.nats_per_token:.4f}\t{text}"
            terminal.print_json(vars(score)) if as_json else print(line, flush=True)
    if refused:
        raise ValueError(f"{refused} of {lines} lines could not be scored")
