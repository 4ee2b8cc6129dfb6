"""InsNet in layers: the objective of section 3.3 canvas by canvas, nothing seen too early, and the same canvases when
the layers are played through a decoder."""

import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from loss_terms import losses_of
from paper_layers import layers_by_the_papers_words
from slow_reader import read_slowly
from small_models import LINES, batch_of, edits_of, offers, order_of, prompt_of, small_model

from insnet.decoding.request import Request
from insnet.families.insnet_objective import Plan
from insnet.families.losses import learned_nats
from insnet.insertion.canvas import INSERTED, Canvas
from insnet.insertion.concurrency import sort_by_round
from insnet.text.specials import BOS, EOS

ATOL = 1e-9
SWITCHES = [
    {},
    {"truncated": True},
    {"noglobal": True},
    {"count_head": 6},
    {"count_head": 6, "length_conditioned": True},
    {"slot_layers": 2, "count_head": 6, "length_conditioned": True},
]
TAUS = (-math.inf, 0.2, 1.0, math.inf)


def example(model, seed=3, rows=5):
    """Token lists, flags of given words and orders; a row with nothing given and one with nothing to insert."""
    rng = random.Random(seed)
    lists = [model.tokenizer.encode(line)[:13] for line in LINES[seed : seed + rows]]
    given = [[rng.random() < 0.3 for _ in tokens] for tokens in lists]
    given[0], given[1] = [False] * len(lists[0]), [True] * len(lists[1])
    orders = [order_of(len(t), g, rng, left_to_right=False) for t, g in zip(lists, given, strict=True)]
    return lists, given, orders


def encode_by_hand(family, framed, order):
    """Encodings of an order, each token's view of the canvas found by sorting."""
    offsets = torch.zeros(1, len(order), len(order), dtype=torch.int64)
    for t in range(len(order)):
        canvas = sorted(order[: t + 1])
        for j in range(t + 1):
            offsets[0, t, j] = canvas.index(order[j]) - canvas.index(order[t])
    ids = torch.tensor([[framed[place] for place in order]])
    return family.encoder(family.embedding(ids), offsets)[0]


def slot_vector(family, encoded, left, right, newest, to_come):
    """Section 3.2, for one slot."""
    pair = torch.cat([family.slots.left(encoded[left]), family.slots.right(encoded[right])])
    if not family.slots.use_global:
        return family.slots.norm(pair)
    told = encoded[newest]
    if family.config.length_conditioned:
        told = told + family.count_embedding.weight[max(1, min(to_come, family.config.count_head))]
    return family.slots.norm(pair + told)


def token_log_prob(family, vector, token):
    logits = family.embedding.weight @ vector + family.token_head.bias
    logits[[0, 1, 2, 3]] = -math.inf
    return float(logits.log_softmax(0)[token])


def layers_by_hand(family, tokens, order, given_count, tau):
    """The twin's layers, likelihoods read off a pass over the original order."""
    framed = [BOS, *tokens, EOS]
    encoded = encode_by_hand(family, framed, order)

    def log_prob(step, slot, newest):
        vector = slot_vector(family, encoded, *slot, newest, len(order) - 1 - newest)
        vector = read_slowly(family, vector, encoded[: newest + 1], order[: newest + 1], slot[0])
        return token_log_prob(family, vector, framed[order[step]])

    return layers_by_the_papers_words(order, 2 + given_count, tau, log_prob)


def canvases(order, layers):
    """For every layer from 1 on: what stood there before (in the order it was put there), and what it puts."""
    for number in range(1, max(layers) + 2):
        before = [step for step in range(len(order)) if layers[step] < number]
        before.sort(key=lambda step: (layers[step], order[step] if layers[step] else step))
        news = sorted(order[step] for step in range(len(order)) if layers[step] == number)
        yield [order[step] for step in before], news


def nats_by_hand(family, tokens, order, layers):
    """Section 3.3, one canvas after the other, of which each is encoded without anything that comes later."""
    framed, most, config = [BOS, *tokens, EOS], family.config.count_head, family.config
    nats = {"token": 0.0, "slot": 0.0, "stop": 0.0} | ({"count": 0.0} if most and not config.length_conditioned else {})
    for number, (inserted, news) in enumerate(canvases(order, layers)):
        encoded, to_come = encode_by_hand(family, framed, inserted), len(order) - len(inserted)
        answer = family.stop_head(encoded[-1])
        if config.length_conditioned:
            nats["stop"] -= float(answer.log_softmax(0)[min(to_come, most)]) if number == 0 else 0.0
        elif most:
            stops = answer.softmax(0)[0]
            nats["stop"] -= float((1 - stops if news else stops).log())
            nats["count"] -= float(answer.log_softmax(0)[min(to_come, most)] - (1 - stops).log()) if news else 0.0
        else:
            nats["stop"] -= float(torch.nn.functional.logsigmoid(-answer[0] if news else answer[0]))
        if not news:
            return nats
        reading = sorted(range(len(inserted)), key=lambda step: inserted[step])
        slots = list(itertools.pairwise(reading))
        vectors = [slot_vector(family, encoded, *slot, -1, to_come) for slot in slots]
        scores = torch.stack([family.slot_head(vector)[0] for vector in vectors]).log_softmax(0)
        for place in news:
            slot = sum(other < place for other in inserted) - 1
            nats["slot"] -= float(scores[slot])
            vector = read_slowly(family, vectors[slot], encoded, inserted, reading[slot])
            nats["token"] -= token_log_prob(family, vector, framed[place])
    raise AssertionError("the last canvas has nothing to come")


def taus_of(rows):
    return torch.tensor(list(itertools.islice(itertools.cycle(TAUS), rows)), dtype=torch.float64)


def in_order(batch):
    """The plan of a batch that prescribes its order, one insertion per round."""
    return Plan(batch.order, torch.zeros_like(batch.lengths))


def rounds_of(family, batch, tau):
    return family.one_pass.rounds(batch, in_order(batch), tau)


@torch.no_grad()
@pytest.mark.parametrize("switch", SWITCHES)
def test_layers_of_a_model_are_those_the_paper_describes(switch):
    model = small_model("insnet", "word", **switch)
    for seed in range(3):
        lists, given, orders = example(model, seed)
        batch = batch_of(model.tokenizer, lists, given, orders, pad_to=18)
        for shift in range(len(TAUS)):
            tau = taus_of(len(lists)).roll(shift)
            found = rounds_of(model.family, batch, tau)
            for row, (tokens, flags, order) in enumerate(zip(lists, given, orders, strict=True)):
                wanted = layers_by_hand(model.family, tokens, order, sum(flags), float(tau[row]))
                assert found[row, : len(order)].tolist() == wanted


@torch.no_grad()
@pytest.mark.parametrize("switch", SWITCHES)
def test_the_layered_objective_equals_that_of_one_canvas_after_the_other(switch):
    model = small_model("insnet", "word", **switch)
    lists, given, orders = example(model)
    batch = batch_of(model.tokenizer, lists, given, orders, pad_to=17)
    tau = model.family.Objective(TAUS).tau_of_rows(batch.seeds)
    assert len(set(tau.tolist())) == len(TAUS)
    layers = rounds_of(model.family, batch, tau).tolist()
    terms = losses_of(model.family, batch, tau=TAUS)
    rows = [nats_by_hand(model.family, t, o, r[: len(o)]) for t, o, r in zip(lists, orders, layers, strict=True)]
    assert {name for name, term in terms.items() if not term.is_figure} == set(rows[0])
    for name in rows[0]:
        assert float(terms[name].nats) == pytest.approx(sum(row[name] for row in rows), rel=0, abs=ATOL)
    insertions = sum(len(g) - sum(g) for g in given)
    depth = [max(row[: len(order)]) for row, order in zip(layers, orders, strict=True)]
    assert int(terms["token"].count) == int(terms["slot"].count) == insertions
    assert int(terms["stop"].count) == (5 if switch.get("length_conditioned") else sum(depth) + 5)


@pytest.mark.parametrize("switch", SWITCHES)
def test_without_tolerance_it_is_the_sequential_objective(switch):
    model = small_model("insnet", "bpe", **switch)
    lists, given, orders = example(model)
    for batch in (batch_of(model.tokenizer, lists, given, orders), batch_of(model.tokenizer, lists, given)):
        sequential = losses_of(model.family, batch)
        plan = model.family.one_pass.plan(batch, model.family.Objective())
        rounds = model.family.one_pass.rounds(batch, plan, torch.full((5,), -math.inf))
        layered = model.family.one_pass.rows(batch, replace(plan, rounds=rounds))
        assert set(layered.nats) == set(sequential)
        for name, term in sequential.items():
            torch.testing.assert_close(layered.nats[name].sum(), term.nats, rtol=0, atol=ATOL)
            assert int(layered.counts[name].sum()) == int(term.count)
        losses = learned_nats(sequential), sum(nats.sum() for nats in layered.nats.values())
        gradients = [torch.autograd.grad(loss, list(model.family.parameters())) for loss in losses]
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=ATOL)


def logits_of(family, batch, order, layer):
    """Token logits (B, T, V) and slot logits (B, T, T) of the layered pass, caught where they are made."""
    caught = {}
    handle = family.token_head.register_forward_hook(lambda module, arguments, result: caught.update(token=result))
    original = family.slots.logits_of_all_steps

    def spy(*arguments):
        caught["slot"] = original(*arguments)
        return caught["slot"]

    family.slots.logits_of_all_steps = spy
    family.one_pass.rows(batch, Plan(order, torch.zeros_like(batch.lengths), layer))
    handle.remove()
    del family.slots.logits_of_all_steps
    return caught["token"], caught["slot"]


@torch.no_grad()
@pytest.mark.parametrize("switch", [SWITCHES[0], *SWITCHES[-2:]])
def test_no_logit_of_a_layer_depends_on_a_token_of_that_layer_or_a_later_one(switch):
    model = small_model("insnet", "word", **switch)
    lists, given, orders = example(model, seed=5)
    batch = batch_of(model.tokenizer, lists, given, orders)
    layer = rounds_of(model.family, batch, torch.full((5,), 1.0))
    order, by_layer = sort_by_round(batch.order, layer)
    before = logits_of(model.family, batch, batch.order, layer)
    real = torch.arange(order.shape[1]) < batch.lengths[:, None]
    assert any(len(set(row.tolist())) < len(row) - 4 for row in by_layer)  # some layers have more than one token
    for number in range(1, int(by_layer[real].max()) + 1):
        changed = batch.tokens.scatter(
            1, order, torch.where((by_layer >= number) & real, 11 + number, batch.tokens.gather(1, order))
        )
        after = logits_of(model.family, replace(batch, tokens=changed), batch.order, layer)
        step = torch.arange(order.shape[1] - 1)
        row, place = ((by_layer[:, 1:] <= number) & (step + 2 > batch.given.sum(dim=1)[:, None]) & real[:, 1:]).nonzero(
            as_tuple=True
        )
        for old, new in zip(before, after, strict=True):
            assert torch.equal(old[row, place].isfinite(), new[row, place].isfinite())
        torch.testing.assert_close(after[0][row, place], before[0][row, place], rtol=0, atol=0)
        for r, p in zip(row.tolist(), place.tolist(), strict=True):
            canvas = (by_layer[r] < by_layer[r, p + 1]).nonzero()[:, 0]
            names = [int(c) for c in canvas if c != 1]
            assert torch.equal(after[1][r, p, names], before[1][r, p, names])
        later = (by_layer[:, 1:] > number) & (by_layer[:, 1:] < order.shape[1])
        if later.any():  # the change can be seen where it may be
            assert not torch.equal(after[0][:, :-1][later], before[0][:, :-1][later])


def started(model, tokens, flags, insertions):
    """The state of a sentence's given words, told how many insertions are to come."""
    prompt = prompt_of(model, [Request(())])
    kept = [token for token, flag in zip(tokens, flags, strict=True) if flag]
    row = torch.zeros(1, len(tokens) + 6, dtype=torch.int64)
    row[0, : len(kept) + 2] = torch.tensor([BOS, *kept, EOS])
    canvas = Canvas(
        row, torch.full_like(row, INSERTED), torch.zeros_like(row, dtype=torch.bool), torch.tensor([len(kept) + 2])
    )
    wanted = insertions if model.family.config.length_conditioned else -1
    limits = replace(prompt.limits, insertions=torch.full_like(prompt.limits.insertions, wanted))
    return model.family.start(replace(prompt, canvas=canvas, limits=limits, longest=len(kept) + 2))


@torch.no_grad()
@pytest.mark.parametrize("switch", [*SWITCHES[:3], *SWITCHES[4:]])
def test_layers_played_through_a_decoder_give_the_encodings_and_losses_of_training(switch):
    """Edits of a layer in any order: they are encoded from left to right, as in training."""
    model = small_model("insnet", "word", **switch)
    family, rng = model.family, random.Random(4)
    lists, given, orders = example(model, seed=8)
    batch = batch_of(model.tokenizer, lists, given, orders)
    layers = rounds_of(family, batch, torch.full((5,), 2.0))
    order, _ = sort_by_round(batch.order, layers)
    encoded = family.one_pass._encode(batch, order, torch.zeros_like(batch.lengths)).vector
    several = 0
    for row, (tokens, flags) in enumerate(zip(lists, given, strict=True)):
        framed, found = [BOS, *tokens, EOS], {"token": 0.0, "slot": 0.0}
        state = started(model, tokens, flags, len(flags) - sum(flags))
        for inserted, news in canvases(orders[row], layers[row, : len(orders[row])].tolist()):
            torch.testing.assert_close(state.memory.last[0], encoded[row, len(inserted) - 1], rtol=0, atol=ATOL)
            stores = state.memory.left_half, state.memory.right_half
            for half, halves in zip(family.slots.halves(encoded), stores, strict=True):
                torch.testing.assert_close(halves[0, : len(inserted)], half[row, : len(inserted)], rtol=0, atol=ATOL)
            offered = offers(family, state)
            edits = [(sum(p < place for p in inserted) - 1, framed[place]) for place in news]
            for slot, token in edits:
                found["slot"] -= float(offered["slots"][0, slot])
                found["token"] -= float(offered["tokens"][0, slot, token])
            several += len(edits) > 1
            rng.shuffle(edits)
            state = family.advance(state, edits_of([edits]))
        assert state.canvas.tokens[0, : len(framed)].tolist() == framed
        alone = batch_of(model.tokenizer, [tokens], [flags], [orders[row]])
        plan = replace(in_order(alone), rounds=layers[row : row + 1, : len(framed)])
        nats = family.one_pass.rows(alone, plan).nats
        for name, value in found.items():
            assert value == pytest.approx(float(nats[name]), rel=0, abs=ATOL)
    assert several > 5


@torch.no_grad()
def test_padding_and_company_change_no_layer_and_no_loss():
    told = {"count_head": 9, "length_conditioned": True, "slot_layers": 1}
    model = small_model("insnet", "bpe", order="random_words", **told)
    lists, given, _ = example(model)
    one_pass, objective = model.family.one_pass, model.family.Objective(TAUS)
    batch = batch_of(model.tokenizer, lists, given)
    together = one_pass.rows(batch, one_pass.plan(batch, objective))
    for row in range(5):
        alone = batch_of(model.tokenizer, lists[row : row + 1], given[row : row + 1], seeds=[row], pad_to=29)
        one = one_pass.rows(alone, one_pass.plan(alone, objective))
        assert int(one.rounds) == int(together.rounds[row])
        for name, values in one.nats.items():
            torch.testing.assert_close(values[0], together.nats[name][row], rtol=0, atol=ATOL)


@torch.no_grad()
def test_infinite_tolerances_need_no_pass_through_the_model_and_give_the_same_rounds(monkeypatch):
    model = small_model("insnet", "word")
    lists, given, orders = example(model)
    batch, one_pass = batch_of(model.tokenizer, lists, given, orders), model.family.one_pass
    objective = model.family.Objective((math.inf, -math.inf))
    judged = one_pass.rounds(batch, in_order(batch), objective.tau_of_rows(batch.seeds))
    monkeypatch.setattr(one_pass, "rounds", None)
    plan = one_pass.plan(batch, objective)
    assert torch.equal(plan.rounds, judged) and set(plan.merges.tolist()) == {True, False}
    with pytest.raises(TypeError):
        one_pass.plan(batch, model.family.Objective((math.inf, 3.0)))


def test_figures_tell_layers_and_both_kinds_of_rows_apart():
    model = small_model("insnet", "word")
    lists, given, orders = example(model)
    batch, choices = batch_of(model.tokenizer, lists, given, orders), (math.inf, 1.0, -math.inf)
    objective = model.family.Objective(choices)
    merges = (objective.tau_of_rows(batch.seeds) > -math.inf).tolist()
    assert 0 < sum(merges) < 5
    terms = losses_of(model.family, batch, tau=choices)
    rows = model.family.one_pass.rows(batch, model.family.one_pass.plan(batch, objective))
    insertions = [len(g) - sum(g) for g in given]
    cost = [sum(float(values[row].detach()) for values in rows.nats.values()) for row in range(5)]
    ratio, layered, one_by_one = (terms[n] for n in ("layers_per_insertion", "layered_loss", "sequential_loss"))
    assert all(term.is_figure and not term.nats.requires_grad for term in (ratio, layered, one_by_one))
    together, alone = ([row for row in range(5) if merges[row] is own] for own in (True, False))
    assert int(ratio.count) == int(layered.count) == sum(insertions[row] for row in together)
    assert int(one_by_one.count) == sum(insertions[row] for row in alone)
    assert float(ratio.nats) == sum(int(rows.rounds[row]) for row in together)
    assert float(layered.nats) == pytest.approx(sum(cost[row] for row in together), rel=1e-12)
    assert float(one_by_one.nats) == pytest.approx(sum(cost[row] for row in alone), rel=1e-12)
    assert [int(rows.rounds[row]) for row in alone] == [insertions[row] for row in alone]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_reach_every_parameter_in_layers(dtype):
    """In bfloat16 too, where the pass that finds the layers casts the same weights without a gradient."""
    model = small_model("insnet", "word", dtype=torch.float32, count_head=9, length_conditioned=True)
    lists, given, _ = example(model)
    family = model.family.train()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        terms = losses_of(family, batch_of(model.tokenizer, lists, given), tau=(3.0,))
    sum(term.nats for term in terms.values()).backward()
    assert family.training and all(module.training for module in family.modules())
    assert [name for name, p in family.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []
