"""The canvas, the edits made to it, and `apply`: the one place where a text is changed.

Shapes: B rows, L places in reading order (capacity; `length` says how many are used), E edits a row.
Slot s is the gap right of place s; <bos> stands at place 0 and <eos> at the last, so no slot lies outside them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

INSERTED = -1  # the origin of a token that was not given


@dataclass(frozen=True)
class Canvas:
    """Partial texts in reading order."""

    tokens: Tensor
    """(B, L) ids, <bos> ... <eos>, zeros behind."""
    origin: Tensor
    """(B, L) which given stretch of text a token belongs to, or INSERTED."""
    closed_after: Tensor
    """(B, L) true where the slot right of the token takes no insertion."""
    length: Tensor
    """(B,) places in use."""

    @property
    def capacity(self) -> int:
        return self.tokens.shape[1]

    def with_capacity(self, capacity: int) -> "Canvas":
        """The same canvas with room for `capacity` places."""
        extra = capacity - self.capacity
        assert extra >= 0

        def pad(values: Tensor, fill: int) -> Tensor:
            return torch.nn.functional.pad(values, (0, extra), value=fill)

        return Canvas(pad(self.tokens, 0), pad(self.origin, INSERTED), pad(self.closed_after, False), self.length)

    def is_slot(self) -> Tensor:
        """True (B, L) at places that have a slot to their right."""
        return torch.arange(self.capacity, device=self.length.device)[None, :] < self.length[:, None] - 1

    def open_slots(self) -> Tensor:
        """True (B, L) at slots that take an insertion."""
        return self.is_slot() & ~self.closed_after


@dataclass(frozen=True)
class Edits:
    """What one step does to every row. All log-probabilities are the untruncated model's."""

    slot: Tensor
    """(B, E) slots on the canvas before the step; several in one slot land left to right."""
    token: Tensor
    """(B, E) the ids put there; NOTHING where a row has fewer than E edits."""
    log_prob: Tensor
    """(B, E) of slot and token, given that the row goes on; 0 where nothing is put."""
    stop_log_prob: Tensor
    """(B,) of going on, or of stopping where the row is finished."""
    finished: Tensor
    """(B,) true where the row ends here, its edits being nothing."""

    NOTHING = -1

    @classmethod
    def none(cls, stop_log_prob: Tensor) -> "Edits":
        """Those of rows that all end here, with the log-probability (B,) of doing so."""
        ends = torch.ones_like(stop_log_prob, dtype=torch.bool)
        nothing = torch.full_like(ends, cls.NOTHING, dtype=torch.int64)[:, None]
        return cls(torch.zeros_like(nothing), nothing, torch.zeros_like(stop_log_prob)[:, None], stop_log_prob, ends)

    def puts(self) -> Tensor:
        """True (B, E) where a token is put."""
        return self.token != self.NOTHING


def apply(canvas: Canvas, edits: Edits) -> Canvas:
    """The canvas after the edits; its capacity must have room for them (`with_capacity` makes some).

    >>> canvas = Canvas(torch.tensor([[1, 7, 2, 0, 0]]), torch.tensor([[-1, 0, -1, -1, -1]]),
    ...                 torch.zeros(1, 5, dtype=torch.bool), torch.tensor([3]))
    >>> edits = Edits(torch.tensor([[1, 0]]), torch.tensor([[9, 8]]), torch.zeros(1, 2), torch.zeros(1),
    ...               torch.tensor([False]))
    >>> apply(canvas, edits).tokens.tolist()
    [[1, 8, 7, 9, 2]]
    """
    puts = edits.puts()  # (B, E)
    place = torch.arange(canvas.capacity, device=puts.device)  # (L,)
    shift = ((edits.slot[:, None, :] < place[None, :, None]) & puts[:, None, :]).sum(dim=2)  # (B, L)
    is_used = place[None, :] < canvas.length[:, None]
    old_place = torch.where(is_used, place[None, :] + shift, canvas.capacity)
    new_place = torch.where(puts, place_of_edits(edits), canvas.capacity)  # (B, E)

    def move(old: Tensor, new: Tensor, fill: int) -> Tensor:
        moved = torch.full((old.shape[0], canvas.capacity + 1), fill, dtype=old.dtype, device=old.device)
        return moved.scatter(1, old_place, old).scatter(1, new_place, new.to(old.dtype))[:, :-1]

    return Canvas(
        tokens=move(canvas.tokens, edits.token, 0),
        origin=move(canvas.origin, torch.full_like(edits.token, INSERTED), INSERTED),
        closed_after=move(canvas.closed_after, torch.zeros_like(puts), False),
        length=canvas.length + puts.sum(dim=1),
    )


def place_of_edits(edits: Edits) -> Tensor:
    """Where each new token (B, E) stands once all edits of the step are done."""
    index = torch.arange(edits.slot.shape[1], device=edits.slot.device)
    earlier, own = edits.slot[:, :, None], edits.slot[:, None, :]  # [e', e]
    goes_left = (earlier < own) | ((earlier == own) & (index[:, None] < index[None, :]))
    return edits.slot + 1 + (goes_left & edits.puts()[:, :, None]).sum(dim=1)
