import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insnet.text.words import (
    MARK,
    Literal,
    contains_in_order,
    count_found,
    find_phrase,
    join,
    render,
    split,
    whole_word_pattern,
)

tricky_text = st.text() | st.text(alphabet="aB9éß\u0301\u093f İ.,;:!?()[]{}“”‘’«»'-_\"$#@%…\u00a0\u2003\n\t" + MARK)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Hello, world (sic).", ["Hello", "￭,", "world", "(￭", "sic", "￭)", "￭."]),
        ("don't well-known", ["don't", "well-known"]),
        ("3.14 1,000 a.b", ["3.14", "1,000", "a", "￭.￭", "b"]),
        ("well...", ["well", "￭..."]),
        ("f(x)", ["f", "￭(￭", "x", "￭)"]),
        (")(", [")￭", "("]),
        ("great , but", ["great", ",", "but"]),
        ("$5 «oui»", ["$￭", "5", "«￭", "oui", "￭»"]),
        ('say ("no")', ["say", "(", '￭"￭', "no", '￭"', "￭)"]),
        ("हिन्दी", ["हिन्दी"]),
        ("3.14abc", ["3.14abc"]),
        ("", []),
    ],
)
def test_marks_stand_on_symbols_where_parts_touch(text, parts):
    assert split(text) == parts
    assert join(parts) == text


@given(tricky_text)
@settings(max_examples=500, deadline=None)
def test_join_undoes_split_for_any_text(text):
    expected = " ".join(unicodedata.normalize("NFC", text).replace(MARK, "■").split())
    assert join(split(text)) == expected


@given(tricky_text)
@settings(max_examples=300, deadline=None)
def test_words_never_carry_marks_and_no_part_is_empty_or_spaced(text):
    for part in split(text):
        core = part.strip(MARK)
        assert core and not any(character.isspace() for character in core)
        assert core == part or len(set(core)) == 1, "only a symbol carries marks"


@given(tricky_text)
@settings(max_examples=300, deadline=None)
def test_lower_case_is_in_nfc_and_stays_reversible(text):
    expected = " ".join(unicodedata.normalize("NFC", text.lower()).replace(MARK, "■").split())
    assert join(split(text, lower_case=True)) == expected


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert join(split("a\ud800b")) == "a\ufffdb"


def test_literals_are_printed_verbatim_and_parted_unless_one_side_joins():
    assert render(["I", "love", Literal("New  York"), "￭,", Literal("US￭A")]) == "I love New  York, US￭A"
    assert render(["(￭", Literal("x"), Literal("y", joins_left=True, joins_right=True), "z"]) == "(xyz"


def test_whole_words_are_not_touched_by_letters_hyphens_or_apostrophes():
    pattern = whole_word_pattern("new york")
    assert pattern.search("in new  york, we")
    for text in ["anew york", "new yorker", "new york's", "new york-based", "-new york", "newyork"]:
        assert not pattern.search(text), text
    with pytest.raises(ValueError, match="empty"):
        whole_word_pattern("  ")


def test_order_and_multiplicity_of_required_phrases():
    assert contains_in_order("the day I saw the day", ["the", "day", "the", "day"])
    assert not contains_in_order("the day I saw the night", ["day", "day"])
    assert not contains_in_order("b a", ["a", "b"])
    assert not contains_in_order("a b c", ["a b", "b c"])
    assert not contains_in_order("In The day", ["the"])
    assert contains_in_order("The day", ["the"], ignore_case=True)
    assert contains_in_order("c++ (sic)", ["c++", "(sic)"])
    assert contains_in_order("anything", [])


def test_a_required_word_begins_with_a_capital_where_a_sentence_begins():
    def printed(*parts, capitals=True):
        return render(
            [Literal(part[1:], takes_capital=True) if part[0] == "=" else part for part in parts], capitals=capitals
        )

    assert printed("=castle", "fell", "￭.", "=new york", "￭?", '"￭', "=king", "￭!", '￭"', "(￭", "=queen") == (
        'Castle fell. New york? "King!" (Queen'
    )
    assert printed('"￭', "=castle", "fell") == '"Castle fell'
    assert printed("=castle", "=castle", capitals=False) == "castle castle"
    assert printed("-", "=castle", "￭...", "=king", "￭,", "=iPhone", "3", "￭.￭", "=a") == "- castle... king, iPhone 3.a"
    assert printed("=iPhone", "￭.", "=3d", "￭.", "=ßa", "￭.", "=e.g.", "=king") == "iPhone. 3d. ßa. E.g. king"
    fixed = [Literal("castle"), "￭.", Literal("king")]
    assert render(fixed, capitals=True) == "castle. king", "text around blanks is kept to the letter"


def test_a_capital_where_a_sentence_begins_is_no_loss():
    for text in ["The day", '"The day', "So. The day", 'So!" (The day', "So… “The day"]:
        assert contains_in_order(text, ["the", "day"]), text
        assert count_found(text, ["the", "day"]) == 2, text
    for text in ["In The day", "So, The day", "THE day", "The's day", "Thee day"]:
        assert not contains_in_order(text, ["the"]), text
    assert contains_in_order("A a a", ["a a", "a"]) and contains_in_order("x A a a", ["a a"])
    assert contains_in_order("New  york", ["new york"]) and not contains_in_order("New York", ["new york"])
    assert not contains_in_order("the day", ["The"]) and count_found("The the. The", ["the"] * 4) == 3
    assert contains_in_order("\u00c9t\u00e9", ["e\u0301t\u00e9"])
    assert contains_in_order("The day", ["\u00a0the"]), "spaces around a keyword are none of it"


@given(
    st.lists(
        st.sampled_from(
            ["=new york", "=a", "=\u01f0x", "=j\u030cx", "=e.g.", "=é", "x", "￭.", "￭…", '"￭', '￭"', "￭!", "-"]
        )
    )
)
@settings(max_examples=300, deadline=None)
def test_what_is_printed_with_capitals_is_always_found_again(parts):
    required = [part[1:] for part in parts if part[0] == "="]
    literals = [Literal(part[1:], takes_capital=True) if part[0] == "=" else part for part in parts]
    assert contains_in_order(render(literals, capitals=True), required)


def test_found_phrases_are_counted_without_order():
    assert count_found("b a a", ["a", "b"]) == 2
    assert count_found("b a", ["a", "a", "b", "c"]) == 2
    assert count_found("A a", ["a", "A", "a"], ignore_case=True) == 2
    assert count_found("caf\u0065\u0301", ["café"]) == 1


def test_the_pattern_for_ascii_finds_what_the_one_for_all_texts_finds():
    characters = [chr(code) for code in range(128)]
    for phrase in ("cat", "a cat", "-", "it's"):
        whole, fast = whole_word_pattern(phrase), whole_word_pattern(phrase, in_ascii=True)
        texts = [f"{left}{phrase}{right}" for left in characters for right in characters]
        assert [bool(whole.search(text)) for text in texts] == [bool(fast.search(text)) for text in texts]


@given(
    st.text(alphabet="aA é-'.!?\u0301\u093f ").map(lambda text: " ".join(text.split())),
    st.text(alphabet="aA é-. ", min_size=1),
)
@settings(max_examples=500, deadline=None)
def test_a_text_with_single_spaces_is_searched_to_the_same_end_without_a_pattern(text, phrase):
    if phrase.strip():
        assert list(find_phrase(text, phrase)) == list(find_phrase(f"{text}\n", phrase)), "where a pattern is used"
