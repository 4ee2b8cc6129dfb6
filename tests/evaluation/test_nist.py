"""NIST agrees with the scorer of the NIST evaluations and with a slow twin that counts in lists."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insnet.evaluation.nist import nist

OUTPUTS = [
    "the small dog ran over the green hill",
    "we had a good dinner at the old place by the sea",
    "nobody came to the party",
]
ONE_REFERENCE = [
    ["the small brown dog ran up the green hill"],
    ["we had a very good dinner at the place by the sea"],
    ["nobody at all came to the party last night"],
]
TWO_REFERENCES = [
    [ONE_REFERENCE[0][0], "a little dog ran over the hill"],
    [ONE_REFERENCE[1][0], "dinner at the old place by the sea was good"],
    [ONE_REFERENCE[2][0], "there was nobody"],
]

# The cumulative scores of orders 1 to 5 that mteval-v13a prints with -c and -n for these texts as SGML (one document,
# one segment a sentence, one refset entry a reference). Its tokenisation leaves all of them as they are. Made with the
# script's SGML reading and NIST scoring under perl 5.36, its XML and BLEU parts left out. In 60 random corpora (1 to
# 12 sentences, 1 to 4 references, orders 1 to 9, empty outputs among them) the two never differed by more than the
# rounding of the four digits.
GOLDEN = {
    "one reference": (OUTPUTS, ONE_REFERENCE, [3.4856, 3.8920, 3.8920, 3.8920, 3.8920]),
    "two references": (OUTPUTS, TWO_REFERENCES, [4.5805, 5.3343, 5.4396, 5.5021, 5.5021]),
    "every order adds": (
        ["a b a b b a a b a b", "b a a b a b a a"],
        [["a b a b b a b a a b b", "b b a b a b b a a a"], ["b a a b b a b a b b", "a a b a b a a b"]],
        [0.9778, 1.9438, 2.7706, 3.6103, 4.1539],
    ),
    "repeated words are clipped by the reference that has most": (
        ["the the the the the the the", "of of the cat of the mat"],
        [
            ["the cat is on the mat", "there is a cat on the mat of the the the house"],
            ["the mat of the cat", "of the cat the mat"],
        ],
        [1.2678, 1.9097, 2.0682, 2.0682, 2.0682],
    ),
    "no output has a 4-gram": (
        ["the dog ran", "we had dinner", "there was nobody"],
        [
            ["the dog ran home", "a dog ran"],
            ["we had a good dinner", "dinner we had"],
            ["nobody came", "there was nobody there"],
        ],
        [3.2700, 3.4207, 3.4207, 3.4207, 3.4207],
    ),
    "no output has a bigram": (
        ["dog", "dinner", "nobody"],
        [["the dog", "dog"], ["good dinner", "dinner"], ["nobody", "nobody came"]],
        [1.0850, 1.0850, 1.0850, 1.0850, 1.0850],
    ),
    "much shorter than the references": (
        ["the dog", "we had dinner", "nobody"],
        [
            TWO_REFERENCES[0],
            [ONE_REFERENCE[1][0], "we had dinner"],
            TWO_REFERENCES[2],
        ],
        [0.0043, 0.0047, 0.0057, 0.0057, 0.0057],
    ),
    "one output is empty": (["", OUTPUTS[1]], ONE_REFERENCE[:2], [0.9861, 1.0347, 1.0347, 1.0347, 1.0347]),
    "longer than the references": (
        ["the small brown dog ran up the green hill and then ran up the hill", "nobody at all came to the party"],
        [[ONE_REFERENCE[0][0], "the dog"], ["nobody at all came", "nobody came at all"]],
        [2.1388, 2.4473, 2.5028, 2.5028, 2.5028],
    ),
    "nothing matches": (["alpha beta gamma delta"], [["one two three"]], [0.0, 0.0, 0.0, 0.0, 0.0]),
    "case is kept": (
        ["The dog saw the Dog"],
        [["the dog saw The Dog again"]],
        [2.2469, 2.2469, 2.2469, 2.2469, 2.2469],
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_agrees_with_the_nist_scorer_to_four_digits(name):
    outputs, references, expected = GOLDEN[name]
    found = [nist(outputs, references, order=order, lower_case=False) for order in range(1, 6)]
    assert found == pytest.approx(expected, abs=5.1e-5)


def runs(words, n):
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]


def slow_nist(outputs, references, order):
    """The definition read aloud: lists, no counters, nothing shared between orders."""
    everything = [text.split() for several in references for text in several]

    def information(ngram):
        times = sum(runs(words, len(ngram)).count(ngram) for words in everything)
        before = ngram[:-1]
        context = sum(runs(words, len(before)).count(before) if before else len(words) for words in everything)
        return math.log2(context / times)

    score = 0.0
    for n in range(1, order + 1):
        gained, total = 0.0, 0
        for output, several in zip(outputs, references, strict=True):
            left = [runs(text.split(), n) for text in several]
            for ngram in runs(output.split(), n):
                total += 1
                if any(ngram in reference for reference in left):
                    gained += information(ngram)
                    for reference in left:  # used up once in every reference that still has it
                        if ngram in reference:
                            reference.remove(ngram)
        score += gained / total if total else 0.0
    produced = sum(len(output.split()) for output in outputs)
    expected = sum(Fraction(sum(len(text.split()) for text in several), len(several)) for several in references)
    ratio = min(1.0, produced / float(expected))
    return score * 0.5 ** ((math.log(ratio) / math.log(1.5)) ** 2) if ratio else 0.0


def texts(shortest, longest):
    return st.lists(st.sampled_from(["a", "b", "c", "0"]), min_size=shortest, max_size=longest).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(texts(0, 9), st.lists(texts(1, 9), min_size=1, max_size=3)), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_equals_the_slow_twin_with_any_number_of_references(corpus, order):
    outputs = [output for output, _ in corpus]
    references = [several for _, several in corpus]
    assert nist(outputs, references, order=order) == pytest.approx(slow_nist(outputs, references, order), abs=1e-9)


def test_two_thirds_of_the_length_keep_half_of_the_score():
    references = ["a b c d e f"]
    assert nist(["a b c d"], references, order=1) == pytest.approx(0.5 * math.log2(6))


def test_lower_case_is_the_default():
    assert nist(["THE Dog"], ["the dog"], order=2) == nist(["the dog"], ["the dog"], order=2)
    assert nist(["THE Dog"], ["the dog"], order=2, lower_case=False) == 0.0


def test_all_outputs_empty_score_zero():
    assert nist(["", " "], ["a b", "c"], order=4) == 0.0


@pytest.mark.parametrize(
    ("outputs", "references", "order", "message"),
    [
        ([], [], 4, "no text to score"),
        (["a"], ["a", "b"], 4, "1 outputs but 2 references"),
        (["a"], [[]], 4, "sentence 1 has no reference"),
        (["a"], [""], 4, "all references are empty"),
        (["a"], ["a"], 0, "n-gram order 0"),
        ("a", ["a"], 4, "one string"),
        (["a"], "a", 4, "one string"),
    ],
)
def test_a_mistake_is_named(outputs, references, order, message):
    with pytest.raises(ValueError, match=message):
        nist(outputs, references, order=order)
