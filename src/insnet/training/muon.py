"""Muon that moves all matrices of one shape at a time.

torch's own goes from matrix to matrix, some fifty small operations each: with the 47 matrices of eight blocks and one
for slots, 2,643 operations per update (counted on a CPU), more than the model's forward and backward pass have
together, and each has to be launched. The matrices of a model have few shapes; stacked by shape, they take 485.

Shapes: N matrices of R rows and C columns.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


class Muon(torch.optim.Muon):
    """torch's Muon, its state and its steps, as large as AdamW's; only rounding differs."""

    def __init__(self, params: Sequence[Tensor], *, lr: float, weight_decay: float) -> None:
        super().__init__(list(params), lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step of every matrix that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            alike: defaultdict[tuple[Any, ...], list[Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape, matrix.dtype, matrix.device].append(matrix)
            for matrices in alike.values():
                self._move(matrices, group)
        return loss

    def _move(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        """A step of matrices of one shape, all with gradients."""
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        momenta = [self._momentum_of(matrix) for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"]) if group["nesterov"] else momenta
        steps = evened(torch.stack(list(ahead)), group["ns_coefficients"], group["ns_steps"], group["eps"])
        steps = steps.to(matrices[0].dtype)  # (N, R, C)
        size = 0.2 * math.sqrt(max(steps.shape[1:]))  # of AdamW's steps
        torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(matrices, steps.unbind(), alpha=-group["lr"] * size)

    def _momentum_of(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        return state["momentum_buffer"]  # type: ignore[no-any-return]


def evened(matrices: Tensor, coefficients: tuple[float, float, float], iterations: int, smallest: float) -> Tensor:
    """The matrices (N, R, C) with all singular values near 1, in bfloat16: Newton-Schulz iterations of a polynomial
    with odd powers 1, 3 and 5, which needs products alone."""
    first, third, fifth = coefficients
    is_tall = matrices.shape[1] > matrices.shape[2]
    even = matrices.bfloat16()
    even = even.mT if is_tall else even  # the products below are the smaller the fewer rows there are
    even = even / even.norm(dim=(1, 2), keepdim=True).clamp(min=smallest)
    for _ in range(iterations):
        squares = even @ even.mT  # (N, R, R)
        polynomial = torch.baddbmm(squares, squares, squares, beta=third, alpha=fifth)
        even = torch.baddbmm(even, polynomial, even, beta=first)
    return even.mT if is_tall else even
