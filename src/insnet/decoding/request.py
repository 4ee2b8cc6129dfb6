"""What a user asks for, in words: checked here, turned into a prompt in insnet.decoding.prompt."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from insnet.decoding.config import Bounds
from insnet.randomness import Purpose, uniform
from insnet.text.decency import is_decent
from insnet.text.inflection import choices_of
from insnet.text.words import BLANK, Literal, contains_in_order, whole_word_pattern


@dataclass(frozen=True)
class Request:
    """One text to write: required stretches in reading order, where words may go, and how many."""

    required: tuple[Literal, ...]
    """Stretches that stay whole; words may be inserted between any two."""
    opens_start: bool = True
    """Words may stand before the first stretch."""
    opens_end: bool = True
    """Words may stand after the last stretch."""
    fills_blanks: bool = False
    """Every gap between stretches must get a word, but for those that are optional."""
    optional: frozenset[int] = frozenset()
    """Gaps that may stay empty all the same; 0 lies before the first stretch, 1 behind it."""
    bounds: Bounds = field(default_factory=Bounds)
    banned: tuple[str, ...] = ()
    """Words and phrases that must not be written."""
    insertions: int | None = None
    """After how many insertions the text should end, if that was found out beforehand."""
    length: tuple[int | None, int | None] | None = None
    """The fewest and the most words of this text, where they are not those of the call."""
    has_length: bool = False
    """Whether a length was asked for: a text that misses it is drawn anew."""

    def phrases(self) -> list[str]:
        """The required stretches as text."""
        return [literal.text for literal in self.required]

    def within(self, bounds: Bounds, banned: tuple[str, ...], *, has_length: bool = False) -> "Request":
        """The request within some bounds; of a word's forms those that are not banned, unless all are."""
        patterns = [whole_word_pattern(phrase, ignore_case=True) for phrase in banned]

        def allowed(literal: Literal) -> Literal:
            choices = tuple(form for form in literal.choices if not any(ban.search(form) for ban in patterns))
            return replace(literal, text=choices[0], choices=choices) if choices else literal

        required = tuple(map(allowed, self.required))
        return replace(self, required=required, bounds=bounds, banned=banned, has_length=has_length)

    def drawn(self, seed: int) -> "Request":
        """The request with one form of each word that may have several: the first half of the time, else any other."""
        if not any(literal.choices for literal in self.required):
            return self
        shares = uniform(Purpose.FORM, seed, torch.arange(len(self.required))).tolist()
        return replace(self, required=tuple(map(_drawn, self.required, shares)))

    def is_kept_in(self, text: str) -> bool:
        """Whether everything required stands in the text, in order: as whole words, or verbatim around blanks."""
        if not self.fills_blanks:
            return contains_in_order(text, self.phrases())
        end = 0
        for phrase in self.phrases():
            start = text.find(phrase, end)
            if start < 0:
                return False
            end = start + len(phrase)
        return True

    def has_length_of(self, text: str) -> bool:
        """Whether the text has as many words as were asked for."""
        return self.bounds.min_words <= len(text.split()) <= self.bounds.max_words

    def is_decent(self, text: str) -> bool:
        """Whether the text holds no indecent word but required ones, or may hold others."""
        return not self.bounds.decent or is_decent(text, self.phrases())

    def printed_words(self) -> int:
        """Words that the required text prints once its blanks hold a word each."""
        joins = sum(literal.joins_left + literal.joins_right for literal in self.required)
        return sum(len(literal.text.split()) for literal in self.required) - joins

    def gaps_to_fill(self) -> frozenset[int]:
        """The gaps that must get a word."""
        first, last = int(not self.opens_start), len(self.required) - (not self.opens_end)
        return frozenset(range(first, last + 1)) - self.optional if self.fills_blanks else frozenset()


def required_words(keywords: Sequence[str]) -> tuple[Literal, ...]:
    """Keywords and phrases as stretches of required text, `run*` open to every form; what cannot be one is refused."""
    if isinstance(keywords, str):
        raise ValueError(
            f"keywords came as one string {keywords!r}; expected a list of words, like {keywords.split()!r}"
        )
    return tuple(_keyword(_clean(keyword, number)) for number, keyword in enumerate(keywords, start=1))


def blanks(text: str) -> Request:
    """A request to fill the blanks of a text, which is kept word for word.

    >>> [literal.text for literal in blanks("The ___ sat on ___.").required]
    ['The', 'sat on', '.']
    """
    parts = text.split(BLANK)
    if len(parts) == 1:
        raise ValueError(f"no blank in {text!r}; write {BLANK} where words are missing")
    literals = []
    for index, part in enumerate(parts):
        has_blank_before, has_blank_after = index > 0, index < len(parts) - 1
        stripped = part.strip()
        joins_left = has_blank_before and part[:1] != "" and not part[0].isspace()
        joins_right = has_blank_after and part[-1:] != "" and not part[-1].isspace()
        if (joins_left and _is_letter(part[0])) or (joins_right and _is_letter(part[-1])):
            raise ValueError(f"a blank touches the word in {part.strip()!r}; put a space between blank and word")
        if stripped:
            literals.append(Literal(_clean(stripped, index + 1), joins_left, joins_right))
    opens_start, opens_end = not parts[0].strip(), not parts[-1].strip()
    return Request(tuple(literals), opens_start, opens_end, fills_blanks=True)


def _keyword(keyword: str) -> Literal:
    first, *others = choices = choices_of(keyword)
    return Literal(first, takes_capital=True, choices=choices if others else ())


def _drawn(literal: Literal, share: float) -> Literal:
    """The stretch with the form at a share of all draws.

    >>> run = Literal("run", choices=("run", "runs", "ran"))
    >>> [_drawn(run, share).text for share in (0.1, 0.4, 0.6, 0.9)]
    ['run', 'run', 'runs', 'ran']
    """
    if len(literal.choices) < 2:
        return literal
    first, *others = literal.choices
    return replace(literal, text=first if share < 0.5 else others[int((2 * share - 1) * len(others))], choices=())


def _is_letter(character: str) -> bool:
    return character.isalnum() or character in "_'’-"


def _clean(keyword: str, number: int) -> str:
    """The keyword with single spaces; refused if there is nothing to print or something that can't be printed."""
    if not isinstance(keyword, str):
        raise ValueError(f"keyword {number} is {keyword!r}; expected a word")
    words = " ".join(keyword.split())
    if not words:
        raise ValueError(f"keyword {number} is empty; every keyword needs at least one visible character")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in words):
        raise ValueError(f"keyword {number} {words[:40]!r} holds a control character; remove it")
    return words
