"""Promises 1, 2, 9 and 10: gradients and counts, padding, golden numbers, likelihoods that add up."""

import random
from dataclasses import replace

import pytest
import torch
from loss_terms import losses_of
from small_models import LINES, batch_of, edits_of, gap_plays_of, offers, order_of, plays_of, prompt_of, tokenizer_of

from insnet.decoding.request import Request
from insnet.families import FAMILIES
from insnet.families.losses import Likelihood
from insnet.insertion.canvas import CLOSE, INSERTED, Canvas
from insnet.text.specials import BOS, EOS

ATOL = 1e-9


def example(tokenizer, family, lines=LINES[:5], seed=0):
    """Token lists, flags of given words and orders."""
    rng = random.Random(seed)
    lists = [tokenizer.encode(line) for line in lines]
    given = [_flags(tokenizer.words(tokens), rng) for tokens in lists]
    given[0] = [False] * len(lists[0])
    orders = [
        order_of(len(t), g, rng, left_to_right=not family.traits.keeps_given) for t, g in zip(lists, given, strict=True)
    ]
    return lists, given, orders


def _flags(words, rng):
    return [flag for word in words for flag in [rng.random() < 0.3] * len(word)]


# What a batch decides, by hand: n tokens, k of them given, of which i stand inside a word, in each row.
COUNTS = {
    "insnet": lambda n, k, i: {"token": n - k, "slot": n - k, "stop": n - k + 1},
    "autoregressive": lambda n, k, i: {"token": n + 1},  # the end is a token; given words are written, too
    "gaps": lambda n, k, i: {"token": n - k, "close": n + 1 - i},  # inside given words there is no gap
    "insertion_transformer": lambda n, k, i: {"token": n - k, "nothing": n - k + 1},  # of all canvases it stands for
}


def _inside_given_words(words, given):
    flags = iter(given)
    return sum(len(word) - 1 for word in words if all([next(flags) for _ in word]))


def test_gradients_reach_every_parameter(model):
    lists, given, _ = example(model.tokenizer, model.family)
    losses = losses_of(model.family, batch_of(model.tokenizer, lists, given))
    sum(term.nats for term in losses.values()).backward()
    without = [name for name, p in model.family.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert without == []
    assert all(p.grad.isfinite().all() for p in model.family.parameters())


def test_counts_are_exact(model, family_name):
    lists, given, _ = example(model.tokenizer, model.family)
    losses = losses_of(model.family, batch_of(model.tokenizer, lists, given, pad_to=60))
    assert "token" in losses
    if family_name in COUNTS:
        inside = [_inside_given_words(model.tokenizer.words(t), g) for t, g in zip(lists, given, strict=True)]
        rows = [COUNTS[family_name](len(t), sum(g), i) for t, g, i in zip(lists, given, inside, strict=True)]
        expected = {name: sum(row[name] for row in rows) for name in rows[0]}
        assert {name: int(term.count) for name, term in losses.items()} == expected


def test_padding_and_more_rows_change_nothing(model):
    lists, given, orders = example(model.tokenizer, model.family)
    log_likelihood = model.family.log_likelihood
    if model.family.traits.likelihood == "none":
        log_likelihood = lambda batch: Likelihood(-batch.lengths, batch.tokens)  # noqa: E731
    for order in (None, orders):
        together = batch_of(model.tokenizer, lists, given, order)
        expected = log_likelihood(together).total
        assert expected.shape == (len(lists),) and bool((expected < 0).all())
        total = {name: 0.0 for name in losses_of(model.family, together)}
        for row in range(len(lists)):
            one = order and [order[row]]
            alone = batch_of(model.tokenizer, [lists[row]], [given[row]], one, seeds=[row])
            padded = batch_of(
                model.tokenizer, [lists[row]], [given[row]], one, seeds=[row], pad_to=len(lists[row]) + 19
            )
            for batch in (alone, padded):
                torch.testing.assert_close(log_likelihood(batch).total[0], expected[row], rtol=0, atol=ATOL)
            for name, term in losses_of(model.family, padded).items():
                total[name] = total[name] + term.nats
        for name, term in losses_of(model.family, together).items():
            torch.testing.assert_close(term.nats, total[name], rtol=0, atol=ATOL)


def test_losses_and_likelihood_agree(model):
    """log p(text, order) is minus all terms; a family with an exact likelihood adds nothing for orders."""
    if model.family.traits.likelihood == "none":
        pytest.skip("it has no likelihood")
    lists, given, orders = example(model.tokenizer, model.family)
    batch = batch_of(model.tokenizer, lists, given, orders)
    nats = sum(term.nats for term in losses_of(model.family, batch).values())
    gap = float((model.family.log_likelihood(batch).total.sum() + nats).detach())
    if model.family.traits.likelihood == "exact":
        assert abs(gap) < ATOL
    else:
        orders_in_nats = sum(torch.lgamma(torch.tensor(len(g) - sum(g) + 1.0).double()) for g in given)
        assert abs(gap - float(orders_in_nats)) < ATOL


def given_canvas(tokens, given, room, closed=()):
    """The given words of a sentence, each a stretch of its own; slots are `closed` right of some of the tokens."""
    kept = [token for token, flag in zip(tokens, given, strict=True) if flag]
    row = torch.zeros(1, room, dtype=torch.int64)
    row[0, : len(kept) + 2] = torch.tensor([BOS, *kept, EOS])
    origin = torch.full((1, room), INSERTED)
    origin[0, 1 : len(kept) + 1] = torch.arange(len(kept))
    closed_after = torch.zeros(1, room, dtype=torch.bool)
    closed_after[0, [sum(given[:place]) for place in closed]] = True
    return Canvas(row, origin, closed_after, torch.tensor([len(kept) + 2]))


@torch.no_grad()
def test_offers_along_a_trajectory_add_up_to_minus_the_loss(model):
    """Promise 10, with and without given words; a person's trajectory, since a family may not plan its own keywords."""
    if model.family.traits.likelihood == "none":
        pytest.skip("it has no likelihood")
    lists, given, orders = example(model.tokenizer, model.family)
    for tokens, flags, order in zip(lists, given, orders, strict=True):
        keeps = model.family.traits.keeps_given
        start = sum(flags) if keeps else 0
        own_order = order if keeps else [0, len(tokens) + 1, *range(1, len(tokens) + 1)]
        plays, closed = plays_of(tokens, own_order, start), []
        if model.family.traits.gap_by_gap:  # a gap is asked for everywhere but inside given words
            inside = range(1, len(tokens))
            closed = [n for n in inside if flags[n - 1] and flags[n] and not model.tokenizer.starts_word[tokens[n]]]
            plays = gap_plays_of(tokens, flags, closed)
        canvas = given_canvas(tokens, flags, len(tokens) + 9, closed)
        prompt = replace(prompt_of(model, [Request(())]), canvas=canvas, longest=int(canvas.length[0]))
        state, log_prob = model.family.start(prompt), 0.0
        for slot, token in plays:
            offered = offers(model.family, state)
            of_pair = offered["slots"][0, slot] + offered["tokens"][0, slot, -1 if token == CLOSE else token]
            log_prob += float(of_pair) + float(offered.get("go", [0.0])[0])
            state = model.family.advance(state, edits_of([[(slot, token)]]))
        if not model.family.traits.gap_by_gap:
            log_prob += float(offers(model.family, state)["stop"][0])
        inner = state.canvas.tokens[0, 1 : int(state.canvas.length[0]) - 1]
        assert inner.tolist() == tokens
        losses = losses_of(model.family, batch_of(model.tokenizer, [tokens], [flags], [order]))
        assert abs(log_prob + float(sum(term.nats for term in losses.values()))) < ATOL


# Seeded initial weights: a change of size, initialisation or loss shows here first.
GOLDEN = {
    "insnet": (30483, {"token": 33.986563154663564, "slot": 9.031935179262884, "stop": 8.13141091480363}),
    "autoregressive": (27122, {"token": 54.611907286419736}),
    "gaps": (34625, {"token": 36.302699794233135, "close": 10.1300789373749}),
    "insertion_transformer": (29235, {"token": 26.893787239844727, "nothing": 28.956763910536477}),
}


@pytest.mark.parametrize("name", list(FAMILIES))
def test_golden_parameter_count_and_first_loss(name):
    torch.manual_seed(20)
    config = FAMILIES[name].Config(vocabulary_size=50, width=32, layers=2, heads=4, dropout=0.0)
    family = FAMILIES[name](config).double()
    lists = [[10, 11, 12, 13, 14, 15], [20, 21, 20, 4], [49]]
    given = [[False, True, False, False, True, False], [False] * 4, [False]]
    left_to_right = not family.traits.keeps_given
    orders = [
        order_of(len(t), g, random.Random(1), left_to_right=left_to_right) for t, g in zip(lists, given, strict=True)
    ]
    losses = losses_of(family, batch_of(tokenizer_of("word"), lists, given, orders))
    parameters = sum(p.numel() for p in family.parameters())
    nats = {name: float(term.nats.detach()) for name, term in losses.items()}
    assert name in GOLDEN, f"write down the golden numbers of {name}: {parameters, nats}"
    assert parameters == GOLDEN[name][0]
    assert nats == pytest.approx(GOLDEN[name][1], rel=0, abs=1e-6)
