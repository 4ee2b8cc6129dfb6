"""The canvas, the edits made to it, and `apply`: the one place where a text is changed.

Shapes: B rows, L places in reading order (capacity; `length` says how many are used), E edits per row.
Slot s is the gap right of place s; <bos> stands at place 0 and <eos> at the last, so no slot lies outside them.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

INSERTED = -1  # the origin of a token that was not given
NOTHING = -1  # in place of a token: no edit
CLOSE = -2  # in place of a token: this slot stays empty from now on


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
        return Canvas(
            F.pad(self.tokens, (0, extra)),
            F.pad(self.origin, (0, extra), value=INSERTED),
            F.pad(self.closed_after, (0, extra), value=False),
            self.length,
        )

    def select(self, rows: Tensor) -> "Canvas":
        """The texts of some rows, repeats allowed."""
        return Canvas(self.tokens[rows], self.origin[rows], self.closed_after[rows], self.length[rows])

    def is_slot(self) -> Tensor:
        """True (B, L) at places that have a slot to their right."""
        return torch.arange(self.capacity, device=self.length.device)[None, :] < self.length[:, None] - 1

    def open_slots(self) -> Tensor:
        """True (B, L) at slots that take an insertion."""
        return self.is_slot() & ~self.closed_after

    def next_open_slot(self, start: Tensor, longest: int) -> Tensor:
        """The first open slot (B,) from some slot (B,) on, no row having more places than `longest`; where there is
        none, the last slot."""
        slot = torch.arange(longest, device=start.device)
        is_open = self.open_slots()[:, :longest] & (slot >= start[:, None])
        return torch.where(is_open.any(dim=1), is_open.long().argmax(dim=1), self.length - 2)


@dataclass(frozen=True)
class Edits:
    """What one step does to every row, in this order: a parent is taken, tokens are deleted, others put in."""

    slot: Tensor
    """(B, E) slots on the canvas without what is deleted; several tokens in one slot land left to right."""
    token: Tensor
    """(B, E) the ids put there; NOTHING where a row has fewer than E edits, CLOSE where a slot is closed."""
    log_prob: Tensor
    """(B, E) of slot and token under the untruncated model, given that the row goes on; 0 where nothing is put."""
    stop_log_prob: Tensor
    """(B,) of going on, or of stopping where the row is finished; 0 where a bound decided that."""
    finished: Tensor
    """(B,) true where the row ends here: it puts nothing."""
    cut: Tensor | None = None
    """(B,) true where only the limit on tokens ends the row; None for nowhere."""
    deleted: Tensor | None = None
    """(B, L) true at places whose tokens are removed; None for nowhere."""
    parent: Tensor | None = None
    """(B,) the row that each row goes on from, as in a beam search; None for itself."""

    @cached_property
    def is_put(self) -> Tensor:
        """True (B, E) where a token is put."""
        return self.token >= 0

    def puts(self) -> Tensor:
        """True (B, E) where a token is put."""
        return self.is_put

    def only(self, is_active: Tensor) -> "Edits":
        """The same for active rows (B,); the others are finished and left alone."""
        is_over = ~is_active
        deleted = None if self.deleted is None else self.deleted & is_active[:, None]
        token = self.token.masked_fill(is_over[:, None], NOTHING)
        return replace(self, token=token, finished=self.finished | is_over, deleted=deleted)

    def select(self, rows: Tensor) -> "Edits":
        """The edits of some rows."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: value[rows] for name, value in values.items() if value is not None})

    def left_to_right(self) -> "Edits":
        """The same edits in reading order, rows without an edit last."""
        if self.slot.shape[1] == 1:
            return self
        key = self.slot.masked_fill(self.token == NOTHING, torch.iinfo(self.slot.dtype).max)
        order = key.argsort(dim=1, stable=True)
        slot, token, log_prob = (values.gather(1, order) for values in (self.slot, self.token, self.log_prob))
        return replace(self, slot=slot, token=token, log_prob=log_prob)


def apply(canvas: Canvas, edits: Edits, *tables: tuple[Tensor, Tensor | float]) -> tuple[Canvas, list[Tensor]]:
    """The canvas after the edits, and a family's own tables (B, L), each with what a new token gets: (B, E) or a
    number. The canvas must have room for the edits (`with_capacity` makes some); `edits.parent` is not looked at.

    >>> canvas = Canvas(torch.tensor([[1, 7, 2, 0, 0]]), torch.tensor([[-1, 0, -1, -1, -1]]),
    ...                 torch.zeros(1, 5, dtype=torch.bool), torch.tensor([3]))
    >>> edits = Edits(torch.tensor([[1, 0]]), torch.tensor([[9, 8]]), torch.zeros(1, 2), torch.zeros(1),
    ...               torch.tensor([False]))
    >>> apply(canvas, edits)[0].tokens.tolist()
    [[1, 8, 7, 9, 2]]
    """
    values: list[tuple[Tensor, Tensor | float]] = [
        (canvas.tokens, edits.token),
        (canvas.origin, INSERTED),
        (canvas.closed_after, False),
        *tables,
    ]
    if edits.deleted is not None:
        canvas = replace(canvas, length=canvas.length - edits.deleted.sum(dim=1))
        values = [(_without(edits.deleted, canvas.length, *pair), pair[1]) for pair in values]
    place = torch.arange(canvas.capacity, device=canvas.length.device)
    puts, own_place = edits.puts(), place_of_edits(edits)  # (B, E)
    is_new = _any_of(place, own_place, puts)  # (B, L)
    source = (place - is_new.cumsum(dim=1)).clamp_min(0)  # (B, L): of new tokens, a neighbour's
    new_place = own_place if puts.shape[1] == 1 else torch.where(puts, own_place, canvas.capacity)
    tokens, origin, closed, *moved = (_moved(*pair, source, is_new, new_place) for pair in values)
    closed = closed | _any_of(place, own_place - 1, edits.token == CLOSE)
    return Canvas(tokens, origin, closed, canvas.length + puts.sum(dim=1)), moved


def _any_of(place: Tensor, places: Tensor, counts: Tensor) -> Tensor:
    """True (B, L) at the places (B, E) that count (B, E)."""
    if places.shape[1] == 1:
        return (place == places) & counts
    return ((place == places[:, :, None]) & counts[:, :, None]).any(dim=1)


def _moved(old: Tensor, new: Tensor | float, source: Tensor, is_new: Tensor, new_place: Tensor) -> Tensor:
    """A table (B, L) after insertions, new tokens having `new`."""
    moved = old.gather(1, source)
    if not isinstance(new, Tensor):
        return moved.masked_fill(is_new, new)
    if new.shape[1] == 1:
        return torch.where(is_new, new.to(old.dtype), moved)
    return F.pad(moved, (0, 1)).scatter(1, new_place, new.to(old.dtype))[:, :-1]


def _without(deleted: Tensor, length: Tensor, table: Tensor, new: Tensor | float) -> Tensor:
    """A table (B, L) whose deleted places are closed up, the text's `length` (B,) being what is left."""
    kept_first = deleted.long().argsort(dim=1, stable=True)
    is_behind = torch.arange(table.shape[1], device=table.device) >= length[:, None]
    return table.gather(1, kept_first).masked_fill(is_behind, 0 if isinstance(new, Tensor) else new)


def place_of_edits(edits: Edits) -> Tensor:
    """Where each new token (B, E) stands once all edits of the step are done."""
    if edits.slot.shape[1] == 1:
        return edits.slot + 1
    index = torch.arange(edits.slot.shape[1], device=edits.slot.device)
    earlier, own = edits.slot[:, :, None], edits.slot[:, None, :]  # [e', e]
    goes_left = (earlier < own) | ((earlier == own) & (index[:, None] < index[None, :]))
    return edits.slot + 1 + (goes_left & edits.puts()[:, :, None]).sum(dim=1)
