"""What a family holds possible at a state: log-probabilities of the whole model. Nothing is decided here.

Shapes: B rows, S slots, E slots chosen per row, N of them in all, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.insertion.canvas import CLOSE, NOTHING


@dataclass(frozen=True)
class ChosenSlots:
    """Slots to fill in one step; rows may have different numbers of them."""

    slot: Tensor
    """(B, E), NOTHING where a row has fewer than E."""
    row: Tensor
    """(N,) the row of each chosen slot."""
    column: Tensor | None
    """(N,) and where it stands among its row's; None if each row has one."""

    @classmethod
    def of(cls, slot: Tensor) -> "ChosenSlots":
        """From slots (B, E). One per row are all taken for slots: nothing has to be asked of the device."""
        rows, columns = slot.shape
        if columns == 1:
            row = torch.arange(rows, device=slot.device)
            return cls(slot, row, None)
        return cls(slot, *(slot != NOTHING).nonzero(as_tuple=True))

    @property
    def is_one_per_row(self) -> bool:
        """Whether every row has just one."""
        return self.column is None

    def flat(self) -> Tensor:
        """The chosen slots (N,)."""
        return self.of_each(self.slot)

    def of_each(self, values: Tensor) -> Tensor:
        """The values (N, ...) of the chosen slots among those of all (B, E, ...)."""
        return values[:, 0] if self.column is None else values[self.row, self.column]

    def spread(self, values: Tensor, fill: float) -> Tensor:
        """Values (N,) of the chosen slots as (B, E)."""
        if self.column is None:
            return values[:, None]
        everywhere = torch.full(self.slot.shape, fill, dtype=values.dtype, device=values.device)
        return everywhere.index_put((self.row, self.column), values)


@dataclass(frozen=True)
class Insertions:
    """One more token: whether, where, which."""

    slots: Tensor
    """(B, S) of each slot, given that the row goes on; -inf where there is none. Closed slots have mass, too."""
    tokens: Callable[[ChosenSlots], Tensor]
    """(N, V) of the tokens in chosen slots, or (N, V + 1) if something may be `empty`. Computed only when it is asked
    for, since a vocabulary is large and few slots are chosen."""
    stop: Tensor | None = None
    """(B,) of ending here; None for a family whose texts end when nothing more goes into any slot."""
    go: Tensor | None = None
    """(B,) of going on: as exact as `stop` where that is nearly 1."""
    empty: int | None = None
    """What the last column of `tokens` means: NOTHING in this round, or CLOSE for good. None without such a column."""
    counts: Tensor | None = None
    """(B, N) of how many insertions are still to come, from 0 on; None where none were learned."""
    is_single: bool = False
    """Each row has one slot that may be filled, the others being closed for now or for good."""
    is_joint: bool = False
    """Slot and token are one choice, made among all pairs; else a slot is chosen first and then its token. A family
    without `stop` is asked for all slots anyway."""

    def __post_init__(self) -> None:
        assert (self.stop is None) == (self.go is None)
        assert self.empty in (None, NOTHING, CLOSE)


Offer = Insertions
"""Whatever a family may offer; decoding knows how to decide each kind."""
