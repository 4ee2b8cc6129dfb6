"""How long the texts are, in whitespace words of the printed text."""

from collections.abc import Sequence

from insnet.evaluation.aligned import References, check_texts, reference_lists


def mean_words(texts: Sequence[str]) -> float:
    """The average number of words per text.

    >>> mean_words(["a b", "c"])
    1.5
    """
    check_texts(texts)
    return sum(len(text.split()) for text in texts) / len(texts)


def length_ratio(outputs: Sequence[str], references: References) -> float:
    """The words of all outputs over those of the references; several references of a sentence count as their mean.

    >>> length_ratio(["a b c"], [["a b", "a b c d e f"]])
    0.75
    """
    expected = sum(mean_words(texts) for texts in reference_lists(outputs, references))
    if expected == 0:
        raise ValueError("all references are empty: a length ratio needs at least one word in them")
    return sum(len(text.split()) for text in outputs) / expected
