"""A count head: how many insertions are to come, of which the chance of none is the chance of stopping."""

from dataclasses import replace
from itertools import accumulate

import pytest
import torch
from loss_terms import losses_of
from small_models import decider, prompt_of, small_model, traces

from insnet.decoding.config import GenerationConfig
from insnet.decoding.lengths import planned
from insnet.insertion.constraints import FREE
from insnet.text.batching import TokenBatch

MOST = 6


@pytest.fixture(scope="module")
def model():
    return small_model("insnet", "word", count_head=MOST)


def batch_of(model):
    sentences = [[7, 8, 9], [10], [5, 6, 7, 8, 9, 10, 11, 12, 13]]
    given = [[False, True, False], [False], [False] * 9]
    return TokenBatch.of(sentences, starts_word=model.scribe.lexicon.starts_word, given=given)


@torch.no_grad()
def test_the_terms_are_those_of_one_softmax_over_counts(model):
    """stop + count = -log p(count): summed by hand over every state of every sentence."""
    batch = batch_of(model)
    terms = losses_of(model.family, batch)
    expected = 0.0
    for row in range(3):
        alone = TokenBatch(**{n: v[row : row + 1] for n, v in vars(batch).items() if v is not None})
        length, given = int(alone.lengths[0]), int(alone.given.sum())
        states = encoded_states(model.family, alone)  # (T, D)
        for step in range(given - 1, length):
            log_counts = model.family.stop_head(states[step]).log_softmax(dim=-1)
            expected -= float(log_counts[min(length - 1 - step, MOST)])
    assert float(terms["stop"].nats + terms["count"].nats) == pytest.approx(expected, rel=1e-12)
    assert (int(terms["count"].count), int(terms["stop"].count)) == (12, 15)


def encoded_states(family, batch):
    from insnet.families.generator import sentence_of_batch
    from insnet.insertion.offsets import offsets_of_order
    from insnet.insertion.order import position_of_step

    order = position_of_step(family.config.order, sentence_of_batch(batch))
    return family.encoder(family.embedding(batch.tokens.gather(1, order)), offsets_of_order(order))[0]


@torch.no_grad()
def test_the_likelihood_leaves_the_count_out(model):
    batch = batch_of(model)
    terms = losses_of(model.family, batch)
    likelihood = model.family.log_likelihood(batch).total.sum()
    orders = torch.lgamma(torch.tensor([3.0, 2.0, 10.0], dtype=torch.float64)).sum()  # 2!, 1!, 9!
    spent = terms["token"].nats + terms["slot"].nats + terms["stop"].nats
    assert float(likelihood) == pytest.approx(float(orders - spent), rel=1e-12)


def planned_limits(model, prompt, **settings):
    """The limits once the model has planned each row's length."""
    config = GenerationConfig.of(settings, stopping="counted")
    return planned(model.family, model.family.start(prompt), config, model.scribe.lexicon).limits


def counts_of(model, prompt):
    """What the first state says of counts (B, N)."""
    return model.family.offer(model.family.start(prompt)).counts.detach()


def test_a_counted_length_is_the_quantile_of_the_first_states_counts(model):
    prompt = prompt_of(model, [["baker"], []], max_tokens=20, min_words=0)
    reached = [list(accumulate(row)) for row in counts_of(model, prompt).exp().tolist()]
    for quantile in (0.1, 0.5, 0.9):
        limits = planned_limits(model, prompt, count_quantile=quantile)
        expected = [next(count for count, mass in enumerate(row) if mass >= quantile) for row in reached]
        assert limits.insertions.tolist() == expected
        assert limits.slack.tolist() == [count // 4 for count in expected]
        exact = replace(prompt, limits=replace(limits, slack=torch.zeros_like(limits.slack)))
        written = traces(model, exact, decider(model, stopping="counted"))
        assert [sum(len(step.inserts) for step in steps) for steps in written] == expected


def test_a_length_that_is_known_is_left_alone_and_so_is_its_slack(model):
    prompt = prompt_of(model, [["baker"], []], max_tokens=20, min_words=0)
    known = replace(prompt.limits, insertions=torch.tensor([5, FREE]), slack=torch.tensor([3, 0]))
    limits = planned_limits(model, replace(prompt, limits=known), count_quantile=0.9)
    free = planned_limits(model, prompt, count_quantile=0.9)
    assert (limits.insertions.tolist(), limits.slack.tolist()) == (
        [5, int(free.insertions[1])],
        [3, int(free.slack[1])],
    )


def test_a_counted_length_keeps_to_the_bounds(model):
    for least, most in ((4, 5), (1, 2), (3, 3), (2, 40), (30, 30)):
        bounds = {"max_tokens": 40, "min_words": least, "max_words": max(most, 2)}
        found = planned_limits(model, prompt_of(model, [["baker"], [], ["old ship"]], **bounds)).insertions.tolist()
        for insertions, given in zip(found, (1, 0, 2), strict=True):
            assert min(least - given, MOST) <= insertions <= min(max(most, 2) - given, MOST)


def test_a_model_without_the_head_says_so():
    plain = small_model("insnet", "word")
    with pytest.raises(ValueError, match="this model has no count head; use rehearsed"):
        plain.generate(["baker"], stopping="counted")


def test_lengths_spread_around_the_quantile_and_no_further(model):
    prompt = prompt_of(model, [["baker"]] * 200, max_tokens=20, min_words=0)
    reached = counts_of(model, prompt)[0].exp().cumsum(dim=0)
    at = {share: int((reached < share).sum()) for share in (0.3, 0.5, 0.7)}
    for spread, expected in ((0.0, {at[0.5]}), (0.2, set(range(at[0.3], at[0.7] + 1)))):
        assert set(planned_limits(model, prompt, count_spread=spread).insertions.tolist()) == expected
    assert at[0.3] < at[0.7]  # or the test shows nothing
