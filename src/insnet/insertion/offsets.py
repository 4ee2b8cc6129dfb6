"""Offset compression: where every token stands, seen by a later one at the moment that one was inserted.

Shapes: B rows, T steps in insertion order, C capacity of a growing canvas (C >= T), E insertions per round.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def offsets_of_order(position_of_step: Tensor, dtype: torch.dtype = torch.int16) -> Tensor:
    """The (B, T, T) matrix of signed reading distances, key minus query, lower triangle; above it zeros.

    Row t is what token t sees: its distance to every token inserted before it, counted on the canvas just after its
    own insertion. Later insertions never change a row, which is why keys and values can be cached (section 3.1).
    No sort: the rank of token j after step t is how many of the tokens 0..t stand left of it, a running sum.

    The paper's example, "I have a pen ." inserted as <bos> <eos> have pen I a . ; the row of "a":
    >>> offsets_of_order(torch.tensor([[0, 6, 2, 4, 1, 3, 5]]))[0, 5].tolist()
    [-3, 2, -1, 1, -2, 0, 0]
    """
    rank = ranks_of_order(position_of_step, dtype)
    own_rank = rank.diagonal(dim1=1, dim2=2)[:, :, None]  # (B, T, 1)
    return (rank - own_rank).tril()


def ranks_of_order(position_of_step: Tensor, dtype: torch.dtype = torch.int16) -> Tensor:
    """The rank of token j after step t, as [t, j] (B, T, T); above the diagonal the rank that it would have.

    >>> ranks_of_order(torch.tensor([[0, 6, 2, 4, 1, 3, 5]]))[0, 5].tolist()
    [0, 5, 2, 4, 1, 3, 5]
    """
    assert position_of_step.dim() == 2 and position_of_step.shape[1] <= torch.iinfo(dtype).max
    stands_left = position_of_step[:, :, None] < position_of_step[:, None, :]  # (B, T, T): [k, j], k left of j
    return stands_left.cumsum(dim=1, dtype=dtype)


def offsets_of_slots(rank: Tensor, slot: Tensor) -> Tensor:
    """The offsets (..., K) that a token in a slot (..., 1) would see, to tokens of these ranks (..., K) on the canvas.

    >>> offsets_of_slots(torch.tensor([[0, 3, 1, 2]]), torch.tensor([[1]])).tolist()   # right of the place 1
    [[-2, 2, -1, 1]]
    """
    return rank - slot - (rank <= slot).to(rank.dtype)


def insert_into_ranks(rank_of_step: Tensor, length: Tensor, slot: Tensor, inserts: Tensor) -> tuple[Tensor, Tensor]:
    """The ranks (B, C) after a round of insertions, and those (B, E, C) that each new token sees, its own at its step;
    O(n) per token.

    `rank_of_step` (B, C) holds each token's place on the canvas in insertion order, `length` (B,) how many there are,
    `slot` (B, E) the gaps right of a place, before the round and from left to right; a row inserts as many as `inserts`
    (B, E) says, which come first. They go in one after the other: each sees those to its left. What stands at steps
    that are still to come means nothing.

    >>> rank, seen = insert_into_ranks(
    ...     torch.tensor([[0, 1, 0]]), torch.tensor([2]), torch.tensor([[0]]), torch.tensor([[True]]))
    >>> rank.tolist(), seen.tolist()
    ([[0, 2, 1]], [[[0, 2, 1]]])
    """
    if slot.shape[1] == 1:
        return _insert_one(rank_of_step, length[:, None], slot, inserts)
    capacity, dtype = rank_of_step.shape[1], rank_of_step.dtype
    nothing, number = ~inserts, torch.arange(slot.shape[1], device=slot.device)  # (B, E), (E,)
    place = (slot + 1 + number).to(dtype)  # (B, E): where each new token stands; later ones stand right of it
    is_shifted = rank_of_step[:, None] > slot.masked_fill(nothing, capacity)[:, :, None]  # (B, E, C)
    seen = rank_of_step[:, None] + is_shifted.cumsum(dim=1, dtype=dtype)  # (B, E, C)
    step = (length[:, None] + number).masked_fill(nothing, capacity)  # (B, E): of each new token, or behind the end
    column, place = (values[:, None].expand(-1, len(number), -1) for values in (step, place))  # (B, E, E)
    seen = F.pad(seen, (0, 1)).scatter(2, column, place)[:, :, :-1]
    return seen[:, -1], seen


def _insert_one(rank_of_step: Tensor, length: Tensor, slot: Tensor, inserts: Tensor) -> tuple[Tensor, Tensor]:
    """The same for one insertion per row, in fewer operations; length, slot, inserts (B, 1)."""
    place = (slot + 1).to(rank_of_step.dtype)
    step = torch.arange(rank_of_step.shape[1], device=slot.device)
    is_shifted = (rank_of_step >= place) & (step < length) & inserts  # (B, C)
    rank = torch.where((step == length) & inserts, place, rank_of_step + is_shifted)
    return rank, rank[:, None]


def step_at_position(rank_of_step: Tensor, length: Tensor) -> Tensor:
    """The inverse map (B, C): which step put the token that stands at each place; places past `length` hold 0.

    >>> step_at_position(torch.tensor([[0, 3, 1, 2, 0]]), torch.tensor([4])).tolist()
    [[0, 2, 3, 1, 0]]
    """
    step = torch.arange(rank_of_step.shape[1], device=rank_of_step.device).expand_as(rank_of_step)  # (B, C)
    is_present = step < length[:, None]
    place = torch.where(is_present, rank_of_step.long(), step)  # absent steps write outside the canvas
    return torch.zeros_like(step).scatter(1, place, torch.where(is_present, step, 0))
