"""The model that ships has learned the tour's corpus: what it writes, untruncated, is as long as what it read."""

import statistics

import pytest

import insnet
from insnet.decoding.config import Bounds
from insnet.decoding.request import Request
from insnet.tour.corpus import keywords_of
from insnet.tour.dice import Dice
from insnet.tour.grammar import sentences


@pytest.fixture(scope="module")
def model() -> insnet.Model:
    return insnet.load("tour", device="cpu")


def untruncated_words(model: insnet.Model, requests: list[Request], seeds: list[int]) -> list[int]:
    written = model.scribe.write(requests, seeds, model.generation.untruncated(), batch_size=500)
    return [len(text.text.split()) for text in written]


def test_untruncated_samples_have_the_corpus_mean_length_within_five_percent(model: insnet.Model) -> None:
    """No truncation, temperature 1, the stop drawn from the hazard: anything else would be a bug, not a taste."""
    learned = statistics.mean(len(sentence.split()) for sentence in sentences(6000, 0))
    sampled = untruncated_words(
        model, [Request((), bounds=Bounds(min_words=0, max_tokens=80))] * 2000, list(range(2000))
    )
    error_of_mean = statistics.stdev(sampled) / len(sampled) ** 0.5
    assert error_of_mean < 0.01 * learned  # else the next line would prove nothing
    assert statistics.mean(sampled) == pytest.approx(learned, rel=0.05)


def test_every_keyword_of_the_test_split_is_kept(model: insnet.Model) -> None:
    unseen = sentences(6800, 0)[6400:]
    lists = [keywords_of(sentence, Dice(number)) for number, sentence in enumerate(unseen[:200])]
    for keywords, result in zip(lists, model.generate_batch(lists, seed=0, stopping="sampled"), strict=True):
        place = -1
        for keyword in keywords:
            place = result.text.find(keyword, place + 1)
            assert place >= 0, (keywords, result.text)


def test_fluent_text_scores_better_than_shuffled_text(model: insnet.Model) -> None:
    held_out = sentences(6450, 0)[6400:]
    for sentence in held_out:
        words = sentence.rstrip(".?!").split()
        shuffled = " ".join(reversed(words)) + sentence[-1]
        assert model.score(sentence).nats_per_token < model.score(shuffled).nats_per_token
