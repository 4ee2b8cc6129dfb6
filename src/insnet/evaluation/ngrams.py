"""Words and n-grams, as every score here counts them."""

from collections import Counter
from collections.abc import Sequence

Ngram = tuple[str, ...]


def words_of(text: str, *, lower_case: bool) -> list[str]:
    """The whitespace words of a text."""
    return (text.lower() if lower_case else text).split()


def count_ngrams(words: Sequence[str], order: int) -> Counter[Ngram]:
    """How often each run of `order` words occurs.

    >>> count_ngrams(["to", "be", "or", "to", "be"], 2)[("to", "be")]
    2
    """
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))


def check_order(order: int) -> None:
    """Refuse an n-gram order below one."""
    if order < 1:
        raise ValueError(f"n-gram order {order} is too small: give 1 or more")
