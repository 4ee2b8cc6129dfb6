"""Options that several commands share, and what they mean."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from insnet.text.refused_words import RefusedWords


class Device(StrEnum):
    """Where a model runs."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Mode(StrEnum):
    """How many insertions a step makes."""

    sequential = "sequential"
    parallel = "parallel"


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


_DECODING = "Decoding (default: the model's own settings)"

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="NAME_OR_FOLDER", help="A model by name or folder; left out, the model that ships."
    ),
]
DeviceOption = Annotated[Device, typer.Option(help="Where to run; auto takes a GPU if there is one.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout; all else on stderr.")]
SeedOption = Annotated[
    int | None, typer.Option(help="The same seed gives the same output; left out, a new one each time.")
]
SamplesOption = Annotated[int, typer.Option("-n", "--samples", min=1, help="How many different texts.")]
TraceOption = Annotated[bool, typer.Option("--trace", help="With JSON: every step of every text.")]
BatchSizeOption = Annotated[int, typer.Option(min=1, help="Texts written at a time.")]
ModeOption = Annotated[
    Mode | None, typer.Option(help="One insertion a step, or several; left out, as the model's settings say.")
]
BanOption = Annotated[list[str] | None, typer.Option("--ban", metavar="WORD", help="A word or phrase not to write.")]
RejectOption = Annotated[
    Path | None,
    typer.Option(
        "--reject", metavar="FILE", help="Words, one a line, * for any letters: a text that holds one is drawn anew."
    ),
]
LengthOption = Annotated[
    str | None, typer.Option(metavar="LEAST:MOST", help="Length in words: 12:24, 12: or :24; 15 is exactly 15.")
]
TemperatureOption = Annotated[
    float | None, typer.Option(help="Below 1 safer, above 1 wilder.", rich_help_panel=_DECODING)
]
TopKOption = Annotated[
    int | None, typer.Option(help="Draw among the k likeliest tokens; 1 is greedy, 0 all.", rich_help_panel=_DECODING)
]
TopPOption = Annotated[
    float | None, typer.Option(help="Draw among the tokens that hold this share.", rich_help_panel=_DECODING)
]
MinPOption = Annotated[
    float | None,
    typer.Option(help="Draw among the tokens at least this share as likely as the best.", rich_help_panel=_DECODING),
]
TypicalPOption = Annotated[
    float | None,
    typer.Option(help="Draw among the tokens of typical surprise that hold this share.", rich_help_panel=_DECODING),
]
CandidatesOption = Annotated[
    int | None, typer.Option(help="Write so many texts for one and keep the best.", rich_help_panel=_DECODING)
]
CandidateChoiceOption = Annotated[
    CandidateChoice | None,
    typer.Option(help="The best: what most others agree with, or the likeliest.", rich_help_panel=_DECODING),
]
ReviseOption = Annotated[
    int | None,
    typer.Option(help="Rounds that replace the least likely words.", rich_help_panel=_DECODING),
]
SlotMassOption = Annotated[
    float | None, typer.Option(help="Draw among the slots that hold this share.", rich_help_panel=_DECODING)
]
ParallelMassOption = Annotated[
    float | None,
    typer.Option(help="With --mode parallel: fill the slots that hold this share.", rich_help_panel=_DECODING),
]
RoundsOption = Annotated[
    int | None, typer.Option(help="Steps after which a text ends; 0 for no limit.", rich_help_panel=_DECODING)
]
StoppingOption = Annotated[Stopping | None, typer.Option(help="How the end is found.", rich_help_panel=_DECODING)]
OutputFolderOption = Annotated[Path | None, typer.Option("--output", metavar="DIR", help="Where the results go.")]


def parse_length(text: str | None) -> tuple[int | None, int | None] | None:
    """The bounds of a --length option.

    >>> parse_length("12:24"), parse_length("12:"), parse_length(":24"), parse_length("15")
    ((12, 24), (12, None), (None, 24), (15, 15))
    """
    if text is None:
        return None
    least, colon, most = text.partition(":")
    try:
        bounds = int(least) if least else None, int(most) if most else None
    except ValueError:
        bounds = None, None
    if bounds == (None, None):
        raise typer.BadParameter(f"cannot read the length {text!r}; expected 12:24, 12:, :24 or 15")
    return bounds if colon else (bounds[0], bounds[0])


def read_refused(path: Path | None) -> "RefusedWords | None":
    """What a --reject option names."""
    if path is None:
        return None
    from insnet.text.refused_words import RefusedWords

    return RefusedWords.read(path)


def decoding_settings(**options: Any) -> dict[str, Any]:
    """The options that were given, as `Model.generate` takes them."""
    return {
        name: str(value) if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if value is not None
    }
