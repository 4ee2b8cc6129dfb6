"""Required words are counted as whole words; lengths in whitespace words."""

import pytest

from insnet.evaluation.coverage import all_in_order, coverage
from insnet.evaluation.lengths import length_ratio, mean_words


def test_coverage_counts_every_required_word_of_the_corpus():
    outputs = ["the food was good , good food", "nothing here"]
    assert coverage(outputs, [["food", "good"], ["service", "here"]]) == 3 / 4


def test_a_word_required_twice_must_be_there_twice():
    assert coverage(["food and food"], [["food", "food"]]) == 1.0
    assert coverage(["food"], [["food", "food"]]) == 0.5


@pytest.mark.parametrize("text", ["cats", "cat's", "cat’s", "cat-like", "scat", "cat_1", "2cat"])
def test_a_part_of_a_word_is_not_the_word(text):
    assert coverage([text], [["cat"]]) == 0.0
    assert all_in_order([text], [["cat"]]) == 0.0


@pytest.mark.parametrize("text", ["cat", "(cat)", "the cat.", '"cat"', "cat,dog"])
def test_punctuation_may_touch_a_word(text):
    assert coverage([text], [["cat"]]) == 1.0


def test_in_order_is_stricter_than_there():
    outputs, keywords = ["b then a", "a then b", ""], [["a", "b"], ["a", "b"], []]
    assert coverage(outputs, keywords) == 1.0
    assert all_in_order(outputs, keywords) == 2 / 3


def test_case_counts_unless_ignored():
    assert coverage(["In Paris"], [["paris"]]) == 0.0
    assert coverage(["Paris"], [["paris"]], ignore_case=True) == 1.0
    assert all_in_order(["Paris"], [["paris"]], ignore_case=True) == 1.0


def test_nothing_required_is_covered():
    assert coverage(["anything"], [[]]) == 1.0


@pytest.mark.parametrize(
    ("outputs", "keywords", "message"),
    [
        ([], [], "no text to score"),
        (["a"], [], "1 outputs but 0 keyword lists"),
        (["a"], ["word"], "keywords of sentence 1 came as one string"),
        (["a"], [[" "]], "empty"),
    ],
)
@pytest.mark.parametrize("measure", [coverage, all_in_order])
def test_a_mistake_is_named(measure, outputs, keywords, message):
    with pytest.raises(ValueError, match=message):
        measure(outputs, keywords)


def test_lengths_are_words():
    assert mean_words(["a b c", ""]) == 1.5
    assert length_ratio(["a b c", ""], ["a b", "c d"]) == 0.75
    assert length_ratio(["a b c"], [["a", "a b c d e"]]) == 1.0


def test_a_ratio_needs_reference_words():
    with pytest.raises(ValueError, match="all references are empty"):
        length_ratio(["a"], [""])
    with pytest.raises(ValueError, match="no text to score"):
        mean_words([])
