"""Drafts without a model: the text to the letter, what each edit does, and JSON there and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insnet import Draft
from insnet.drafts.words import Place, Word

DOG = Draft.of_text("The dog runs around the park.")
CHARACTERS = st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="_") | st.sampled_from(
    " \n\t.,!?()—\"'-$aB"
)
TEXTS = st.text(CHARACTERS, max_size=30)
MARKS = st.lists(st.integers(0, 30), max_size=8)


def words(draft):
    return [word.text for word in draft.words]


def locked(draft):
    return [word.text for word in draft.words if word.is_locked]


@given(TEXTS)
def test_a_text_is_kept_to_the_letter_but_for_spaces_around_it(text):
    draft = Draft.of_text(text)
    assert draft.text == str(draft) == text.strip() or (str(draft) == "___" and draft.text == text.strip() == "")
    assert [draft.text[start:end] for start, end in draft.spans] == words(draft)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The dog (a poodle) runs.", ["The", "dog", "(", "a", "poodle", ")", "runs", "."]),
        ("Wait—it's 3.14, i.e. and/or", ["Wait", "—", "it's", "3.14", ",", "i.e", ".", "and/or"]),
        ('"No!" at 10:30...', ['"', "No", "!", '"', "at", "10:30", "..."]),
        ("", []),
    ],
)
def test_words_are_what_a_person_sees_as_words(text, parts):
    assert words(Draft.of_text(text)) == parts


def test_blanks_are_open_places_and_can_be_printed_again():
    for text in ("The ___ sat on (___).", "___", "___ and ___!", "a —___— b"):
        draft = Draft.of_text(text)
        assert str(draft) == text and Draft.of_text(str(draft)) == draft
        assert draft.places.count(Place.BLANK) == text.count("___")
    with pytest.raises(ValueError, match="a blank touches the word in 'half'"):
        Draft.of_text("half___ word")


def test_words_are_addressed_like_items_of_a_list():
    every = words(DOG)
    assert locked(DOG.lock(slice(2, 4), -2)) == ["runs", "around", "park"]
    assert locked(DOG.lock([0, 2], range(1, 3))) == ["The", "dog", "runs"]
    assert locked(DOG.lock(slice(None)).unlock(0, -1)) == every[1:-1]
    assert DOG.lock() == DOG and locked(DOG) == []


@pytest.mark.parametrize(
    ("numbers", "leaves_blank", "shown"),
    [
        ([1], True, "The ___ runs around the park."),
        ([1], False, "The runs around the park."),
        ([0], True, "___ dog runs around the park."),
        ([0], False, "dog runs around the park."),
        ([2, 3], True, "The dog ___ the park."),
        ([1, 3], True, "The ___ runs ___ the park."),
        ([5], True, "The dog runs around the ___."),
        ([5, 6], True, "The dog runs around the ___"),
        ([6], True, "The dog runs around the park"),
        (range(7), True, "___"),
        (range(7), False, ""),
    ],
)
def test_deleted_words_leave_one_blank_a_run_or_close_up(numbers, leaves_blank, shown):
    draft = DOG.delete(numbers, leaves_blank=leaves_blank)
    assert str(draft) == shown
    assert Place.BLANK not in draft.places or leaves_blank


def test_a_deleted_symbol_need_not_come_again():
    assert DOG.delete(-1).places[-1] is Place.OPTIONAL and DOG.delete(-1).is_open and not DOG.delete(-1).has_blanks


def test_a_line_break_outlives_the_word_behind_it():
    draft = Draft.of_text("A title\n\nThe dog  runs.")
    assert draft.delete(2, leaves_blank=False).text == "A title\n\ndog  runs."
    assert str(draft.delete(2)) == "A title\n\n___\n\ndog  runs."
    assert draft.replace(2, "One").text == "A title\n\nOne dog  runs."


def test_your_own_words_go_in_locked():
    assert DOG.insert(1, "big old").text == "The big old dog runs around the park."
    assert locked(DOG.insert(1, "big old")) == ["big", "old"]
    assert DOG.insert(0, "Look:").text == "Look: The dog runs around the park."
    assert DOG.insert(2, ", a poodle,").text == "The dog, a poodle, runs around the park."
    assert DOG.insert(-1, "So?").text == "The dog runs around the park. So?"
    assert DOG.replace(-1, "!").text == "The dog runs around the park!"
    assert DOG.replace(slice(2, 5), "likes the").text == "The dog likes the park."
    assert locked(DOG.replace(1, "cat")) == ["cat"]
    filled = Draft.of_text("The ___ runs.").insert(1, "cat")
    assert filled.text == "The cat runs." and not filled.is_open
    keywords = Draft.of_keywords(["dog", "new york"])
    assert [str(place) for place in keywords.insert(1, "in").places] == ["optional"] * 3 + ["closed", "optional"]


def test_places_are_opened_and_closed():
    opened = DOG.open(0, slice(2, 4), -1)
    assert str(opened) == "___ The dog ___ runs ___ around the park. ___"
    assert opened.close(slice(None)) == DOG
    assert DOG.open(3, optional=True).places[3] is Place.OPTIONAL


def test_a_banned_word_leaves_wherever_it_stands_in_whatever_case():
    draft = DOG.ban("the")
    assert str(draft) == "___ dog runs around ___ park." and draft.banned == ("the",)
    assert str(DOG.ban("Around  the")) == "The dog runs ___ park."
    assert DOG.ban("art").text == DOG.text and DOG.ban("art").ban("art").banned == ("art",)


def test_keywords_are_locked_and_phrases_stay_whole():
    draft = Draft.of_keywords(["dog", "new york"])
    assert locked(draft) == ["dog", "new", "york"]
    assert [str(place) for place in draft.places] == ["optional", "optional", "closed", "optional"]
    assert str(Draft.of_keywords([])) == "___"


BAD = [
    (lambda: DOG.lock(7), "there is no word 7: the draft has 7, from 0 to 6"),
    (lambda: DOG.delete(range(5, 9)), "there is no word 7"),
    (lambda: DOG.open(8), "there is no place 8: the draft has 8, from 0 to 7"),
    (lambda: DOG.lock("dog"), "cannot find word 'dog'; expected a number, a slice or a list"),
    (lambda: DOG.lock([True]), "cannot find word True; expected a whole number"),
    (lambda: DOG.lock(1.0), "cannot find word 1.0"),
    (lambda: Draft.of_text("").lock(0), "there is no word 0: the draft has none"),
    (lambda: DOG.lock(1).delete(1), "'dog' is locked and cannot be deleted; unlock it first"),
    (lambda: DOG.lock(1).ban("dog"), "'dog' is locked and cannot be banned"),
    (lambda: DOG.lock(1).replace(1, "cat"), "'dog' is locked and cannot be replaced"),
    (lambda: DOG.replace([1, 3], "cat"), "do not stand together"),
    (lambda: DOG.insert(1, " "), "the words to put in are ' '; expected one or more"),
    (lambda: DOG.insert(1, "a ___"), "for a blank, open a place"),
    (lambda: DOG.ban(""), "cannot ban ''; expected a word or a phrase"),
    (lambda: Draft.of_text(3), "the text of a draft is 3; expected a text"),
    (lambda: Draft.of_text("a\x00b"), "holds a control character; remove it"),
    (lambda: Draft.of_keywords(["run*"]), r"run\* stands for several forms"),
    (lambda: Draft.of_keywords("dog park"), "keywords came as one string"),
    (lambda: DOG.refill(), "no place of the draft is open: delete a word"),
    (lambda: DOG.rewrite(), "the draft has no model to write with"),
    (lambda: DOG.lock(slice(None)).rewrite(), "every word of the draft is locked and no place is open"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_cannot_be_done_is_refused_in_one_clear_sentence(number):
    ask, expected = BAD[number]
    with pytest.raises(ValueError, match=expected) as refused:
        ask()
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def changed(draft, kind, numbers):
    """The draft after one edit of some kind, at numbers that it has."""
    count = len(draft.words) + (kind in ("open", "close", "insert"))
    numbers = [number for number in numbers if number < count]
    free = [number for number in numbers if number < len(draft.words) and not draft.words[number].is_locked]
    if kind == "delete":
        return draft.delete(free)
    if kind == "drop":
        return draft.delete(free, leaves_blank=False)
    if kind == "insert":
        return draft.insert(numbers[0], "so, (well)!") if numbers else draft
    if kind == "replace":
        return draft.replace(free[0], "new!") if free else draft
    return getattr(draft, kind)(numbers)


KINDS = ["lock", "unlock", "delete", "drop", "open", "close", "insert", "replace"]
EDITS = st.lists(st.tuples(st.sampled_from(KINDS), MARKS), max_size=6)


@given(TEXTS, EDITS)
def test_any_edits_leave_a_draft_that_json_gives_back_and_all_locked_words_in_order(text, edits):
    draft = Draft.of_text(text)
    for kind, numbers in edits:
        before, draft = draft, changed(draft, kind, numbers)
        if kind in ("delete", "drop", "open", "close", "replace"):
            rest = iter(locked(draft))
            assert all(word in rest for word in locked(before))
        again = Draft.from_json(draft.to_json())
        assert again == draft and again.text == draft.text and "\n" not in draft.to_json()
        assert [draft.text[start:end] for start, end in draft.spans] == words(draft)


VALUES = json.loads(DOG.lock(1).delete(3).ban("cat").to_json())
JUNK = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


@given(st.data())
def test_damaged_json_is_refused_in_one_line(data):
    """Whatever is put, or left out, anywhere: it is a draft or a ValueError."""
    values = json.loads(json.dumps(VALUES))
    place = values
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            break
        place = place[key]
    if place and data.draw(st.booleans()):
        del place[key]
    elif place:
        place[key] = data.draw(JUNK)
    try:
        assert isinstance(Draft.from_json(json.dumps(values)), Draft)
    except ValueError as error:
        assert "\n" not in str(error) and len(str(error)) < 200


FOREIGN = [
    ("", "this is no JSON"),
    ("[" * 100_000, "this is no JSON"),
    ("[]", "this is no draft: expected an object whose 'format' is 'insnet draft'"),
    ('{"text": "a"}', "this is no draft"),
    (json.dumps({**VALUES, "version": 2}), "the draft has version 2; this program reads version 1"),
    (json.dumps({**VALUES, "version": True}), "the draft has version True"),
    (json.dumps({**VALUES, "more": 1}), "expected format, version, words, places, banned"),
    (
        json.dumps({**VALUES, "places": ["open"] * 7}),
        "a place of the draft is 'open'; expected closed, optional, blank",
    ),
    (json.dumps({**VALUES, "places": []}), "a draft has 6 words and 0 places; expected one more"),
    (json.dumps({**VALUES, "banned": [""]}), "what the draft bans is ''"),
    (json.dumps({**VALUES, "words": "a"}), "words of the draft is 'a'; expected a list"),
]


@pytest.mark.parametrize("number", range(len(FOREIGN)))
def test_foreign_json_is_refused(number):
    content, expected = FOREIGN[number]
    with pytest.raises(ValueError, match=expected):
        Draft.from_json(content)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"text": ""}, "expected at least one character"),
        ({"text": "a b"}, "no space inside"),
        ({"text": "a", "space": "x"}, "the space before 'a' is 'x'"),
        ({"text": "a", "joins_left": True}, "joins a neighbour with a letter"),
        ({"text": "a", "is_locked": 1}, "is_locked of a word is 1; expected true or false"),
        ({"text": 1}, "text of a word is 1; expected a text"),
        ({"text": "\ud800"}, "holds a control character"),
    ],
)
def test_a_word_is_nothing_else(values, expected):
    with pytest.raises(ValueError, match=expected):
        Word(**values)
