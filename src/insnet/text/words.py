"""Text as words and symbols, with the spaces remembered, so that splitting can be undone exactly.

A symbol that touched a neighbour carries the joiner mark on that side; everything else is parted by one space:

>>> split("Hello, world (sic).")
['Hello', '￭,', 'world', '(￭', 'sic', '￭)', '￭.']
>>> join(split("Hello, world (sic)."))
'Hello, world (sic).'
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

MARK = "\uffed"  # the joiner; only ever on symbols
MARK_IN_TEXT = "■"  # what a text's own U+FFED becomes, so that every mark in a split text is ours
OPENERS = frozenset("([{“‘«¿¡$#@£€")


def _combining_marks() -> str:
    """All combining marks as ranges of a character class: one by one they would take three times as long to compile."""
    marks = {code for code in range(0x300, 0x1F000) if unicodedata.category(chr(code))[0] == "M"}
    firsts = sorted(code for code in marks if code - 1 not in marks)
    lasts = sorted(code for code in marks if code + 1 not in marks)
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))


# Combining marks are no \w, but they belong to the word they stand in (Hindi vowel signs, Arabic and Hebrew points).
_COMBINING = _combining_marks()
_LETTER = rf"[\w{_COMBINING}]"
_NUMBER_POINT = r"(?<=\d)[.,](?=\d)"  # 3.14 and 1,000 are one word
_PART = re.compile(rf"{_LETTER}+(?:(?:[-'’]|{_NUMBER_POINT}){_LETTER}+)*|(?P<symbol>.)(?P=symbol)*", re.DOTALL)
_TOUCHING = rf"[\w{_COMBINING}'’-]"
_TOUCHING_IN_ASCII = r"[\w'-]"  # the same where there is nothing else, compiled in a fraction of the time

# A lone surrogate cannot be written as UTF-8.
_REPLACED = {ord(MARK): MARK_IN_TEXT, **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


_EMPTY_PHRASE = "a required phrase is empty: give at least one character that is no space"
_ENDS_SENTENCE = frozenset(".!?…。！？")
_AROUND_SENTENCES = "".join(
    [*"\"'”’»)]}", *"([{“‘«¿¡", " "]
)  # may stand between a sentence's end and the next one's word


@dataclass(frozen=True)
class Literal:
    """A stretch of required text, printed verbatim, but for the capital that some may take."""

    text: str
    """What is printed, character for character."""
    joins_left: bool = False
    """Whether it stands directly against what comes before it."""
    joins_right: bool = False
    """Whether it stands directly against what comes after it."""
    takes_capital: bool = False
    """Whether it begins with a capital at the start of a sentence, if it was given in lower case: keywords do, text
    around blanks does not. What takes a capital ends no sentence: "e.g." may be one."""
    choices: tuple[str, ...] = ()
    """What one is drawn from to be printed instead, if it is open which form of a word appears."""
    before: str = " "
    """What parts it from the text before it, if it does not join; other than one space, it is printed in any case."""
    after: str = " "
    """The same for the text behind it."""


def normalise(text: str, *, lower_case: bool = False) -> str:
    """The text in NFC with single spaces, and without the joiner mark: what `join` gives back after `split`."""
    text = " ".join((text.lower() if lower_case else text).split())
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_REPLACED)


def split(text: str, lower_case: bool = False) -> list[str]:
    """The words and marked symbols of a text; `join` is the inverse.

    >>> split("It's 3.14 ... or so!?")
    ["It's", '3.14', '...', 'or', 'so', '￭!', '￭?']
    """
    chunks = normalise(text, lower_case=lower_case).split()
    return [part for chunk in chunks for part in _split_chunk(chunk)]


def join(parts: Iterable[str]) -> str:
    """The text of marked parts."""
    return render(list(parts))


def render(parts: Sequence[str | Literal], *, capitals: bool = False) -> str:
    """The text of marked parts and literals: one space between neighbours, unless one of them joins.

    With `capitals` literals that take one get it at the start of a sentence.

    >>> render(["(￭", Literal("New  York"), "￭,", "USA"])
    '(New  York, USA'
    """
    printed: list[str] = []
    previous = Literal("", joins_right=True)
    starts_sentence = capitals
    for part in parts:
        literal = part if isinstance(part, Literal) else _unmarked(part)
        printed.append(_space(previous, literal) if printed else "")
        takes_capital = literal.takes_capital and starts_sentence
        printed.append(capitalised(literal.text) if takes_capital else literal.text)
        previous = literal
        if core := literal.text.rstrip(_AROUND_SENTENCES):
            is_end = core[-1] in _ENDS_SENTENCE and not core.endswith(("..", "…")) and not literal.takes_capital
            goes_on = literal.joins_right and core == literal.text  # the point of 3.14 or of a.b
            starts_sentence = capitals and is_end and not goes_on
    return "".join(printed)


def _space(left: Literal, right: Literal) -> str:
    """What is printed between two neighbours."""
    own = [space for space in (left.after, right.before) if space != " "]
    return own[0] if own else " " * (not (left.joins_right or right.joins_left))


def capitalised(text: str) -> str:
    """The text with a capital first letter, if all of it is in lower case and that letter has one.

    >>> [capitalised(text) for text in ("new york", "iPhone", "3d", "ßa")]
    ['New york', 'iPhone', '3d', 'ßa']
    """
    first, upper = text[:1], text[:1].upper()
    return upper + text[1:] if text.islower() and len(upper) == 1 and upper.lower() == first else text


def touches(character: str) -> bool:
    """Whether a character that stands directly beside a word becomes part of it: letters, digits, - and '."""
    return re.match(_TOUCHING, character) is not None


def whole_word_pattern(phrase: str, *, ignore_case: bool = False, in_ascii: bool = False) -> re.Pattern[str]:
    """What finds a phrase where no letter, digit, hyphen or apostrophe touches it; its inner spaces may be any. The one
    for texts `in_ascii` is made faster."""
    words = phrase.split()
    if not words:
        raise ValueError(_EMPTY_PHRASE)
    escaped = r"\s+".join(re.escape(word) for word in words)
    touching = _TOUCHING_IN_ASCII if in_ascii else _TOUCHING
    return re.compile(f"(?<!{touching}){escaped}(?!{touching})", re.IGNORECASE if ignore_case else 0)


def contains_in_order(text: str, phrases: Iterable[str], *, ignore_case: bool = False) -> bool:
    """Whether all phrases occur as whole words, in their order, each as often as it is given, none overlapping.

    A phrase in lower case may begin with a capital where a sentence begins.
    """
    text, end = unicodedata.normalize("NFC", text), 0
    for phrase in phrases:
        span = next(find_phrase(text, phrase, end, ignore_case=ignore_case), None)
        if span is None:
            return False
        end = span[1]
    return True


def count_found(text: str, phrases: Iterable[str], *, ignore_case: bool = False) -> int:
    """How many of the phrases occur as whole words, in any order; one given twice counts twice if it is there twice.

    A phrase in lower case may begin with a capital where a sentence begins.
    """
    text = unicodedata.normalize("NFC", text)
    wanted = Counter(_canonical(phrase.lower() if ignore_case else phrase) for phrase in phrases)
    return sum(
        min(times, sum(1 for _ in find_phrase(text, phrase, ignore_case=ignore_case)))
        for phrase, times in wanted.items()
    )


def find_phrase(text: str, phrase: str, start: int = 0, *, ignore_case: bool = False) -> Iterator[tuple[int, int]]:
    """Start and end of each place where a phrase stands as whole words in a text in NFC, none overlapping; a phrase in
    lower case may begin with a capital where a sentence begins.

    >>> list(find_phrase("Day by day. (Day!) The Day", "day"))
    [(0, 3), (7, 10), (13, 16)]
    """
    phrase = _single_spaced(phrase)
    forms = list(dict.fromkeys(map(_canonical, [phrase] if ignore_case else [phrase, capitalised(phrase)])))
    find = _regex_span if ignore_case or text != _single_spaced(text) else _plain_span
    while found := min((span for form in forms if (span := find(text, form, start, ignore_case))), default=None):
        begin, end, form = found
        if form == forms[0] or _starts_sentence(text, begin):
            yield begin, end
            start = end
        else:
            start = begin + 1


def _regex_span(text: str, form: str, start: int, ignore_case: bool) -> tuple[int, int, str] | None:
    """Where a phrase first stands as whole words, and the phrase; None for nowhere."""
    match = _pattern(form, ignore_case, text.isascii()).search(text, start)
    return match and (*match.span(), form)


def _plain_span(text: str, form: str, start: int, _: bool) -> tuple[int, int, str] | None:
    """The same in a text with single spaces, where no pattern is needed: to compile one takes a hundred times as long
    as to look for the phrase."""
    if not form:
        raise ValueError(_EMPTY_PHRASE)
    begin = text.find(form, start)
    while begin >= 0:
        end = begin + len(form)
        if not (touches(text[begin - 1 : begin]) or touches(text[end : end + 1])):
            return begin, end, form
        begin = text.find(form, begin + 1)
    return None


def _starts_sentence(text: str, position: int) -> bool:
    before = text[:position].rstrip(_AROUND_SENTENCES)
    return before == "" or before[-1] in _ENDS_SENTENCE


def _canonical(phrase: str) -> str:
    return _single_spaced(unicodedata.normalize("NFC", phrase))


def _single_spaced(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=4096)
def _pattern(phrase: str, ignore_case: bool, in_ascii: bool) -> re.Pattern[str]:
    return whole_word_pattern(unicodedata.normalize("NFC", phrase), ignore_case=ignore_case, in_ascii=in_ascii)


@lru_cache(maxsize=1 << 16)  # few distinct chunks make up most of a corpus
def _split_chunk(chunk: str) -> tuple[str, ...]:
    """The marked parts of a stretch without spaces: all of them touch."""
    found = list(_PART.finditer(chunk))
    parts = [match.group() for match in found]
    is_symbol = [match["symbol"] is not None for match in found]
    for right in range(1, len(parts)):
        left = right - 1
        opens = parts[right][0] in OPENERS
        # Two words never touch, so one of the two can carry the mark; an opener leans on what follows it.
        if is_symbol[right] and (not opens or not is_symbol[left]):
            parts[right] = MARK + parts[right]
        else:
            assert is_symbol[left], f"two words touch in {chunk!r}"
            parts[left] += MARK
    return tuple(parts)


def _unmarked(part: str) -> Literal:
    joins_left = part.startswith(MARK)
    joins_right = part.endswith(MARK)
    return Literal(part.strip(MARK), joins_left, joins_right)
