"""A draft's words in stretches between open places, and the draft that a text around such stretches makes."""

from collections.abc import Sequence
from dataclasses import replace

from insnet.drafts.words import Place, Word, glued, words_of


def stretches_of(words: Sequence[Word], places: Sequence[Place]) -> list[tuple[Word, ...]]:
    """The words that no open place parts, stretch by stretch."""
    stretches: list[tuple[Word, ...]] = []
    for number, (word, place) in enumerate(zip(words, places, strict=False)):
        if number == 0 or place is not Place.CLOSED:
            stretches.append(())
        stretches[-1] += (word,)
    return stretches


def gaps_of(places: Sequence[Place]) -> list[Place]:
    """The places before, between and behind those stretches."""
    if len(places) == 1:
        return list(places)
    return [places[0], *(place for place in places[1:-1] if place is not Place.CLOSED), places[-1]]


def assembled(
    text: str, spans: Sequence[tuple[int, int]], stretches: Sequence[Sequence[Word]], gaps: Sequence[Place]
) -> tuple[tuple[Word, ...], tuple[Place, ...]]:
    """The words and places of a text that was written around stretches, which stand at some spans of it. A gap in
    which nothing was written stays as it was."""
    words, places, end = list[Word](), list[Place](), 0
    every = zip([*spans, (len(text), len(text))], [*stretches, ()], gaps, strict=True)
    for (start, stop), own, gap in every:
        between = text[end:start]
        new = list(words_of(between, is_inserted=True))
        places += [Place.CLOSED if new else gap]
        places += [Place.CLOSED] * (len(new) + len(own) - 1)
        if new and words and not between[0].isspace():
            words[-1], new[0] = glued(words[-1], new[0])
        words += _joined(new, list(own), between)
        end = stop
    places += [Place.CLOSED] * (len(words) + 1 - len(places))
    return tuple(words), tuple(places)


def _joined(new: list[Word], own: list[Word], between: str) -> list[Word]:
    """New words and those they were written in front of, whose space they take over."""
    if new and own:
        new[0] = replace(new[0], space=own[0].space or new[0].space)
        own[0] = replace(own[0], space=between[len(between.rstrip()) :])
        if not between[-1].isspace():
            new[-1], own[0] = glued(new[-1], own[0])
    return new + own
