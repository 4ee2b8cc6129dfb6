"""Quotation marks and brackets without a partner: a text that is done should lose those that were inserted."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from insnet.text.tokenizer import Tokenizer
from insnet.text.words import MARK, Literal

_CLOSER = {"(": ")", "[": "]", "{": "}", "“": "”", "„": "“", "‘": "’", '"': '"'}
_CLOSERS = frozenset(")]}”")
_MARKS = frozenset(_CLOSER) | _CLOSERS
_BEFORE_OPENER = frozenset("([{“„‘—–-/ ")
_AFTER_CLOSER = frozenset(")]}”’.,;:!?…—–-/ ")


def unpaired_marks(
    tokens: Sequence[tuple[int, int]], required: Sequence[Literal], tokenizer: Tokenizer
) -> dict[int, int | None]:
    """The places of inserted marks without a partner, and what goes there instead: a token that prints a space where
    two words would else melt together, or None for nothing.

    `tokens` are the (token, origin) pairs of a text in reading order; an origin from 0 on is the number of a required
    stretch. A mark stays where its word holds more than it, or where no removal would leave required words whole.
    """
    text, place_of_character = _printed(tokens, required, tokenizer)
    lonely = unpaired_characters(text)
    kept = {place for index, place in enumerate(place_of_character) if text[index] != " " and index not in lonely}
    marked = {place_of_character[index] for index in lonely}
    words = [word for word in _inserted_words(tokens, tokenizer) if marked & {*word} and not kept & {*word}]
    removed = {place for word in words for place in word}
    found: dict[int, int | None] = {}
    for word in words:
        before = next((place for place in reversed(range(word[0])) if place not in removed), None)
        behind = next((place for place in range(word[-1] + 1, len(tokens)) if place not in removed), None)
        is_safe = before is None or behind is None or _may_meet(tokens[before], tokens[behind], tokenizer)
        if is_safe or tokenizer.space is not None:
            found |= dict.fromkeys(word) | ({} if is_safe else {word[0]: tokenizer.space})
    return found


def has_marks(text: str) -> bool:
    """Whether a text has any mark at all: most have none, which is known much sooner."""
    return not _MARKS.isdisjoint(text)


def unpaired_characters(text: str) -> set[int]:
    """Where a text has a mark that nothing opens or nothing closes; apostrophes are no marks.

    >>> sorted(unpaired_characters('a "b" (c "d) don’t ‘e’'))
    [9]
    """
    lonely: set[int] = set()
    opened: list[tuple[str, int]] = []  # what would close each open mark, and where that stands
    for index, character in enumerate(text):
        waits = any(closer == character for closer, _ in opened)
        before, behind = text[index - 1 : index] or " ", text[index + 1 : index + 2] or " "
        if character == '"':
            is_opener, is_closer = before in _BEFORE_OPENER, behind in _AFTER_CLOSER
            closes = (is_closer and not is_opener) or (is_closer == is_opener and waits)
        else:
            closes = character in _CLOSERS or (waits and (character != "’" or not behind.isalnum()))
        if closes and waits:
            while opened[-1][0] != character:
                lonely.add(opened.pop()[1])
            opened.pop()
        elif closes:
            lonely.add(index)
        elif character in _CLOSER:
            opened.append((_CLOSER[character], index))
    return lonely | {index for _, index in opened}


def _inserted_words(tokens: Sequence[tuple[int, int]], tokenizer: Tokenizer) -> Iterator[list[int]]:
    """The places of every inserted word; a symbol and its joiner may be pieces of one."""
    for is_inserted, run in groupby(range(len(tokens)), lambda place: tokens[place][1] < 0):
        if is_inserted:
            places = list(run)
            for word in tokenizer.words([tokens[place][0] for place in places]):
                yield places[: len(word)]
                places = places[len(word) :]


def _may_meet(before: tuple[int, int], behind: tuple[int, int], tokenizer: Tokenizer) -> bool:
    """Whether nothing melts together once these two are neighbours."""
    (token, origin), (next_token, next_origin) = before, behind
    if origin >= 0 and next_origin >= 0:
        return True
    if next_origin >= 0:
        return tokenizer.facts(token).may_precede_required
    facts = tokenizer.facts(next_token)
    return facts.may_follow_required if origin >= 0 else facts.starts_word


def _printed(
    tokens: Sequence[tuple[int, int]], required: Sequence[Literal], tokenizer: Tokenizer
) -> tuple[str, list[int]]:
    """The text, and which place each character comes from; a space comes from the place behind it."""
    text, places, is_open, previous = "", list[int](), True, -1
    for place, (token, origin) in enumerate(tokens):
        if origin >= 0 and origin == previous:
            continue
        previous = origin
        stretch = required[origin] if origin >= 0 else _stretch(token, tokenizer)
        text += " " * (not (is_open or stretch.joins_left)) + stretch.text
        places += [place] * (len(text) - len(places))
        is_open = stretch.joins_right
    return text, places


def _stretch(token: int, tokenizer: Tokenizer) -> Literal:
    facts = tokenizer.facts(token)
    text = tokenizer.bytes_of_token[token].decode(errors="replace").strip(MARK)
    return Literal(text, facts.joins_left or not facts.starts_word, facts.joins_right)
