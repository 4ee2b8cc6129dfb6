"""Words that a text must not hold, as a filter for finished texts."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from insnet.text.corpus import read_lines
from insnet.text.inflection import choices_of

ANY_LETTERS = "*"  # in a word of the list


@dataclass(frozen=True)
class RefusedWords:
    """Accepts a text that holds none of some words and phrases: what `accept` of Model.generate takes.

    Upper and lower case are one, a star stands for any letters, and what a hyphen or an apostrophe parts are words:

    >>> accepts = RefusedWords(("damn", "blood*", "go to hell"))
    >>> [accepts(text) for text in ("Damn's a word.", "A bloodless coup.", "Go to  Hell!", "The Amsterdam dam.")]
    [False, False, False, True]
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        for word in self.words:
            if not re.search(r"\w", word):
                raise ValueError(f"{word!r} in the list of refused words has no letter: it would refuse every text")

    @classmethod
    def read(cls, path: str | Path) -> "RefusedWords":
        """The words of a file, one per line; empty lines are skipped."""
        words = tuple(dict.fromkeys(read_lines(path, skip_empty=True)))
        if not words:
            raise ValueError(f"{path} holds no words to refuse; expected one per line")
        return cls(words)

    def __call__(self, text: str) -> bool:
        return self.found_in(text) is None

    def found_in(self, text: str) -> str | None:
        """The first refused word that the text holds, as it stands there."""
        found = self._pattern.search(_canonical(text))
        return found.group() if found else None

    def check_required(self, phrases: Iterable[str]) -> None:
        """A ValueError if a phrase that must be in a text is refused in all its forms: no draw could ever do."""
        for phrase in phrases:
            found = [self.found_in(form) for form in choices_of(phrase)]
            if None not in found:
                raise ValueError(f"{found[0]!r} is both required and refused; drop one of the two")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        choices = "|".join(sorted(map(_pattern_of_word, self.words), key=len, reverse=True))
        return re.compile(rf"(?<!\w)(?:{choices})(?!\w)", re.IGNORECASE)


def _pattern_of_word(word: str) -> str:
    parts = _canonical(word).split()
    return r"\s+".join(re.escape(part).replace(re.escape(ANY_LETTERS), r"\w*") for part in parts)


def _canonical(text: str) -> str:
    """One way to write letters, and one apostrophe."""
    return unicodedata.normalize("NFKC", text).replace("’", "'")
