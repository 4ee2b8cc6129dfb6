"""The slot logits of all steps in closed form equal the naive (n, n, d) form, in every precision, in less memory."""

import random

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from insnet.insertion.trajectory import is_slot_after_step, right_neighbour_after_step
from insnet.layers.slots import SlotComposer

ROWS, STEPS, WIDTH = 3, 9, 16


def example(*, use_global=True, dtype=torch.float64, scale=1.0, width=WIDTH, steps=STEPS):
    composer = SlotComposer(width, use_global=use_global).double()
    for parameter in composer.parameters():
        parameter.data.normal_()
    encoded = (torch.randn(ROWS, steps, width, dtype=torch.float64) * scale).to(dtype)
    weight = torch.randn(width, dtype=torch.float64)
    orders = [[0, steps - 1, *random.sample(range(1, steps - 1), steps - 2)] for _ in range(ROWS)]
    return composer.to(dtype), encoded, right_neighbour_after_step(torch.tensor(orders)), weight.to(dtype)


def naive(composer, encoded, right_neighbour, weight):
    """Every slot vector of every step, formed one by one; the constant of the norm's bias taken away."""
    left, right = composer.halves(encoded)
    logits = encoded.new_zeros(encoded.shape[0], encoded.shape[1], encoded.shape[1])
    for row in range(encoded.shape[0]):
        for step in range(encoded.shape[1]):
            for token in range(encoded.shape[1]):
                neighbour = right_neighbour[row, step, token]
                slot = composer.compose(left[row, token], right[row, neighbour], encoded[row, step])
                logits[row, step, token] = slot @ weight
    return logits - composer.norm.bias @ weight


def slots():
    return is_slot_after_step(torch.full((ROWS,), STEPS), STEPS)


@pytest.mark.parametrize("use_global", [True, False])
def test_closed_form_equals_naive_form_in_float64(use_global):
    parts = example(use_global=use_global)
    found = parts[0].logits_of_all_steps(*parts[1:])
    torch.testing.assert_close(found[slots()], naive(*parts)[slots()], rtol=0, atol=1e-12)
    assert found[slots()].std() > 1


def test_noglobal_ignores_the_newest_token_and_full_does_not():
    for use_global in (True, False):
        composer, encoded, right_neighbour, weight = example(use_global=use_global)
        logits = composer.logits_of_all_steps(encoded, right_neighbour, weight)
        # <bos> and its neighbour stay the same from one step to the next, wherever the next token goes elsewhere.
        row, step = next(
            (row, step)
            for row in range(ROWS)
            for step in range(2, STEPS - 1)
            if right_neighbour[row, step, 0] == right_neighbour[row, step + 1, 0]
        )
        assert bool(torch.isclose(logits[row, step, 0], logits[row, step + 1, 0], rtol=0, atol=1e-12)) != use_global


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-5), (torch.bfloat16, 0.25)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_closed_form_is_close_in_lower_precision(dtype, tolerance, scale):
    """Against the naive form in float64 of the same rounded numbers; errors relative to the spread of the logits.

    bfloat16 rounds the halves to 8 bits before anything is summed; the closed form itself runs in float32.
    """
    composer, encoded, right_neighbour, weight = example(dtype=dtype, scale=scale)
    found = composer.logits_of_all_steps(encoded, right_neighbour, weight)
    assert found.dtype == torch.float32
    exact = naive(composer.double(), encoded.double(), right_neighbour, weight.double())[slots()]
    assert (found[slots()].double() - exact).abs().max() < tolerance * exact.std()


def test_closed_form_in_bfloat16_is_no_worse_than_the_naive_form_there():
    composer, encoded, right_neighbour, weight = example(dtype=torch.bfloat16, scale=3.0)
    closed = composer.logits_of_all_steps(encoded, right_neighbour, weight)[slots()].double()
    coarse = naive(composer, encoded, right_neighbour, weight)[slots()].double()
    exact = naive(composer.double(), encoded.double(), right_neighbour, weight.double())[slots()]
    assert (closed - exact).square().mean() <= (coarse - exact).square().mean()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_halves_that_cancel_the_newest_token_do_not_break_the_variance(dtype):
    """f_l(x) = f_r(x) = -c and last = +c: the slot vector is zero, and rounding must not make its variance negative."""
    composer, encoded, right_neighbour, weight = example(dtype=dtype, scale=100.0)
    for linear in (composer.left, composer.right):
        linear.weight.data.copy_(torch.cat([-torch.eye(WIDTH // 2), torch.zeros(WIDTH // 2, WIDTH // 2)], dim=1))
        linear.bias.data.zero_()
    for half in (torch.randn(50, WIDTH // 2, dtype=torch.float64) * 100).to(dtype):
        constant = torch.cat([half, half]).expand_as(encoded).clone().requires_grad_()  # every token the same
        logits = composer.logits_of_all_steps(constant, right_neighbour, weight)
        # 1 / sqrt(eps) = 316 magnifies what rounding leaves of products of numbers around 100.
        assert logits.abs().max() < {torch.float64: 1e-9, torch.float32: 1.0, torch.bfloat16: 1.0}[dtype]
        logits.square().sum().backward()
        assert constant.grad.isfinite().all()


def test_gradients_of_the_closed_form():
    composer, encoded, right_neighbour, weight = example(width=4, steps=5)
    inside = is_slot_after_step(torch.full((ROWS,), 5), 5)

    def nats(encoded, weight, left, gain):
        composer.left.weight.data.copy_(left.detach())
        parameters = {"left.weight": left, "norm.weight": gain}
        logits = torch.func.functional_call(composer, parameters, (encoded, right_neighbour, weight))
        return logits[inside]

    composer.forward = composer.logits_of_all_steps
    inputs = [encoded, weight, composer.left.weight.detach().clone(), composer.norm.weight.detach().clone()]
    assert torch.autograd.gradcheck(nats, [value.requires_grad_() for value in inputs], atol=1e-7)


class Largest(TorchDispatchMode):
    """Remembers the number of elements of the largest tensor that any operation returns."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, torch.Tensor) and value.untyped_storage().nbytes():
                self.elements = max(self.elements, value.untyped_storage().nbytes() // value.element_size())
        return result


def test_no_tensor_of_all_slots_times_width_is_ever_formed():
    """Forward and backward, at width 64 and 40 steps: everything stays near n * n, far from n * n * d."""
    steps, width = 40, 64
    composer, encoded, right_neighbour, weight = example(width=width, steps=steps, dtype=torch.float32)
    encoded.requires_grad_()
    with Largest() as largest:
        logits = composer.logits_of_all_steps(encoded, right_neighbour, weight)
        logits.square().sum().backward()
    assert largest.elements <= 2 * max(ROWS * steps * steps, ROWS * steps * width)
    assert largest.elements < ROWS * steps * steps * width / 10
    with Largest() as of_naive:
        left, right = composer.halves(encoded)
        composer.compose(left[:, None], right[:, None], encoded[:, :, None])  # what the measure must notice
    assert of_naive.elements >= ROWS * steps * steps * width / 2
