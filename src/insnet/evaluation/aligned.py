"""Outputs and their references, checked to belong together."""

from collections.abc import Sequence

References = Sequence[str | Sequence[str]]
"""One entry per sentence: its reference, or several of them (as many as there are for that sentence)."""


def reference_lists(outputs: Sequence[str], references: References) -> list[list[str]]:
    """The references of every output as a list, one or more each.

    >>> reference_lists(["a b", "c"], ["a b", ["c", "d"]])
    [['a b'], ['c', 'd']]
    """
    check_texts(outputs)
    check_same_length("outputs", outputs, "references", references)
    lists = [[entry] if isinstance(entry, str) else list(entry) for entry in references]
    for line, several in enumerate(lists, start=1):
        if not several:
            raise ValueError(f"sentence {line} has no reference: every output needs at least one")
    return lists


def check_texts(texts: Sequence[str]) -> None:
    """Refuse a bare string (its characters would be scored as texts) and an empty list."""
    if isinstance(texts, str):
        raise ValueError("texts came as one string: give a list with one text per sentence")
    if not texts:
        raise ValueError("there is no text to score: give at least one output")


def check_same_length(name: str, one: Sequence[object], other_name: str, other: Sequence[object]) -> None:
    """Refuse two lists that do not go line by line."""
    if isinstance(other, str):
        raise ValueError(f"{other_name} came as one string: give a list with one entry per sentence")
    if len(one) != len(other):
        raise ValueError(f"{len(one)} {name} but {len(other)} {other_name}: both need one entry per sentence")
