"""What is known about one piece of a vocabulary: its bytes, and how it stands to its neighbours."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

MAY_JOIN_AFTER_REQUIRED = frozenset('.,;:!?)]}"”»…%')
MAY_JOIN_BEFORE_REQUIRED = frozenset('([{"“«$£€#')


@dataclass(frozen=True)
class Facts:
    """What keeps words whole; `Lexicon` holds a table of each."""

    starts_word: bool
    """Begins a word."""
    joins_left: bool = False
    """Begins a word, and stands against what comes before it."""
    joins_right: bool = False
    """What comes after it stands against it."""
    may_follow_required: bool = False
    """May stand directly behind a required word without becoming part of it."""
    may_precede_required: bool = False
    """May stand directly before a required word without becoming part of it."""
    generatable: bool = False
    """A model may insert it."""
    is_word: bool = False
    """Begins a word and holds a letter or a digit."""

    @classmethod
    def of_special(cls) -> "Facts":
        """Specials stand beside anything, and are never inserted."""
        return cls(starts_word=True, may_follow_required=True, may_precede_required=True)


def tables(facts: Iterable[Facts]) -> dict[str, Tensor]:
    """A bool table (V,) of every fact, by its name."""
    each, names = list(facts), [field.name for field in fields(Facts)]
    return {name: torch.tensor([getattr(one, name) for one in each], dtype=torch.bool) for name in names}


def text_or_none(encoded: bytes) -> str | None:
    """The text of some bytes; None if they break a character in two."""
    try:
        return encoded.decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_printable(text: str) -> bool:
    """Whether a piece may be inserted: it prints something, and no space, line break or control."""
    if text.isalnum():
        return True
    return text != "" and not any(c.isspace() or unicodedata.category(c) == "Cc" for c in text)


def has_letter(text: str) -> bool:
    """Whether a text holds a letter or a digit."""
    return text.isalnum() or any(character.isalnum() for character in text)


def _byte_alphabet() -> dict[str, int]:
    """The byte behind each character of GPT-2's alphabet: printable ones as themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + rank): byte for rank, byte in enumerate(hidden)}


BYTE_OF_CHARACTER = _byte_alphabet()
SPACE = "Ġ"  # how that alphabet writes a space
