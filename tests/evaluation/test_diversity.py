"""Distinct n-grams and self-BLEU, against slow twins."""

import random

import pytest
from sacrebleu.metrics import BLEU

from insnet.evaluation.diversity import distinct, self_bleu


def random_texts(seed, count, words="the a dog cat runs sees of big", shortest=0, longest=12):
    rng = random.Random(seed)
    return [" ".join(rng.choices(words.split(), k=rng.randint(shortest, longest))) for _ in range(count)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_distinct_is_different_over_all(n):
    texts = random_texts(n, 20)
    everything = [tuple(words[i : i + n]) for words in map(str.split, texts) for i in range(len(words) - n + 1)]
    assert distinct(texts, n) == len(set(everything)) / len(everything)


def test_distinct_does_not_run_across_lines_and_ignores_case():
    assert distinct(["a b", "b a"], 2) == 1.0
    assert distinct(["a B", "A b"], 2) == 0.5
    assert distinct(["a B", "A b"], 2, lower_case=False) == 1.0


def test_distinct_is_zero_without_any_ngram():
    assert distinct(["a", ""], 2) == 0.0


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_self_bleu_equals_sentence_bleu_against_all_others(order, seed):
    texts = [*random_texts(seed, 25), "a dog runs", "a dog runs", ""]
    metric = BLEU(max_ngram_order=order, tokenize="none", lowercase=True, effective_order=True)
    one_by_one = [metric.sentence_score(text, texts[:i] + texts[i + 1 :]).score for i, text in enumerate(texts)]
    assert self_bleu(texts, order=order) == pytest.approx(sum(one_by_one) / len(texts))


def test_self_bleu_of_copies_is_100_and_of_strangers_0():
    assert self_bleu(["a b c d e"] * 3) == pytest.approx(100)
    assert self_bleu(["a b c d e", "f g h i j"]) == 0.0


def test_a_sample_is_repeatable_and_drawn_by_the_seed():
    texts = random_texts(7, 300, shortest=5)
    first = self_bleu(texts, sample=40, seed=1)
    assert first == self_bleu(texts, sample=40, seed=1)
    assert first != self_bleu(texts, sample=40, seed=2)
    assert self_bleu(texts, sample=300) == self_bleu(texts, sample=None)


@pytest.mark.parametrize(
    ("texts", "sample", "message"),
    [
        ([], None, "no text to score"),
        (["one"], None, "give 2 or more"),
        (["a", "b"], 1, "give 2 or more"),
        ("ab", None, "one string"),
    ],
)
def test_self_bleu_needs_two_texts(texts, sample, message):
    with pytest.raises(ValueError, match=message):
        self_bleu(texts, sample=sample)


def test_distinct_names_a_mistake():
    with pytest.raises(ValueError, match="no text to score"):
        distinct([], 1)
    with pytest.raises(ValueError, match="n-gram order 0"):
        distinct(["a"], 0)
