"""What a family says of a batch: loss terms to learn from, and how likely its texts are.

Shapes: B rows, L places in reading order.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LossTerm:
    """Summed nats and the number of decisions they were summed over."""

    nats: Tensor
    count: Tensor
    is_figure: bool = False
    """Only to be watched: no part of the loss."""


@dataclass(frozen=True)
class LossContext:
    """What a loss may depend on beside the batch and the objective."""

    progress: float = 0.0
    """How far training has come, from 0 to 1."""
    label_smoothing: float = 0.0
    """The share of each token's target that is spread over all tokens that can be predicted. The same at every update:
    compiled losses take it for a constant."""


@dataclass(frozen=True)
class FamilyObjective:
    """What a family is trained for where there is a choice: the recipe's table [objective]. Most have no choice."""


@dataclass(frozen=True)
class Likelihood:
    """How likely texts are, given their given words."""

    total: Tensor
    """(B,) the log-likelihood, or a lower bound from one sampled order; exact where the traits say so."""
    tokens: Tensor
    """(B, L) the log-probability of each token when it goes in; 0 for what was there from the start and padding."""


def at_least_float32(values: Tensor) -> Tensor:
    """The same in a precision that sums of exponentials and losses need."""
    return values if values.dtype == torch.float64 else values.float()


def learned_nats(terms: Mapping[str, LossTerm]) -> Tensor:
    """All nats of a batch that are learned from, as one number: figures are left out.

    >>> figure = LossTerm(torch.tensor(5.0), torch.tensor(1), is_figure=True)
    >>> float(learned_nats({"token": LossTerm(torch.tensor(2.0), torch.tensor(1)), "figure": figure}))
    2.0
    """
    return torch.stack([term.nats for term in terms.values() if not term.is_figure]).sum()
