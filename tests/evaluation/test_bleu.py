"""BLEU is sacrebleu's, with references that may differ in number, and says how it was counted."""

import math
import random

import pytest

from insnet.evaluation.bleu import bleu

WORDS = ["the", "a", "dog", "cat", "runs", "sees", "of", "big"]


def random_line(rng, shortest, longest):
    return " ".join(rng.choices(WORDS, k=rng.randint(shortest, longest)))


def slow_bleu(outputs, references, order):
    """Papineni's formula in lists; the corpora below match at every order, so smoothing never enters."""

    def runs(text, n):
        words = text.split()
        return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]

    logs = []
    for n in range(1, order + 1):
        matched = total = 0
        for output, several in zip(outputs, references, strict=True):
            found = runs(output, n)
            total += len(found)
            for ngram in set(found):
                matched += min(found.count(ngram), max(runs(text, n).count(ngram) for text in several))
        logs.append(math.log(matched / total))
    produced = sum(len(output.split()) for output in outputs)
    expected = 0
    for output, several in zip(outputs, references, strict=True):
        own = len(output.split())
        expected += min((len(text.split()) for text in several), key=lambda length: (abs(length - own), length))
    return 100 * math.exp(min(0.0, 1 - expected / produced) + sum(logs) / order)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_equals_the_formula_with_differing_numbers_of_references(order, seed):
    rng = random.Random(seed)
    references = [[random_line(rng, 6, 14) for _ in range(rng.randint(1, 4))] for _ in range(30)]
    outputs = [several[0].split(" ", 1)[1] + " " + random_line(rng, 1, 4) for several in references]
    assert bleu(outputs, references, order=order).score == pytest.approx(slow_bleu(outputs, references, order))


def test_a_known_number():
    # Unigrams 5/6, bigrams 3/5, no brevity penalty: 100 * sqrt(1/2).
    found = bleu(["the cat sat on the mat"], ["the cat is on the mat"], order=2)
    assert found.score == pytest.approx(100 * math.sqrt(0.5))


def test_single_reference_may_come_as_a_string_or_a_list():
    outputs, references = ["a b c d e", "f g h i"], ["a b c d x", "f g h i"]
    assert bleu(outputs, references) == bleu(outputs, [[text] for text in references])


def test_signature_says_how_it_was_counted():
    found = bleu(["a b c d"], [["a b c d"]])
    assert found.order == 4
    assert found.signature.startswith("nrefs:1|case:lc|eff:no|tok:none|smooth:exp|version:2.")
    assert "nrefs:var" in bleu(["a", "b"], [["a"], ["b", "c"]]).signature
    assert "case:mixed|eff:no|tok:13a" in bleu(["a"], ["a"], tokenize="13a", lower_case=False).signature


def test_whitespace_words_are_the_default_and_13a_splits_punctuation():
    assert bleu(["good food."], ["good food ."], order=2).score < 100
    assert bleu(["good food."], ["good food ."], order=2, tokenize="13a").score == pytest.approx(100)


def test_case_counts_only_if_asked_for():
    assert bleu(["The Dog Runs Home"], ["the dog runs home"]).score == pytest.approx(100)
    assert bleu(["The Dog Runs Home"], ["the dog runs home"], lower_case=False).score == 0


def test_an_empty_output_line_costs_its_length():
    with_empty = bleu(["a b c d e", ""], ["a b c d e", "f g h i j"])
    assert with_empty.score == pytest.approx(100 * math.exp(1 - 10 / 5))


def test_outputs_without_a_4gram_score_zero_in_bleu4_only():
    outputs, references = ["a b c", "d e"], ["a b c", "d e"]
    assert bleu(outputs, references, order=4).score == 0
    assert bleu(outputs, references, order=2).score == pytest.approx(100)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], []), {}, "no text to score"),
        ((["a", "b"], ["a"]), {}, "2 outputs but 1 references"),
        ((["a", "b"], ["a", []]), {}, "sentence 2 has no reference"),
        ((["a"], ["a"]), {"order": 0}, "n-gram order 0"),
        ((["a"], ["a"]), {"tokenize": "nonsense"}, "no tokenizer 'nonsense'"),
    ],
)
def test_a_mistake_is_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        bleu(*arguments, **options)
