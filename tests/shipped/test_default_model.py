"""The default model: every word kept, one plain sentence of a usual length, the same text in any batch."""

import re

import pytest

import insnet
from insnet.shelf import DEFAULT, SHELF
from insnet.text.decency import is_decent
from insnet.text.words import contains_in_order

LISTS = [
    ["dog", "park", "ball"],
    ["coffee", "morning", "rain"],
    ["teacher", "explained", "lesson"],
    ["train"],
    ["new york", "pizza", "winter"],
    ["she", "sold", "3", "bicycles"],
    ["Zürich", "naïve", "C++"],
    ["covfefe", "łódź", "🙂"],
    ["the", "the"],
    ["boat", "storm", "captain", "harbour", "night", "rope", "wave", "light"],
]
USUAL = LISTS[:3]


@pytest.fixture(scope="module")
def model(default_model) -> insnet.Model:
    return insnet.load(device="cpu")


@pytest.fixture(scope="module")
def results(model) -> list[insnet.Result]:
    return model.generate_batch(LISTS, seed=1)


def test_what_ships_takes_at_most_twenty_one_mebibytes():
    assert sum(path.stat().st_size for path in (SHELF / DEFAULT).iterdir()) <= 21 * 2**20


def test_every_word_is_kept_and_every_text_whole(results):
    for keywords, result in zip(LISTS, results, strict=True):
        assert contains_in_order(result.text, keywords), (keywords, result.text)
        assert result.finished and is_decent(result.text, keywords), result.text


def test_usual_lists_give_one_sentence_of_a_usual_length(results):
    for result in results[: len(USUAL)]:
        assert 8 <= len(result.text.split()) <= 16, result.text
        assert re.fullmatch(r"[A-Z][^.!?]*[.!?]", result.text), result.text


def test_a_list_gets_the_same_text_alone(model, results):
    for keywords, result in list(zip(LISTS, results, strict=True))[:3]:
        assert model.generate(keywords, seed=1).text == result.text


def test_five_samples_are_five_different_texts(model):
    texts = [result.text for result in model.generate(LISTS[0], num_samples=5, seed=1)]
    assert len(set(texts)) == 5 and all(contains_in_order(text, LISTS[0]) for text in texts)


def test_text_around_blanks_is_kept_and_every_blank_filled(model):
    for result in model.infill("My name is ___ and I live in ___.", num_samples=3, seed=1):
        filled = re.fullmatch(r"My name is (.+) and I live in (.+)\.", result.text)
        assert filled and all(any(map(str.isalnum, own)) for own in filled.groups()), result.text


def test_a_length_in_words_is_met(model):
    for words in (6, 12, 25):
        result = model.generate(["river", "bridge"], length=(words, words), seed=1, candidates=4)
        assert len(result.text.split()) == words and contains_in_order(result.text, ["river", "bridge"])


def test_real_sentences_are_likelier_than_the_same_words_backwards(model):
    for sentence in ("The river flows through the old town.", "She forgot her keys on the kitchen table."):
        backwards = " ".join(reversed(sentence.rstrip(".").split())) + "."
        assert model.score(sentence).nats_per_token < model.score(backwards).nats_per_token - 0.5
