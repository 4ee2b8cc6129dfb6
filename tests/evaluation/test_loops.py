"""Texts that go in circles, and texts that only list their keywords."""

import pytest

from insnet.evaluation.loops import keyword_lists, loops


@pytest.mark.parametrize(
    ("text", "is_loop"),
    [
        ("the end of the day is the end of the day", True),
        ("The end of the day. THE END, of the road", True),
        ("the end of a day is the end of the road", False),
        ("no no no no", False),
        ("no no no no no", True),
        ("", False),
    ],
)
def test_four_words_in_a_row_that_come_twice_are_a_loop(text, is_loop):
    assert loops([text]) == is_loop


@pytest.mark.parametrize(
    ("text", "is_list"),
    [
        ("Coffee, morning and rain are nice.", True),
        ("I like morning rain coffee.", True),
        ("He had rain, coffee, or morning.", True),
        ("The morning coffee was as cold as the rain.", False),
        ("A coffee, a morning and a rain.", False),
        ("Coffees, mornings and rains.", False),
    ],
)
def test_three_keywords_with_nothing_between_them_are_a_list(text, is_list):
    assert keyword_lists([text], [["coffee", "morning", "rain"]]) == is_list


def test_two_keywords_are_no_list():
    assert keyword_lists(["morning coffee"], [["morning", "coffee"]]) == 0


def test_a_phrase_is_one_entry():
    assert keyword_lists(["New York, a.m. and tea"], [["New York", "a.m.", "tea"]]) == 1
    assert keyword_lists(["New York and tea"], [["New York", "tea", "rain"]]) == 0
