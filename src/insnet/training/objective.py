"""What a model is trained for: insertions one by one, or as many at once as it can bear."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.randomness import uniform

_TAU = 403  # the stream of noise that rows' tolerances are drawn from


@dataclass(frozen=True)
class ObjectiveConfig:
    """How many insertions share a step (section 3.3)."""

    tau: tuple[float, ...] = (-math.inf,)
    """Nats of likelihood that a token may lose by going in a layer earlier. A text draws one of these at every visit,
    so that one model learns several modes: -inf is one insertion a step, inf is all that fits (InsNet-uniform).
    Repeat a value to draw it more often."""

    def __post_init__(self) -> None:
        if not self.tau or any(math.isnan(value) for value in self.tau):
            raise ValueError(f"tau is {list(self.tau)}; expected one or more numbers, such as [10.0] or [-inf, 3.0]")

    @property
    def is_layered(self) -> bool:
        """Whether any text may have more than one insertion a step."""
        return any(value > -math.inf for value in self.tau)

    @property
    def asks_model(self) -> bool:
        """Whether layers depend on how likely the model finds a token in them."""
        return any(math.isfinite(value) for value in self.tau)

    def tau_of_rows(self, seeds: Tensor) -> Tensor | None:
        """The tolerance (B,) of texts with these seeds (B,); None if all insertions go one by one."""
        if not self.is_layered:
            return None
        choices = torch.tensor(self.tau, dtype=torch.float32).to(seeds.device, non_blocking=True)
        return choices[(uniform(_TAU, seeds) * len(self.tau)).long()]
