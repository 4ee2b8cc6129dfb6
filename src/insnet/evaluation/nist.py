"""Corpus NIST of any order, as the scorer of the NIST evaluations (version 13a) counts it.

Doddington 2002, "Automatic Evaluation of Machine Translation Quality Using N-gram Co-occurrence Statistics".
Where that scorer takes a context that reads "0" for an empty one, this one does not.
"""

import math
from collections import Counter
from collections.abc import Sequence

from insnet.evaluation.aligned import References, reference_lists
from insnet.evaluation.ngrams import Ngram, check_order, count_ngrams, words_of

_PENALTY_SLOPE = math.log(2) / math.log(1.5) ** 2  # an output of two thirds the length keeps half its score

Words = list[str]


def nist(outputs: Sequence[str], references: References, *, order: int = 5, lower_case: bool = True) -> float:
    """The mean information of the matched n-grams, summed over orders 1 to `order`, times a length penalty.

    Unlike BLEU it has no upper bound; the rarer a matched n-gram is in the references, the more it is worth.

    >>> nist(["a b c d"], ["a b c d"], order=1)
    2.0
    """
    check_order(order)
    output_words = [words_of(text, lower_case=lower_case) for text in outputs]
    reference_words = [
        [words_of(text, lower_case=lower_case) for text in texts] for texts in reference_lists(outputs, references)
    ]
    information = _information([words for several in reference_words for words in several], order)
    gained = sum(_mean_gain(output_words, reference_words, information, n) for n in range(1, order + 1))
    return gained * _length_penalty(output_words, reference_words)


def _information(references: Sequence[Words], order: int) -> dict[Ngram, float]:
    """The bits that the last word of each n-gram adds to those before it, counted over all references."""
    total = sum(len(words) for words in references)
    count: Counter[Ngram] = Counter({(): total})  # the empty context of a single word
    for words in references:
        for n in range(1, order + 1):
            count.update(count_ngrams(words, n))
    return {ngram: math.log2(count[ngram[:-1]] / times) for ngram, times in count.items() if ngram}


def _mean_gain(
    outputs: Sequence[Words], references: Sequence[Sequence[Words]], information: dict[Ngram, float], n: int
) -> float:
    """The information of the matched n-grams, per n-gram of the outputs; 0 where the outputs have none."""
    gained, total = 0.0, 0
    for words, several in zip(outputs, references, strict=True):
        in_output = count_ngrams(words, n)
        in_references: Counter[Ngram] = Counter()
        for reference in several:
            in_references |= count_ngrams(reference, n)  # the most that any one reference has
        matched = in_output & in_references
        gained += sum(information[ngram] * times for ngram, times in matched.items())
        total += in_output.total()
    return gained / max(total, 1)


def _length_penalty(outputs: Sequence[Words], references: Sequence[Sequence[Words]]) -> float:
    """What is left of the score when the outputs are shorter than the references are on average."""
    produced = sum(len(words) for words in outputs)
    expected = sum(sum(len(words) for words in several) / len(several) for several in references)
    if expected == 0:
        raise ValueError("all references are empty: NIST needs at least one word in them")
    if produced == 0:
        return 0.0
    return math.exp(-_PENALTY_SLOPE * math.log(min(1.0, produced / expected)) ** 2)
