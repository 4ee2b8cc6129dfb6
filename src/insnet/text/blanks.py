"""Blanks in a text: ___ for a word or more, ___{2,5}, ___{3,}, ___{,4} or ___{1} for as many as it says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from insnet.text.words import Literal

BLANK = "___"
Words = tuple[int, int | None]
"""The fewest and the most words of a blank; None for any number."""
ANY_WORDS: Words = (1, None)

_BLANK = re.compile(BLANK + r"(?:\{(?P<bounds>[^{}]*)(?P<end>\}?))?")
_BOUNDS = re.compile(r"\s*(?P<least>\d*)\s*(?P<comma>,?)\s*(?P<most>\d*)\s*")
_MOST_DIGITS = 4


@dataclass(frozen=True)
class Blanked:
    """A text around its blanks."""

    parts: tuple[str, ...]
    """What stands before, between and behind the blanks."""
    words: tuple[Words, ...]
    """Of each blank."""


def read_blanks(text: str) -> Blanked:
    r"""The parts of a text and what its blanks may hold. A brace that is meant behind a blank is written \\{.

    >>> read_blanks(r"I ___{2,5} a ___ ___\{2}.").words, read_blanks(r"a ___\{2}.").parts
    (((2, 5), (1, None), (1, None)), ('a ', '{2}.'))
    """
    parts, words, start = [], [], 0
    for found in _BLANK.finditer(text):
        parts.append(_unescaped(text[start : found.start()], is_behind=start > 0))
        words.append(_words(found))
        start = found.end()
    return Blanked((*parts, _unescaped(text[start:], is_behind=start > 0)), tuple(words))


def _words(found: re.Match[str]) -> Words:
    """What a blank may hold."""
    if found["bounds"] is None:
        return ANY_WORDS
    bounds = _BOUNDS.fullmatch(found["bounds"]) if found["end"] else None
    if not bounds or not (bounds["least"] or bounds["most"]) or max(map(len, bounds.groups())) > _MOST_DIGITS:
        raise ValueError(
            f"cannot read {found.group()!r}; expected {BLANK}{{2,5}}, {BLANK}{{3,}}, {BLANK}{{,4}} or {BLANK}{{2}}, "
            f"or {BLANK}\\{{ for a brace that is meant"
        )
    least = int(bounds["least"] or 1)
    most = (int(bounds["most"]) if bounds["most"] else None) if bounds["comma"] else least
    if least < 1:
        raise ValueError(f"{found.group()!r} may hold no word; a blank gets at least one")
    if most is not None and most < least:
        raise ValueError(f"{found.group()!r} has fewest words {least} above most words {most}; swap them")
    return least, most


def _unescaped(part: str, *, is_behind: bool) -> str:
    return part[1:] if is_behind and part.startswith("\\{") else part


def together(first: Words, second: Words) -> Words:
    """What two blanks hold that nothing stands between.

    >>> together((1, 2), (3, 4)), together((1, None), (3, 4))
    ((4, 6), (4, None))
    """
    most = None if first[1] is None or second[1] is None else first[1] + second[1]
    return first[0] + second[0], most


def fit(text: str, literals: Sequence[Literal], gaps: Sequence[Words | None]) -> bool:
    """Whether a text can be read as the literals, in order and character for character, with as many words between
    them as each gap may hold; one more gap than literals, None for one that holds nothing.

    >>> literals = [Literal("a"), Literal(".", joins_left=True)]
    >>> [fit(text, literals, [None, (1, 2), None]) for text in ("a b c.", "a b c d.")]
    [True, False]
    """
    ends, is_open = {0}, True
    for number, literal in enumerate(literals):
        starts = [place for place in range(len(text) + 1) if text.startswith(literal.text, place)]
        ends = {
            start + len(literal.text)
            for start in starts
            if any(end <= start and _holds(text[end:start], gaps[number], is_open=is_open) for end in ends)
        }
        is_open = literal.joins_right
    return any(_holds(text[end:], gaps[-1], is_open=is_open) for end in ends)


def _holds(filling: str, words: Words | None, *, is_open: bool) -> bool:
    """Whether a filling has as many words; a mark that touches the text before it is none, unless the blank did."""
    if words is None:
        return not filling.strip()
    is_mark = not is_open and filling[:1].strip() != ""
    count = len(filling.split()) - is_mark
    return words[0] <= count and (words[1] is None or count <= words[1])
