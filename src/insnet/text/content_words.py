"""Words that people ask for: whatever carries meaning, names and numbers too, and above all nouns.

What is a noun is told by counts, from where words stand in a corpus: behind a determiner and before a function word or
a mark, seldom behind a pronoun.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from insnet.text.keywords import stands_alone
from insnet.text.stop_words import is_stop_word
from insnet.text.words import split

CONTENT, NOUN = 1, 2

_BEFORE_NOUNS = "a an the my your his her our their its this that these those some no any each every"
_BEFORE_VERBS = "i you he she it we they who to will would can could should must may might not don't"
_LEAST_NOUN_SHARE = 0.15  # of a noun's occurrences, those that show it to be one
_NOUN_OVER_VERB = 2


@dataclass(frozen=True)
class ContentWords:
    """Says of each part of a line whether people ask for such words; can be sent to other processes."""

    nouns: frozenset[str]
    """Lower-cased."""

    @classmethod
    def learn(cls, lines: Iterable[str]) -> "ContentWords":
        """What a corpus, read once, shows to be nouns."""
        seen: Counter[str] = Counter()
        as_noun: Counter[str] = Counter()
        as_verb: Counter[str] = Counter()
        determiners, subjects = frozenset(_BEFORE_NOUNS.split()), frozenset(_BEFORE_VERBS.split())
        for line in lines:
            words = ["", *split(line, lower_case=True), ""]
            for before, word, after in zip(words, words[1:], words[2:], strict=False):
                seen[word] += 1
                as_noun[word] += before in determiners and not _is_content(after)
                as_verb[word] += before in subjects
        return cls(
            frozenset(
                word
                for word, count in seen.items()
                if as_noun[word] >= _LEAST_NOUN_SHARE * count and as_noun[word] > _NOUN_OVER_VERB * as_verb[word]
            )
        )

    def __call__(self, lines: list[str]) -> list[list[int]]:
        """For each line, the importance of each part of `split(line)`: NOUN, CONTENT or 0."""
        return [self.of_line(line) for line in lines]

    def of_line(self, line: str) -> list[int]:
        """The importance of each part of `split(line)`.

        >>> ContentWords(frozenset({"dog"})).of_line("In 1990 the dog barked at Rome.")
        [0, 1, 0, 2, 1, 0, 2, 0]
        """
        parts = split(line)
        padded = ["", *parts, ""]
        alone = [stands_alone(left, right) for left, right in zip(padded, padded[2:], strict=False)]
        return [
            self._importance(part, is_first=place == 0) if own and _is_content(part) else 0
            for place, (part, own) in enumerate(zip(parts, alone, strict=True))
        ]

    def _importance(self, part: str, *, is_first: bool) -> int:
        is_name = part[0].isupper() and not is_first
        return NOUN if is_name or part.lower() in self.nouns else CONTENT


def _is_content(part: str) -> bool:
    """Whether a part is a word or number, and no function word."""
    return any(map(str.isalnum, part)) and not is_stop_word(part.lower())
