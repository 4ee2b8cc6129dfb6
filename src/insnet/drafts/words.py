"""The words of a draft and the places between them: a text cut up so that each can be addressed, and put together again
to the letter. Place p lies in front of word p, the last one behind the last word."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from insnet.text.words import as_typed, touches

_LINE_SPACES = frozenset("\t\n\r")  # the only control characters that a text may hold
_SHOWN = 40  # characters of a wrong text that its refusal repeats


@dataclass(frozen=True)
class Word:
    """A word, or a symbol beside one."""

    text: str
    """What is printed, character for character."""
    space: str = " "
    """What parts it from the word before it; the first word, and one that is joined to its neighbour, needs none."""
    joins_left: bool = False
    """Whether it stands against what comes before it; only symbols do."""
    joins_right: bool = False
    """Whether it stands against what comes after it; only symbols do."""
    is_locked: bool = False
    """Whether it stays when a text is written anew."""
    is_inserted: bool = False
    """Whether a model wrote it."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if type(value := getattr(self, each.name)) is not each.type:
                expected = "a text" if each.type is str else "true or false"
                raise ValueError(f"{each.name} of a word is {repr(value)[:_SHOWN]}; expected {expected}")
        check_characters(self.text)
        if not self.text or any(map(str.isspace, self.text)):
            raise ValueError(f"a word is {self.text[:_SHOWN]!r}; expected at least one character, and no space inside")
        check_characters(self.space)
        if self.space.strip():
            raise ValueError(
                f"the space before {self.text[:_SHOWN]!r} is {self.space[:_SHOWN]!r}; expected only spaces"
            )
        if (self.joins_left and not self.may_join_left) or (self.joins_right and not self.may_join_right):
            raise ValueError(f"the word {self.text[:_SHOWN]!r} joins a neighbour with a letter; only symbols do so")

    @property
    def may_join_left(self) -> bool:
        """Whether it begins with a symbol."""
        return not _is_letter(self.text[0])

    @property
    def may_join_right(self) -> bool:
        """Whether it ends with a symbol."""
        return not _is_letter(self.text[-1])

    @property
    def is_symbol(self) -> bool:
        """Whether it holds no letter and no digit."""
        return not any(map(str.isalnum, self.text))


class Place(StrEnum):
    """What may be written between two words."""

    CLOSED = "closed"
    """Nothing."""
    OPTIONAL = "optional"
    """Something or nothing."""
    BLANK = "blank"
    """A word or more."""

    def merged(self, other: "Place") -> "Place":
        """What two places are that become one: the more open of the two."""
        return max(self, other, key=tuple(Place).index)


def check_characters(text: str) -> None:
    """Refuses characters that cannot be printed."""
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs") and character not in _LINE_SPACES:
            raise ValueError(f"{text[:_SHOWN]!r} holds a control character; remove it")


def words_of(text: str, *, is_locked: bool = False, is_inserted: bool = False) -> tuple[Word, ...]:
    """The words of a text, with the space in front of it.

    >>> [word.text for word in words_of("The dog (a poodle) runs.")]
    ['The', 'dog', '(', 'a', 'poodle', ')', 'runs', '.']
    """
    check_characters(text)
    return tuple(
        Word(part.text, space, part.joins_left, part.joins_right, is_locked, is_inserted)
        for space, part in as_typed(text)
    )


def text_of(words: Iterable[Word]) -> str:
    """The words as a text.

    >>> text_of(words_of("So:  an\\ttab  (and more)!"))
    'So:  an\\ttab  (and more)!'
    """
    return "".join(printed_apart(words))


def printed_apart(words: Iterable[Word]) -> list[str]:
    """Each word with what parts it from the one before."""
    printed: list[str] = []
    before: Word | None = None
    for word in words:
        is_apart = before is not None and not (before.joins_right or word.joins_left)
        printed.append((word.space or " ") * is_apart + word.text)
        before = word
    return printed


def glued(left: Word, right: Word) -> tuple[Word, Word]:
    """Two words so that no space parts them, as far as one of them is a symbol: it joins the other.

    >>> text_of(glued(Word("park"), Word("!"))), text_of(glued(Word("old"), Word("park")))
    ('park!', 'old park')
    """
    if left.joins_right or right.joins_left:
        return left, right
    if right.may_join_left:
        return left, replace(right, joins_left=True)
    return (replace(left, joins_right=True) if left.may_join_right else left), right


def _is_letter(character: str) -> bool:
    return touches(character) and character not in "-'’"
