"""The decoding options of all commands that write texts: declared once, collected as `Model.generate` takes them."""

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

_PANEL = "Decoding (default: the model's own settings)"


class Stopping(StrEnum):
    """When a text ends; insnet.decoding.config says more."""

    rehearsed = "rehearsed"
    counted = "counted"
    threshold = "threshold"
    sampled = "sampled"
    cumulative = "cumulative"


class CandidateChoice(StrEnum):
    """Which of several candidates is kept; insnet.decoding.config says more."""

    consensus = "consensus"
    likelihood = "likelihood"
    both = "both"


def _option(kind: type, text: str) -> Any:
    return Annotated[kind | None, typer.Option(help=text, rich_help_panel=_PANEL)]


DECODING_OPTIONS: dict[str, Any] = {
    "temperature": _option(float, "Below 1 safer, above 1 wilder."),
    "final_temperature": _option(float, "What the temperature falls to as the text becomes complete; 0 to stay."),
    "top_k": _option(int, "Draw among the k likeliest tokens; 1 is greedy, 0 all."),
    "top_p": _option(float, "Draw among the tokens that hold this share."),
    "min_p": _option(float, "Draw among the tokens at least this share as likely as the best."),
    "typical_p": _option(float, "Draw among the tokens of typical surprise that hold this share."),
    "slot_mass": _option(float, "Draw among the slots that hold this share."),
    "order": _option(str, "The order to insert in, of those the model has learned."),
    "parallel_mass": _option(float, "With --mode parallel: fill the slots that hold this share."),
    "rounds": _option(int, "Steps after which a text ends; 0 for no limit."),
    "stopping": _option(Stopping, "How the end is found."),
    "candidates": _option(int, "Write so many texts for one and keep the best."),
    "candidate_choice": _option(CandidateChoice, "The best: what most others agree with, the likeliest, or both."),
    "revise": _option(int, "Rounds that replace the least likely words."),
}
"""By the field of GenerationConfig that each one sets."""


def takes_decoding_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with all these options behind its own; those that are given reach it as one mapping, `decoding`."""
    own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "decoding"]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in DECODING_OPTIONS.items()
    ]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        decoding = as_settings({name: options.pop(name) for name in DECODING_OPTIONS})
        command(**options, decoding=decoding)

    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *shared]}
    return run


def as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, words instead of choices."""
    return {
        name: str(value) if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if value is not None
    }
