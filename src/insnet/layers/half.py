"""Linear maps in bfloat16, for processors that multiply in it several times as fast as in float32.

Products are added up in float32, and what a map receives and gives keeps its type: only matrices, what is multiplied
and the sums are rounded. A row's result is the same whatever other rows there are.
"""

import torch.nn.functional as F
from torch import Tensor, nn


def linear_in_half(inputs: Tensor, weight: Tensor) -> Tensor:
    """The outputs (..., O) of inputs (..., I) under a matrix (O, I), multiplied in the matrix's type. A single vector
    goes twice: alone it would be added up in another order, and rounding makes half a percent of a last bit."""
    if inputs.shape[:-1].numel() == 1:
        return linear_in_half(inputs.expand(2, *inputs.shape[1:]), weight)[:1]
    return F.linear(inputs.to(weight.dtype), weight).to(inputs.dtype)


class HalfLinear(nn.Linear):
    """A linear map without a bias, whose matrix is kept in bfloat16."""

    def forward(self, inputs: Tensor) -> Tensor:
        return linear_in_half(inputs, self.weight)


def halve(module: nn.Module) -> None:
    """Keeps the matrices of all linear maps within a module in bfloat16; they learn nothing more."""
    for linear in module.modules():
        if type(linear) is nn.Linear and linear.bias is None:
            linear.weight = halved(linear.weight)
            linear.__class__ = HalfLinear


def halved(matrix: Tensor) -> nn.Parameter:
    """A matrix in bfloat16 that learns nothing more."""
    return nn.Parameter(matrix.detach().bfloat16(), requires_grad=False)
