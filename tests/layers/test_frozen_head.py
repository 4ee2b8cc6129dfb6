"""A frozen head's loss against the plain one: the same values, the same gradients, however it is cut into parts."""

import pytest
import torch
import torch.nn.functional as F

from insnet.layers import frozen_head
from insnet.layers.frozen_head import nats_under_frozen


@pytest.mark.parametrize("at_a_time", [1, 40, 10_000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_it_is_the_cross_entropy(at_a_time, smoothing, monkeypatch):
    monkeypatch.setitem(frozen_head._MOST_LOGITS, "cpu", at_a_time)
    vectors = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    weight, target = torch.randn(13, 5, dtype=torch.float64), torch.randint(13, (7,))
    scale = torch.rand(7, dtype=torch.float64)  # of each row's loss: gradients must follow it
    found = nats_under_frozen(vectors, weight, target, smoothing)
    expected = F.cross_entropy(vectors @ weight.T, target, reduction="none", label_smoothing=smoothing)
    torch.testing.assert_close(found, expected)
    (own,) = torch.autograd.grad((found * scale).sum(), vectors)
    (plain,) = torch.autograd.grad((expected * scale).sum(), vectors)
    torch.testing.assert_close(own, plain)


def test_in_half_precision_the_loss_is_a_float32():
    vectors, weight = torch.randn(3, 8, requires_grad=True), torch.randn(20, 8)
    target = torch.tensor([0, 5, 19])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        nats = nats_under_frozen(vectors, weight, target)
    assert nats.dtype == torch.float32
    nats.sum().backward()
    plain = vectors.detach().clone().requires_grad_()
    F.cross_entropy(plain @ weight.T, target, reduction="sum").backward()
    torch.testing.assert_close(vectors.grad, plain.grad, atol=0.02, rtol=0.02)


def test_no_decisions_cost_nothing():
    vectors = torch.randn(0, 4, requires_grad=True)
    nats_under_frozen(vectors, torch.randn(6, 4), torch.zeros(0, dtype=torch.int64)).sum().backward()
    assert vectors.grad.shape == (0, 4)
