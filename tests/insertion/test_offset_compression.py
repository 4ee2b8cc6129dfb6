"""Offsets and ranks, beside a twin that plays every insertion into a Python list and looks where the tokens stand."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from insnet.insertion.offsets import insert_into_ranks, offsets_of_order, step_at_position

EXAMPLE = [0, 6, 2, 4, 1, 3, 5]  # <bos> <eos> have pen I a . of "<bos> I have a pen . <eos>"
EXAMPLE_OFFSETS = [
    [0, 0, 0, 0, 0, 0, 0],
    [-1, 0, 0, 0, 0, 0, 0],
    [-1, 1, 0, 0, 0, 0, 0],
    [-2, 1, -1, 0, 0, 0, 0],
    [-1, 3, 1, 2, 0, 0, 0],
    [-3, 2, -1, 1, -2, 0, 0],
    [-5, 1, -3, -1, -4, -2, 0],
]


def canvases(order):
    """The canvas after each step, a list of steps in reading order."""
    canvas, played = [], []
    for step, position in enumerate(order):
        place = sum(order[other] < position for other in canvas)
        canvas.insert(place, step)
        played.append(list(canvas))
    return played


def offsets_twin(order):
    matrix = []
    for step, canvas in enumerate(canvases(order)):
        own = canvas.index(step)
        matrix.append([canvas.index(key) - own if key <= step else 0 for key in range(len(order))])
    return matrix


def random_order(rng, length):
    """A random order of `length` tokens with <bos> and <eos> first, as every order of ours begins."""
    inner = list(range(1, length - 1))
    rng.shuffle(inner)
    return [0, length - 1, *inner]


def padded(orders, steps):
    """Orders as one tensor; padded steps keep their own place at the end."""
    return torch.tensor([order + list(range(len(order), steps)) for order in orders])


def test_the_papers_example_is_spelt_out():
    assert offsets_of_order(torch.tensor([EXAMPLE]))[0].tolist() == EXAMPLE_OFFSETS
    assert offsets_twin(EXAMPLE) == EXAMPLE_OFFSETS


@given(st.integers(1, 24).flatmap(lambda length: st.permutations(range(length))))
def test_offsets_equal_those_of_a_list_for_any_permutation(order):
    """Even for orders that do not begin with <bos> and <eos>."""
    assert offsets_of_order(torch.tensor([order]))[0].tolist() == offsets_twin(order)


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_offsets_of_ragged_batches_equal_those_of_lists(dtype):
    rng = random.Random(1)
    for _ in range(60):
        orders = [random_order(rng, rng.randint(2, 20)) for _ in range(8)]
        steps = max(map(len, orders)) + rng.randint(0, 3)
        offsets = offsets_of_order(padded(orders, steps), dtype)
        assert offsets.dtype == dtype
        for row, order in enumerate(orders):
            real = offsets[row, : len(order), : len(order)]
            assert real.tolist() == offsets_twin(order)
            assert not offsets[row, : len(order), len(order) :].any()  # no real token sees a padded one


def test_a_row_of_offsets_never_changes_when_tokens_are_added():
    """What makes keys and values cachable: the prefix of an order has the prefix of its offsets.

    The prefix is numbered by its own, smaller canvas, so every position in it may differ from the whole order's.
    """
    rng = random.Random(2)
    for _ in range(300):
        order = random_order(rng, rng.randint(3, 24))
        cut = rng.randint(2, len(order) - 1)
        prefix = [sorted(order[:cut]).index(position) for position in order[:cut]]
        whole = offsets_of_order(torch.tensor([order]))[0, :cut, :cut]
        assert torch.equal(offsets_of_order(torch.tensor([prefix]))[0], whole)


def test_offsets_are_exact_where_eight_bits_would_not_do():
    length = 700
    order = random_order(random.Random(3), length)
    offsets = offsets_of_order(torch.tensor([order]))[0]
    last = offsets[-1]
    assert last.tolist() == [position - order[-1] for position in order]
    assert torch.equal(offsets.int(), offsets_of_order(torch.tensor([order]), torch.int32)[0])
    assert last.abs().max() > 127


def test_inserting_one_by_one_gives_the_rows_of_the_matrix():
    rng = random.Random(4)
    for _ in range(60):
        orders = [random_order(rng, rng.randint(3, 20)) for _ in range(6)]
        capacity = max(map(len, orders)) + rng.randint(0, 3)
        matrix = offsets_of_order(padded(orders, capacity), torch.int64)
        rank = torch.tensor([[0, 1] + [0] * (capacity - 2)] * len(orders))
        for step in range(2, capacity):
            length = torch.tensor([min(step, len(order)) for order in orders])
            inserts = torch.tensor([step < len(order) for order in orders])
            before = [canvases(order)[min(step, len(order)) - 1] for order in orders]
            slot = torch.tensor(
                [
                    sum(order[other] < order[step] for other in canvas) - 1 if step < len(order) else 0
                    for order, canvas in zip(orders, before, strict=True)
                ]
            )
            rank_before = rank
            rank, seen = insert_into_ranks(rank, length, slot[:, None], inserts[:, None])
            offsets = (seen - seen[:, :, step, None])[:, 0, : step + 1]
            for row, order in enumerate(orders):
                if step < len(order):
                    canvas = canvases(order)[step]
                    assert rank[row, : step + 1].tolist() == [canvas.index(token) for token in range(step + 1)]
                    assert offsets[row].tolist() == matrix[row, step, : step + 1].tolist()
                else:
                    assert torch.equal(rank[row], rank_before[row])


def test_ranks_keep_their_type():
    for dtype in (torch.int16, torch.int32, torch.int64):
        rank = torch.tensor([[0, 1, 9, 0]], dtype=dtype)
        after, seen = insert_into_ranks(rank, torch.tensor([2]), torch.tensor([[0]]), torch.tensor([[True]]))
        assert after.dtype == seen.dtype == dtype
        assert after.tolist() == [[0, 2, 1, 0]] and seen.tolist() == [[[0, 2, 1, 0]]]


def test_a_round_of_insertions_is_as_many_single_ones_from_left_to_right():
    rng = random.Random(6)
    for _ in range(60):
        length = [rng.randint(2, 9) for _ in range(5)]
        rank = torch.zeros(5, 20, dtype=torch.int64)
        for row, tokens in enumerate(length):
            rank[row, :tokens] = torch.tensor(rng.sample(range(tokens), tokens))
        slots = [sorted(rng.choices(range(tokens - 1), k=rng.randint(0, 6))) for tokens in length]
        most = max(1, max(map(len, slots)))
        slot = torch.tensor([[*row, *[0] * (most - len(row))] for row in slots])
        inserts = torch.arange(most) < torch.tensor([[len(row)] for row in slots])
        together, seen = insert_into_ranks(rank, torch.tensor(length), slot, inserts)
        for number in range(most):  # those to the left have gone in and shift the slot
            now = inserts[:, number : number + 1]
            rank, own = insert_into_ranks(rank, torch.tensor(length), slot[:, number : number + 1] + number, now)
            length = [tokens + int(is_put) for tokens, is_put in zip(length, now, strict=True)]
            for row in now[:, 0].nonzero()[:, 0].tolist():
                assert torch.equal(own[row, 0, : length[row]], seen[row, number, : length[row]])
        for row, tokens in enumerate(length):
            assert torch.equal(together[row, :tokens], rank[row, :tokens])


def test_step_at_position_reads_the_canvas():
    rng = random.Random(5)
    for _ in range(100):
        orders = [random_order(rng, rng.randint(2, 16)) for _ in range(5)]
        played = [rng.choice(canvases(order)[1:]) for order in orders]
        capacity = max(map(len, played)) + rng.randint(0, 3)
        rank = torch.full((len(played), capacity), 0)
        for row, canvas in enumerate(played):
            rank[row, : len(canvas)] = torch.tensor([canvas.index(step) for step in range(len(canvas))])
        places = step_at_position(rank, torch.tensor([len(canvas) for canvas in played]))
        assert places.tolist() == [canvas + [0] * (capacity - len(canvas)) for canvas in played]
