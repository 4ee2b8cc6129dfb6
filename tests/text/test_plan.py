from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insnet.text.plan import BatchPlan, in_buckets


def epoch_tokens(lengths, widths, budget):
    """Tokens of an epoch, counted the slow obvious way."""
    total, lower = 0, 0
    for width in sorted(widths):
        members = sum(lower < length <= width for length in lengths)
        rows = budget // width
        total += -(-members // rows) * rows * width
        lower = width
    return total


@given(st.lists(st.integers(2, 60), min_size=1, max_size=60), st.integers(1, 4), st.integers(64, 200))
@settings(max_examples=80, deadline=None)
def test_no_other_choice_of_lengths_makes_a_smaller_epoch(lengths, max_shapes, budget):
    buckets = in_buckets(np.array(lengths), budget, max_shapes, 8)
    widths = [bucket.width for bucket in buckets]
    assert len(widths) <= max_shapes and all(width % 8 == 0 for width in widths) and widths == sorted(set(widths))
    assert sorted(np.concatenate([bucket.members for bucket in buckets])) == list(range(len(lengths)))
    for bucket in buckets:
        assert bucket.rows == budget // bucket.width and len(bucket.members) > 0
        assert all(lengths[member] <= bucket.width for member in bucket.members)
    *shorter, top = sorted({-(-length // 8) * 8 for length in lengths})
    others = [(*inner, top) for number in range(max_shapes) for inner in combinations(shorter, number)]
    ours = sum(bucket.batches * bucket.rows * bucket.width for bucket in buckets)
    assert ours == epoch_tokens(lengths, widths, budget) == min(epoch_tokens(lengths, o, budget) for o in others)


def test_an_epoch_holds_every_sentence_and_fills_from_its_own_bucket():
    lengths = np.random.default_rng(0).integers(3, 50, size=500)
    buckets = in_buckets(lengths, 256, 4, 8)
    plan = BatchPlan.of_epoch(buckets, seed=1, epoch=0)
    batches = [plan.batch(index) for index in range(len(plan))]
    for sentences, width in batches:
        assert len(sentences) == 256 // width and lengths[sentences].max() <= width
    seen = np.concatenate([sentences for sentences, _ in batches])
    counts = np.bincount(seen, minlength=500)
    assert counts.min() == 1
    for bucket in buckets:
        repeated = counts[bucket.members].sum() - len(bucket.members)
        assert repeated == bucket.batches * bucket.rows - len(bucket.members) < bucket.rows
    widths_in_order = [width for _, width in batches]
    assert widths_in_order != sorted(widths_in_order), "batches of all lengths are mixed"


def test_epochs_and_seeds_shuffle_differently_and_repeatably():
    buckets = in_buckets(np.full(300, 10), 64, 2, 8)
    plans = [
        BatchPlan.of_epoch(buckets, seed, epoch).sentences.tolist() for seed, epoch in [(1, 0), (1, 1), (2, 0), (1, 0)]
    ]
    assert plans[0] == plans[3] and plans[0] != plans[1] and plans[0] != plans[2] and plans[1] != plans[2]


def test_a_bucket_smaller_than_a_batch_is_repeated_to_fill_it():
    plan = BatchPlan.of_epoch(in_buckets(np.array([5, 6, 7]), 64, 1, 8), seed=0, epoch=0)
    sentences, width = plan.batch(0)
    assert len(plan) == 1 and width == 8 and len(sentences) == 8 and set(sentences.tolist()) == {0, 1, 2}


def test_impossible_budgets_are_refused():
    with pytest.raises(ValueError, match="token_budget 16 is too small: the longest sentence needs 24"):
        in_buckets(np.array([5, 20]), 16, 6, 8)
    with pytest.raises(ValueError, match="no sentences"):
        in_buckets(np.array([], dtype=np.int32), 16, 6, 8)
