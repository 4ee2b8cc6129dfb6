"""What a user asks for, in words: checked here, turned into a prompt in insnet.decoding.prompt."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from insnet.decoding.config import Bounds
from insnet.randomness import Purpose, uniform
from insnet.text.blanks import ANY_WORDS, BLANK, Words, fit, read_blanks, together
from insnet.text.decency import is_decent
from insnet.text.inflection import choices_of
from insnet.text.words import Literal, contains_in_order, whole_word_pattern


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
    """Every gap between stretches must get a word."""
    gaps: tuple[Words | None, ...] = ()
    """With blanks, the words of every gap, before, between and behind the stretches; None where it is no blank."""
    bounds: Bounds = field(default_factory=Bounds)
    banned: tuple[str, ...] = ()
    """Words and phrases that must not be written."""
    insertions: int | None = None
    """After how many insertions the text should end, if that was found out beforehand."""

    def phrases(self) -> list[str]:
        """The required stretches as text."""
        return [literal.text for literal in self.required]

    def within(self, bounds: Bounds, banned: tuple[str, ...]) -> "Request":
        """The request within some bounds; of a word's forms those that are not banned, unless all are."""
        patterns = [whole_word_pattern(phrase, ignore_case=True) for phrase in banned]

        def allowed(literal: Literal) -> Literal:
            choices = tuple(form for form in literal.choices if not any(ban.search(form) for ban in patterns))
            return replace(literal, text=choices[0], choices=choices) if choices else literal

        bounds = self._told(bounds)
        return replace(self, required=tuple(map(allowed, self.required)), bounds=bounds, banned=banned)

    def _told(self, bounds: Bounds) -> Bounds:
        """The bounds, narrowed to the words that the text has with all its blanks, where that is possible."""
        least, most = self.printed_words() + self.least_in_blanks(), self.most_words()
        if not self.is_bounded or least > bounds.max_words or (most is not None and most < bounds.min_words):
            return bounds
        most = bounds.max_words if most is None else min(most, bounds.max_words)
        return replace(bounds, min_words=max(least, bounds.min_words), max_words=most)

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

    def has_blanks_of(self, text: str) -> bool:
        """Whether the text has as many words in every blank as were asked for."""
        return not self.is_bounded or fit(text, self.required, self.gaps)

    def is_decent(self, text: str) -> bool:
        """Whether the text holds no indecent word but required ones, or may hold others."""
        return not self.bounds.decent or is_decent(text, self.phrases())

    def printed_words(self) -> int:
        """Words that the required text prints once its blanks hold a word each."""
        joins = sum(literal.joins_left + literal.joins_right for literal in self.required)
        return sum(len(literal.text.split()) for literal in self.required) - joins

    @property
    def is_bounded(self) -> bool:
        """Whether a blank is for other than a word or more."""
        return any(gap not in (None, ANY_WORDS) for gap in self.gaps)

    def least_in_blanks(self) -> int:
        """Words that the blanks must get."""
        return sum(gap[0] for gap in self.gaps if gap)

    def most_words(self) -> int | None:
        """The most words of the text with its blanks; None for any number."""
        most = [gap[1] for gap in self.gaps if gap]
        return None if not most or None in most else self.printed_words() + sum(words or 0 for words in most)


def required_words(keywords: Sequence[str]) -> tuple[Literal, ...]:
    """Keywords and phrases as stretches of required text, `run*` open to every form; what cannot be one is refused."""
    if isinstance(keywords, str):
        raise ValueError(
            f"keywords came as one string {keywords!r}; expected a list of words, like {keywords.split()!r}"
        )
    return tuple(_keyword(_clean(keyword, number)) for number, keyword in enumerate(keywords, start=1))


def blanks(text: str) -> Request:
    """A request to fill the blanks of a text, which is kept word for word.

    >>> [literal.text for literal in blanks("The ___ sat on ___{2}.").required]
    ['The', 'sat on', '.']
    """
    blanked = read_blanks(text)
    parts, last = blanked.parts, len(blanked.parts) - 1
    if last == 0:
        raise ValueError(f"no blank in {text!r}; write {BLANK} where words are missing")
    literals: list[Literal] = []
    gaps: list[Words | None] = [None]
    for index, part in enumerate(parts):
        if 0 < index < last and "\n" in part and not part.strip():
            raise ValueError("nothing but a line break parts two blanks; put a word between them, or make them one")
        if part.strip():
            literals.append(_part(part, index, last))
            gaps.append(None)
        if index < last:
            gaps[-1] = blanked.words[index] if gaps[-1] is None else together(gaps[-1], blanked.words[index])
    opens_start, opens_end = not parts[0].strip(), not parts[-1].strip()
    return Request(tuple(literals), opens_start, opens_end, fills_blanks=True, gaps=tuple(gaps))


def _part(part: str, index: int, last: int) -> Literal:
    """A part of a text as required, with its own spaces; blanks stand on both sides of it, but for the first and the
    last."""
    text = part.strip()
    before, after = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
    joins_left, joins_right = index > 0 and not before, index < last and not after
    if (joins_left and _is_letter(text[0])) or (joins_right and _is_letter(text[-1])):
        raise ValueError(f"a blank touches the word in {text!r}; put a space between blank and word")
    _clean(text, index + 1)
    return Literal(
        text, joins_left, joins_right, before=(index > 0 and before) or " ", after=(index < last and after) or " "
    )


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
