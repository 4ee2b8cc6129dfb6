"""What models write into drafts: locked words are never lost, all else follows what the edits say."""

import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import KINDS, LINES, small_model

from insnet import Draft
from insnet.drafts.words import Place
from insnet.families import FAMILIES
from insnet.text.words import whole_word_pattern

HOT = {"temperature": 2.0, "top_k": 0, "slot_mass": 1.0, "stopping": "sampled", "max_tokens": 60}
WRITERS = [name for name, family in FAMILIES.items() if family.traits.fills_blanks]
TEXT = "The old baker (of Riga) sold bread; nobody  bought it.\n\nRain fell."


@cache
def writer(name, kind):
    return small_model(name, kind)


@pytest.fixture(params=WRITERS)
def model(request):
    return writer(request.param, "bpe")


def pattern_of(draft, finished):
    """What a text must look like in which the open places of a draft are filled: its words to the letter. One that was
    cut off may have blanks left."""
    anything = {Place.CLOSED: "", Place.OPTIONAL: ".*", Place.BLANK: r".*\w.*" if finished else ".*"}
    parts = []
    for number, (word, place) in enumerate(zip(draft.words, draft.places, strict=False)):
        before = draft.words[number - 1] if number else None
        space = re.escape(word.space or " ")
        is_apart = before is not None and not (before.joins_right or word.joins_left)
        gap = space * is_apart if place is Place.CLOSED else rf"\s*{anything[place]}\s*"
        parts.append(gap + re.escape(word.text))
    return re.compile("".join([*parts, anything[draft.places[-1]]]), re.DOTALL)


def test_a_deleted_word_is_written_anew_and_all_else_stays(model):
    draft = model.draft("The old baker sold bread.").lock(0).delete(2)
    for seed in range(4):
        filled = draft.refill(seed=seed, **HOT)
        assert re.fullmatch(r"The old .*\w.* sold bread\.", filled.text), filled.text
        assert filled.text == filled.result.text and filled.result.trace[-1]["text"] == filled.text
        own = [word for word in filled.words if not word.is_inserted]
        assert [word.text for word in own] == ["The", "old", "sold", "bread", "."]
        assert [word.is_locked for word in own] == [True, False, False, False, False]
        assert not filled.is_open and any(word.is_inserted for word in filled.words)


def test_rewriting_keeps_what_is_locked_and_nothing_else(model):
    draft = model.draft(TEXT).lock(1, 2, -3)
    texts = set()
    for seed in range(4):
        text = draft.rewrite(seed=seed, **{**HOT, "max_tokens": 200}).text
        assert re.fullmatch(r".*\w.* old baker .*\w.* Rain .*\w.*", text), text
        texts.add(text)
    assert len(texts) == 4


def test_rewriting_is_deleting_what_is_not_locked_and_refilling(model):
    draft = model.draft(TEXT).lock(1, 2, -3)
    emptied = draft.delete([number for number, word in enumerate(draft.words) if not word.is_locked])
    for seed in range(3):
        assert draft.rewrite(seed=seed) == emptied.refill(seed=seed)


CUTS = st.lists(st.integers(0, 15), max_size=6)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data())
def test_locked_words_are_never_lost_and_text_around_places_is_kept_to_the_letter(name, kind, data):
    """Through a chain of edits and writing, whatever the edits are."""
    draft = writer(name, kind).draft(TEXT)
    for seed in range(2):
        count = len(draft.words)
        draft = draft.lock([n for n in data.draw(CUTS) if n < count]).unlock([n for n in data.draw(CUTS) if n < count])
        free = [n for n in data.draw(CUTS) if n < count and not draft.words[n].is_locked]
        draft = draft.delete(free, leaves_blank=data.draw(st.booleans()))
        draft = draft.open([n for n in data.draw(CUTS) if n <= len(draft.words)], optional=data.draw(st.booleans()))
        rewrites = data.draw(st.booleans())
        asked = draft.delete([n for n, word in enumerate(draft.words) if not word.is_locked]) if rewrites else draft
        if not asked.is_open:
            continue
        new = (draft.rewrite if rewrites else draft.refill)(seed=seed, **HOT)
        assert pattern_of(asked, new.result.finished).fullmatch(new.text), (asked, new.text)
        kept = [(word.text, word.is_locked) for word in asked.words]
        rest = iter((word.text, word.is_locked) for word in new.words)
        assert all(pair in rest for pair in kept)
        assert new.result.text.split() == new.text.split()
        draft = Draft.from_json(new.to_json())
        draft = replace(draft, model=new.model)


def test_neighbours_that_are_locked_stay_together_and_are_parted_where_a_place_is_open(model):
    draft = model.draft("The baker sold bread.").lock(1, 2)
    for seed in range(4):
        assert "baker sold" in draft.rewrite(seed=seed, **HOT).text
        assert "baker sold" not in draft.open(2).rewrite(seed=seed, **HOT).text


def test_an_optional_place_is_sometimes_filled_and_stays_where_it_is_not(model):
    draft = model.draft(["baker", "bread"])
    found = set()
    for seed in range(16):
        new = draft.refill(seed=seed, **HOT)
        places = new.places[[word.text for word in new.words].index("bread")]
        found.add("baker bread" in new.text)
        assert (places is Place.OPTIONAL) == ("baker bread" in new.text)
    assert found == {True, False}


def test_a_draft_in_lower_case_begins_with_another_word(model):
    for seed in range(6):
        assert not model.draft(["baker"]).refill(seed=seed, **HOT).text.startswith("baker")
    assert any(model.draft(["Baker"]).refill(seed=seed, **HOT).text.startswith("Baker") for seed in range(16))


def test_the_same_seed_gives_the_same_draft_and_samples_differ(model):
    draft = model.draft(TEXT).lock(1).delete(2)
    several = draft.refill(num_samples=3, seed=5, **HOT)
    assert len({each.text for each in several}) == 3
    assert draft.refill(num_samples=3, seed=5, **HOT) == several
    assert draft.refill(seed=5, **HOT) == several[0]
    assert [draft.refill(seed=each.result.seed, **HOT).text for each in several] == [each.text for each in several]
    best = draft.rewrite(num_samples=2, seed=5, candidates=3, candidate_choice="consensus")
    assert len(best) == 2 and best == draft.rewrite(num_samples=2, seed=5, candidates=3, candidate_choice="consensus")


def test_a_banned_word_never_comes_again(model):
    options = {"length": (8, 20), "max_tokens": 40}
    drafts = [model.draft(LINES[0]).delete(1).refill(seed=seed, **options) for seed in range(3)]
    often = max({w.text for d in drafts for w in d.words if w.is_inserted and w.text.isalpha()}, key=len)
    source = next(draft for draft in drafts if whole_word_pattern(often).search(draft.text))
    for seed in range(3):
        again = source.ban(often).refill(seed=seed, max_tokens=40)
        again = again.rewrite(seed=seed, banned=["bread"], **options)
        assert not whole_word_pattern(often, ignore_case=True).search(again.text)
        assert not whole_word_pattern("bread", ignore_case=True).search(again.text)
        assert again.banned == (often,)


def test_lengths_and_what_is_accepted_hold_as_elsewhere(model):
    draft = model.draft("The baker sold bread.").lock(1)
    for seed in range(5):
        assert 6 <= len(draft.rewrite(seed=seed, length=(6, 9), **HOT).text.split()) <= 9
    assert "a" in draft.rewrite(seed=1, accept=lambda text: "a" in text).text
    with pytest.raises(ValueError, match="any_order is for keywords"):
        draft.rewrite(any_order=True)
    with pytest.raises(ValueError, match="banned came as one string"):
        draft.rewrite(banned="bread")
    with pytest.raises(ValueError, match="num_samples is 0"):
        draft.rewrite(num_samples=0)


def test_a_generated_text_is_a_draft_whose_keywords_are_locked(model):
    for seed, keywords in enumerate([["baker", "new york"], ["C++", "(a)", "5"], ["the", "the"], []]):
        result = model.generate(keywords, seed=seed, **HOT)
        draft = model.draft(result)
        assert draft.text == " ".join(result.text.split())
        locked = [text[start:end] for text in [result.text] for start, end in result.spans]
        assert [each.lower() for each in locked] == [each.lower() for each in keywords]
        assert "".join(word.text for word in draft.words if word.is_locked) == "".join("".join(locked).split())
        assert all(word.is_locked != word.is_inserted for word in draft.words)
    filled = model.infill("The ___ sat (on ___).", seed=1)
    assert model.draft(filled).text == filled.text and [filled.text[a:b] for a, b in filled.spans] == filled.keywords


def test_a_draft_remembers_how_it_came_about_until_it_is_edited(model):
    draft = model.draft("The ___ sat.").refill(seed=3)
    assert draft.result.seed == 3 and draft.result.steps == len(draft.result.trace)
    assert draft.lock(0).result is None and draft.lock(0).model is model
    assert model.draft(Draft.from_json(draft.to_json())) == draft


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - set(WRITERS)))
def test_a_family_that_only_appends_fills_no_draft_and_says_so(name):
    with pytest.raises(ValueError, match="writes left to right; it fills no blanks"):
        small_model(name, "word").draft("The ___ sat.").refill(seed=1)


def test_a_blank_that_a_text_was_cut_off_before_stays_one():
    draft = writer("gaps", "bpe").draft("___ sat ___ there.").refill(seed=1, max_tokens=2, temperature=20.0, top_k=0)
    assert not draft.result.finished and str(draft).endswith("sat ___ there.")
