"""Bans of every form of a word, `run*`, beside a reader that lists the forms and looks for them in the text."""

import random
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from many_requests import many_requests
from small_models import KINDS, LINES, prompt_of, small_model

from insnet.families import FAMILIES
from insnet.insertion.canvas import INSERTED, Canvas
from insnet.insertion.constraints import ABSENT, completing_tokens, meets_across, within_reach
from insnet.text.inflection import banned_forms, forms
from insnet.text.spellings import spellings, spellings_of_all
from insnet.text.words import contains_in_order

HOT = {"temperature": 3.0, "top_k": 0}
LONG = {"stopping": "threshold", "min_words": 14}  # cut off, the longer the better
PHRASES = [
    "old ship*",
    "the* boat*",
    "two duck*",
    "Sunday*",
    "visit*",
    "be*",
    "see*",
    "buy*",
    r"wow\*",
    "child*",
    "the",
]
WORDS = sorted({word.strip(".,?!").lower() for line in LINES for word in line.split()})


def forms_by_hand(phrase):
    """All that `old ship*` stands for, as one pattern of whole words in whatever case, a possessive being a form."""
    parts = []
    for word in phrase.split():
        own = forms(word[:-1]) if word.endswith("*") and not word.endswith("\\*") else [word.replace("\\", "")]
        ending = "(?:['’]s)?" if word.endswith("*") and not word.endswith("\\*") else ""
        parts.append("(?:" + "|".join(map(re.escape, own)) + ")" + ending)
    return re.compile(r"(?<![\w'’-])" + r"\s+".join(parts) + r"(?![\w'’-])", re.IGNORECASE)


@st.composite
def requests(draw):
    words = draw(st.lists(st.sampled_from(WORDS), max_size=3))
    starred = st.sampled_from(WORDS).filter(str.isalpha).map(lambda word: word + "*")
    banned = draw(st.lists(st.one_of(st.sampled_from(PHRASES), starred), min_size=1, max_size=6))
    return words, banned


@many_requests
@given(st.sampled_from(sorted(FAMILIES)), st.sampled_from(KINDS), requests(), st.integers(0, 2**31))
def test_no_form_of_a_banned_word_is_ever_written_and_no_required_word_lost(name, kind, request, seed):
    words, banned = request
    model = small_model(name, kind, generation=LONG)
    patterns = [forms_by_hand(phrase) for phrase in banned]
    options = {"banned": banned, "seed": seed, **HOT}
    if model.family.traits.several_per_step and seed % 2:
        options["mode"] = "parallel"
    if any(pattern.search(" ".join(words)) for pattern in patterns):
        with pytest.raises(ValueError, match="is both required and banned; drop one of the two"):
            model.generate(words, **options)
        return
    for text in [result.text for result in model.generate_batch([words, words], **options)]:
        assert not any(pattern.search(text) for pattern in patterns), (banned, text)
        assert contains_in_order(text, words) or not model.family.traits.keeps_given


def test_forms_that_a_ban_of_the_word_alone_lets_through_are_kept_out():
    model = small_model("insnet", "word", generation=LONG)
    options = {"seed": 3, **HOT}
    lists = [[str(number)] for number in range(120)]
    words = ["be", "have", "see", "eat", "buy", "sleep", "swim", "rain", "feed", "say", "come", "do", "boat", "duck"]
    pattern = re.compile("|".join(forms_by_hand(word + "*").pattern for word in words), re.IGNORECASE)
    let_through = model.generate_batch(lists, banned=words, **options)
    assert sum(bool(pattern.search(result.text)) for result in let_through) > 5
    kept_out = model.generate_batch(lists, banned=[word + "*" for word in words], **options)
    assert not any(pattern.search(result.text) for result in kept_out)


def test_a_given_form_of_a_banned_word_is_told_in_one_line():
    model = small_model("insnet", "word")
    for ask in (
        lambda: model.generate(["ran"], banned=["run*"]),
        lambda: model.infill("He Ran to ___.", banned=["run*"]),
        lambda: model.generate(["run*"], banned=["run*"]),
    ):
        with pytest.raises(ValueError, match=r"'(ran|run)' is both required and banned; drop one of") as refused:
            ask()
        assert "\n" not in str(refused.value)


def test_of_a_keyword_in_any_form_a_form_that_is_not_banned_is_drawn():
    model = small_model("insnet", "bpe")
    for seed in range(8):
        assert model.generate(["dog*"], banned=["dogs"], seed=seed).keywords == ["dog"]


def test_a_blank_is_filled_without_a_banned_form():
    model = small_model("gaps", "bpe")
    pattern = re.compile(f"{forms_by_hand('ship*').pattern}|{forms_by_hand('be*').pattern}", re.IGNORECASE)
    for seed in range(20):
        assert not pattern.search(model.infill("An old ___ sold ___.", banned=["ship*", "be*"], seed=seed).text)


@pytest.mark.parametrize(
    "banned, says",
    [
        ([3], "banned holds 3; expected words and phrases"),
        (["be* have* do* go* see*"], "it stands for .* phrases; put an asterisk behind fewer words"),
        (["  "], "a banned word is empty"),
    ],
)
def test_a_ban_that_makes_no_sense_is_one_clear_line(banned, says):
    with pytest.raises(ValueError, match=says) as refused:
        small_model("insnet", "word").generate(["ship"], banned=banned)
    assert "\n" not in str(refused.value)


def test_an_asterisk_that_is_meant_is_banned_as_such():
    model = small_model("insnet", "bpe")
    literal = prompt_of(model, [[]], banned=banned_forms(r"ship\*")).limits.forbidden[0].tolist()
    assert all(len([token for token in way if token >= 0]) > 1 for way in literal), "not the ship alone"


def test_spellings_of_many_words_rule_out_what_those_of_each_do():
    """Whatever a word's own spellings rule out begins with one that is kept."""
    tokenizer = small_model("insnet", "bpe").tokenizer
    phrases = [form for word in ("ship*", "baker*", "see*", "old boat*") for form in banned_forms(word)]
    kept = set(map(tuple, spellings_of_all(tokenizer, phrases)))
    every = [tuple(way) for phrase in phrases for way in spellings(tokenizer, phrase)]
    assert kept <= set(every) and len(kept) < len(every)
    assert all(any(way[:size] in kept for size in range(1, len(way) + 1)) for way in every)


def test_of_many_sequences_those_out_of_reach_decide_nothing():
    rng = random.Random(5)
    tokens = torch.tensor([[1, *(rng.randint(5, 30) for _ in range(6)), 2] for _ in range(3)])
    canvas = Canvas(tokens, torch.full_like(tokens, INSERTED), torch.zeros_like(tokens).bool(), torch.tensor([8] * 3))
    ways = [[rng.randint(5, 30) for _ in range(rng.randint(1, 3))] for _ in range(900)]
    sequences = torch.tensor([[*way, *[ABSENT] * (4 - len(way))] for way in ways]).expand(3, -1, -1)
    for slot in range(7):
        slots, near = torch.full((3,), slot), within_reach(canvas, sequences, missing=1)
        wanted = completing_tokens(canvas, slots, sequences, 31)
        assert near.shape[1] < 900 and wanted.any()
        assert torch.equal(completing_tokens(canvas, slots, near, 31), wanted)
        near = within_reach(canvas, sequences, missing=0)
        assert torch.equal(meets_across(canvas, slots, near), meets_across(canvas, slots, sequences))
