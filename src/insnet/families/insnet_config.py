"""Size and switches of an InsNet; what the paper has is the default."""

from dataclasses import dataclass

from insnet.families.generator import FamilyConfig
from insnet.insertion.order import orders_of_name


@dataclass(frozen=True)
class InsNetConfig(FamilyConfig):
    """Size and switches of an InsNet."""

    order: str = "random"
    """The order in which training inserts; one of insnet.insertion.order.ORDERS. Several can be joined by +, such as
    left_to_right+random_words: each text is learned in one of them, and the model is told which. The first is for
    inserting one by one, the last for parallel decoding and layered training."""
    count_head: int = 0
    """Predict, instead of stopping alone, how many insertions are still to come, up to this many; its probability of 0
    is then that of stopping. 0 for the paper's binary head."""
    length_conditioned: bool = False
    """Tell every step how many insertions are left, so that a text fills the length it was given; needs a count head,
    which gives one before the first insertion."""
    countdown: bool = False
    """Tell every inserted token, too, how many come after it, so that the encoder knows as well as the slots how much
    of the length is left; needs length_conditioned."""
    slot_queries: bool = False
    """Let the newest token, and the count if it is told, prefer some slots to others; in the paper they only add to
    all slots alike."""
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
        if self.countdown and not self.length_conditioned:
            raise ValueError("countdown tells tokens how much of a length is left; it needs length_conditioned")
        if self.slot_queries and self.noglobal:
            raise ValueError("slot_queries are asked by the newest token, which noglobal drops")
        if self.length_conditioned and self.noglobal:
            raise ValueError("length_conditioned tells slots their count beside the newest token, which noglobal drops")
        if self.slot_layers < 0:
            raise ValueError(f"slot_layers is {self.slot_layers}; expected 0 or more")

    @property
    def orders(self) -> tuple[str, ...]:
        return orders_of_name(self.order)

    @property
    def longest(self) -> int | None:
        return self.count_head if self.length_conditioned else None
