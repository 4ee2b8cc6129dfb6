"""The general-English model: small, quick to load, and true to every word that a person may type."""

import inspect
import math
import re
import statistics
import subprocess
import sys

import pytest

import insnet
from insnet.cli.generate import infill
from insnet.shelf import SHELF
from insnet.text.words import contains_in_order

FOLDER = SHELF / "general"
LISTS = [
    ["day", "decided", "started", "focus"],
    ["river"],
    ["new york", "pizza"],
    ["Zürich", "naïve", "C++"],
    ["covfefe", "łódź", "🙂"],
    ["the", "the", "the"],
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
]


@pytest.fixture(scope="module")
def model() -> insnet.Model:
    return insnet.load("general", device="cpu")


def test_its_weights_take_at_most_twenty_mebibytes() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.safetensors")) <= 20 * 2**20


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_every_word_that_was_typed_is_kept(model: insnet.Model, mode: str) -> None:
    for seed in range(3):
        for keywords, result in zip(LISTS, model.generate_batch(LISTS, seed=seed, mode=mode), strict=True):
            assert contains_in_order(result.text, keywords), (keywords, result.text)
            assert result.finished


def test_text_around_blanks_is_kept_word_for_word(model: insnet.Model) -> None:
    for seed in range(3):
        text = model.infill("The ___ was built in ___ by the city.", seed=seed).text
        assert text.startswith("The ") and " was built in " in text and text.endswith(" by the city.")


def test_the_example_in_the_help_of_infill_makes_sense(model: insnet.Model) -> None:
    example = re.search(r'insnet infill "(.*?)"', inspect.getdoc(infill) or "")[1]
    texts = [result.text for result in model.infill(example, num_samples=5, seed=1)]
    assert all(re.fullmatch(r"The river flows through [\w ,]+ into the [A-Z][\w ]+ Sea\.", text) for text in texts), (
        texts
    )


def test_every_blank_gets_a_word(model: insnet.Model) -> None:
    for mode in ("sequential", "parallel"):
        for result in model.infill("My name is ___ and I live in ___.", num_samples=6, seed=1, mode=mode):
            filled = re.fullmatch(r"My name is (.+) and I live in (.+?)\s?\.", result.text)
            assert filled and all(any(map(str.isalnum, own)) for own in filled.groups()), result.text


def test_samples_come_again_by_their_seeds(model: insnet.Model) -> None:
    for result in model.generate(["river"], num_samples=4, seed=7, candidates=1):
        assert result.seed >= 0
        assert model.generate(["river"], seed=result.seed, candidates=1).text == result.text


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_length_in_words_is_met_and_costs_no_probability(model: insnet.Model, mode: str) -> None:
    for words in (15, 60):
        result = model.generate(["river"], length=(words, words), seed=1, mode=mode, candidates=1)
        assert len(result.text.split()) == words and result.finished
        assert -1000 < result.log_prob < 0


@pytest.mark.parametrize("length", [(100, 100), (500, 500), (300, None)])
def test_a_length_that_it_has_not_learned_is_kept_or_refused_in_one_line(model: insnet.Model, length) -> None:
    least, most = length
    try:
        text = model.generate(["river"], length=length, seed=1, candidates=1, attempts=2).text
        assert least <= len(text.split()) <= (most or math.inf)
    except ValueError as error:
        assert "\n" not in str(error) and "words" in str(error) and len(str(error)) < 200


def test_it_writes_sentences_with_a_capital_and_an_end(model: insnet.Model) -> None:
    """In nine of ten: it has learned from sentences, and nothing but learning makes it do so."""
    texts = [result.text for result in model.generate([], num_samples=40, seed=0)]
    whole = [text[:1].isupper() or not text[:1].isalpha() for text in texts]
    ended = [text.rstrip("\"')]’”")[-1:] in ".?!" for text in texts]
    assert sum(whole) >= 36 and sum(ended) >= 36
    assert 12 < statistics.mean(len(text.split()) for text in texts) < 35


def test_real_sentences_are_likelier_than_the_same_words_backwards(model: insnet.Model) -> None:
    for sentence in ("The river flows through the old town.", "He was born in London and studied law."):
        backwards = " ".join(reversed(sentence.rstrip(".").split())) + "."
        assert model.score(sentence).nats_per_token < model.score(backwards).nats_per_token - 0.5


def test_one_command_writes_a_sentence_from_four_keywords() -> None:
    command = [sys.executable, "-m", "insnet", "generate", "--model", "general", *LISTS[0], "--seed", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert contains_in_order(ran.stdout.strip(), LISTS[0])
