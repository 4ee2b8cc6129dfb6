"""The pieces of a parallel round, beside twins that keep lists."""

import math
import random
from dataclasses import replace

import pytest
import torch
from small_models import prompt_of, small_model

from insnet.decoding.rounds import Room, banned_places, repeating_places, settle, slots_of_round
from insnet.families.generator import State
from insnet.insertion.canvas import INSERTED, NOTHING, Canvas
from insnet.insertion.constraints import ABSENT, Lexicon

BOS, EOS, INF = 1, 2, math.inf
MANY = 1 << 30


@pytest.fixture(scope="module")
def model():
    return small_model("insnet", "word")


# ---- how many ----


def room_of(model, rounds, *, step=0, inserted=0, wanted=-1, slack=0, words=0, max_words=200, max_tokens=200):
    prompt = prompt_of(model, [[]], max_words=max_words, max_tokens=max_tokens)
    limits = replace(prompt.limits, insertions=torch.tensor([wanted]), slack=torch.tensor([slack]))
    state = State.first(replace(prompt, limits=limits), None)
    state = replace(state, step=torch.tensor([step]), inserted=torch.tensor([inserted]))
    room = Room.of(state, rounds, torch.tensor([words]))
    return int(room.least), int(room.most)


def slow_room(rounds, step, inserted, wanted, slack, words, max_words, max_tokens):
    remaining = MANY
    if wanted >= 0:
        remaining = max(1, (wanted if inserted < wanted else wanted + slack) - inserted)
    least = math.ceil(remaining / max(1, rounds - step)) if rounds and wanted >= 0 else 1
    most = max(1, min(remaining, max_words - words, max_tokens - inserted))
    return min(least, most), most


def test_a_rounds_room_is_within_all_bounds_as_a_slow_twin_counts_them(model):
    rng = random.Random(0)
    for _ in range(300):
        where = {
            "step": rng.randint(0, 8),
            "inserted": rng.randint(0, 30),
            "wanted": rng.choice([-1, 0, 5, 20, 30]),
            "slack": rng.choice([0, 3]),
            "words": rng.randint(0, 4),
            "max_words": rng.choice([6, 40]),
            "max_tokens": rng.choice([31, 60]),
        }
        rounds = rng.choice([0, 0, 3, 7])
        assert room_of(model, rounds, **where) == slow_room(rounds, **where)


def test_rounds_fill_their_part_of_what_is_left_and_the_last_one_all_of_it(model):
    assert room_of(model, 0, wanted=10, inserted=8) == (1, 2)
    assert room_of(model, 0, wanted=10, inserted=10, slack=3) == (1, 3)  # reached, but no good place to stop
    assert room_of(model, 4, wanted=20) == (5, 20)
    assert room_of(model, 4, wanted=20, inserted=8, step=2) == (6, 12)
    assert room_of(model, 4, wanted=20, inserted=13, step=3) == (7, 7)
    assert room_of(model, 4, step=3)[0] == 1  # nobody knows how many are left


# ---- which slots ----


def slow_slots(row, mass, least, most):
    """Slots in order of their probability, as long as the mass is not reached."""
    by_probability = sorted((s for s in range(len(row)) if row[s] > -INF), key=lambda s: (-row[s], s))
    chosen, total = [], 0.0
    for slot in by_probability:
        if (total < mass or len(chosen) < least) and len(chosen) < most:
            chosen.append(slot)
        total += math.exp(row[slot])
    return chosen


def test_the_slots_of_a_round_equal_a_slow_twin():
    rng, generator = random.Random(1), torch.Generator().manual_seed(1)
    counts = set()
    for _ in range(200):
        log_probs = torch.randn(6, 9, generator=generator, dtype=torch.float64) * 2
        log_probs[torch.rand(6, 9, generator=generator) < 0.3] = -INF
        log_probs[:, 4] = 0.5
        log_probs = log_probs.log_softmax(dim=1)
        mass = rng.choice([0.1, 0.7, 0.95, 1.0])
        most = torch.tensor([rng.randint(1, 9) for _ in range(6)])
        least = torch.tensor([rng.randint(1, int(m)) for m in most])
        found = slots_of_round(log_probs, Room(least, most), mass)
        for row in range(6):
            expected = slow_slots(log_probs[row].tolist(), mass, int(least[row]), int(most[row]))
            assert [slot for slot in found[row].tolist() if slot != NOTHING] == expected
            counts.add(len(expected))
    assert len(counts) > 5


def test_a_row_without_an_open_slot_names_one_all_the_same():
    """It ends here anyway; a round never is without a slot."""
    log_probs = torch.tensor([[-INF, -INF], [0.0, -INF]])
    one = torch.tensor([1, 1])
    assert slots_of_round(log_probs, Room(one, one), 0.7).tolist() == [[0], [0]]


# ---- which tokens together ----


def plain_lexicon(vocabulary=30, same_letters=None):
    yes, no = torch.ones(vocabulary, dtype=torch.bool), torch.zeros(vocabulary, dtype=torch.bool)
    same = torch.arange(0) if same_letters is None else same_letters
    return Lexicon(yes, no, no, yes, yes, yes, yes, same)


def state_of(model, texts, forbidden=()):
    """Partial texts, all with the same banned sequences."""
    rows, width = len(texts), max(map(len, texts)) + 12
    tokens = torch.tensor([[*text, *[0] * (width - len(text))] for text in texts])
    canvas = Canvas(
        tokens,
        torch.full_like(tokens, INSERTED),
        torch.zeros_like(tokens, dtype=torch.bool),
        torch.tensor([len(text) for text in texts]),
    )
    prompt = prompt_of(model, [[]] * rows)
    longest = max(map(len, forbidden), default=1)
    table = torch.tensor([[*sequence, *[ABSENT] * (longest - len(sequence))] for sequence in forbidden])
    limits = replace(prompt.limits, forbidden=table.view(1, len(forbidden), longest).expand(rows, -1, -1))
    return State.first(replace(prompt, canvas=canvas, limits=limits, longest=max(map(len, texts))), None)


def settled(state, slot, token, log_prob, size=0, most=MANY, lexicon=None):
    """What stays of (slot, token) pairs, row by row."""
    one = torch.ones_like(state.seeds)
    kept = settle(state, slot, token, log_prob, Room(one, most * one), size, lexicon or plain_lexicon())
    return [
        [pair for pair in zip(s, t, strict=True) if pair[1] != NOTHING]
        for s, t in zip(slot.tolist(), kept.tolist(), strict=True)
    ]


def after(text, edits):
    """The text once (slot, token) pairs are in, and which of its places are new."""
    shifted = sorted(edits)
    result = list(text)
    for shift, (slot, token) in enumerate(shifted):
        result.insert(slot + 1 + shift, token)
    return result, [slot + 1 + shift for shift, (slot, _) in enumerate(shifted)]


def in_sequences(text, new, forbidden, size):
    """New places of a text that stand in a banned sequence, or in a run that is there twice."""
    windows = [
        range(start, start + len(sequence))
        for sequence in forbidden
        for start in range(len(text))
        if text[start : start + len(sequence)] == sequence
    ]
    if size:
        starts = range(1, len(text) - size)
        runs = {start: tuple(text[start : start + size]) for start in starts}
        twice = [start for start in starts if list(runs.values()).count(runs[start]) > 1]
        windows += [range(start, start + size) for start in twice if any(p in new for p in range(start, start + size))]
    return {place for window in windows for place in window if place in new}


def slow_settled(text, edits, log_probs, forbidden, size):
    """The slow twin: the least sure token that clashes goes, until none does but the surest."""
    kept = [edit for _, edit in sorted(zip(log_probs, edits, strict=True), key=lambda pair: -pair[0])]
    while True:
        result, new = after(text, kept)
        clashing = in_sequences(result, new, forbidden, size)
        in_order = sorted(kept)
        bad = [edit for edit in kept[1:] if new[in_order.index(edit)] in clashing]
        if not bad:
            return sorted(kept)
        kept.remove(bad[-1])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4])
def test_tokens_that_clash_are_dropped_as_a_slow_twin_drops_them(model, size):
    """Few different tokens, so that together they often repeat a run or complete what is banned."""
    rng, dropped = random.Random(size), 0
    for _ in range(120):
        forbidden = [[rng.randint(5, 7) for _ in range(rng.randint(3, 4))] for _ in range(rng.randint(0, 9))]
        texts = [[BOS, *(rng.randint(5, 7) for _ in range(rng.randint(0, 7))), EOS] for _ in range(4)]
        edits = []
        for text in texts:
            slots = rng.sample(range(len(text) - 1), rng.randint(1, min(len(text) - 1, 5)))
            pairs = [(slot, rng.randint(5, 7)) for slot in slots]
            edits.append([p for p in pairs if not in_sequences(*after(text, [p]), forbidden, 0)] or [(slots[0], 9)])
        most = max(map(len, edits))
        slot, token = torch.tensor([[*row, *[(NOTHING, NOTHING)] * (most - len(row))] for row in edits]).permute(
            2, 0, 1
        )
        log_prob = torch.tensor([[-rng.random() for _ in range(most)] for _ in edits], dtype=torch.float64)
        found = settled(state_of(model, texts, forbidden), slot, token, log_prob, size)
        for row, text in enumerate(texts):
            expected = slow_settled(text, edits[row], log_prob[row, : len(edits[row])].tolist(), forbidden, size)
            assert sorted(found[row]) == expected
            dropped += len(edits[row]) - len(expected)
    assert dropped > 20


def test_two_insertions_never_complete_something_banned_together(model):
    """5 and 6 around a 9: each is harmless alone. The surer one stays, whatever its case."""
    state = state_of(model, [[BOS, 9, EOS]] * 2, forbidden=[[5, 9, 6]])
    slot, token = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[5, 6], [6, 5]])
    log_prob = torch.tensor([[-1.0, -2.0], [-1.0, -2.0]])
    assert settled(state, slot, token, log_prob) == [[(0, 5)], [(1, 6)]]
    upper = torch.arange(30)
    upper[15], upper[16] = 5, 6  # 15 and 16 are 5 and 6 in capitals
    lexicon = plain_lexicon(same_letters=upper)
    assert settled(state, slot, token + 10, log_prob, lexicon=lexicon) == [[(0, 15)], [(1, 16)]]


def test_places_of_banned_sequences_and_repeated_runs_are_found():
    canvas = Canvas(
        torch.tensor([[BOS, 5, 6, 7, 5, 6, EOS, 0]]),
        torch.full((1, 8), INSERTED),
        torch.zeros(1, 8, dtype=torch.bool),
        torch.tensor([7]),
    )
    forbidden = torch.tensor([[[6, 7, ABSENT], [BOS, 5, ABSENT], [0, ABSENT, ABSENT], [ABSENT] * 3]])
    assert banned_places(canvas, plain_lexicon(), forbidden)[0].nonzero()[:, 0].tolist() == [0, 1, 2, 3]
    is_new = torch.zeros(1, 8, dtype=torch.bool)
    assert not repeating_places(canvas, 2, is_new).any()  # nothing new: nothing to complain about
    is_new[0, 5] = True
    assert repeating_places(canvas, 2, is_new)[0].nonzero()[:, 0].tolist() == [4, 5]
    assert not repeating_places(canvas, 9, is_new).any()  # longer than the canvas


def test_where_there_is_no_room_for_all_the_surest_go_in(model):
    state = state_of(model, [[BOS, 7, 8, EOS]] * 2)
    slot, token = torch.tensor([[0, 1, 2]] * 2), torch.tensor([[5, 6, 9], [5, NOTHING, 9]])
    log_prob = torch.tensor([[-3.0, -1.0, -2.0]] * 2)
    assert settled(state, slot, token, log_prob, most=2) == [[(1, 6), (2, 9)], [(0, 5), (2, 9)]]
    assert settled(state, slot, token, log_prob, most=1) == [[(1, 6)], [(2, 9)]]
