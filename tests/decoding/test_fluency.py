"""Candidates chosen by how they read: the rule against a slow twin, orders, lengths, and several samples at once."""

import itertools
import math
import re
from dataclasses import replace

import pytest
import torch
from small_models import batch_of, small_model

from insnet.decoding.config import Fluency, GenerationConfig
from insnet.decoding.fluency import fluency, is_sentence, is_usual, repetitions
from insnet.decoding.job import Job
from insnet.decoding.request import Request, required_words
from insnet.decoding.rerank import best_of_orders, fluencies
from insnet.decoding.samples import essence
from insnet.decoding.write import seed_of_request
from insnet.families import FAMILIES
from insnet.randomness import Purpose, mix
from insnet.text.stop_words import STOP_WORDS

LISTS = [["captain", "ship"], ["girl", "song", "old garden"], ["bread"], []]
POOL = {"candidates": 6, "candidate_choice": "fluency", "top_k": 0, "stopping": "sampled"}


@pytest.fixture(params=[name for name, family in FAMILIES.items() if family.traits.likelihood != "none"])
def model(request):
    return small_model(request.param, "word")


def drafts(model, keywords, seed=7, **settings):
    job = model.job(seed=seed, **{**POOL, **settings})
    request = job.bounded(Request(required_words(keywords)))
    seeds = [Job.candidate_seed(seed, number) for number in range(job.config.selection.candidates)]
    return model.scribe.write([request] * len(seeds), seeds, job.config), job.config


def slow_fluency(model, written, seed, config):
    """Word for word what the rule says, one text at a time."""
    text, weights = written.text, config.fluency
    tokens = model.tokenizer.encode(text)
    orders = 1 if model.family.traits.likelihood == "exact" else config.selection.candidate_orders
    own = seed_of_request(written.request, seed)
    seeds = [int(mix(Purpose.CANDIDATE_ORDER, own, number)) for number in range(orders)]
    with torch.no_grad():
        batches = [batch_of(model.tokenizer, [tokens], seeds=[seed]) for seed in seeds]
        score = sum(float(model.family.log_likelihood(batch).total) for batch in batches) / orders
    score += weights.piece_bonus * len(tokens)
    seen = set()
    for word in re.findall(r"[\w'-]+", text.lower()):
        if word in seen and word not in STOP_WORDS:
            score -= weights.repeat_penalty
        seen.add(word)
    words = len(text.split())
    while words < weights.short_words:
        words, score = words + 1, score - weights.short_penalty
    given = sum(len(phrase.split()) for phrase in written.request.phrases())
    most = weights.usual_most + 2 * (given - 3 if given > 3 else 0)
    if len(text.split()) not in range(weights.usual_least, most + 1):
        score -= 1e6
    if not (text[0].isupper() and text[-1] in ".!?" and not set(".!?") & set(text[:-1])):  # the words have no others
        score -= 2e6
    return score if written.finished else score - 4e6


def test_fluency_is_the_rule_worked_out_text_by_text(model):
    scores = []
    for keywords in LISTS:
        texts, config = drafts(model, keywords, max_tokens=14, repeat_penalty=3.0, usual_least=5)
        found = fluencies(model.scribe, texts, [7] * len(texts), config)
        expected = [slow_fluency(model, text, 7, config) for text in texts]
        assert found == pytest.approx(expected)
        scores += found
    assert len(set(scores)) > 10


@pytest.mark.parametrize("name", ["gaps", "insnet"])
def test_what_is_kept_is_the_best_by_the_slow_rule(name):
    model, changed = small_model(name, "word"), 0
    for keywords in LISTS:
        texts, config = drafts(model, keywords)
        best = max(range(len(texts)), key=lambda place: slow_fluency(model, texts[place], 7, config))
        assert model.generate(keywords, seed=7, **POOL).text == texts[best].text
        changed += best != 0
    assert changed


@pytest.mark.parametrize(
    ("changes", "better"),
    [
        ({"log_prob": -29.0}, True),
        ({"pieces": 11}, True),
        ({"text": "A small dog saw a small boat there."}, False),
        ({"text": "A dog."}, False),
    ],
)
def test_each_part_of_the_rule_counts(changes, better):
    plain = {"log_prob": -30.0, "pieces": 10, "text": "A small dog saw a big boat there."}
    first, second = (fluency(**case, weights=Fluency()) for case in (plain, {**plain, **changes}))
    assert (second > first) is better


def test_only_content_words_count_as_repeated():
    assert repetitions("The cat and the dog and the bird.") == 0
    assert repetitions("Cats, cats and CATS; it's what it's about!") == 2


def test_a_usual_length_grows_with_what_is_given():
    words = lambda count: " ".join(["word"] * count)  # noqa: E731
    assert [is_usual(words(count), 3, Fluency()) for count in (7, 8, 16, 17)] == [False, True, True, False]
    assert [is_usual(words(count), 10, Fluency()) for count in (30, 31)] == [True, False]
    assert is_usual(words(300), 1, Fluency(usual_most=0))


@pytest.mark.parametrize("keywords", LISTS)
def test_a_text_of_a_usual_length_is_taken_where_there_is_one(keywords):
    model = small_model("gaps", "word", generation={"max_tokens": 40})
    for seed in range(3):
        texts, config = drafts(model, keywords, seed)
        whole = [text.text for text in texts if is_sentence(text.text)] or [text.text for text in texts]
        best = model.generate(keywords, seed=seed, **POOL).text
        assert best in whole
        if any(8 <= len(text.split()) <= 16 for text in whole):
            assert 8 <= len(best.split()) <= 16
    assert config.fluency == Fluency()


def test_no_usual_length_counts_where_one_was_asked_for(model):
    texts, config = drafts(model, ["captain"])
    asked = [replace(text, request=replace(text.request, has_length=True)) for text in texts]
    never_usual = replace(config, fluency=replace(config.fluency, usual_least=0, usual_most=0))
    assert fluencies(model.scribe, asked, [3] * 6, config) == fluencies(model.scribe, texts, [3] * 6, never_usual)
    request = Request(required_words(["captain"]))
    options = [{}, {"length": (3, 5)}, {"min_words": 3}]
    assert [model.job(**own, **POOL).bounded(request).has_length for own in options] == [False, True, True]
    assert model.job(**POOL).bounded(replace(request, length=(3, 5))).has_length


def test_candidates_of_all_orders_are_compared(model):
    """Half in the given order, half in others; the best of all by the same rule."""
    keywords = ["captain", "ship", "old garden"]
    job = model.job(seed=3, any_order=True, **POOL)
    request = job.bounded(Request(required_words(keywords)))
    [request] = model.scribe.rehearse([request], [3], job.config)
    [pairs] = job.drafts(request, 3)
    orders = [order.phrases() for order, _ in pairs]
    assert orders[:3] == [keywords] * 3
    assert len(set(map(tuple, orders))) == 4 and all(sorted(order) == sorted(keywords) for order in orders)
    texts = model.scribe.write([order for order, _ in pairs], [seed for _, seed in pairs], job.config)
    [best] = best_of_orders(model.scribe, [[texts]], [3], job.config)
    result = model.generate(keywords, seed=3, any_order=True, **POOL)
    assert (result.text, result.keywords) == (best.text, best.request.phrases())


@pytest.mark.parametrize("count", [2, 3, 16, 40])
@pytest.mark.parametrize("words", [0, 1, 2, 3, 4, 6])
def test_other_orders_are_all_different_as_far_as_there_are_any(words, count):
    keywords = list("abcdef")[:words]
    job = Job.of(GenerationConfig.of(candidates=count, candidate_choice="fluency"), seed=5, any_order=True)
    [pairs] = job.drafts(Request(required_words(keywords)), 5)
    orders = [tuple(order.phrases()) for order, _ in pairs]
    others = orders[count - count // 2 :]
    assert len(orders) == count and orders[: count - len(others)] == [tuple(keywords)] * (count - len(others))
    assert len({seed for _, seed in pairs}) == count
    assert set(others) <= set(itertools.permutations(keywords))
    wanted = min(len(others), math.factorial(words) - 1)
    assert len(set(others) - {tuple(keywords)}) == wanted


def test_samples_are_the_best_of_one_pool_and_differ(model):
    for keywords in LISTS:
        results = model.generate(keywords, num_samples=3, seed=7, **POOL)
        assert len({essence(result.text) for result in results}) == 3
        texts, config = drafts(model, keywords)
        if len({essence(text.text) for text in texts}) >= 3 and model.family.traits.keeps_given:
            scored = sorted(texts, key=lambda text: -slow_fluency(model, text, 7, config))
            first = dict.fromkeys(essence(text.text) for text in scored)
            assert [essence(result.text) for result in results] == list(first)[:3]
            assert results[0].text == model.generate(keywords, seed=7, **POOL).text


def test_more_is_drawn_where_candidates_are_alike():
    """Two candidates cannot make five texts; a model that has but one text to offer gives it as often as asked."""
    model = small_model("gaps", "word")
    options = {**POOL, "candidates": 2}
    results = model.generate(["ship"], num_samples=5, seed=1, **options)
    assert len({essence(result.text) for result in results}) == 5
    assert model.generate(["ship"], num_samples=5, seed=1, **options) == results
    only = model.generate(["ship"], num_samples=3, seed=1, **{**options, "max_words": 1, "top_k": 1, "max_tokens": 1})
    assert len(only) == 3 and len({result.text for result in only}) < 3


def test_candidates_begin_and_are_read_once(monkeypatch):
    model = small_model("gaps", "word")
    started, read = [], []
    encode, log_likelihood = model.family._encode, model.family.log_likelihood
    monkeypatch.setattr(
        model.family, "_encode", lambda state, *new: started.append(len(state.row)) or encode(state, *new)
    )
    monkeypatch.setattr(
        model.family, "log_likelihood", lambda batch: read.extend(batch.tokens.tolist()) or log_likelihood(batch)
    )
    result = model.generate(["bread"], seed=7, **{**POOL, "candidates": 40, "max_words": 2})
    assert started[:2] == [1, 40], "what is given is the same for all candidates"
    assert 1 < len(read) == len({tuple(tokens) for tokens in read}) < 40, "a text that came twice was read twice"
    assert result.text


def test_samples_are_accepted_or_refused_in_a_sentence():
    model = small_model("gaps", "word")
    results = model.generate(["ship"], num_samples=4, seed=1, accept=lambda text: len(text) % 2 == 0, **POOL)
    assert all(len(result.text) % 2 == 0 for result in results)
    with pytest.raises(ValueError, match="accept refused all 2 texts drawn for 'ship'"):
        model.generate(["ship"], num_samples=4, seed=1, accept=lambda text: False, attempts=2, **POOL)


def test_a_text_that_was_cut_off_comes_last():
    model = small_model("gaps", "word", generation={"max_tokens": 40})
    texts, config = drafts(model, ["ship"])
    last = replace(texts[0].steps[-1], is_cut=True)
    cut = replace(texts[0], steps=(*texts[0].steps[:-1], last))
    scores = fluencies(model.scribe, [cut, *texts[1:]], [7] * len(texts), config)
    assert min(scores) == scores[0] and not cut.finished


def test_a_text_whose_end_was_optional_and_lacks_a_stop_comes_behind_those_that_have_one():
    """Where all around the blanks is its author's, so is the end."""
    model = small_model("gaps", "word", generation={"max_tokens": 40})
    texts, config = drafts(model, ["ship"])
    ends = ["The ship.", "The ship sails in the rain", "the ship."]
    for optional in (frozenset({1}), frozenset()):
        request = Request(required_words(["ship"]), fills_blanks=True, optional=optional)
        own = [replace(texts[0], request=request, text=text) for text in ends]
        scores = fluencies(model.scribe, own, [7] * len(own), config)
        assert all((score < scores[0] - 1e5) == bool(optional) for score in scores[1:])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"piece_bonus": -1}, "piece_bonus is -1; expected 0 or a number above it"),
        ({"repeat_penalty": math.inf}, "repeat_penalty is inf"),
        ({"usual_least": 9, "usual_most": 8}, "usual_least 9 is above usual_most 8"),
    ],
)
def test_impossible_weights_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        GenerationConfig.of(settings)
