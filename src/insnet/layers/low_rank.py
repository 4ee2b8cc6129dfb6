"""Low-rank terms on weights (LoRA; Hu and others, 2021): what is trained instead of a large matrix.

A linear map with such a term has the weight W + up @ down, and W is frozen. The sum is computed once per pass, as dense
as W, so that the map itself costs what it always did, whatever the rank.

Shapes: O outputs, I inputs, R rank.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

_ORIGINAL, _TERM = ".parametrizations.weight.original", ".parametrizations.weight.0."


class LowRank(nn.Module):
    """A matrix plus a product of two thin ones; the product is zero to begin with."""

    def __init__(self, outputs: int, inputs: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, weight: Tensor) -> Tensor:
        """W + up @ down (O, I)."""
        return weight + self.up @ self.down


def add_low_rank(linear: nn.Linear, rank: int) -> None:
    """Freezes a linear map's weight and puts a term that learns beside it."""
    term = LowRank(linear.out_features, linear.in_features, rank).to(linear.weight)
    linear.weight.requires_grad_(False)
    parametrize.register_parametrization(linear, "weight", term)


def low_rank_terms(model: nn.Module) -> Iterator[tuple[str, nn.Linear, LowRank]]:
    """Every linear map of a model that has such a term, by its name."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and parametrize.is_parametrized(module, "weight"):
            term = module.get_submodule("parametrizations.weight.0")
            assert isinstance(term, LowRank)
            yield name, module, term


def is_low_rank(model: nn.Module) -> bool:
    """Whether any weight of a model has such a term."""
    return any(True for _ in low_rank_terms(model))


def merge_low_rank(model: nn.Module) -> None:
    """Makes plain weights of all sums; everything learns again."""
    for _, linear, _ in list(low_rank_terms(model)):
        parametrize.remove_parametrizations(linear, "weight", leave_parametrized=True)
    model.requires_grad_(True)


@torch.no_grad()
def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """The `state_dict` that the model would have, were its terms merged; the model stays as it is."""
    state = {name: value for name, value in model.state_dict().items() if _TERM not in name and _ORIGINAL not in name}
    return state | {f"{name}.weight": linear.weight.detach() for name, linear, _ in low_rank_terms(model)}


def plain_name(name: str) -> str:
    """A parameter's name without the machinery of terms.

    >>> plain_name("blocks.0.expand.parametrizations.weight.original")
    'blocks.0.expand.weight'
    >>> plain_name("blocks.0.expand.parametrizations.weight.0.down")
    'blocks.0.expand.weight.down'
    """
    return name.replace(_ORIGINAL, ".weight").replace(_TERM, ".weight.")
