"""A text that is edited and written on, in turns. Every edit gives a new draft."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol, overload

from insnet.drafts import exchange
from insnet.drafts.numbers import Numbers, numbers_of
from insnet.drafts.stretches import assembled
from insnet.drafts.words import Place, Word, check_characters, printed_apart, text_of, words_of
from insnet.text.words import BLANK, whole_word_pattern

if TYPE_CHECKING:
    from insnet.decoding.request import Request
    from insnet.model import Result

_JOINS_WHAT_IS_BEFORE = frozenset(".,;:!?)]}”»…%")


class Writer(Protocol):
    """What fills a draft: a model."""

    def fill(self, request: "Request", num_samples: int | None = None, **options: Any) -> "Result | list[Result]":
        """A text around what the request holds."""


@dataclass(frozen=True)
class Draft:
    """A text whose words can be locked, deleted and written anew: `lock` what shall stay and `rewrite` the rest, or
    `delete` what shall change and `refill` it.

    Words and places are addressed by number: one, several, slices, ranges; from 0, or from the end if negative."""

    words: tuple[Word, ...]
    places: tuple[Place, ...]
    """What may be written in front of each word and, the last one, at the end."""
    banned: tuple[str, ...] = ()
    """Words and phrases that are never written in this draft."""
    model: Writer | None = field(default=None, repr=False, compare=False)
    """What writes."""
    result: "Result | None" = field(default=None, repr=False, compare=False)
    """How the text came about, if no edit was made since: with seed, log-probability and trace. In its own text, single
    spaces stand around what was written."""

    def __post_init__(self) -> None:
        if len(self.places) != len(self.words) + 1:
            raise ValueError(f"a draft has {len(self.words)} words and {len(self.places)} places; expected one more")

    # ---- where drafts come from ----

    @classmethod
    def of_text(cls, text: str) -> "Draft":
        """A text with no word locked; ___ is a blank, and a text without words is one, too."""
        if not isinstance(text, str):
            raise ValueError(f"the text of a draft is {text!r}; expected a text")
        parts = text.split(BLANK)
        words, places = list[Word](), [Place.CLOSED if text.strip() else Place.BLANK]
        for number, part in enumerate(parts):
            own = _between_blanks(part, has_before=number > 0, has_after=number < len(parts) - 1)
            places[-1] = Place.BLANK if number > 0 else places[-1]
            words += own
            places += [Place.CLOSED] * len(own)
        return cls(tuple(words), tuple(places))

    @classmethod
    def of_keywords(cls, keywords: Sequence[str]) -> "Draft":
        """Words and phrases, all locked; around each something may be written."""
        from insnet.decoding.request import required_words  # takes torch, which a draft by itself does without

        words, places = list[Word](), [Place.OPTIONAL]
        for literal in required_words(keywords):
            if literal.choices:
                raise ValueError(f"{literal.text}* stands for several forms; a draft holds words: write one of them")
            own = words_of(literal.text, is_locked=True)
            words += own
            places += [*[Place.CLOSED] * (len(own) - 1), Place.OPTIONAL]
        return cls(tuple(words), tuple(places)) if words else cls.of_text("")

    @classmethod
    def of_spans(cls, text: str, spans: Sequence[tuple[int, int]]) -> "Draft":
        """A text that a model wrote around what stands at some spans of it, which is locked."""
        stretches = [words_of(text[start:end], is_locked=True) for start, end in spans]
        return cls(*assembled(text, spans, stretches, [Place.CLOSED] * (len(spans) + 1)))

    @classmethod
    def from_json(cls, content: str | bytes) -> "Draft":
        """The draft that `to_json` wrote; it has no model until `model.draft` gives it one."""
        return cls.of_dict(exchange.parsed(content))

    @classmethod
    def of_dict(cls, values: object) -> "Draft":
        """The draft that `as_dict` describes."""
        return cls(*exchange.checked(values))

    # ---- what it says ----

    @property
    def text(self) -> str:
        """The words as a text, without a sign of open places."""
        return text_of(self.words)

    def __str__(self) -> str:
        """The text with ___ in its blanks, as `of_text` reads it."""
        blank = Word(BLANK)
        parts = []
        for word, place in zip(self.words, self.places, strict=False):
            parts += [replace(blank, space=word.space or " "), word] if place is Place.BLANK else [word]
        return text_of([*parts, blank] if self.places[-1] is Place.BLANK else parts)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where each word stands in the text: its start and its end."""
        ends = accumulate(map(len, printed_apart(self.words)))
        return [(end - len(word.text), end) for word, end in zip(self.words, ends, strict=True)]

    @property
    def has_blanks(self) -> bool:
        """Whether there is a place where something has to be written."""
        return Place.BLANK in self.places

    @property
    def is_open(self) -> bool:
        """Whether there is a place where anything may be written."""
        return set(self.places) != {Place.CLOSED}

    def to_json(self) -> str:
        """The draft as one line of JSON, without its model and result."""
        return exchange.written(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """What `to_json` writes."""
        return exchange.described(self.words, self.places, self.banned)

    # ---- edits ----

    def lock(self, *words: Numbers) -> "Draft":
        """The draft with some words locked: they stay when it is rewritten, and neighbours stay together."""
        return self._with_locks(words, is_locked=True)

    def unlock(self, *words: Numbers) -> "Draft":
        """The draft with some words unlocked."""
        return self._with_locks(words, is_locked=False)

    def delete(self, *words: Numbers, leaves_blank: bool = True) -> "Draft":
        """The draft without some words that are not locked. Each run of them leaves a blank for a word or more, or, if
        it was of symbols alone, a place where something may be written; else their neighbours close up."""
        gone = self._unlocked(self._words(words), "deleted")
        kept, places, space = list[Word](), [self.places[0]], ""
        for number, (word, behind) in enumerate(zip(self.words, self.places[1:], strict=True)):
            if number in gone:
                left = (Place.OPTIONAL if word.is_symbol else Place.BLANK) if leaves_blank else Place.CLOSED
                places[-1] = places[-1].merged(behind).merged(left)
                space = space or word.space
            else:
                kept.append(replace(word, space=space or word.space))
                places.append(behind)
                space = ""
        return self._edited(words=tuple(kept), places=tuple(places))

    def ban(self, phrase: str) -> "Draft":
        """The draft without a word or phrase, in whatever case: it leaves blanks and is never written again."""
        if not isinstance(phrase, str) or not phrase.strip():
            raise ValueError(f"cannot ban {phrase!r}; expected a word or a phrase")
        matches = list(whole_word_pattern(phrase, ignore_case=True).finditer(self.text))
        found = [
            number
            for number, (start, end) in enumerate(self.spans)
            if any(start < match.end() and match.start() < end for match in matches)
        ]
        self._unlocked(found, "banned")
        banned = tuple(dict.fromkeys([*self.banned, " ".join(phrase.split())]))
        return replace(self.delete(found), banned=banned)

    def insert(self, place: int, text: str) -> "Draft":
        """The draft with words of your own at a place, locked. A blank there is thereby filled."""
        [place] = numbers_of([place], len(self.places), "place")
        side = Place.OPTIONAL if self.places[place] is Place.OPTIONAL else Place.CLOSED
        return self._with_own(place, place, text, (side, side))

    def replace(self, words: Numbers, text: str) -> "Draft":
        """The draft with words of your own, locked, for one or for some that stand together; none may be locked."""
        gone = self._unlocked(self._words([words]), "replaced")
        if not gone or gone != list(range(gone[0], gone[-1] + 1)):
            raise ValueError(f"the words {gone} do not stand together; replace one after the other")
        return self._with_own(gone[0], gone[-1] + 1, text, (self.places[gone[0]], self.places[gone[-1] + 1]))

    def open(self, *places: Numbers, optional: bool = False) -> "Draft":
        """The draft with blanks at some places, for a word or more each; with `optional`, for something or nothing."""
        return self._with_places(places, Place.OPTIONAL if optional else Place.BLANK)

    def close(self, *places: Numbers) -> "Draft":
        """The draft with some places closed: nothing is written there."""
        return self._with_places(places, Place.CLOSED)

    # ---- what a model writes ----

    @overload
    def refill(self, *, num_samples: None = None, **options: Any) -> "Draft": ...
    @overload
    def refill(self, *, num_samples: int, **options: Any) -> "list[Draft]": ...
    def refill(self, *, num_samples: int | None = None, **options: Any) -> "Draft | list[Draft]":
        """The draft with its open places filled and all words kept, locked or not; with `num_samples`, a list of
        different ones, best first where candidates are ranked. Options are those of `Model.infill`."""
        from insnet.drafts.filling import filled  # takes torch, which a draft by itself does without

        if not self.is_open:
            raise ValueError("no place of the draft is open: delete a word, open a place or rewrite what is not locked")
        return filled(self, num_samples, options)

    @overload
    def rewrite(self, *, num_samples: None = None, **options: Any) -> "Draft": ...
    @overload
    def rewrite(self, *, num_samples: int, **options: Any) -> "list[Draft]": ...
    def rewrite(self, *, num_samples: int | None = None, **options: Any) -> "Draft | list[Draft]":
        """The draft with all that is not locked written anew: the same as to delete it and to refill."""
        unlocked = [number for number, word in enumerate(self.words) if not word.is_locked]
        if not unlocked and not self.is_open:
            raise ValueError("every word of the draft is locked and no place is open: unlock a word or open a place")
        emptied = self.delete(unlocked)
        return emptied.refill(**options) if num_samples is None else emptied.refill(num_samples=num_samples, **options)

    # ---- how ----

    def _edited(self, **changes: Any) -> "Draft":
        return replace(self, **changes, result=None)

    def _words(self, numbers: Iterable[Numbers]) -> list[int]:
        return numbers_of(numbers, len(self.words), "word")

    def _unlocked(self, numbers: list[int], what: str) -> list[int]:
        """The numbers, if none of these words is locked."""
        for number in numbers:
            if self.words[number].is_locked:
                raise ValueError(f"{self.words[number].text!r} is locked and cannot be {what}; unlock it first")
        return numbers

    def _with_locks(self, numbers: Iterable[Numbers], *, is_locked: bool) -> "Draft":
        changed = set(self._words(numbers))
        words = (replace(w, is_locked=is_locked) if n in changed else w for n, w in enumerate(self.words))
        return self._edited(words=tuple(words))

    def _with_places(self, numbers: Iterable[Numbers], kind: Place) -> "Draft":
        changed = set(numbers_of(numbers, len(self.places), "place"))
        return self._edited(places=tuple(kind if n in changed else p for n, p in enumerate(self.places)))

    def _with_own(self, first: int, end: int, text: str, sides: tuple[Place, Place]) -> "Draft":
        """The draft with words of one's own in place of those from `first` to `end`, and the places beside them."""
        own, gone, behind = _own_words(text), self.words[first:end], self.words[end:]
        joins = own[0].text[0] in _JOINS_WHAT_IS_BEFORE or (own[0].is_symbol and any(w.joins_left for w in gone[:1]))
        space = next((word.space for word in (*gone, *behind) if word.space), "")
        own[0] = replace(own[0], joins_left=joins and first > 0, space=space)
        places = (*self.places[:first], sides[0], *[Place.CLOSED] * (len(own) - 1), sides[1], *self.places[end + 1 :])
        return self._edited(words=(*self.words[:first], *own, *behind), places=places)


def _between_blanks(part: str, *, has_before: bool, has_after: bool) -> list[Word]:
    """The words of a part of a text; a symbol that touches a blank joins what will be written there."""
    words = list(words_of(part))
    touches_before = has_before and part[:1].strip() != ""
    touches_after = has_after and part[-1:].strip() != ""
    if (touches_before and not words[0].may_join_left) or (touches_after and not words[-1].may_join_right):
        raise ValueError(f"a blank touches the word in {part.strip()!r}; put a space between blank and word")
    if touches_before:
        words[0] = replace(words[0], joins_left=True)
    if touches_after:
        words[-1] = replace(words[-1], joins_right=True)
    if words and not has_before:
        words[0] = replace(words[0], space="")
    return words


def _own_words(text: str) -> list[Word]:
    """Words that somebody writes themselves, locked."""
    if not isinstance(text, str) or not text.strip() or BLANK in text:
        raise ValueError(f"the words to put in are {text!r}; expected one or more; for a blank, open a place")
    check_characters(text)
    return list(words_of(text.strip(), is_locked=True))
