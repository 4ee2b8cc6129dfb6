"""Options that several commands share, and what they mean."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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


ModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME_OR_FOLDER", help="A model by name or folder; left out, the default model."),
]
OfflineOption = Annotated[
    bool,
    typer.Option(
        "--offline", envvar="INSNET_OFFLINE", help="Fetch nothing: the small model stands in for one not fetched yet."
    ),
]
DeviceOption = Annotated[Device, typer.Option(help="Where to run; auto takes a GPU if there is one.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object per line on stdout; all else on stderr.")]
SeedOption = Annotated[
    int | None, typer.Option(help="The same seed gives the same output; left out, a new one each time.")
]
SamplesOption = Annotated[int, typer.Option("-n", "--samples", min=1, help="How many different texts.")]
TraceOption = Annotated[bool, typer.Option("--trace", help="With JSON: every step of every text.")]
WatchOption = Annotated[bool, typer.Option("--watch", help="See the sentence grow, step by step.")]
BatchSizeOption = Annotated[int, typer.Option(min=1, help="Texts written at a time.")]
ModeOption = Annotated[
    Mode | None, typer.Option(help="One insertion per step, or several; left out, as the model's settings say.")
]
BanOption = Annotated[
    list[str] | None,
    typer.Option("--ban", metavar="WORD", help="A word or phrase not to write; 'run*' bans every form of run."),
]
RejectOption = Annotated[
    Path | None,
    typer.Option(
        "--reject", metavar="FILE", help="Words, one per line, * for any letters: a text that holds one is drawn anew."
    ),
]
LengthOption = Annotated[
    str | None, typer.Option(metavar="LEAST:MOST", help="Length in words: 12:24, 12: or :24; 15 is exactly 15.")
]
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
