"""Lengths that are asked for, planned or cut off: what was asked is kept, or refused in one clear line."""

import math
import re

import pytest
import torch
from small_models import small_family, small_model
from small_tokenizers import TOKENIZERS

from insnet.decoding.config import Bounds, GenerationConfig
from insnet.decoding.request import Request, required_words
from insnet.decoding.trace import log_prob_of_steps
from insnet.model import Model

TOLD = {"count_head": 12, "length_conditioned": True}
MODELS = [("insnet", {}), ("insnet", {"count_head": 12}), ("insnet", TOLD), ("autoregressive", {})]


@pytest.fixture(params=MODELS, ids=["plain", "counting", "told", "autoregressive"])
def model(request):
    name, config = request.param
    return small_model(name, "bpe", generation={"stopping": "sampled"}, **config)


# ---- cut off or finished ----


@pytest.mark.parametrize("planned", [1, 7, 12])
def test_a_text_whose_planned_length_is_the_limit_on_tokens_is_finished(model, planned):
    bounds = Bounds(min_words=0, max_tokens=planned)
    requests = [Request(required_words(words), bounds=bounds, insertions=planned) for words in ([], ["ship"])] * 5
    texts = model.scribe.write(requests, range(10), GenerationConfig())
    assert all(text.finished and text.inserted <= planned for text in texts)
    assert any(text.inserted == planned for text in texts)


def test_a_text_that_was_to_be_longer_than_the_limit_on_tokens_is_cut_off(model):
    free, planned = Bounds(min_words=0, max_tokens=5), Bounds(min_words=5, max_tokens=5)
    longer = Request((), bounds=free, insertions=12)
    too_few_words = Request(required_words(["ship"]), bounds=planned, insertions=2)  # of one piece each
    for text in model.scribe.write([longer, too_few_words] * 5, range(10), GenerationConfig()):
        is_whole = text.request is not longer and len(text.text.split()) >= 5
        assert text.inserted == 5 or is_whole
        assert text.finished == is_whole


# ---- lengths in words ----

OPEN_ENDS = [(12, None), (None, 3), (None, None), (0, None), (40, None), (2, 2)]


@pytest.mark.parametrize(("least", "most"), OPEN_ENDS)
@pytest.mark.parametrize("name", ["insnet", "autoregressive"])
def test_an_open_end_never_contradicts_the_models_own_bounds(name, least, most):
    model = small_model(name, "word", generation={"min_words": 8, "max_words": 10, "stopping": "threshold"})
    for seed in range(3):
        result = model.generate(["ship"], length=(least, most), seed=seed)
        assert (least or 0) <= len(result.text.split()) <= (most or 999) and result.finished


def test_texts_that_miss_the_length_are_drawn_anew_and_at_last_refused_in_one_line():
    model = small_model("insnet", "bpe", generation={"stopping": "sampled"})
    options = {"length": (4, 20), "max_tokens": 11}  # words of several pieces each: often there is no room for four
    seeds, refused = [], 0
    for seed in range(12):
        try:
            result = model.generate([], seed=seed, attempts=4, **options)
            assert 4 <= len(result.text.split()) <= 20
            assert model.generate([], seed=result.seed, attempts=1, **options).text == result.text
            seeds.append(result.seed == seed)
        except ValueError as error:
            assert "none of 4 texts drawn without keywords had 4 to 20 words; allow other lengths" in str(error)
            assert "\n" not in str(error)
            refused += 1
    assert refused and any(seeds) and not all(seeds)


def test_texts_that_miss_the_length_are_no_candidates():
    model = small_model("insnet", "bpe", generation={"stopping": "sampled"})
    for seed in range(4):
        options = {"length": (4, 20), "max_tokens": 10, "candidates": 4, "attempts": 40}
        assert 4 <= len(model.generate([], seed=seed, **options).text.split()) <= 20


def test_a_model_that_is_told_its_length_refuses_what_it_has_not_learned():
    model = small_model("insnet", "word", generation={"stopping": "counted"}, **TOLD)
    with pytest.raises(
        ValueError, match="at least 40 words were asked for, but this model inserts at most 12"
    ) as error:
        model.generate(["ship"], length=(40, 40))
    assert "ask for 13 or fewer" in str(error.value) and "\n" not in str(error.value)
    for mode in ("sequential", "parallel"):
        assert len(model.generate(["ship"], length=(9, 9), mode=mode, seed=1).text.split()) == 9


# ---- what a bound decides costs nothing ----


@pytest.mark.parametrize("length", [(9, 9), (1, 2), (11, 30)])
def test_log_probs_stay_finite_where_the_length_binds(model, length):
    for seed in range(6):
        result = model.generate(["ship"], length=length, seed=seed, top_k=0, slot_mass=1.0, attempts=50)
        assert -1000 < result.log_prob < 0


def test_a_log_prob_is_the_sum_of_its_traces_parts(model):
    requests = [Request(required_words(words), bounds=Bounds(min_words=0)) for words in ([], ["ship"], ["a", "rope"])]
    for text in model.scribe.write(requests * 3, range(9), model.generation):
        parts = [part for step in text.steps for _, _, part in step.inserts]
        ends = [step.stop_log_prob for step in text.steps]
        assert all(map(math.isfinite, [*parts, *ends])) and max([*parts, *ends]) <= 0
        assert log_prob_of_steps(text.steps) == pytest.approx(sum(parts) + sum(ends))
        assert model.family.config.longest or all(end < 0 for end in ends if text.finished)


def test_a_text_with_all_its_words_gets_no_further_one_behind_a_comma():
    """A byte-level piece without a space would be one, though spaces do not show it: "hill,and,by"."""
    tokenizer, torn = TOKENIZERS["gpt2"], 0
    family = small_family("gaps", tokenizer.size, layers=1, scale=0.5, dtype=torch.float32)
    family.read_vocabulary(tokenizer)
    with torch.no_grad():
        family.close_head.bias.fill_(-2.0)  # it would rather go on
    model = Model(family, tokenizer, GenerationConfig())
    for seed in range(40):
        text = model.generate(["king"], length=(4, 4), seed=seed, temperature=1.5, top_k=0, decent=False).text
        last = text.split()[-1]
        assert len(text.split()) == 4 and not re.search(r"[,;:!?%][^\W\d_]", last), text
        torn += bool(re.search(r"[,;:!?%]", last))
    assert torn > 3  # it had the opportunity
