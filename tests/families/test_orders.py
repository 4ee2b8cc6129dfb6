"""A model of several orders: each row learns one of them, is told which, and decodes in the one that is asked for."""

import math
import random
from dataclasses import replace

import pytest
import torch
from loss_terms import losses_of
from small_models import KINDS, LINES, batch_of, edits_of, offers, plays_of, prompt_of, small_model

from insnet.families.generator import Prompt, sentence_of_batch
from insnet.families.insnet_objective import Plan
from insnet.insertion.order import draw_orders, position_of_step

ORDERS = ("left_to_right", "random_words")
TOLD = {"count_head": 20, "length_conditioned": True}


def model_of(kind="word", **options):
    return small_model("insnet", kind, order="+".join(ORDERS), **options)


def some_batch(model, rows=12):
    rng = random.Random(3)
    lists = [model.tokenizer.encode(line) for line in LINES[:rows]]
    given = [[rng.random() < 0.2 for _ in tokens] for tokens in lists]
    return batch_of(model.tokenizer, lists, given)


def token_nats(model, batch, number):
    """Of each row in the model's order of that number."""
    plan = model.family.one_pass.sequential_plan(batch, torch.full_like(batch.lengths, number))
    return model.family.one_pass.rows(batch, plan).nats["token"]


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_each_row_costs_what_it_costs_in_its_own_order(kind):
    model = model_of(kind)
    batch = some_batch(model)
    one_pass, which = model.family.one_pass, draw_orders(ORDERS, batch.seeds)
    assert set(which.tolist()) == {0, 1}
    found = one_pass.rows(batch, one_pass.plan(batch, model.family.Objective()))
    for number, order in enumerate(ORDERS):
        prescribed = replace(batch, order=position_of_step(order, sentence_of_batch(batch)))
        alone = one_pass.rows(prescribed, one_pass.sequential_plan(prescribed, torch.full_like(which, number)))
        for name, nats in alone.nats.items():
            torch.testing.assert_close(found.nats[name][which == number], nats[which == number], rtol=0, atol=1e-10)


@torch.no_grad()
def test_the_model_knows_which_order_it_is_in():
    model = model_of()
    batch = replace(some_batch(model), order=None)
    first, second = (token_nats(model, batch, number) for number in (0, 1))
    model.family.order_embedding.weight.zero_()
    batch = replace(batch, order=position_of_step("random", sentence_of_batch(batch)))
    told = [token_nats(model, batch, number) for number in (0, 1)]
    assert not torch.allclose(first, second)
    torch.testing.assert_close(told[0], told[1])  # nothing but the embedding tells


@torch.no_grad()
@pytest.mark.parametrize("number", [0, 1])
def test_decoding_in_an_order_offers_what_was_learned_in_it(number):
    """A trajectory played with the cache costs what the one pass over it costs, both told the same order."""
    model = model_of()
    tokens = model.tokenizer.encode(LINES[4])
    batch = batch_of(model.tokenizer, [tokens])
    order = position_of_step(ORDERS[number], sentence_of_batch(batch))
    nats = model.family.one_pass.rows(batch, Plan(order, torch.tensor([number]))).nats
    prompt = replace(prompt_of(model, [[]], max_tokens=len(tokens) + 2), order=torch.tensor([number]))
    state, found = model.family.start(prompt), 0.0
    for slot, token in plays_of(tokens, order[0].tolist(), 0):
        offered = offers(model.family, state)
        log_go = math.log1p(-math.exp(float(offered["stop"][0])))
        found += log_go + float(offered["slots"][0, slot]) + float(offered["tokens"][0, slot, token])
        state = model.family.advance(state, edits_of([[(slot, token)]]))
    found += float(offers(model.family, state)["stop"][0])
    assert found == pytest.approx(-sum(float(values) for values in nats.values()), rel=1e-9)


def test_one_by_one_takes_the_first_order_and_parallel_the_last_unless_another_is_asked_for(monkeypatch):
    model = model_of(**TOLD)
    seen = []
    start = type(model.family).start

    def watched(self, prompt: Prompt):
        seen.append(prompt.order.tolist())
        return start(self, prompt)

    monkeypatch.setattr(type(model.family), "start", watched)
    model.generate(["baker"], seed=1)
    model.generate(["baker"], seed=1, mode="parallel")
    model.generate(["baker"], seed=1, order="random_words")
    assert seen == [[0], [1], [1]]
    with pytest.raises(ValueError, match="this model has learned left_to_right, random_words; use one"):
        model.generate(["baker"], order="rare_first")


@torch.no_grad()
def test_only_the_last_order_is_learned_in_layers():
    model = model_of()
    batch = some_batch(model)
    which = draw_orders(ORDERS, batch.seeds)
    terms = losses_of(model.family, batch, tau=(math.inf,))
    insertions = (batch.lengths - batch.given.sum(dim=1)).where(which == 1, 0).sum()
    assert int(terms["layers_per_insertion"].count) == int(insertions)
    assert 0 < float(terms["layers_per_insertion"].nats) < int(insertions)
    assert float(terms["sequential_loss"].nats) == pytest.approx(float(terms["left_to_right_loss"].nats))
    assert float(terms["layered_loss"].nats) == pytest.approx(float(terms["random_words_loss"].nats))


@torch.no_grad()
def test_a_likelihood_is_that_of_the_first_order_which_has_one_way_to_write_a_text():
    model = model_of()
    lists = [model.tokenizer.encode(LINES[0])] * 4
    found = model.family.log_likelihood(batch_of(model.tokenizer, lists, seeds=[1, 2, 3, 4])).total
    torch.testing.assert_close(found, found[:1].expand(4))
