"""Insertion orders, beside twins written with lists and recursion, and the probabilities of the random ones."""

import math
import random
from collections import Counter
from itertools import pairwise

import pytest
import torch

from insnet.insertion.order import (
    ORDERS,
    Sentence,
    draw_orders,
    log_order_count,
    orders_of_name,
    position_of_step,
    position_of_step_in,
)


def random_sentences(rng, rows=6, *, words_of_pieces=False, given_share=0.3):
    """Sentences of 2 to 16 positions, some words given; whole words are given, or single positions."""
    lengths = [rng.randint(2, 16) for _ in range(rows)]
    capacity = max(lengths) + rng.randint(0, 3)
    tokens = [[rng.randint(5, 12) if t < length else 0 for t in range(capacity)] for length in lengths]
    starts = [[not words_of_pieces or rng.random() < 0.5 for _ in range(capacity)] for _ in lengths]
    for length, row in zip(lengths, starts, strict=True):
        row[0] = row[1] = row[length - 1] = True
    given = [[rng.random() < given_share for _ in range(capacity)] for _ in lengths]
    seeds = [rng.randint(0, 2**62) for _ in lengths]
    return Sentence(*map(torch.tensor, (tokens, lengths, given, starts, seeds)))


def open_positions(sentence, row):
    """The positions of a row that are neither <bos>, <eos>, given nor padding."""
    return [p for p in range(1, int(sentence.lengths[row]) - 1) if not sentence.given[row, p]]


def open_part(sentence, order, row):
    """The part of the order that inserts, and a check of everything around it."""
    steps = order[row].tolist()
    length = int(sentence.lengths[row])
    given = [p for p in range(1, length - 1) if sentence.given[row, p]]
    start = [0, length - 1, *given]
    assert steps[: len(start)] == start
    assert steps[length:] == list(range(length, len(steps)))
    inserted = steps[len(start) : length]
    assert sorted(inserted) == open_positions(sentence, row)
    return inserted


def by_recursion(positions):
    """(depth, position) of the balanced tree over a list: the middle first, then both halves."""
    if not positions:
        return []
    middle = len(positions) // 2
    halves = by_recursion(positions[:middle]) + by_recursion(positions[middle + 1 :])
    return [(0, positions[middle]), *((depth + 1, position) for depth, position in halves)]


TWINS = {
    "left_to_right": lambda tokens, positions: positions,
    "balanced_tree": lambda tokens, positions: [position for _, position in sorted(by_recursion(positions))],
    "common_first": lambda tokens, positions: sorted(positions, key=lambda p: tokens[p]),
    "rare_first": lambda tokens, positions: sorted(positions, key=lambda p: -tokens[p]),
}


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_bos_eos_and_given_come_first_and_padding_last_in_every_order(name):
    rng = random.Random(1)
    for _ in range(100):
        sentence = random_sentences(rng, words_of_pieces=True)
        order = position_of_step(name, sentence)
        for row in range(len(order)):
            open_part(sentence, order, row)


@pytest.mark.parametrize("name", sorted(TWINS))
def test_fixed_orders_equal_their_twins(name):
    rng = random.Random(2)
    for _ in range(150):
        sentence = random_sentences(rng)
        order = position_of_step(name, sentence)
        for row in range(len(order)):
            wanted = TWINS[name](sentence.tokens[row].tolist(), open_positions(sentence, row))
            assert open_part(sentence, order, row) == wanted


def all_open(length, seeds, starts_word=None):
    """The same sentence once for every seed, nothing given."""
    rows = len(seeds)
    starts_word = starts_word or [True] * length
    return Sentence(
        tokens=torch.arange(length).expand(rows, -1),
        lengths=torch.full((rows,), length),
        given=torch.zeros(rows, length, dtype=torch.bool),
        starts_word=torch.tensor(starts_word).expand(rows, -1),
        seeds=seeds,
    )


@pytest.mark.parametrize("words", range(0, 70))
def test_a_balanced_tree_is_as_shallow_as_can_be(words):
    """As many layers as ceil(log2(n + 1)), each token one below the deeper of its neighbours in a real tree."""
    order = position_of_step("balanced_tree", all_open(words + 2, torch.tensor([0])))[0].tolist()
    depth = {order[0]: 0, order[1]: 0}
    for position in order[2:]:
        left = max(other for other in depth if other < position)
        right = min(other for other in depth if other > position)
        depth[position] = 1 + max(depth[left], depth[right])
    assert max(depth.values()) == math.ceil(math.log2(words + 1))


def test_all_orders_of_three_words_are_equally_likely():
    draws = 12_000
    order = position_of_step("random", all_open(5, torch.arange(draws)))
    seen = Counter(map(tuple, order[:, 2:].tolist()))
    assert len(seen) == 6
    chi_square = sum((count - draws / 6) ** 2 / (draws / 6) for count in seen.values())
    assert chi_square < 20.5  # 5 degrees of freedom: one seed set in a thousand would fail


def test_given_words_leave_the_rest_equally_likely():
    draws = 12_000
    sentence = all_open(6, torch.arange(draws))
    sentence.given[:, 2] = True
    seen = Counter(map(tuple, position_of_step("random", sentence)[:, 3:].tolist()))
    assert set(seen) == {(1, 3, 4), (1, 4, 3), (3, 1, 4), (3, 4, 1), (4, 1, 3), (4, 3, 1)}
    assert sum((count - draws / 6) ** 2 / (draws / 6) for count in seen.values()) < 20.5


def test_a_row_has_the_same_order_in_any_batch():
    rng = random.Random(3)
    for name in ORDERS:
        sentence = random_sentences(rng, rows=7, words_of_pieces=True)
        together = position_of_step(name, sentence)
        for row in range(7):
            length = int(sentence.lengths[row])
            alone = Sentence(
                *(
                    value[row : row + 1, :length] if value.dim() == 2 else value[row : row + 1]
                    for value in vars(sentence).values()
                )
            )
            assert position_of_step(name, alone)[0].tolist() == together[row, :length].tolist()


def test_words_of_pieces_stay_together_and_read_from_left_to_right():
    rng = random.Random(4)
    for _ in range(150):
        sentence = random_sentences(rng, words_of_pieces=True, given_share=0)
        order = position_of_step("random_words", sentence)
        for row in range(len(order)):
            for before, after in pairwise(open_part(sentence, order, row)):
                begins_word = bool(sentence.starts_word[row, after])
                assert begins_word or after == before + 1


def test_all_orders_of_three_words_of_pieces_are_equally_likely():
    draws = 12_000
    starts_word = [True, True, False, True, True, False, False, True]  # <bos> (1 2) (3) (4 5 6) <eos>
    order = position_of_step("random_words", all_open(8, torch.arange(draws), starts_word))
    seen = Counter(tuple(p for p in row if starts_word[p]) for row in order[:, 2:].tolist())
    assert len(seen) == 6
    assert sum((count - draws / 6) ** 2 / (draws / 6) for count in seen.values()) < 20.5


@pytest.mark.parametrize("name", sorted(ORDERS))
def test_log_order_count_counts_the_orders_that_occur(name):
    """Every order of a short sentence is seen over a thousand seeds, also where only a word's first piece is given."""
    rng = random.Random(5)
    for _ in range(12):
        length, draws = rng.randint(2, 6), 1000
        starts_word = [True, True] + [rng.random() < 0.5 for _ in range(length - 2)]
        starts_word = [*starts_word[: length - 1], True]
        sentence = all_open(length, torch.arange(draws), starts_word)
        sentence.given[:] = torch.tensor([rng.random() < 0.3 for _ in range(length)])
        seen = {tuple(row) for row in position_of_step(name, sentence).tolist()}
        log_count = log_order_count(name, sentence)
        assert log_count.shape == (draws,)
        assert log_count.exp().tolist() == pytest.approx([len(seen)] * draws)


def test_log_order_count_looks_past_padding():
    rng = random.Random(6)
    for _ in range(50):
        sentence = random_sentences(rng)
        wanted = [math.log(math.factorial(len(open_positions(sentence, row)))) for row in range(6)]
        assert log_order_count("random", sentence).tolist() == pytest.approx(wanted)


def test_an_unknown_order_is_named_in_the_error():
    with pytest.raises(ValueError, match="unknown order 'sideways'; expected one of random, "):
        position_of_step("sideways", random_sentences(random.Random(7)))


def test_rows_with_orders_of_their_own_equal_rows_of_one_order():
    rng = random.Random(12)
    orders = ("left_to_right", "random_words", "balanced_tree")
    for _ in range(20):
        sentence = random_sentences(rng, words_of_pieces=True)
        which = torch.tensor([rng.randrange(3) for _ in sentence.lengths])
        mixed = position_of_step_in(orders, which, sentence)
        for row, number in enumerate(which.tolist()):
            assert mixed[row].tolist() == position_of_step(orders[number], sentence)[row].tolist()


def test_each_order_is_drawn_as_often_as_any_other_and_by_the_seed_alone():
    which = draw_orders(("random", "left_to_right", "rare_first"), torch.arange(3000))
    assert all(900 < count < 1100 for count in Counter(which.tolist()).values()) and set(which.tolist()) == {0, 1, 2}
    assert draw_orders(("random", "left_to_right", "rare_first"), torch.tensor([17])).item() == which[17]
    assert draw_orders(("random",), torch.arange(9)).eq(0).all()


def test_a_name_of_several_orders_is_read_and_mistakes_in_it_are_told():
    assert orders_of_name("left_to_right+random") == ("left_to_right", "random")
    with pytest.raises(ValueError, match=r"unknown order 'lefttoright'; expected one of random, .* joined by"):
        orders_of_name("random+lefttoright")
    with pytest.raises(ValueError, match="names one twice"):
        orders_of_name("random+random")
