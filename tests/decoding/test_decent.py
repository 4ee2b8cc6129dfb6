"""Slurs and sexual words that nobody gave stay out of every text. Words that a model writes stand for them here; real
ones are in rot13."""

import codecs
import re
from itertools import takewhile

import pytest
from small_models import KINDS, small_family, small_model

from insnet.decoding.config import GenerationConfig
from insnet.evaluation.task import Task, decoding_settings, evaluate_task
from insnet.families import FAMILIES
from insnet.model import Model
from insnet.text import decency
from insnet.text.decency import indecent_words
from insnet.text.marked import MarkedTokenizer, TokenizerConfig

LISTS = [["captain", "boat"], ["bread"], [], ["goat", "hat", "garden"], ["rope"], ["hat"], ["Xerxes"], ["boat", "goat"]]
LONG = {"min_words": 5, "stopping": "sampled", "top_k": 60}  # in the model: asked for, other lengths are drawn anew
WAYS = [
    {},
    {"mode": "parallel"},
    {"candidates": 3},
    {"candidates": 2, "revise": 1},
    {"any_order": True},
    {"banned": ["boat rope", "market"]},
]


@pytest.fixture(params=list(FAMILIES))
def family_name(request):
    return request.param


@pytest.fixture(params=KINDS)
def model(request, family_name):
    return small_model(family_name, request.param, generation=LONG)


class BadWords:
    """Words made bad, and the slow twin of the filter: whatever stands between what is no letter or digit."""

    def __init__(self, monkeypatch):
        self.monkeypatch, self.words = monkeypatch, frozenset()

    def make(self, words) -> None:
        self.words = frozenset(word.lower() for word in words)
        self.monkeypatch.setattr(decency, "INDECENT_WORDS", self.words)

    def take_from(self, results) -> None:
        """Makes the longest inserted word of every second text bad."""
        given = {word.lower() for result in results for phrase in result.keywords for word in phrase.split()}
        of_texts = [set(re.findall(r"[^\W_]+", result.text.lower())) - given for result in results[::2]]
        self.make(max(words, key=lambda word: (len(word), word)) for words in of_texts if words)

    def found_in(self, text: str) -> list[str]:
        words = "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
        return [word for word in words if word in self.words]


@pytest.fixture
def bad(monkeypatch):
    return BadWords(monkeypatch)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_no_bad_word_is_inserted_and_decent_texts_stay_as_they_were(bad, model, way):
    traits = model.family.traits
    if way.get("mode") == "parallel" and not traits.several_per_step:
        pytest.skip("it inserts one by one")
    if "revise" in way and not (traits.fills_blanks and traits.likelihood != "none"):
        pytest.skip("it cannot revise")
    free = model.generate_batch(LISTS, decent=False, seed=5, **way)
    bad.take_from(free)
    assert [result.text for result in model.generate_batch(LISTS, decent=False, seed=5, **way)] == [
        result.text for result in free
    ]
    filtered = model.generate_batch(LISTS, seed=5, **way)
    assert sum(bool(bad.found_in(result.text)) for result in free) >= 3
    assert not any(bad.found_in(result.text) for result in filtered)
    if not way.keys() & {"candidates", "any_order"}:  # else another candidate may be the best now
        for before, after in zip(free, filtered, strict=True):
            assert bad.found_in(before.text) or (before.text, before.steps) == (after.text, after.steps)


def test_a_spoilt_text_is_the_same_up_to_the_step_that_would_spoil_it(bad, model):
    free = model.generate_batch(LISTS, decent=False, seed=5)
    bad.take_from(free)
    for before, after in zip(free, model.generate_batch(LISTS, seed=5), strict=True):
        if bad.found_in(before.text):
            innocent = list(takewhile(lambda step: not bad.found_in(step["text"]), before.trace))
            assert [step["text"] for step in after.trace[: len(innocent)]] == [step["text"] for step in innocent]
            assert not any(bad.found_in(step["text"]) for step in after.trace)


def test_a_filtered_text_is_the_same_alone_and_in_any_batch(bad, model):
    bad.take_from(model.generate_batch(LISTS, decent=False, seed=5))
    together = [result.text for result in model.generate_batch(LISTS, seed=5)]
    assert together == [result.text for result in model.generate_batch(LISTS, batch_size=3, seed=5)]
    assert together == [model.generate(keywords, seed=5).text for keywords in LISTS]


def test_no_step_of_a_stream_shows_a_bad_word(bad, model):
    options = {"seed": 5, "mode": "parallel" if model.family.traits.several_per_step else "sequential"}
    free = model.generate_batch(LISTS, decent=False, **options)
    bad.take_from(free)
    for keywords, result in zip(LISTS[:5], free, strict=False):
        shown = [step["text"] for step in model.stream(keywords, **options)]
        assert not any(map(bad.found_in, shown))
        if bad.found_in(result.text):
            assert shown[-1] == model.generate(keywords, **options).text
        unfiltered = [step["text"] for step in model.stream(keywords, decent=False, **options)]
        assert unfiltered == [step["text"] for step in result.trace]


def test_what_is_given_stays_and_excuses_itself_alone(bad, family_name):
    model = small_model(family_name, "word", generation=LONG)
    bad.make(["the", "old", "ship", "was", "by", "rain", "bread", "and", "captain"])
    for result in model.generate_batch([["ship", "bread"], ["The old boat"], ["rain"], ["was", "by"]], seed=5):
        given = bad.found_in(" ".join(result.keywords))
        written = bad.found_in(result.text)
        assert len(written) == len(set(written)) and set(written) <= set(given)
        if model.family.traits.keeps_given:
            assert written == given
    if model.family.traits.fills_blanks:
        for result in model.infill("The old ship ___ the rain ___", num_samples=5, seed=5):
            assert bad.found_in(result.text) == ["the", "old", "ship", "the", "rain"]


def test_samples_and_a_filter_of_ones_own_hold_together(bad):
    model = small_model("insnet", "bpe", generation=LONG)
    options = {"num_samples": 5, "accept": lambda text: "a" in text, "seed": 5}
    bad.take_from(model.generate(["boat"], decent=False, **options))
    texts = [result.text for result in model.generate(["boat"], **options)]
    assert len(set(texts)) == 5
    assert not any(map(bad.found_in, texts)) and all("a" in text for text in texts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_wants_nothing_else_finds_other_words(kind):
    """With the real list, in greedy decoding."""
    words = codecs.decode("fuvg juber nffubyr", "rot13").split()
    lines = [f"The {words[0]} and a {words[1]} met one {words[2]} at sea.", "The boat and a goat met a sailor at sea."]
    tokenizer = MarkedTokenizer.learn(lines * 9, TokenizerConfig(kind, 330, lower_case=False))
    family = small_family("insnet", tokenizer.size)
    for token in {token for word in words for token in tokenizer.encode(word)}:
        family.token_head.bias.data[token] += 9
    model = Model(family, tokenizer, GenerationConfig.of(top_k=1, min_words=8, max_words=8, max_tokens=30))
    lists = [["boat"], [words[0]]]
    assert all(len(indecent_words(result.text)) > 2 for result in model.generate_batch(lists, seed=1, decent=False))
    first, second = (result.text for result in model.generate_batch(lists, seed=1))
    assert (indecent_words(first), indecent_words(second)) == ([], [words[0]])
    assert len(first.split()) == len(second.split()) == 8


def test_what_is_scored_is_filtered_only_if_that_is_asked_for(bad):
    model = small_model("insnet", "word", generation=LONG)
    task = Task("none", "test", ["A text."] * len(LISTS), LISTS)
    free = model.generate_batch(LISTS, decent=False, seed=5)
    bad.take_from(free)
    assert evaluate_task(model, task, seed=5)[1] == [result.text for result in free]
    assert not any(map(bad.found_in, evaluate_task(model, task, decent=True, seed=5)[1]))
    assert [decoding_settings(model)["decent"], decoding_settings(model, decent=True)["decent"]] == [False, True]
