"""Layers of insertions, beside a twin that keeps lists and follows the words of section 3.3."""

import math
import random
from functools import partial

import pytest
import torch
from paper_layers import layers_by_the_papers_words

from insnet.insertion.concurrency import (
    Seen,
    after_turn,
    ends_round,
    round_of_step,
    round_of_step_by_order,
    row_before_round,
    sort_by_round,
)
from insnet.insertion.order import Sentence, position_of_step

TAUS = (-math.inf, 0.0, 0.3, 1.0, 3.0, math.inf)


def random_order(rng, length, given=0):
    """<bos>, <eos>, some given positions from left to right, the rest at random."""
    inner = list(range(1, length - 1))
    rng.shuffle(inner)
    return [0, length - 1, *sorted(inner[:given]), *inner[given:]]


def depth_in_search_tree(order, given):
    """Each gap between given positions grows a tree: smaller positions to the left, larger ones to the right."""
    roots, depths = {}, [0] * given
    for position in order[given:]:
        gap = sum(other < position for other in order[:given])
        node, depth = roots.setdefault(gap, {"position": position}), 1
        while node["position"] != position:
            side = "left" if position < node["position"] else "right"
            node, depth = node.setdefault(side, {"position": position}), depth + 1
        depths.append(depth)
    return depths


class Table:
    """Random log-probabilities [step, newest row] of a batch, and how many turns were taken."""

    def __init__(self, rng, rows, steps):
        noise = torch.Generator().manual_seed(rng.randrange(1 << 30))
        self.values = -torch.rand(rows, steps, steps, generator=noise, dtype=torch.float64) * 3
        self.turns = 0

    def of_row(self, row):
        """The same for one row, as the twin asks: the slot makes no difference beside the newest row."""
        return lambda step, slot, newest: self.values[row, step, newest]

    def layers(self, orders, givens, taus, width, turns=1):
        lengths = torch.tensor([len(order) for order in orders])
        padded = torch.tensor([order + list(range(len(order), width)) for order in orders])
        step = torch.arange(1, width)
        one_by_one = torch.zeros(len(orders), width, dtype=torch.float64)
        one_by_one[:, 1:] = self.values[:, step, step - 1]
        seen = Seen.of(padded, one_by_one, lengths, torch.tensor(taus, dtype=torch.float64))
        return padded, round_of_step(seen, torch.tensor(givens), partial(self._turns, turns), turns=turns)

    def _turns(self, turns, seen, visit):
        row = torch.arange(len(visit.step))
        for _ in range(turns):
            step = visit.step.clamp_max(self.values.shape[1] - 1)
            visit = after_turn(seen, visit, self.values[row, step, visit.older()])
        self.turns += turns
        return visit


def random_batches(seed, batches, taus=TAUS):
    rng = random.Random(seed)
    for _ in range(batches):
        lengths = [rng.randint(2, 18) for _ in range(5)]
        givens = [2 + rng.choice([0, rng.randint(0, length - 2)]) for length in lengths]
        orders = [random_order(rng, length, given - 2) for length, given in zip(lengths, givens, strict=True)]
        yield rng, orders, givens, [rng.choice(taus) for _ in lengths]


def test_layers_equal_those_of_lists_for_any_order_and_any_likelihood():
    for rng, orders, givens, taus in random_batches(seed=1, batches=60):
        width = max(map(len, orders)) + rng.randint(0, 2)
        table = Table(rng, len(orders), width)
        _, found = table.layers(orders, givens, taus, width)
        for row, (order, given, tau) in enumerate(zip(orders, givens, taus, strict=True)):
            wanted = layers_by_the_papers_words(order, given, tau, table.of_row(row))
            assert found[row, : len(order)].tolist() == wanted
            assert found[row, len(order) :].tolist() == [width] * (width - len(order))


@pytest.mark.parametrize("turns", [2, 4, 9, 50])
def test_turns_may_be_taken_several_at_a_time(turns):
    for rng, orders, givens, taus in random_batches(seed=9, batches=20):
        width = max(map(len, orders))
        table = Table(rng, len(orders), width)
        _, one_by_one = table.layers(orders, givens, taus, width)
        _, found = table.layers(orders, givens, taus, width, turns)
        assert torch.equal(found, one_by_one)


def test_without_tolerance_nothing_moves():
    for rng, orders, givens, _ in random_batches(seed=2, batches=30):
        width = max(map(len, orders))
        order, found = Table(rng, 5, width).layers(orders, givens, [-math.inf] * 5, width)
        for row, given in enumerate(givens):
            real = len(orders[row])
            assert found[row, :real].tolist() == [0] * given + list(range(1, real - given + 1))
        again, _ = sort_by_round(order, found)
        assert torch.equal(again, order)


def test_with_endless_tolerance_a_token_is_as_deep_as_in_the_search_tree_of_its_order():
    for rng, orders, givens, _ in random_batches(seed=3, batches=100):
        width = max(map(len, orders))
        _, found = Table(rng, 5, width).layers(orders, givens, [math.inf] * 5, width)
        for row, (order, given) in enumerate(zip(orders, givens, strict=True)):
            assert found[row, : len(order)].tolist() == depth_in_search_tree(order, given)


def test_where_nothing_need_be_asked_the_layers_are_those_of_asking():
    for rng, orders, givens, taus in random_batches(seed=12, batches=60, taus=(-math.inf, math.inf)):
        width = max(map(len, orders)) + rng.randint(0, 2)
        order, asked = Table(rng, 5, width).layers(orders, givens, taus, width)
        lengths = torch.tensor([len(row) for row in orders])
        found = round_of_step_by_order(order, torch.tensor(givens), lengths, torch.tensor(taus) > 0)
        assert torch.equal(found, asked)


def test_a_row_has_the_same_layers_alone():
    for rng, orders, givens, taus in random_batches(seed=4, batches=20):
        width = max(map(len, orders)) + 3
        table = Table(rng, 5, width)
        _, together = table.layers(orders, givens, taus, width)
        for row, order in enumerate(orders):
            alone = Table(rng, 1, len(order))
            alone.values = table.values[row : row + 1, : len(order), : len(order)]
            _, found = alone.layers([order], [givens[row]], [taus[row]], len(order))
            assert found[0].tolist() == together[row, : len(order)].tolist()


def test_a_layer_has_one_token_a_slot_and_layers_have_no_gaps():
    for rng, orders, givens, taus in random_batches(seed=5, batches=40):
        width = max(map(len, orders))
        padded, found = Table(rng, 5, width).layers(orders, givens, taus, width)
        order, layer = sort_by_round(padded, found)
        for row, given in enumerate(givens):
            real = len(orders[row])
            positions, layers = order[row, :real].tolist(), layer[row, :real].tolist()
            assert positions[:given] == orders[row][:given] and set(layers[:given]) == {0}
            assert sorted(set(layers)) == list(range(max(layers) + 1)) and layers == sorted(layers)
            for number in range(1, max(layers) + 1):
                canvas = [p for p, other in zip(positions, layers, strict=True) if other < number]
                news = [p for p, other in zip(positions, layers, strict=True) if other == number]
                assert news == sorted(news)
                slots = [sum(p < new for p in canvas) for new in news]
                assert len(set(slots)) == len(slots)


def test_contexts_are_the_rows_before_a_layer():
    for rng, orders, givens, taus in random_batches(seed=6, batches=30):
        width = max(map(len, orders)) + 2
        padded, found = Table(rng, 5, width).layers(orders, givens, taus, width)
        _, layer = sort_by_round(padded, found)
        before, ends = row_before_round(layer), ends_round(layer)
        for row, given in enumerate(givens):
            layers = layer[row].tolist()
            for step in range(given, len(orders[row])):
                assert before[row, step] == max(t for t in range(width) if layers[t] < layers[step])
            wanted = [t + 1 == width or layers[t + 1] != layers[t] for t in range(width)]
            assert ends[row].tolist() == wanted


def test_turns_grow_with_the_length_and_not_with_its_square():
    """An order that digs deep in one gap and then fills another would ask many questions a token, but for the chain."""
    rng = random.Random(7)
    for length, tau in ((20, 1.0), (40, math.inf), (400, math.inf), (400, 0.0)):
        half = length // 2
        deep_then_wide = [0, length - 1, *range(1, half), *rng.sample(range(half, length - 1), length - 1 - half)]
        for order in (deep_then_wide, random_order(rng, length)):
            table = Table(rng, 1, length)
            _, found = table.layers([order], [2], [tau], length)
            assert table.turns <= 2 * length
            if length <= 40:
                assert found[0].tolist() == layers_by_the_papers_words(order, 2, tau, table.of_row(0))
            elif tau == math.inf:
                assert found[0].tolist() == depth_in_search_tree(order, 2)


@pytest.mark.parametrize("tau", TAUS)
def test_pieces_of_a_word_go_in_one_after_the_other_in_layers_that_follow_each_other(tau):
    """Order `random_words`: whatever the likelihoods; and at most one word is unfinished only if nothing moves."""
    rng = random.Random(8)
    most_unfinished = 0
    for _ in range(40):
        length = rng.randint(6, 20)
        starts = [True, True, *(rng.random() < 0.4 for _ in range(length - 3)), True]
        sentence = Sentence(
            torch.zeros(1, length, dtype=torch.int64),
            torch.tensor([length]),
            torch.tensor([[place in (0, length - 1) for place in range(length)]]),
            torch.tensor([starts]),
            torch.tensor([rng.randrange(1 << 40)]),
        )
        order = position_of_step("random_words", sentence)[0].tolist()
        _, found = Table(rng, 1, length).layers([order], [2], [tau], length)
        layer_at = dict(zip(order, found[0].tolist(), strict=True))
        further = [place for place in range(2, length - 1) if not starts[place]]
        assert all(layer_at[place] == layer_at[place - 1] + 1 for place in further)
        for number in range(1, max(layer_at.values()) + 1):
            most_unfinished = max(most_unfinished, sum(layer_at[place] == number for place in further))
    assert (most_unfinished > 1) == (tau > -math.inf)
