"""Whether required words are there: as whole words, as often as they were asked for, in their order.

One in lower case may have a capital where a sentence begins.
"""

from collections.abc import Sequence

from insnet.evaluation.aligned import check_same_length, check_texts
from insnet.text.words import contains_in_order, count_found

Keywords = Sequence[Sequence[str]]
"""One list of words or phrases per sentence."""


def coverage(outputs: Sequence[str], keywords: Keywords, *, ignore_case: bool = False) -> float:
    """The share of all required words that occur; one required twice counts twice. 1 where nothing was required.

    >>> coverage(["A cat's cat ."], [["cat", "cat", "mat"]])
    0.3333333333333333
    """
    check_keywords(outputs, keywords)
    required = sum(len(phrases) for phrases in keywords)
    found = sum(
        count_found(text, phrases, ignore_case=ignore_case) for text, phrases in zip(outputs, keywords, strict=True)
    )
    return found / required if required else 1.0


def all_in_order(outputs: Sequence[str], keywords: Keywords, *, ignore_case: bool = False) -> float:
    """The share of outputs in which all their required words occur, in the given order and as often as given.

    >>> all_in_order(["a b", "a b"], [["a", "b"], ["b", "a"]])
    0.5
    """
    check_keywords(outputs, keywords)
    kept = sum(
        contains_in_order(text, phrases, ignore_case=ignore_case)
        for text, phrases in zip(outputs, keywords, strict=True)
    )
    return kept / len(outputs)


def check_keywords(outputs: Sequence[str], keywords: Keywords) -> None:
    """Refuse keywords that do not come as one list per sentence."""
    check_texts(outputs)
    check_same_length("outputs", outputs, "keyword lists", keywords)
    for line, phrases in enumerate(keywords, start=1):
        if isinstance(phrases, str):
            raise ValueError(f"the keywords of sentence {line} came as one string: give a list of words or phrases")
