"""Size and switches of an InsNet, and what it is trained for; what the paper has is the default."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.families.generator import FamilyConfig
from insnet.families.losses import FamilyObjective
from insnet.insertion.order import orders_of_name
from insnet.randomness import Purpose, uniform


@dataclass(frozen=True)
class InsNetConfig(FamilyConfig):
    """Size and switches of an InsNet."""

    order: str = "random"
    """The order in which training inserts; one of insnet.insertion.order.ORDERS. Several can be joined by +, such as
    left_to_right+random_words: each text is learned in one of them, and the model knows which. The first is for
    inserting one by one, the last for parallel decoding and training in rounds."""
    count_head: int = 0
    """Predict, instead of stopping alone, how many insertions are still to come, up to this many; its probability of 0
    is then that of stopping. 0 for the paper's binary head."""
    length_conditioned: bool = False
    """Let every step know how many insertions remain, so that a text fills the length it was given; needs a count head,
    which gives one before the first insertion."""
    slot_layers: int = 0
    """Transformer blocks in which a slot looks at everything on the canvas before a token is chosen for it; in the
    paper it knows its neighbours, as they were encoded, and the newest token."""
    truncated: bool = False
    """Ablation: clamp offsets to [-1, 1], so that only the direction is seen."""
    noglobal: bool = False
    """Ablation: slot vectors without the newest token."""

    def __post_init__(self) -> None:
        super().__post_init__()
        orders_of_name(self.order)
        if self.count_head < int(self.length_conditioned):
            least = "1 or more with length_conditioned" if self.length_conditioned else "0 or more"
            raise ValueError(f"count_head is {self.count_head}; expected {least}")
        if self.length_conditioned and self.noglobal:
            raise ValueError("length_conditioned adds a count to slots beside the newest token, which noglobal drops")
        if self.slot_layers < 0:
            raise ValueError(f"slot_layers is {self.slot_layers}; expected 0 or more")

    @property
    def orders(self) -> tuple[str, ...]:
        return orders_of_name(self.order)

    @property
    def longest(self) -> int | None:
        return self.count_head if self.length_conditioned else None


@dataclass(frozen=True)
class InsNetObjective(FamilyObjective):
    """How many insertions share a round (section 3.3)."""

    tau: tuple[float, ...] = (-math.inf,)
    """Nats of likelihood that a token may lose by going in a round earlier. A text draws one of these at every visit,
    so that one model learns several modes: -inf is one insertion per round, inf is all that fits (InsNet-uniform).
    Repeat a value to draw it more often."""

    def __post_init__(self) -> None:
        if not self.tau or any(math.isnan(value) for value in self.tau):
            raise ValueError(f"tau is {list(self.tau)}; expected one or more numbers, such as [10.0] or [-inf, 3.0]")

    @property
    def merges_rounds(self) -> bool:
        """Whether any text may have more than one insertion per round."""
        return any(value > -math.inf for value in self.tau)

    @property
    def needs_likelihoods(self) -> bool:
        """Whether rounds depend on how likely the model finds a token in them."""
        return any(math.isfinite(value) for value in self.tau)

    def tau_of_rows(self, seeds: Tensor) -> Tensor | None:
        """The tolerance (B,) of texts with these seeds (B,); None if all insertions go one by one."""
        if not self.merges_rounds:
            return None
        choices = torch.tensor(self.tau, dtype=torch.float32).to(seeds.device, non_blocking=True)
        return choices[(uniform(Purpose.TAU, seeds) * len(self.tau)).long()]
