"""Slots and neighbours of every step, beside a twin that plays the insertions into a Python list."""

import itertools
import random

import torch
from hypothesis import given
from hypothesis import strategies as st

from insnet.insertion.trajectory import (
    is_slot_after_step,
    neighbours_of_step,
    right_neighbour_after_step,
    slot_of_step,
)

EXAMPLE = [0, 6, 2, 4, 1, 3, 5]
TEXT = ["<bos>", "I", "have", "a", "pen", ".", "<eos>"]


def play(order):
    """(slot, left step, right step, canvas afterwards) of every step; None where there is no neighbour."""
    canvas, story = [], []
    for step, position in enumerate(order):
        place = sum(order[other] < position for other in canvas)
        left = canvas[place - 1] if place else None
        right = canvas[place] if place < len(canvas) else None
        canvas.insert(place, step)
        story.append((place - 1, left, right, list(canvas)))
    return story


def random_order(rng, length):
    inner = list(range(1, length - 1))
    rng.shuffle(inner)
    return [0, length - 1, *inner]


def padded(orders, steps):
    return torch.tensor([order + list(range(len(order), steps)) for order in orders])


def random_batches(seed, batches):
    rng = random.Random(seed)
    for _ in range(batches):
        orders = [random_order(rng, rng.randint(2, 16)) for _ in range(6)]
        yield orders, padded(orders, max(map(len, orders)) + rng.randint(0, 2))


def test_the_papers_example_is_spelt_out():
    position_of_step = torch.tensor([EXAMPLE])
    words = [TEXT[position] for position in EXAMPLE]
    assert slot_of_step(position_of_step).tolist() == [[-1, 0, 0, 1, 0, 2, 4]]
    left, right = (steps[0].tolist() for steps in neighbours_of_step(position_of_step))
    assert [(words[left[t]], words[t], words[right[t]]) for t in range(2, 7)] == [
        ("<bos>", "have", "<eos>"),
        ("have", "pen", "<eos>"),
        ("<bos>", "I", "have"),
        ("have", "a", "pen"),
        ("pen", ".", "<eos>"),
    ]


@given(st.integers(2, 20).flatmap(lambda length: st.permutations(range(1, length - 1))))
def test_slots_and_neighbours_equal_those_of_a_list(inner):
    order = [0, len(inner) + 1, *inner]
    story = play(order)
    assert slot_of_step(torch.tensor([order]))[0].tolist() == [slot for slot, *_ in story]
    left, right = neighbours_of_step(torch.tensor([order]))
    assert left[0, 2:].tolist() == [before for _, before, _, _ in story[2:]]
    assert right[0, 2:].tolist() == [after for _, _, after, _ in story[2:]]


def test_playing_the_slots_gives_the_text():
    for orders, position_of_step in random_batches(seed=1, batches=100):
        for order, slots in zip(orders, slot_of_step(position_of_step).tolist(), strict=True):
            text = []
            for position, slot in zip(order, slots[: len(order)], strict=True):
                text.insert(slot + 1, position)
            assert text == list(range(len(order)))


def test_slots_and_neighbours_of_ragged_batches_equal_those_of_lists():
    for orders, position_of_step in random_batches(seed=2, batches=150):
        slots = slot_of_step(position_of_step)
        left, right = neighbours_of_step(position_of_step)
        for row, order in enumerate(orders):
            story = play(order)
            real = len(order)
            assert slots[row, :real].tolist() == [slot for slot, *_ in story]
            assert left[row, 2:real].tolist() == [before for _, before, _, _ in story[2:]]
            assert right[row, 2:real].tolist() == [after for _, _, after, _ in story[2:]]


def test_all_slots_of_all_steps_equal_the_gaps_of_the_lists():
    """The (left, right) pairs of both functions are the neighbouring pairs of each canvas, no more and no fewer."""
    for orders, position_of_step in random_batches(seed=3, batches=100):
        steps = position_of_step.shape[1]
        right = right_neighbour_after_step(position_of_step)
        is_slot = is_slot_after_step(torch.tensor([len(order) for order in orders]), steps)
        assert is_slot.shape == right.shape == (len(orders), steps, steps)
        for row, order in enumerate(orders):
            story = play(order)
            for step in range(1, steps):
                named = {(i, int(right[row, step, i])) for i in range(steps) if is_slot[row, step, i]}
                canvas = story[step][3] if step < len(order) else []
                assert named == set(itertools.pairwise(canvas))


def test_the_next_token_goes_into_one_of_the_slots_of_the_step_before():
    for orders, position_of_step in random_batches(seed=4, batches=30):
        left, right = neighbours_of_step(position_of_step)
        after = right_neighbour_after_step(position_of_step)
        for row, order in enumerate(orders):
            for step in range(2, len(order)):
                assert after[row, step - 1, left[row, step]] == right[row, step]


def test_short_integer_types_give_the_same_maps():
    order = torch.tensor([random_order(random.Random(5), 30)])
    for dtype in (torch.int16, torch.int32):
        short = order.to(dtype)
        assert torch.equal(slot_of_step(short), slot_of_step(order))
        assert torch.equal(right_neighbour_after_step(short), right_neighbour_after_step(order))
        assert all(map(torch.equal, neighbours_of_step(short), neighbours_of_step(order)))
