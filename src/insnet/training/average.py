"""An exponential moving average of the weights: what is evaluated and kept, while the weights themselves learn on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def decay_at(update: int, decay: float) -> float:
    """How much of the average an update, counted from 0, leaves: little at first, so that early weights are forgotten.

    >>> [round(decay_at(update, 0.99), 2) for update in (0, 9, 90, 2000)]
    [0.1, 0.53, 0.91, 0.99]
    """
    return min(decay, (1 + update) / (10 + update))


class WeightAverage:
    """The average of a model's parameters, in their own precision and on their device."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        assert 0 < decay < 1
        self.decay = decay
        self._names = [name for name, _ in model.named_parameters()]
        self._learning: list[Tensor] = list(model.parameters())  # themselves: others may give them new memory
        self._average = [parameter.detach().clone() for parameter in self._learning]

    @torch.no_grad()
    def follow(self, update: int) -> None:
        """Moves the average towards the weights as they are after an update, counted from 0."""
        torch._foreach_lerp_(self._average, self._learning, 1 - decay_at(update, self.decay))

    @contextmanager
    @torch.no_grad()
    def in_place(self) -> Iterator[None]:
        """The model with its averaged weights; the learning ones are put back afterwards, to the last bit."""
        learning = [parameter.detach().clone() for parameter in self._learning]
        torch._foreach_copy_(self._learning, self._average)
        try:
            yield
        finally:
            torch._foreach_copy_(self._learning, learning)

    def tensors(self) -> dict[str, Tensor]:
        """The averages by parameter name, for a checkpoint."""
        return dict(zip(self._names, self._average, strict=True))

    @torch.no_grad()
    def fill(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes over the averages of a checkpoint."""
        for name, average in self.tensors().items():
            average.copy_(tensors[name])
