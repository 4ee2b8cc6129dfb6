"""How much the texts of a set differ from one another."""

import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from sacrebleu.metrics.bleu import BLEU

from insnet.evaluation.aligned import check_texts
from insnet.evaluation.ngrams import Ngram, check_order, count_ngrams, words_of


def distinct(texts: Sequence[str], n: int, *, lower_case: bool = True) -> float:
    """The different n-grams of all texts over all their n-grams; 0 where no text is long enough to have one.

    It falls as a set grows, so compare only sets of about the same size.

    >>> distinct(["a b a b"], 1), distinct(["a b a b"], 2)
    (0.5, 0.6666666666666666)
    """
    check_order(n)
    check_texts(texts)
    seen: set[Ngram] = set()
    total = 0
    for text in texts:
        counts = count_ngrams(words_of(text, lower_case=lower_case), n)
        seen.update(counts)
        total += counts.total()
    return len(seen) / max(total, 1)


def self_bleu(
    texts: Sequence[str], *, order: int = 4, sample: int | None = 1000, seed: int = 0, lower_case: bool = True
) -> float:
    """The mean sentence BLEU of each text with all the others as its references: 100 for copies, low for a varied set.

    It grows with the size of the set; `sample` texts, drawn by `seed`, stand for a larger one (None takes all).
    Sentence BLEU is sacrebleu's: effective order and exponential smoothing. Time is linear in the number of texts.
    """
    check_order(order)
    check_texts(texts)
    if len(texts) < 2 or (sample is not None and sample < 2):
        raise ValueError(
            f"self-BLEU compares texts with one another: {len(texts)} texts, sample {sample}; give 2 or more"
        )
    if sample is not None and sample < len(texts):
        texts = random.Random(seed).sample(list(texts), sample)
    all_words = [words_of(text, lower_case=lower_case) for text in texts]
    matches, totals = _matches_with_others(all_words, order)
    lengths = sorted(len(words) for words in all_words)
    scores = (
        BLEU.compute_bleu(
            correct=matches[index],
            total=totals[index],
            sys_len=len(words),
            ref_len=_closest_other(lengths, len(words)),
            smooth_method="exp",
            effective_order=True,
            max_ngram_order=order,
        ).score
        for index, words in enumerate(all_words)
    )
    return sum(map(float, scores)) / len(all_words)


def _matches_with_others(all_words: Sequence[list[str]], order: int) -> tuple[list[list[int]], list[list[int]]]:
    """For every text and order, its n-grams found in another text (clipped), and all its n-grams."""
    matches: list[list[int]] = [[] for _ in all_words]
    totals: list[list[int]] = [[] for _ in all_words]
    for n in range(1, order + 1):
        counts = [count_ngrams(words, n) for words in all_words]
        top_two = _top_two(pair for count in counts for pair in count.items())
        for index, count in enumerate(counts):
            matches[index].append(
                sum(min(times, _most_elsewhere(times, top_two[ngram])) for ngram, times in count.items())
            )
            totals[index].append(count.total())
    return matches, totals


def _top_two(pairs: Iterable[tuple[Ngram, int]]) -> dict[Ngram, tuple[int, int]]:
    """The two highest counts that any two texts have of each n-gram (0 where only one has it)."""
    top_two: dict[Ngram, tuple[int, int]] = {}
    for ngram, times in pairs:
        first, second = top_two.get(ngram, (0, 0))
        top_two[ngram] = (times, first) if times > first else (first, max(second, times))
    return top_two


def _most_elsewhere(times: int, top_two: tuple[int, int]) -> int:
    """The highest count in the other texts: the second highest of all where this text has the highest."""
    first, second = top_two
    return second if times == first else first


def _closest_other(lengths: Sequence[int], own: int) -> int:
    """The length of another text nearest to `own`, the shorter of two equally near."""
    place = bisect_left(lengths, own)  # lengths are sorted, and one of them is this text's own
    neighbours = [lengths[near] for near in (place - 1, place + 1) if 0 <= near < len(lengths)]
    return min(neighbours, key=lambda length: (abs(length - own), length))
