"""Low-rank terms on weights (LoRA; Hu and others, 2021): what is trained instead of a large matrix.

A linear map with such a term maps x to W x + up (down x), and W is frozen. No gradient of W's size is ever computed.

Shapes: O outputs, I inputs, R rank.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_TERM = ".low_rank."


class LowRank(nn.Module):
    """A product of two thin matrices; it is zero to begin with."""

    def __init__(self, outputs: int, inputs: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, inputs: Tensor) -> Tensor:
        """up (down x) (..., O) of inputs (..., I)."""
        outputs: Tensor = F.linear(F.linear(inputs, self.down), self.up)
        return outputs

    def matrix(self) -> Tensor:
        """What merging adds to the weight (O, I)."""
        return self.up @ self.down


class LowRankLinear(nn.Linear):
    """A linear map with a term that learns beside it."""

    low_rank: LowRank

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = super().forward(inputs) + self.low_rank(inputs)
        return outputs


def part_of_linear(linear: nn.Linear, inputs: Tensor, rows: slice) -> Tensor:
    """Some of the outputs of a linear map, its term included."""
    outputs = F.linear(inputs, linear.weight[rows], None if linear.bias is None else linear.bias[rows])
    if not isinstance(linear, LowRankLinear):
        return outputs
    return outputs + F.linear(F.linear(inputs, linear.low_rank.down), linear.low_rank.up[rows])


def add_low_rank(linear: nn.Linear, rank: int) -> None:
    """Freezes a linear map's weight and puts a term that learns beside it."""
    term = LowRank(linear.out_features, linear.in_features, rank).to(linear.weight)
    linear.weight.requires_grad_(False)
    linear.__class__ = LowRankLinear
    linear.low_rank = term


def low_rank_terms(model: nn.Module) -> Iterator[tuple[str, LowRankLinear]]:
    """Every linear map of a model that has such a term, by its name."""
    for name, module in model.named_modules():
        if isinstance(module, LowRankLinear):
            yield name, module


def is_low_rank(model: nn.Module) -> bool:
    """Whether any linear map of a model has such a term."""
    return any(True for _ in low_rank_terms(model))


@torch.no_grad()
def merge_low_rank(model: nn.Module) -> None:
    """Makes plain maps of all; everything learns again."""
    for _, linear in list(low_rank_terms(model)):
        linear.weight += linear.low_rank.matrix()
        del linear.low_rank
        linear.__class__ = nn.Linear  # type: ignore[assignment]
    model.requires_grad_(True)


@torch.no_grad()
def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """The `state_dict` that the model would have, were its terms merged; the model stays as it is."""
    state = {name: value for name, value in model.state_dict().items() if _TERM not in name}
    merged = {f"{name}.weight": linear.weight + linear.low_rank.matrix() for name, linear in low_rank_terms(model)}
    return state | merged


def plain_name(name: str) -> str:
    """A parameter's name as adapters are written: a term's matrices by the weight that they belong to.

    >>> plain_name("blocks.0.expand.weight")
    'blocks.0.expand.weight'
    >>> plain_name("blocks.0.expand.low_rank.down")
    'blocks.0.expand.weight.down'
    """
    return name.replace(_TERM, ".weight.")
