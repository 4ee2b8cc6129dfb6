"""Linear maps in bfloat16 against the same sums in float64, and against themselves in other company."""

import pytest
import torch
from torch import nn

from insnet.devices import cpu_has_bf16
from insnet.layers.half import HalfLinear, halve, linear_in_half


def test_a_halved_map_is_that_of_rounded_numbers():
    linear = nn.Linear(48, 40, bias=False)
    inputs = torch.randn(7, 48)
    expected = inputs.bfloat16().double() @ linear.weight.bfloat16().double().T
    halve(linear)
    outputs = linear(inputs)
    assert isinstance(linear, HalfLinear) and linear.weight.dtype == torch.bfloat16
    assert outputs.dtype == torch.float32
    torch.testing.assert_close(outputs.double(), expected, rtol=2.0**-8, atol=1e-4)


@pytest.mark.skipif(not cpu_has_bf16(), reason="this processor multiplies in bfloat16 by other means")
def test_a_vector_alone_has_the_result_that_it_has_among_others():
    torch.manual_seed(0)
    weight = torch.randn(576, 1536).bfloat16()
    inputs = torch.randn(65, 1536) * torch.randn(1536).exp()
    together = linear_in_half(inputs, weight)
    for rows in (1, 2, 3, 16, 33):
        parts = [linear_in_half(part, weight) for part in inputs.split(rows)]
        assert torch.equal(torch.cat(parts), together)
