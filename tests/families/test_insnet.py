"""InsNet: probabilities that sum to one, the objective of section 3.3 step by step, and what the ablations change."""

import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from loss_terms import losses_of
from slow_reader import read_slowly
from small_models import (
    KINDS,
    LINES,
    batch_of,
    edits_of,
    offers,
    order_of,
    plays_of,
    prompt_of,
    small_family,
    small_model,
)

from insnet.decoding.request import blanks
from insnet.families.insnet_config import InsNetConfig
from insnet.insertion.canvas import INSERTED
from insnet.insertion.offsets import offsets_of_order
from insnet.text.specials import BOS, EOS, SPECIALS, UNK

ATOL = 1e-9


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_of_stop_slots_and_tokens_sum_to_one(kind):
    """Stopping, plus every pair of open slot and token; with closed slots their mass counts as stopping."""
    model = small_model("insnet", kind)
    requests = [
        ["baker", "bread"],
        [],
        ["a phrase of words", "ship"],
        blanks("The ___ sat on ___."),
        blanks("Text around ___"),
    ]
    state = model.family.start(prompt_of(model, requests, max_tokens=12))
    for _ in range(3):
        offered = offers(model.family, state)
        log_go = torch.log1p(-offered["stop"].exp())
        edits = (log_go[:, None, None] + offered["slots"][:, :, None] + offered["tokens"]).exp()
        is_open = state.canvas.open_slots()[:, : edits.shape[1]]
        total = offered["stop"].exp() + edits.masked_fill(~is_open[:, :, None], 0).sum(dim=(1, 2))
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-12)
        assert offered["slots"].exp()[~is_open].eq(0).all()
        tokens = offered["tokens"].exp()
        assert tokens[:, :, [i for i in range(len(SPECIALS)) if i != UNK]].eq(0).all()
        first_open = is_open.long().argmax(dim=1).tolist()
        state = model.family.advance(state, edits_of([[(slot, 9)] for slot in first_open]))


def naive_nats(family, tokens, order, given_count):
    """Section 3.3, one canvas after the other: every prefix is encoded anew, from lists.

    The encoding of a prefix needs each token's own view of the canvas at its insertion, so every prefix is replayed.
    """
    framed = [BOS, *tokens, EOS]
    nats = {"token": 0.0, "slot": 0.0, "stop": 0.0}
    for count in range(2 + given_count, len(order) + 1):
        inserted = order[:count]
        offsets = torch.zeros(1, count, count, dtype=torch.int64)
        for t in range(count):
            canvas = sorted(inserted[: t + 1])
            for j in range(t + 1):
                offsets[0, t, j] = canvas.index(inserted[j]) - canvas.index(inserted[t])
        ids = torch.tensor([[framed[place] for place in inserted]])
        encoded = family.encoder(family.embedding(ids), offsets)[0]
        last = encoded[-1]
        stop = torch.sigmoid(family.stop_head(last))[0]
        if count == len(order):
            nats["stop"] += -math.log(stop)
            break
        nats["stop"] += -math.log(1 - stop)
        reading = sorted(range(count), key=lambda step: inserted[step])
        vectors = []
        for left, right in itertools.pairwise(reading):
            pair = torch.cat([family.slots.left(encoded[left]), family.slots.right(encoded[right])])
            vectors.append(family.slots.norm(pair + last if family.slots.use_global else pair))
        scores = torch.stack([family.slot_head(vector)[0] for vector in vectors])
        slot = sum(place < order[count] for place in inserted) - 1
        nats["slot"] += -scores.softmax(0)[slot].log()
        vector = read_slowly(family, vectors[slot], encoded, inserted, reading[slot])
        logits = family.embedding.weight @ vector + family.token_head.bias
        logits[[0, 1, 2, 3]] = -math.inf
        nats["token"] += -logits.softmax(0)[framed[order[count]]].log()
    return {name: float(value) for name, value in nats.items()}


@torch.no_grad()
@pytest.mark.parametrize(
    "switch",
    [
        {},
        {"truncated": True},
        {"noglobal": True},
        {"truncated": True, "noglobal": True},
        {"slot_layers": 1},
        {"slot_layers": 2, "truncated": True, "noglobal": True},
    ],
)
def test_losses_equal_the_objective_computed_step_by_step(switch):
    model = small_model("insnet", "word", **switch)
    rng = random.Random(2)
    lists = [model.tokenizer.encode(line) for line in LINES[10:14]]
    given = [[rng.random() < 0.3 for _ in tokens] for tokens in lists]
    given[0] = [False] * len(given[0])
    given[1] = [True] * len(given[1])  # nothing to insert: only to stop
    orders = [order_of(len(t), g, rng, left_to_right=False) for t, g in zip(lists, given, strict=True)]
    losses = losses_of(model.family, batch_of(model.tokenizer, lists, given, orders))
    rows = [naive_nats(model.family, t, o, sum(g)) for t, o, g in zip(lists, orders, given, strict=True)]
    for name, term in losses.items():
        assert float(term.nats) == pytest.approx(sum(row[name] for row in rows), rel=0, abs=ATOL)


@torch.no_grad()
def test_closed_slots_turn_a_likelihood_into_that_of_what_is_left():
    """q' = q + (1 - q) * closed mass, and open slots share the rest: from the same canvas without closed slots."""
    model = small_model("insnet", "word")
    prompt = prompt_of(model, [["new york pizza", "old ship"]])
    opened = replace(prompt.canvas, closed_after=torch.zeros_like(prompt.canvas.closed_after))
    closed, free = (
        offers(model.family, model.family.start(replace(prompt, canvas=canvas))) for canvas in (prompt.canvas, opened)
    )
    is_open = prompt.canvas.open_slots()[0, : free["slots"].shape[1]]
    assert is_open.tolist() == [True, False, False, True, False, True]
    stop, slots = free["stop"].exp(), free["slots"].exp()
    closed_mass = slots[0, ~is_open].sum()
    torch.testing.assert_close(closed["stop"].exp(), stop + (1 - stop) * closed_mass, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        closed["slots"].exp()[0, is_open], slots[0, is_open] / (1 - closed_mass), rtol=0, atol=1e-12
    )
    assert closed["slots"][0, ~is_open].eq(-math.inf).all()


@torch.no_grad()
def test_trace_with_phrases_adds_up_to_the_loss_after_the_closed_mass_is_accounted_for():
    model = small_model("insnet", "word")
    keywords = ["the old baker", "ship"]
    state = model.family.start(prompt_of(model, [keywords], max_tokens=20))
    given = state.canvas.tokens[0, 1 : int(state.canvas.length[0]) - 1].tolist()
    plays = [(0, 9), (4, 11), (5, 12), (4, 10)]
    found, corrected = 0.0, 0.0
    for slot, token in plays:
        offered = offers(model.family, state)
        is_open = state.canvas.open_slots()[0, : offered["slots"].shape[1]]
        unclosed = replace(state.canvas, closed_after=torch.zeros_like(state.canvas.closed_after))
        free = offers(model.family, replace(state, canvas=unclosed))
        found += float(
            torch.log1p(-offered["stop"].exp())[0] + offered["slots"][0, slot] + offered["tokens"][0, slot, token]
        )
        corrected += float(
            torch.log1p(-free["stop"].exp())[0] + free["slots"][0, slot] + free["tokens"][0, slot, token]
        )
        assert is_open[slot]
        state = model.family.advance(state, edits_of([[(slot, token)]]))
    assert found == pytest.approx(corrected, rel=0, abs=ATOL)  # going on and open slots: the closed mass cancels
    tokens = list(given)
    for slot, token in plays:
        tokens.insert(slot, token)
    flags = [state.canvas.origin[0, place + 1] != INSERTED for place in range(len(tokens))]
    places = [place + 1 for place, flag in enumerate(flags) if flag]
    canvas = [("given", i) for i in range(len(given))]
    for number, (slot, _) in enumerate(plays):
        canvas.insert(slot, ("new", number))
    steps = [canvas.index(("new", number)) + 1 for number in range(len(plays))]
    order = [0, len(tokens) + 1, *places, *steps]
    losses = losses_of(model.family, batch_of(model.tokenizer, [tokens], [flags], [order]))
    stop = torch.sigmoid(model.family.stop_head(state.memory.last))[0, 0]
    assert found + math.log(stop) == pytest.approx(-float(sum(t.nats for t in losses.values())), rel=0, abs=ATOL)
    assert plays_of(tokens, order, len(given)) == plays


def nats_of(family, tokens, order):
    batch = batch_of(small_model("insnet", "word").tokenizer, [tokens], None, [order])
    return {name: float(term.nats) for name, term in losses_of(family, batch).items()}


@torch.no_grad()
def test_ablations_change_what_they_should_and_only_that():
    """The same weights: `noglobal` leaves the encoder and the stop head alone, `truncated` leaves two tokens alone."""
    tokens, order = [10, 11, 12, 13, 14], [0, 6, 3, 1, 5, 2, 4]
    full, truncated, noglobal = (small_family("insnet", 50, **s) for s in ({}, {"truncated": True}, {"noglobal": True}))
    assert len({sum(p.numel() for p in f.parameters()) for f in (full, truncated, noglobal)}) == 1
    for other in (truncated, noglobal):
        other.load_state_dict(full.state_dict())
    base, cut, local = (nats_of(f, tokens, order) for f in (full, truncated, noglobal))
    assert local["stop"] == pytest.approx(base["stop"], rel=0, abs=1e-12)
    assert abs(local["slot"] - base["slot"]) > 1e-6 and abs(local["token"] - base["token"]) > 1e-6
    assert all(abs(cut[name] - base[name]) > 1e-6 for name in base)
    ids, position = torch.tensor([[BOS, EOS]]), torch.tensor([[0, 1]])
    first, second = (f.encoder(f.embedding(ids), offsets_of_order(position)) for f in (full, truncated))
    torch.testing.assert_close(first, second, rtol=0, atol=1e-12)  # no offset beyond one: nothing to cut


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"order": "ranodm"}, "unknown order 'ranodm'; expected one of random"),
        ({"vocabulary_size": 3}, "vocabulary_size is 3; expected more than 5"),
        ({"width": 30, "heads": 4}, "width 30 must be an even multiple of heads 4"),
        ({"dropout": 1.5}, "dropout is 1.5"),
        ({"slot_layers": -1}, "slot_layers is -1; expected 0 or more"),
    ],
)
def test_impossible_settings_are_refused_in_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        InsNetConfig(**{"vocabulary_size": 50, "width": 16, "heads": 2, "layers": 1, **settings})
