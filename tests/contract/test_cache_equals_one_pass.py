"""Promise 5: what a cached state offers at every step equals what the one-pass training computation says there."""

import itertools
import random
from dataclasses import replace

import pytest
import torch
from slow_reader import read_slowly
from small_models import LINES, batch_of, edits_of, gap_plays_of, offers, order_of, plays_of, prompt_of, small_model

from insnet.decoding.request import Request
from insnet.insertion.canvas import INSERTED, Canvas
from insnet.insertion.offsets import offsets_of_order
from insnet.layers.positions import rotate, rotation_of
from insnet.text.specials import BOS, EOS, SEP

ATOL = 1e-9


def canvas_of(token_lists, room):
    """Given tokens, each a stretch of its own, so that every slot is open."""
    rows = [[BOS, *tokens, EOS] for tokens in token_lists]
    origins = [[INSERTED, *range(len(tokens)), INSERTED] for tokens in token_lists]
    tokens = torch.tensor([[*row, *[0] * (room - len(row))] for row in rows])
    origin = torch.tensor([[*row, *[INSERTED] * (room - len(row))] for row in origins])
    return Canvas(tokens, origin, torch.zeros_like(tokens, dtype=torch.bool), torch.tensor([len(row) for row in rows]))


def start(model, token_lists, room):
    prompt = prompt_of(model, [Request(())] * len(token_lists))
    canvas = canvas_of(token_lists, room)
    return model.family.start(replace(prompt, canvas=canvas, longest=int(canvas.length.max())))


def insnet_in_one_pass(family, tokens, order, given_count, plan, is_looked_at):
    """What section 3 says of canvases after the given ones, from one pass over the whole trajectory."""
    del plan
    framed = torch.tensor([BOS, *tokens, EOS])
    position = torch.tensor([order])
    encoded = family.encoder(family.embedding(framed[position]), offsets_of_order(position))[0]  # (T, D)
    for step in range(1 + given_count, len(order)):
        if not is_looked_at(step - 1 - given_count):
            yield {}
            continue
        reading = sorted(range(step + 1), key=lambda earlier: order[earlier])
        slots, filled = [], []
        for left, right in itertools.pairwise(reading):
            halves = torch.cat([family.slots.left(encoded[left]), family.slots.right(encoded[right])])
            slots.append(family.slots.norm(halves + encoded[step] if family.slots.use_global else halves))
            filled.append(read_slowly(family, slots[-1], encoded[: step + 1], order[: step + 1], left))
        slots, filled = torch.stack(slots), torch.stack(filled)
        yield {
            "stop": torch.nn.functional.logsigmoid(family.stop_head(encoded[step])[0]),
            "slots": (slots @ family.slot_head.weight[0]).log_softmax(dim=0),
            "tokens": family.token_head(filled, family.embedding.weight).log_softmax(dim=1),
        }


def autoregressive_in_one_pass(family, tokens, order, given_count, plan, is_looked_at):
    """The next-token distributions of one pass over plan and text, the end taken out."""
    del order, given_count, is_looked_at
    sequence = torch.tensor([[BOS, *plan, SEP, *tokens]])
    hidden = family.decoder(family.embedding(sequence))[0, len(plan) + 1 :]
    for row in family.token_head(hidden, family.embedding.weight).log_softmax(dim=1):
        others = row.clone()
        others[EOS] = -torch.inf
        yield {"stop": row[EOS], "tokens": (others - others.logsumexp(0))[None]}


def insertion_transformer_canvas_by_canvas(family, tokens, order, given_count, plan, is_looked_at):
    """Section 3 of its paper, of each canvas by itself: all tokens see each other, neighbours make slots, and one
    softmax runs over all pairs of a slot and a token, or nothing."""
    del plan
    framed = [BOS, *tokens, EOS]
    for step in range(1 + given_count, len(order)):
        if not is_looked_at(step - 1 - given_count):
            yield {}
            continue
        canvas = torch.tensor([[framed[place] for place in sorted(order[: step + 1])]])
        nobody = torch.zeros(1, step + 1, step + 1, dtype=torch.bool)
        encoded = family.encoder(family.embedding(canvas), hides=nobody)[0]
        logits = []
        for left, right in itertools.pairwise(encoded):
            slot = family.join(torch.cat([left, right]))
            logits.append(torch.cat([family.token_head(slot, family.embedding.weight), family.end_head(slot)]))
        joint = torch.cat(logits).log_softmax(dim=0).view(step, -1)  # flattened: slots and tokens are one choice
        slots = joint.logsumexp(dim=1)
        yield {"slots": slots, "tokens": joint - slots[:, None]}


def gaps_pair_by_pair(family, tokens, given):
    """What a gaps model says behind every token of a text, each pair of query and key looked at by itself: a passage
    sees itself up to here, at true distances, and what is given further on, at the distance among given tokens."""
    count = list(itertools.accumulate([0, *map(int, given)]))  # given tokens up to each place
    ahead = [place for place in range(1, len(tokens) + 1) if given[place - 1]]
    rows = [(True, place) for place in ahead] + [(False, place) for place in range(len(tokens) + 1)]
    framed = [BOS, *tokens]
    hidden = torch.stack(
        [
            family.embedding.weight[framed[place]]
            + (family.ahead if is_ahead else family.passed if place in ahead else 0)
            for is_ahead, place in rows
        ]
    )
    shape = family.config.shape()

    def offset(query, key):
        """Where the key stands, seen from the query; None if it is not seen."""
        (from_ahead, own), (to_ahead, other) = rows[query], rows[key]
        if not to_ahead:
            return other - own if not from_ahead and other <= own else None
        distance = count[other] - count[own]
        return distance if (distance <= 0 if from_ahead else distance > 0) else None

    offsets = [[offset(query, key) for key in range(len(rows))] for query in range(len(rows))]
    hides = torch.tensor([[seen is None for seen in line] for line in offsets])
    distance = torch.tensor([[seen or 0 for seen in line] for line in offsets])
    rotation = rotation_of(distance[:, :, None], shape.head_width, shape.rotary_base, hidden.dtype)
    for block in family.decoder.blocks:
        mixed = block.attention.projections.mixed(block.attention_norm(hidden))
        heads, groups = shape.heads, shape.cached_heads
        query, key, value = mixed.split([heads, groups, groups], dim=1)
        key, value = (each.repeat_interleave(heads // groups, dim=1) for each in (key, value))
        turned = rotate(key.expand(len(rows), -1, -1, -1), rotation)  # (Q, K, H, W)
        scores = torch.einsum("qhw,qkhw->hqk", query, turned) / shape.head_width**0.5
        shares = scores.masked_fill(hides, -torch.inf).softmax(dim=2)
        received = torch.einsum("hqk,khw->qhw", shares, value).flatten(1)
        hidden = hidden + block.attention.projections.output(received)
        gate, up = block.expand(block.feed_forward_norm(hidden)).chunk(2, dim=1)
        hidden = hidden + block.contract(torch.nn.functional.silu(gate) * up)
    return family.decoder.norm(hidden)[len(ahead) :]


def gaps_in_one_pass(family, tokens, order, given_count, plan, is_looked_at):
    """Behind every token: whether the gap closes, else which token comes."""
    del plan, is_looked_at
    given = [place in order[2 : 2 + given_count] for place in range(1, len(tokens) + 1)]
    for vector in gaps_pair_by_pair(family, tokens, given):
        close = family.close_head(vector)[0]
        log_probs = (family.embedding.weight @ vector).log_softmax(dim=0)
        closes, goes_on = (torch.nn.functional.logsigmoid(sign * close) for sign in (1, -1))
        yield {"tokens": torch.cat([goes_on + log_probs, closes[None]])[None]}
    yield {}


ONE_PASS = {
    "insnet": insnet_in_one_pass,
    "autoregressive": autoregressive_in_one_pass,
    "insertion_transformer": insertion_transformer_canvas_by_canvas,
    "gaps": gaps_in_one_pass,
}


SHORT, LONG = 14, 70
"""Tokens of a text: fewer than a cache begins with, and so many that it must grow twice."""


def looked_at(longest):
    """Which steps are compared: of a short text all, of a long one some, and those around which a cache grows."""
    return lambda step: longest == SHORT or step % 9 == 0 or step in (27, 28, 29, 58, 59, 60)


def trajectories(model, seed, longest):
    """Four texts with some words given: tokens, flags, order."""
    rng = random.Random(seed)
    for first in range(seed, seed + 4):
        tokens = model.tokenizer.encode(" ".join(LINES[first:] + LINES[:first]))[: longest - first]
        given = [rng.random() < 0.3 for _ in tokens]
        yield tokens, given, order_of(len(tokens), given, rng, left_to_right=not model.family.traits.keeps_given)


@torch.no_grad()
@pytest.mark.parametrize("switch", [{}, {"truncated": True}, {"noglobal": True}, {"slot_layers": 2}])
def test_cached_decoding_equals_the_one_pass_encoding(family_name, kind, switch):
    if switch and family_name != "insnet":
        pytest.skip("a switch of InsNet")
    assert family_name in ONE_PASS, f"write what {family_name} computes in training, for one sentence"
    model = small_model(family_name, kind, **switch)
    keeps = model.family.traits.keeps_given
    for seed, longest in enumerate((SHORT, LONG)):
        rows = list(trajectories(model, seed, longest))
        plans = [[t for t, flag in zip(tokens, given, strict=True) if flag] for tokens, given, _ in rows]
        counts = [len(plan) if keeps else 0 for plan in plans]
        orders = [order if keeps else [0, len(t) + 1, *range(1, len(t) + 1)] for t, _, order in rows]
        plays = [plays_of(t, order, k) for (t, _, _), order, k in zip(rows, orders, counts, strict=True)]
        if model.family.traits.gap_by_gap:
            plays = [gap_plays_of(tokens, given) for tokens, given, _ in rows]
        expected = [
            list(ONE_PASS[family_name](model.family, tokens, order, count, plan, looked_at(longest)))
            for (tokens, _, _), order, count, plan in zip(rows, orders, counts, plans, strict=True)
        ]
        state = start(model, plans, room=longest + 10)
        for step in range(max(map(len, plays)) + 1):
            offered = offers(model.family, state) if looked_at(longest)(step) else {}
            for row, play in enumerate(plays):
                if step > len(play) or not offered:
                    continue
                for name, values in expected[row][step].items():
                    found = offered[name][row][: len(values)] if values.dim() else offered[name][row]
                    torch.testing.assert_close(found, values, rtol=0, atol=ATOL)
            state = model.family.advance(state, edits_of([play[step : step + 1] for play in plays]))
        lengths = [len(tokens) + 2 for tokens, _, _ in rows]
        assert state.canvas.length.tolist() == lengths
        if model.family.traits.likelihood == "bound":
            own = batch_of(model.tokenizer, [row[0] for row in rows], given=[row[1] for row in rows], order=orders)
            for row, found in enumerate(model.family.log_likelihood(own).tokens):
                inserted = orders[row][2 + counts[row] :]
                for place, step, (slot, token) in zip(inserted, expected[row], plays[row], strict=False):
                    if step:
                        torch.testing.assert_close(found[place], step["tokens"][slot, token], rtol=0, atol=ATOL)
                assert (found != 0).nonzero()[:, 0].tolist() == sorted(inserted)


@torch.no_grad()
def test_left_to_right_insertion_equals_starting_from_the_result(model):
    """Where the family keeps what it is given: tokens put in reading order are as if given."""
    if not model.family.traits.keeps_given:
        pytest.skip("what is given is a plan, not a text")
    token_lists = [model.tokenizer.encode(" ".join(LINES[first : first + 3]))[:9] for first in range(3)]
    state = start(model, [tokens[:2] for tokens in token_lists], room=30)
    for step in range(2, 9):
        fresh = offers(model.family, start(model, [tokens[:step] for tokens in token_lists], room=12))
        for name, values in offers(model.family, state).items():
            torch.testing.assert_close(values, fresh[name], rtol=0, atol=ATOL)
        state = model.family.advance(state, edits_of([[(step, tokens[step])] for tokens in token_lists]))


@torch.no_grad()
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 0.5)])
def test_cached_decoding_is_close_in_lower_precision(family_name, kind, dtype, tolerance):
    """The same states in float32 and bfloat16 offer nearly what they offer in float64 (in nats)."""
    exact = small_model(family_name, kind, scale=0.1)
    coarse = small_model(family_name, kind, scale=0.1, dtype=dtype)
    states = [start(model, [exact.tokenizer.encode(LINES[0])[:5]], room=20) for model in (exact, coarse)]
    for token in (7, 11, 13):
        expected, found = (offers(m.family, s) for m, s in zip((exact, coarse), states, strict=True))
        for name, values in expected.items():
            likely = values > -15  # tokens that are never predicted aside
            assert found[name].dtype == torch.float32
            torch.testing.assert_close(found[name][likely].double(), values[likely], rtol=0, atol=tolerance)
        end = int(states[0].canvas.length[0]) - 2
        states = [m.family.advance(s, edits_of([[(end, token)]])) for m, s in zip((exact, coarse), states, strict=True)]
