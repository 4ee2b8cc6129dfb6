from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insnet.text.plan import BatchPlan, in_buckets, visit_rates


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
    for visits, width in batches:
        assert len(visits.sentences) == 256 // width and lengths[visits.sentences].max() <= width
        assert (visits.passes == 0).all()
    seen = np.concatenate([visits.sentences for visits, _ in batches])
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
        BatchPlan.of_epoch(buckets, seed, epoch).visits.sentences.tolist()
        for seed, epoch in [(1, 0), (1, 1), (2, 0), (1, 0)]
    ]
    assert plans[0] == plans[3] and plans[0] != plans[1] and plans[0] != plans[2] and plans[1] != plans[2]


def test_a_bucket_smaller_than_a_batch_is_repeated_to_fill_it():
    plan = BatchPlan.of_epoch(in_buckets(np.array([5, 6, 7]), 64, 1, 8), seed=0, epoch=0)
    visits, width = plan.batch(0)
    assert len(plan) == 1 and width == 8 and len(visits.sentences) == 8
    assert set(visits.sentences.tolist()) == {0, 1, 2}


def test_impossible_budgets_are_refused():
    with pytest.raises(ValueError, match="token_budget 16 is too small: the longest sentence needs 24"):
        in_buckets(np.array([5, 20]), 16, 6, 8)
    with pytest.raises(ValueError, match="no sentences"):
        in_buckets(np.array([], dtype=np.int32), 16, 6, 8)


def test_only_the_named_lengths_are_used_and_each_sentence_gets_the_shortest_that_pays():
    lengths = np.array([5] * 40 + [9] * 40 + [31] * 8)
    buckets = in_buckets(lengths, 64, 1, 8, padded_lengths=(32, 5, 20, 12))
    assert [(bucket.width, bucket.rows) for bucket in buckets] == [(5, 12), (12, 5), (32, 2)]
    assert [lengths[bucket.members].max() for bucket in buckets] == [5, 9, 31]
    few = in_buckets(np.array([5, 9, 9]), 64, 1, 8, padded_lengths=(8, 16))
    assert [bucket.width for bucket in few] == [16], "a batch of its own for one short sentence costs more than padding"


def test_named_lengths_that_are_too_short_or_too_long_are_refused():
    with pytest.raises(ValueError, match="padded_lengths end at 16, but the longest sentence needs 20"):
        in_buckets(np.array([5, 20]), 64, 6, 8, padded_lengths=(8, 16))
    with pytest.raises(ValueError, match="token_budget 64 is too small: the longest sentence needs 100"):
        in_buckets(np.array([5, 20]), 64, 6, 8, padded_lengths=(8, 100))


LENGTHS = np.random.default_rng(0).integers(3, 50, size=500)
SHARES = (1.0, 0.0, 2.0, 8.0)  # few short texts, none of 10 to 19 tokens, none of 40 or more


def weighted_epochs(epochs, seed=1):
    buckets = in_buckets(LENGTHS + 2, 256, 4, 8, visit_rates(LENGTHS, SHARES))
    return buckets, [BatchPlan.of_epoch(buckets, seed, epoch) for epoch in range(epochs)]


def test_visits_have_the_profile_that_was_asked_for_and_each_text_of_a_class_its_equal_part():
    buckets, plans = weighted_epochs(40)
    assert len({len(plan) for plan in plans}) == 1, "epochs have equal sizes"
    counts = np.zeros(len(LENGTHS), dtype=int)
    for epoch, plan in enumerate(plans):
        visits = [group.of_epoch(1, epoch).sentences for bucket in buckets for group in bucket.groups]
        assert abs(sum(map(len, visits)) - len(LENGTHS)) <= len(visits), "up to rounding, as many as there are texts"
        of_epoch = np.bincount(np.concatenate(visits), minlength=len(LENGTHS))
        with_fill = np.bincount(plan.visits.sentences, minlength=len(LENGTHS))
        assert (with_fill >= of_epoch).all() and with_fill.sum() - of_epoch.sum() < sum(b.rows for b in buckets)
        counts += of_epoch
    of_class = np.bincount(LENGTHS // 10, weights=counts)
    assert of_class[1] == of_class[4] == 0
    assert of_class[[0, 2, 3]] / of_class.sum() == pytest.approx([1 / 11, 2 / 11, 8 / 11], abs=0.005)
    for number in (0, 2, 3):
        own = counts[np.flatnonzero(number == LENGTHS // 10)]
        assert own.max() - own.min() <= 1 + 0.05 * own.mean()  # a pass that is not over, and rounded rates


def test_a_weighted_epoch_goes_on_where_the_last_one_stopped_and_no_visit_comes_twice():
    buckets, plans = weighted_epochs(3)
    for bucket in buckets:
        for group in bucket.groups:
            parts = [group.of_epoch(1, epoch) for epoch in range(3)]
            sentences = np.concatenate([part.sentences for part in parts])
            passes = np.concatenate([part.passes for part in parts])
            assert len(sentences) == 3 * group.visits
            twin = [(number // len(group.members)) for number in range(len(sentences))]  # pass after pass
            assert passes.tolist() == twin
            assert len(set(zip(sentences, passes, strict=True))) == len(sentences)
            for number in set(twin):
                in_pass = sentences[passes == number]
                assert set(in_pass) <= set(group.members) and len(set(in_pass)) == len(in_pass)
    again = weighted_epochs(3)[1]
    assert [plan.visits.sentences.tolist() for plan in plans] == [plan.visits.sentences.tolist() for plan in again]


def test_a_batch_mixes_classes_of_length():
    rates = visit_rates(LENGTHS, (1.0, 1.0, 1.0, 1.0, 1.0))
    (bucket,) = in_buckets(LENGTHS + 2, 1024, 1, 8, rates)
    plan = BatchPlan.of_epoch([bucket], seed=0, epoch=0)
    classes = [set((LENGTHS[plan.batch(index)[0].sentences] // 10).tolist()) for index in range(len(plan))]
    assert all(len(found) >= 3 for found in classes)


def test_a_share_for_texts_that_do_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"gives 2\.0 to texts of 50 to 59 tokens, of which there are none: give 0"):
        visit_rates(LENGTHS, (1.0, 1.0, 1.0, 1.0, 1.0, 2.0))
