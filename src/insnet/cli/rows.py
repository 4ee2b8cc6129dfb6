"""What one row of an input file asks for: keywords or a text with blanks, and what it says of length, bans and seed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from insnet.cli.options import length_of
from insnet.decoding.job import checked_seed
from insnet.decoding.request import Request, blanks, required_words
from insnet.text.corpus import parse_keywords

EXAMPLE = {False: '{"keywords": ["new york", "pizza"]}', True: '{"text": "The ___ sat."}'}
"""An object of a file with keywords, and of one with texts with blanks."""
_KEYWORD_COLUMN = re.compile(r"keyword[ _]?\d*")
_BANS = ("ban", "banned")


@dataclass(frozen=True)
class Row:
    """One row, read; one that cannot be understood is kept, since it has its place in the output, too."""

    line: int
    """Where it stands in the file, counted from 1."""
    given: tuple[str, ...] | str = ()
    """Keywords, or a text with blanks; nothing for a row that stays blank."""
    came: Mapping[str, Any] = field(default_factory=dict)
    """What it said, by the names of its columns; repeated in the output."""
    length: tuple[int | None, int | None] | None = None
    banned: tuple[str, ...] = ()
    seed: int | None = None
    error: str | None = None
    """Why it could not be understood."""

    @property
    def is_blank(self) -> bool:
        return not self.given and self.error is None

    def request(self) -> Request:
        """What it asks for; a ValueError if that cannot be had."""
        if self.error is not None:
            raise ValueError(self.error)
        own = blanks(self.given) if isinstance(self.given, str) else Request(required_words(self.given))
        return replace(own, length=self.length, banned=self.banned)


def row_of_line(number: int, line: str, *, fills_blanks: bool) -> Row:
    """A row of a plain file: keywords, or a text with blanks, and nothing else."""
    if fills_blanks:
        return Row(number, line.strip(), {"template": line.strip()})
    keywords = parse_keywords(line)
    return Row(number, tuple(keywords), {"keywords": keywords})


def row_of_columns(number: int, columns: Mapping[str, Any], *, fills_blanks: bool) -> Row:
    """A row of a file with named columns."""
    came = _came(columns, fills_blanks=fills_blanks)
    known = {_plain(name): value for name, value in columns.items()}
    try:
        given = _text(known) if fills_blanks else _keywords(known)
        banned = [word for name in _BANS for word in _words(name, known.get(name))]
        return Row(number, given, came, _length(known.get("length")), tuple(banned), _seed(known.get("seed")))
    except ValueError as error:
        return Row(number, came=came, error=str(error))


def has_given(names: Iterable[str], *, fills_blanks: bool) -> bool:
    """Whether columns of these names say what must appear.

    >>> [has_given(names, fills_blanks=False) for names in (["ID", "Keyword 1"], ["keywords"], ["text"])]
    [True, True, False]
    """
    plain = {_plain(name) for name in names}
    if fills_blanks:
        return bool(plain & {"template", "text"})
    return "keywords" in plain or any(map(_KEYWORD_COLUMN.fullmatch, plain))


def _plain(name: str) -> str:
    return name.strip().casefold()


def _came(columns: Mapping[str, Any], *, fills_blanks: bool) -> dict[str, Any]:
    """The columns as they came; a text with blanks is the template of the text that is to come."""
    is_template = "template" if any(_plain(name) == "template" for name in columns) else "text"
    return {
        "template" if fills_blanks and _plain(name) == is_template else name: value for name, value in columns.items()
    }


def _text(known: Mapping[str, Any]) -> str:
    name = "template" if "template" in known else "text"
    text = known.get(name)
    if name not in known or not isinstance(text, str | None):
        came = shown(text) if name in known else "missing"
        raise ValueError(f"text is {came}; expected a text with blanks, as in {EXAMPLE[True]}")
    return (text or "").strip()


def _keywords(known: Mapping[str, Any]) -> tuple[str, ...]:
    """All of the column "keywords", or else one of each column keyword1, keyword2, ..."""
    if "keywords" in known:
        return _words("keywords", known["keywords"])
    if not has_given(known, fills_blanks=False):
        raise ValueError(f"keywords is missing; expected an object like {EXAMPLE[False]}")
    own = {name: value for name, value in known.items() if _KEYWORD_COLUMN.fullmatch(name)}
    if wrong := [name for name, value in own.items() if not isinstance(value, str | None)]:
        raise ValueError(f"{wrong[0]} is {shown(own[wrong[0]])}; expected a word or a phrase")
    return tuple(value.strip() for value in own.values() if value and value.strip())


def _words(name: str, value: Any) -> tuple[str, ...]:
    """A list of words and phrases, or one string of them as a line of a plain file has it."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(parse_keywords(value))
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ValueError(f'{name} is {shown(value)}; expected words, like ["new york", "pizza"] or "york pizza"')


def _length(value: Any) -> tuple[int | None, int | None] | None:
    if _is_empty(value):
        return None
    ends = value if isinstance(value, list) and len(value) == 2 else [value, value]
    numbers = [None if end is None else _whole(end) for end in ends]
    if all(end is None or number is not None for end, number in zip(ends, numbers, strict=True)):
        return numbers[0], numbers[1]
    if isinstance(value, str):
        return length_of(value)
    raise ValueError(f'length is {shown(value)}; expected words, like 15, "12:24" or [12, 24]')


def _seed(value: Any) -> int | None:
    if _is_empty(value):
        return None
    number = _whole(value)
    return checked_seed(value if number is None else number)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _whole(value: Any) -> int | None:
    """A whole number, however it was written: tables turn 12 into 12.0 where another row has none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value).strip()
    return int(text.removesuffix(".0")) if re.fullmatch(r"-?[0-9]{1,20}(\.0)?", text) else None


def shown(value: Any) -> str:
    """A value as it came, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
