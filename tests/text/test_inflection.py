"""The forms of English words, against paradigms written out by hand."""

import pytest

from insnet.text import inflected_words as lists
from insnet.text.inflection import choices_of, forms

PARADIGMS = """
    dog dogs; bus buses; glass glasses; fox foxes; city cities; key keys; knife knives; hero heroes; photo photos
    child children; fireman firemen; human humans; family families; table tables; mother-in-law mother-in-laws
    run runs ran running; walk walks walked walking; dance dances danced dancing; stop stops stopped stopping
    carry carries carried carrying; play plays played playing; lie lies lay lain lying; die dies died dying
    eat eats ate eaten eating; cut cuts cutting; see sees saw seen seeing; agree agrees agreed agreeing
    visit visits visited visiting; begin begins began begun beginning; prefer prefers preferred preferring
    go goes went gone going; have has had having; do does did done doing; be am is are was were been being
    organize organizes organized organizing; identify identifies identified identifying; fix fixes fixed fixing
    big bigger biggest; happy happier happiest; nice nicer nicest; good better best; sheep; quickly; the; beautiful
    careless; news; talented; кот; rose roses; building buildings
"""


@pytest.mark.parametrize("paradigm", [line.strip() for line in PARADIGMS.replace("\n", ";").split(";") if line.strip()])
def test_a_word_has_all_its_forms_and_no_others(paradigm):
    word, *others = paradigm.split()
    assert choices_of(word + "*")[0] == word
    assert set(choices_of(word + "*")) == {word, *others}


@pytest.mark.parametrize("word, lemma", [("ran", "run"), ("running", "run"), ("walked", "walk"), ("children", "child")])
def test_an_inflected_form_stands_for_the_others_too(word, lemma):
    assert forms(word)[0] == word and set(forms(word)) == set(forms(lemma))


def test_case_and_what_stands_before_the_word_are_kept():
    assert choices_of("Run*") == ("Run", "Runs", "Ran", "Running")
    assert choices_of("Be*")[1:3] == ("Am", "Is")
    assert choices_of("DOG*") == ("DOG", "DOGS")
    assert choices_of("Ice Cream*") == ("Ice Cream", "Ice Creams")
    assert choices_of("T-shirt*") == ("T-shirt", "T-shirts")


@pytest.mark.parametrize("keyword", ["*", "5*", "A*", "f**k", "f***", "run *", "*run", "a*b", "don't*", "run", "C++*"])
def test_any_other_asterisk_is_one(keyword):
    assert choices_of(keyword) == (keyword,)


def test_an_asterisk_behind_a_word_can_be_meant():
    assert choices_of(r"run\*") == ("run*",)


def test_no_word_is_listed_twice_with_different_forms():
    """Irregular verbs are no regular ones, and what is unchanged has no forms."""
    irregular = {group.split()[0] for group in (lists.VERBS_WITH_PASTS + ";" + lists.IRREGULAR).split(";")}
    assert not irregular & set(lists.REGULAR_VERBS.split())
    assert all(forms(word) == (word,) for word in lists.UNCHANGED.split())
