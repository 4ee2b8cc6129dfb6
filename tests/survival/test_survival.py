"""Every keyword survives: 2,000 random lists from inside and outside the vocabulary, in every script we could think of.

The models are untrained and sampled hot, so that every odd piece of their vocabularies comes up beside the keywords.
"""

import itertools
import unicodedata
from typing import ClassVar

import pytest
import torch
from small_models import decider, prompt_of, small_family, small_model

from benchmarks.hostile_lists import KNOWN, POOLS, hostile_lists
from insnet.decoding.config import Bounds, GenerationConfig
from insnet.decoding.decide import Decider
from insnet.decoding.loop import decode
from insnet.decoding.request import Request, required_words
from insnet.decoding.trace import steps_of
from insnet.evaluation.coverage import all_in_order, coverage
from insnet.insertion.constraints import count_words
from insnet.model import Model
from insnet.pretrained.base import read_base

LISTS = 1000
HOT = {"temperature": 50.0, "top_k": 0, "slot_mass": 1.0, "stopping": "counted", "count_quantile": 0.9}


def _model(kind, **options):
    """A model that is told to write many words."""
    return small_model("insnet", kind, count_head=12, length_conditioned=True, **options)


def _sorted_out(keyword_lists, model):
    """What is accepted, and the messages for what is not."""
    accepted, messages = [], []
    for keywords in keyword_lists:
        try:
            prompt_of(model, [keywords], max_words=400)
            accepted.append(keywords)
        except ValueError as error:
            messages.append(str(error))
    return accepted, messages


def _surfaces_kept(text, keywords):
    """The user's very characters, accents as they were composed, one behind the other; a first letter may be large."""
    end = 0
    for keyword in keywords:
        surface = " ".join(keyword.split())
        starts = [text.find(form, end) for form in (surface, surface[0].upper() + surface[1:])]
        if max(starts) < 0:
            return False
        end = min(start for start in starts if start >= 0) + len(surface)
    return True


REVISED = {"candidates": 2, "revise": 1, "revise_share": 0.5}


@pytest.mark.parametrize("kind, lower_case", [("word", True), ("bpe", False)])
def test_every_keyword_survives(kind, lower_case):
    model = _model(kind, lower_case=lower_case, width=8, layers=1, heads=1, scale=0.5)
    accepted, messages = _sorted_out(hostile_lists(seed=len(kind)), model)
    assert len(accepted) + len(messages) == LISTS
    assert 0 < len(messages) < 0.05 * LISTS
    assert all(message and "\n" not in message and len(message) < 200 for message in messages)
    options = {"seed": 9, "max_tokens": 12, "min_words": 1, "max_words": 400, "batch_size": 125, **HOT}
    _assert_all_survive(accepted, results := model.generate_batch(accepted, **options))
    assert sum(result.steps for result in results) > LISTS  # words were in fact inserted beside them
    some = [keywords for keywords in accepted if sum(map(len, keywords)) < 60][::6]
    _assert_all_survive(some, results := model.generate_batch(some, **options, **REVISED))
    assert sum(bool(step["delete"]) for result in results for step in result.trace) > 20  # and removed again


def test_every_keyword_survives_in_the_vocabulary_of_the_real_base(real_base):
    """Random weights, but all of its 49,152 pieces, half characters and digits among them."""
    tokenizer = read_base(real_base).tokenizer
    family = small_family("gaps", tokenizer.size, layers=1, scale=0.5, dtype=torch.float32)
    family.read_vocabulary(tokenizer)
    with torch.no_grad():
        family.close_head.bias.fill_(-1.0)  # three tokens to a gap
    model = Model(family, tokenizer, GenerationConfig())
    accepted, messages = _sorted_out(hostile_lists(seed=7), model)
    assert 0 < len(messages) < 0.05 * LISTS
    options = {"seed": 9, "max_tokens": 12, "max_words": 400, "batch_size": 125, **HOT, "stopping": "sampled"}
    _assert_all_survive(accepted, results := model.generate_batch(accepted, **options))
    assert sum(result.steps for result in results) > LISTS


def _assert_all_survive(keyword_lists, results):
    texts = [result.text for result in results]
    assert coverage(texts, keyword_lists) == 1.0
    assert all_in_order(texts, keyword_lists) == 1.0
    assert all(_surfaces_kept(text, keywords) for text, keywords in zip(texts, keyword_lists, strict=True))
    assert all("\n" not in text and text == " ".join(text.split(" ")) for text in texts)


class Counting(Decider):
    """Notes how many words it counts before each step of each row."""

    counted: ClassVar[list] = []

    def __call__(self, offer, state):
        words = count_words(state.canvas, self.chooser.lexicon, state.limits.word_correction)
        self.counted.append(words.tolist())
        return super().__call__(offer, state)


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_words_are_counted_as_printed_at_every_step(kind):
    """Length bounds speak of whitespace words of the printed text; the decoder counts tokens on the canvas."""
    model = _model(kind)
    accepted, _ = _sorted_out(itertools.islice(hostile_lists(seed=5), 1, 150), model)
    bounds = Bounds(max_words=400, max_tokens=12)
    requests = [Request(required_words(keywords), bounds=bounds) for keywords in accepted]
    prompt = prompt_of(model, requests)
    texts = model.scribe._starts(prompt, requests)
    counting, compared = Counting(decider(model, **HOT).chooser), 0
    for step in decode(model.family, prompt, counting):
        for row, counted, made in zip(step.row.tolist(), counting.counted.pop(), steps_of(step), strict=True):
            if made is not None:
                text = texts[row].text(model.tokenizer)
                assert counted == len(text.split()), (accepted[row], text)
                compared += 1
                texts[row].apply(made)
    assert compared > 8 * len(accepted)


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_adjacent_keywords_never_melt_together(kind):
    """Nothing inserted at all: keywords stand side by side, parted by spaces, as they came, but for a capital."""
    model = small_model("insnet", kind)
    accepted, _ = _sorted_out(hostile_lists(seed=77), model)
    for keywords in accepted[:80]:
        words = sum(len(keyword.split()) for keyword in keywords)
        if words:
            result = model.generate(keywords, seed=1, max_words=words, min_words=0)
            expected = " ".join(" ".join(keyword.split()) for keyword in keywords)
            changed = [(one, other) for one, other in zip(result.text, expected, strict=True) if one != other]
            assert changed in ([], [(expected.lstrip('"([{“‘«¿¡” ')[0].upper(), expected.lstrip('"([{“‘«¿¡” ')[0])])


def test_what_takes_too_many_tokens_is_refused_in_one_sentence():
    model = small_model("insnet", "bpe")
    with pytest.raises(ValueError, match="tokens, more than 1024: give fewer or shorter words") as refused:
        model.generate(["x" * 10_000])
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def test_two_hundred_keywords_survive():
    model = small_model("insnet", "word")
    keywords = [*KNOWN[:150], *["ünknown"] * 50]
    result = model.generate(keywords, seed=2, max_tokens=5, max_words=400)
    assert all_in_order([result.text], [keywords]) == 1.0


def test_lists_hold_what_they_promise():
    """Every kind of keyword is in fact among the lists, also after normalisation."""
    words = [word for keywords in hostile_lists(seed=4) for word in keywords]
    assert any(len(word) >= 300 for word in words) and any(" " in word for word in words)
    assert any(unicodedata.normalize("NFC", word) != word for word in words)
    for pool in POOLS:
        assert len(set(pool) & set(words)) >= min(5, len(set(pool)) - 2)
