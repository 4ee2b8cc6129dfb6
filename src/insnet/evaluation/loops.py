"""What gives a text away whoever wrote it: that it goes in circles, or that it only lists what was asked for."""

import re
from collections.abc import Sequence

from insnet.evaluation.aligned import check_texts
from insnet.evaluation.coverage import Keywords, check_keywords
from insnet.evaluation.ngrams import count_ngrams

_LOOP = 4  # words
_FEWEST_IN_A_LIST = 3
_BETWEEN_ENTRIES = r"\W+(?:(?:and|or)\W+)?"


def loops(texts: Sequence[str]) -> float:
    """The share of texts in which four words in a row come twice, whatever their case and punctuation.

    >>> loops(["It was the end, it was the end.", "It was the end."])
    0.5
    """
    check_texts(texts)
    return sum(max(count_ngrams(_words(text), _LOOP).values(), default=0) > 1 for text in texts) / len(texts)


def keyword_lists(texts: Sequence[str], keywords: Keywords) -> float:
    """The share of texts that say three of their keywords in a row, with nothing but commas, "and" or "or" between.

    >>> keyword_lists(["A cat, a dog.", "Cat, dog and mouse."], [["cat", "dog"], ["cat", "dog", "mouse"]])
    0.5
    """
    check_keywords(texts, keywords)
    return sum(map(_lists, texts, keywords)) / len(texts)


def _lists(text: str, phrases: Sequence[str]) -> bool:
    if len(phrases) < _FEWEST_IN_A_LIST:
        return False
    entry = rf"(?:{'|'.join(map(re.escape, phrases))})"
    more = rf"(?:{_BETWEEN_ENTRIES}{entry}){{{_FEWEST_IN_A_LIST - 1}}}"
    return re.search(rf"(?<!\w){entry}{more}(?!\w)", text, re.IGNORECASE) is not None


def _words(text: str) -> list[str]:
    return re.findall(r"[\w'’]+", text.lower())
