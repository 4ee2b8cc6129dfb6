"""Which words or places somebody means."""

from collections.abc import Iterable

Numbers = int | slice | Iterable[int]
"""One, a slice, or some."""


def numbers_of(wanted: Iterable[Numbers], count: int, noun: str) -> list[int]:
    """The numbers that are meant among so many, in order and each once.

    >>> numbers_of([-1, slice(2), range(1, 3)], 9, "word")
    [0, 1, 2, 8]
    """
    found: set[int] = set()
    for each in wanted:
        if isinstance(each, slice):
            found.update(range(count)[each])
        elif isinstance(each, int):
            found.add(_checked(each, count, noun))
        elif isinstance(each, Iterable) and not isinstance(each, str | bytes):
            found.update(_checked(number, count, noun) for number in each)
        else:
            raise ValueError(f"cannot find {noun} {each!r}; expected a number, a slice or a list of numbers")
    return sorted(found)


def _checked(number: int, count: int, noun: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"cannot find {noun} {number!r}; expected a whole number")
    if not -count <= number < count:
        has = f"the draft has {count}, from 0 to {count - 1}" if count else "the draft has none"
        raise ValueError(f"there is no {noun} {number}: {has}")
    return number % count
