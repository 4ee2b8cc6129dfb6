"""What a decider makes of offers written by hand: slots that say nothing, blanks, bounds, pairs of slot and token."""

import math
from dataclasses import replace

import pytest
import torch
from small_models import decider, prompt_of, small_model

from insnet.decoding.lengths import with_length
from insnet.decoding.request import blanks
from insnet.families.generator import State
from insnet.families.offers import Insertions
from insnet.insertion.canvas import CLOSE, INSERTED, NOTHING


@pytest.fixture(scope="module")
def model():
    return small_model("insnet", "word")


@pytest.fixture(scope="module")
def words(model):
    """Tokens of whole words that may stand anywhere."""
    lexicon = model.scribe.lexicon
    return (lexicon.generatable & lexicon.is_word & lexicon.starts_word).nonzero()[50:54, 0].tolist()


def state_of(model, requests, seeds=None, **bounds):
    return State.first(prompt_of(model, requests, seeds, **{"min_words": 0, "max_tokens": 9, **bounds}), None)


def offer_of(model, state, table, *, empty=NOTHING, stop=None, **options):
    """`table` has for every row and slot the probability of the slot, and of some tokens in it; -1 is the column for
    nothing."""
    rows, slots = len(table), state.longest - 1
    columns = model.tokenizer.size + (empty is not None)
    of_slots = torch.zeros(rows, slots, dtype=torch.float64)
    tokens = torch.zeros(rows, slots, columns, dtype=torch.float64)
    for row, own in enumerate(table):
        for slot, (probability, choices) in enumerate(own):
            of_slots[row, slot] = probability
            for token, share in choices.items():
                tokens[row, slot, token] = share
    log_tokens = tokens.log()
    ends = {"stop": log_of(stop, rows), "go": log_of(1 - stop, rows)} if stop is not None else {}
    offered = lambda chosen: log_tokens[chosen.row, chosen.flat()]  # noqa: E731
    return Insertions(of_slots.log(), offered, empty=empty, **ends, **options)


def log_of(probability, rows):
    return torch.full((rows,), probability, dtype=torch.float64).log()


def puts_of(edits, row=0):
    """The (slot, token) pairs that a row puts or closes."""
    pairs = zip(edits.slot[row].tolist(), edits.token[row].tolist(), strict=True)
    return [pair for pair in pairs if pair[1] != NOTHING]


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_slots_that_say_nothing_stay_empty_and_a_text_ends_when_all_do(model, words, mode):
    state = state_of(model, [["baker", "bread"]] * 2)
    some = [(0.5, {-1: 0.4, words[0]: 0.6}), (0.3, {-1: 0.9, words[1]: 0.1}), (0.2, {-1: 0.2, words[2]: 0.8})]
    none = [(probability, {-1: 0.9, words[0]: 0.1}) for probability, _ in some]
    decide = decider(model, mode=mode, top_k=1, slot_mass=1e-9, min_words=0)
    edits = decide(offer_of(model, state, [some, none]), state)
    expected = [(0, words[0]), (2, words[2])]
    assert puts_of(edits) == (expected[:1] if mode == "sequential" else expected)  # 0.5 * 0.6 > 0.2 * 0.8
    assert edits.finished.tolist() == [False, True] and puts_of(edits, 1) == []
    assert edits.log_prob[0, 0].exp() == pytest.approx(0.5 * 0.6)
    assert not edits.cut.any()


@pytest.mark.parametrize("stopping, expected", [("threshold", [0, 1]), ("sampled", [1])])
def test_by_threshold_a_slot_stays_empty_where_that_is_likelier_than_not(model, words, stopping, expected):
    """Else where it is drawn among the tokens, which for a greedy draw means: where no token is likelier."""
    state = state_of(model, [["baker", "bread"]])
    split = (1 / 3, {-1: 0.4, words[0]: 0.35, words[1]: 0.25})
    table = [split, (1 / 3, {-1: 0.4, words[2]: 0.6}), (1 / 3, {-1: 0.6, words[3]: 0.4})]
    decide = decider(model, mode="parallel", top_k=1, stopping=stopping)
    assert [slot for slot, _ in puts_of(decide(offer_of(model, state, [table]), state))] == expected


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_text_that_is_too_short_gets_the_likeliest_token_though_all_slots_say_nothing(model, words, mode):
    none = [(0.5, {-1: 0.98, words[0]: 0.02}), (0.3, {-1: 0.9, words[1]: 0.1}), (0.2, {-1: 0.9, words[2]: 0.1})]
    for least, inserted, planned, expected in (
        (2, 0, None, []),
        (3, 0, None, [(1, words[1])]),  # 0.3 * 0.1 is the most
        (0, 2, (4, 1), [(1, words[1])]),  # planned to get 3 to 5
        (0, 3, (4, 1), []),
    ):
        state = state_of(model, [["baker", "bread"]], min_words=least)
        state = replace(state, inserted=torch.tensor([inserted]))
        if planned is not None:
            limits = replace(with_length(state.limits, torch.tensor(planned[:1])), slack=torch.tensor(planned[1:]))
            state = replace(state, limits=limits)
        edits = decider(model, mode=mode, top_k=1, slot_mass=1e-9)(offer_of(model, state, [none]), state)
        assert puts_of(edits) == expected and edits.finished.tolist() == [not expected]


def test_only_a_text_whose_slots_want_more_is_cut_at_the_limit_on_tokens(model, words):
    state = replace(state_of(model, [["baker"]] * 2), inserted=torch.tensor([9, 9]))
    wants = [(0.5, {words[0]: 1.0})] * 2
    none = [(0.5, {-1: 1.0})] * 2
    edits = decider(model, min_words=0)(offer_of(model, state, [wants, none]), state)
    assert edits.finished.tolist() == [True, True] and edits.cut.tolist() == [True, False]


@pytest.mark.parametrize("stopping", ["threshold", "sampled"])
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_empty_blanks_come_first_and_may_not_say_nothing(model, words, mode, stopping):
    request = blanks("The ___ sat on ___ today.")
    state = state_of(model, [request])
    length = int(state.canvas.length[0])
    is_open = state.canvas.open_slots()[0, : length - 1].tolist()
    blank_slots = [slot for slot, flag in enumerate(is_open) if flag]
    assert len(blank_slots) == 2
    table = [(1 / length, {-1: 0.99, words[slot % 4]: 0.01}) for slot in range(length - 1)]
    edits = decider(model, mode=mode, top_k=1, slot_mass=1e-9, stopping=stopping)(
        offer_of(model, state, [table]), state
    )
    expected = [(slot, words[slot % 4]) for slot in blank_slots]
    assert not edits.finished.any()
    assert puts_of(edits) == (expected if mode == "parallel" else [pair for pair in expected if pair in puts_of(edits)])
    assert len(puts_of(edits)) == (2 if mode == "parallel" else 1)
    canvas = state.canvas  # the first blank has a word now: that one stays as it is, the other must still be filled
    filled = replace(
        canvas, origin=canvas.origin.masked_fill(torch.arange(canvas.capacity) == blank_slots[0], INSERTED)
    )
    state = replace(state, canvas=filled)
    table[blank_slots[0]] = (0.9, {words[3]: 1.0})
    edits = decider(model, mode=mode, top_k=1, slot_mass=1e-9)(offer_of(model, state, [table]), state)
    assert puts_of(edits) == [(blank_slots[1], words[blank_slots[1] % 4])]


def test_closed_slots_say_nothing_whatever_they_want_and_bans_leave_a_slot_empty(model, words):
    state = state_of(model, [["old sailor"]], banned=(model.tokenizer.decode([words[0]]),))
    table = [(0.1, {words[0]: 0.7, -1: 0.2, words[1]: 0.1}), (0.8, {words[1]: 1.0}), (0.1, {-1: 1.0})]
    for mode in ("sequential", "parallel"):
        edits = decider(model, mode=mode, top_k=1, min_words=0)(offer_of(model, state, [table]), state)
        assert edits.finished.all() and puts_of(edits) == []


def test_parallel_insertions_keep_within_the_room_there_is(model, words):
    wants = [(1 / 4, {words[place]: 0.5 + place / 10}) for place in range(4)]
    for bounds, most in (({"max_words": 5}, 2), ({"max_tokens": 3}, 3), ({}, 4)):
        state = state_of(model, [["baker", "bread", "rain"]], **bounds)
        edits = decider(model, mode="parallel", no_repeat_ngram=0)(offer_of(model, state, [wants]), state)
        assert puts_of(edits) == [(slot, words[slot]) for slot in range(4)][-most:]  # the likeliest


@pytest.mark.parametrize("empty", [None, NOTHING])
def test_one_of_all_pairs_is_drawn_as_often_as_the_joint_distribution_says(model, words, empty):
    """Where slots can say nothing: as often among those that do not."""
    rows = 4000
    state = state_of(model, [["baker"]] * rows)
    table = [(0.7, {words[0]: 0.1, words[1]: 0.9}), (0.3, {words[2]: 1.0})]
    offer = offer_of(model, state, [table] * rows, empty=empty, stop=None if empty else 1e-9, is_joint=True)
    free = {"top_k": 0, "slot_mass": 1.0, "no_repeat_ngram": 0, "stopping": "sampled"}
    edits = decider(model, **free)(offer, state)
    assert edits.token.shape == (rows, 1)
    for slot, token, share in ((0, words[0], 0.07), (0, words[1], 0.63), (1, words[2], 0.3)):
        found = ((edits.slot == slot) & (edits.token == token)).double().mean().item()
        assert abs(found - share) < 4 * math.sqrt(share * (1 - share) / rows)


@pytest.mark.parametrize("is_joint", [True, False])
def test_greedy_takes_the_likeliest_pair_of_a_joint_choice_else_the_likeliest_slot_first(model, words, is_joint):
    state = state_of(model, [["baker"]])
    table = [(0.6, {words[0]: 0.4, words[1]: 0.3, words[3]: 0.3}), (0.4, {words[2]: 1.0})]
    offer = offer_of(model, state, [table], empty=None, stop=0.1, is_joint=is_joint)
    edits = decider(model, top_k=1, slot_mass=1e-9, stopping="threshold", min_words=0)(offer, state)
    assert puts_of(edits) == [(1, words[2]) if is_joint else (0, words[0])]
    assert edits.log_prob.exp().item() == pytest.approx(0.4 if is_joint else 0.24)
    assert edits.stop_log_prob.exp().item() == pytest.approx(0.9)


def test_a_row_with_one_slot_draws_the_same_alone_and_beside_longer_ones(model, words):
    """Each slot has noise of its own, also where there is no other."""
    free = decider(model, top_k=0, no_repeat_ngram=0, min_words=0)
    choices = {word: 0.25 for word in words}
    for seed in range(20):
        alone = state_of(model, [[]], [seed])
        beside = state_of(model, [[], ["baker", "bread"]], [seed, 0])
        [first] = puts_of(free(offer_of(model, alone, [[(1.0, choices)]]), alone))
        both = free(offer_of(model, beside, [[(1.0, choices)], [(1 / 3, choices)] * 3]), beside)
        assert puts_of(both) == [first]


def test_slots_that_are_closed_for_good_end_the_text_with_the_last_of_them(model, words):
    """Unless it is too short: then the likeliest token goes in instead."""
    closes, wants = (0.5, {-1: 0.9, words[0]: 0.1}), (0.5, {words[1]: 1.0})
    decide = decider(model, mode="parallel", top_k=1, min_words=0)
    state = state_of(model, [["baker"]] * 2)
    edits = decide(offer_of(model, state, [[closes, wants], [closes, closes]], empty=CLOSE), state)
    assert puts_of(edits) == [(0, CLOSE), (1, words[1])]
    assert edits.finished.tolist() == [False, True]
    state = state_of(model, [["baker"]], min_words=2)
    edits = decide(offer_of(model, state, [[closes, (0.4, closes[1])]], empty=CLOSE), state)
    assert puts_of(edits) == [(0, words[0])] and not edits.finished.any()
