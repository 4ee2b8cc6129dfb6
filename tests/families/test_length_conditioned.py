"""A model that is told how many insertions are to come writes exactly so many, and answers for that number once."""

import pytest
import torch
from loss_terms import losses_of
from small_models import prompt_of, small_model

from insnet.decoding.config import Bounds, GenerationConfig
from insnet.decoding.request import Request, required_words
from insnet.decoding.trace import log_prob_of_steps
from insnet.families.insnet_config import InsNetConfig
from insnet.families.storage import load_model, save_model
from insnet.model import Model
from insnet.text.batching import TokenBatch

MOST = 12


@pytest.fixture(scope="module")
def model():
    return small_model("insnet", "word", count_head=MOST, length_conditioned=True)


def batch_of_written(model, written):
    """The sentence and order that a decoder played, for training's loss to judge."""
    tokens = [token for token, _ in written.start.tokens]
    place_of = list(range(1, len(tokens) + 1))  # of each token in order of insertion
    reading = list(tokens)
    for step in written.steps:
        for slot, token, _ in step.inserts:
            place_of = [place + (place > slot) for place in place_of] + [slot + 1]
            reading.insert(slot, token)
    given = [False] * len(reading)
    for place in place_of[: len(tokens)]:
        given[place - 1] = True
    batch = TokenBatch.of([reading], starts_word=model.scribe.lexicon.starts_word, given=[given])
    order = torch.tensor([[0, len(reading) + 1, *place_of]])
    return TokenBatch(**{**vars(batch), "order": order})


@pytest.mark.parametrize("stopping", ["sampled", "counted", "rehearsed"])
def test_the_traces_log_probabilities_add_up_to_minus_the_loss(model, stopping):
    bounds = Bounds(min_words=0, max_tokens=40)
    requests = [Request(required_words(words), bounds=bounds) for words in (["baker", "rain"], [], ["x"])]
    config = GenerationConfig.of(stopping=stopping)
    lengths = set()
    for seed in range(6):
        for written in model.scribe.write(requests, [seed] * 3, config):
            terms = losses_of(model.family, batch_of_written(model, written))
            loss = sum(float(terms[name].nats.detach()) for name in ("token", "slot", "stop"))
            assert log_prob_of_steps(written.steps) == pytest.approx(-loss, rel=1e-9)
            assert int(terms["stop"].count) == 1
            lengths.add(sum(len(step.inserts) for step in written.steps))
    assert len(lengths) > (2 if stopping == "sampled" else 0)


def test_sampled_lengths_follow_the_count_head(model):
    requests = [Request((), bounds=Bounds(min_words=0, max_tokens=40))]
    written = model.scribe.write(requests * 1000, list(range(1000)), model.generation.untruncated(), batch_size=500)
    found = torch.bincount(torch.tensor([text.tokens for text in written]), minlength=MOST + 1).double() / 1000
    state = model.family.start(prompt_of(model, requests))
    expected = model.family.offer(state).counts.detach().exp()[0]
    assert torch.allclose(found, expected, atol=0.06)


def test_what_is_to_come_changes_what_is_written(model):
    batch = TokenBatch.of([[7, 8, 9], [7, 8, 9, 10]], starts_word=model.scribe.lexicon.starts_word)
    embedding = model.family.count_embedding.weight
    model.family.zero_grad()
    sum(term.nats for term in losses_of(model.family, batch).values()).backward()
    touched = embedding.grad.abs().sum(dim=1) > 0
    assert touched.nonzero()[:, 0].tolist() == [1, 2, 3, 4]


def test_it_needs_a_count_head():
    with pytest.raises(ValueError, match="count_head is 0; expected 1 or more with length_conditioned"):
        InsNetConfig(vocabulary_size=20, length_conditioned=True)


def test_it_needs_the_newest_token_in_its_slots():
    with pytest.raises(ValueError, match="which noglobal drops"):
        InsNetConfig(vocabulary_size=20, count_head=5, length_conditioned=True, noglobal=True)


def test_gradients_reach_every_parameter(model):
    batch = TokenBatch.of([[7, 8, 9], [7, 8, 9, 10]], starts_word=model.scribe.lexicon.starts_word)
    model.family.zero_grad()
    sum(term.nats for term in losses_of(model.family, batch).values()).backward()
    assert [name for name, weight in model.family.named_parameters() if not weight.grad.abs().sum() > 0] == []


@pytest.mark.parametrize("stopping", ["sampled", "counted"])
def test_a_text_is_the_same_alone_in_a_batch_and_after_saving(model, stopping, tmp_path):
    lists = [["baker"], [], ["new york", "C++"], ["rain", "ship", "old"]]
    together = model.generate_batch(lists, seed=3, stopping=stopping)
    save_model(tmp_path, model.family)
    again = Model(load_model(tmp_path, "cpu", torch.float64), model.tokenizer, model.generation)
    for keywords, result in zip(lists, together, strict=True):
        for other in (model, again):
            alone = other.generate(keywords, seed=3, stopping=stopping)
            assert (alone.text, alone.steps) == (result.text, result.steps)
            assert alone.log_prob == pytest.approx(result.log_prob, abs=1e-9)
