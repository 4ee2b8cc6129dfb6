"""Draws and truncations, against slow twins."""

import math

import pytest
import torch

from insnet.decoding.truncation import draw, keep_min_p, keep_top_mass, likeliest, within_share
from insnet.randomness import uniform

INF = math.inf


def distributions(rows=40, size=12):
    log_probs = torch.randn(rows, size, dtype=torch.float64) * 2
    log_probs[torch.rand(rows, size) < 0.3] = -INF
    log_probs[:, 3] = 0.1
    return log_probs.log_softmax(dim=1)


def test_draw_never_picks_what_has_no_mass():
    log_probs = distributions(200)
    edges = [0.0, 2.0**-53, 0.5, 1 - 2.0**-53, 1.0]
    for value in [*edges, *torch.rand(50).tolist()]:
        index = draw(log_probs, torch.full((200,), value, dtype=torch.float64))
        assert log_probs.gather(1, index[:, None]).isfinite().all()
    tail = torch.tensor([[0.0, 0.1, 0.3, -INF, -INF]], dtype=torch.float64)  # sums to no round number
    assert int(draw(tail, torch.tensor([1 - 2.0**-53], dtype=torch.float64))) == 2
    one = torch.tensor([[-INF, -900.0, -INF]])
    assert int(draw(one, torch.tensor([0.999], dtype=torch.float64))) == 1  # however small, it is all there is


def test_draw_follows_the_distribution_over_many_seeds():
    log_probs = torch.tensor([[0.5, 0.0, 0.3, 0.15, 0.05]], dtype=torch.float64).log().expand(20_000, -1)
    noise = uniform(1, torch.arange(20_000), 3)
    counts = draw(log_probs, noise).bincount(minlength=5) / 20_000
    for share, expected in zip(counts.tolist(), [0.5, 0.0, 0.3, 0.15, 0.05], strict=True):
        assert abs(share - expected) < 4 * math.sqrt(0.25 / 20_000)
    assert counts[1] == 0


@pytest.mark.parametrize("choices", [3, 256, 257, 1000, 1024])
def test_a_draw_in_blocks_is_the_draw_by_one_running_sum(choices):
    generator = torch.Generator().manual_seed(choices)
    log_probs = 3 * torch.randn(400, choices, dtype=torch.float64, generator=generator)
    log_probs[torch.rand(400, choices, generator=generator) < 0.5] = -INF
    log_probs[:, 1] = 0.0  # no row without any choice
    log_probs[7] = -INF
    log_probs[7, -1] = -800.0  # all there is, in the last place
    noise = torch.rand(400, dtype=torch.float64, generator=generator)
    noise[:3] = torch.tensor([0.0, 1 - 2.0**-53, 0.5])
    reached = log_probs.softmax(dim=1).cumsum(dim=1)
    slow = [int((row <= point * row[-1]).sum()) for row, point in zip(reached, noise, strict=True)]
    last = [int(row.isfinite().nonzero()[-1]) for row in log_probs]
    assert draw(log_probs, noise).tolist() == [min(pair) for pair in zip(slow, last, strict=True)]
    assert int(draw(torch.full((1, choices), -INF), torch.tensor([0.3], dtype=torch.float64))) < choices


def slow_top_k(row, k):
    best = sorted(range(len(row)), key=lambda i: (-row[i], i))[: k or len(row)]
    return [row[i] if i in best else -INF for i in range(len(row))]


@pytest.mark.parametrize("k", [0, 1, 3, 7, 12, 30])
def test_the_likeliest_equal_a_slow_twin(k):
    """Also where fewer than k have any probability; where a few are equal, those with a smaller index stay."""
    log_probs = distributions(60, 20)
    log_probs[::3] = log_probs[::3].masked_fill(torch.rand(20, 20) < 0.8, -INF)
    log_probs[::2, 5:9] = log_probs[::2, 3:4]
    values, index = likeliest(log_probs, k)
    assert (index.diff(dim=1) > 0).all()
    assert torch.equal(values, log_probs.gather(1, index))
    found = torch.full_like(log_probs, -INF).scatter(1, index, values)
    assert found.tolist() == [slow_top_k(row, k) for row in log_probs.tolist()]


def slow_top_mass(row, mass):
    best, total = [], 0.0
    for i in sorted(range(len(row)), key=lambda i: (-row[i], i)):
        if total >= mass or row[i] == -INF:
            break
        best.append(i)
        total += math.exp(row[i])
    return [row[i] if i in best else -INF for i in range(len(row))]


@pytest.mark.parametrize("mass", [0.01, 0.3, 0.7, 0.95, 1.0])
def test_keep_top_mass_equals_a_slow_twin(mass):
    log_probs = distributions()
    assert keep_top_mass(log_probs, mass).tolist() == [slow_top_mass(row, mass) for row in log_probs.tolist()]


def slow_min_p(row, share):
    return [value if math.exp(value) >= share * math.exp(max(row)) * (1 - 1e-12) else -INF for value in row]


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.05, 0.3, 1.0])
def test_keep_min_p_equals_a_slow_twin(share):
    log_probs = distributions()
    assert keep_min_p(log_probs, share).tolist() == [slow_min_p(row, share) for row in log_probs.tolist()]
    assert keep_min_p(log_probs, share).isfinite().any(dim=1).all()


@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0])  # nearly all choices are within the share, some, or very few
@pytest.mark.parametrize("share", [0.0, 0.05, 0.9])
def test_choices_within_a_share_are_those_that_min_p_keeps(share, spread):
    log_probs = (torch.randn(6, 900, dtype=torch.float64) * spread).log_softmax(dim=1)
    log_probs[2:, 5:] = -INF
    log_probs[4:, 5:9] = log_probs[4:, :4]  # equals
    log_probs[5] = -INF
    kept, choices = within_share(log_probs, share)
    spread_out = torch.full_like(log_probs, -INF).scatter(1, choices, kept)
    assert torch.equal(spread_out, keep_min_p(log_probs, share))
    assert (choices.diff(dim=1) > 0).all()


def test_truncation_leaves_a_row_without_choices_alone():
    nothing = torch.full((1, 4), -INF)
    for kept in (keep_min_p(nothing, 0.1), keep_top_mass(nothing, 0.5), likeliest(nothing, 0)[0]):
        assert kept.tolist() == nothing.tolist()
