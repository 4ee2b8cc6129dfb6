"""Order -> the slot and the neighbours of every step: what a teacher would play.

Shapes: B rows, T steps in insertion order. Step 0 puts <bos> at position 0, step 1 puts <eos> at the last position, so
every later token has a left and a right neighbour. Slot s of a canvas is the gap right of its place s.
"""

import torch
from torch import Tensor


def slot_of_step(position_of_step: Tensor) -> Tensor:
    """The slot (B, T) each token went into, counted on the canvas just before; -1 for <bos>, which has none.

    <bos> <eos> first, then "b", then "a" in front of it, then "c" at the end:
    >>> slot_of_step(torch.tensor([[0, 4, 2, 1, 3]])).tolist()
    [[-1, 0, 0, 0, 2]]
    """
    stands_left = position_of_step[:, :, None] < position_of_step[:, None, :]  # (B, T, T): [earlier, step]
    return stands_left.triu().sum(dim=1) - 1


def neighbours_of_step(position_of_step: Tensor) -> tuple[Tensor, Tensor]:
    """The steps (B, T) that had put the left and the right neighbour of each token when it was inserted.

    Meaningful from step 2 on.
    >>> left, right = neighbours_of_step(torch.tensor([[0, 4, 2, 1, 3]]))
    >>> left[0, 2:].tolist(), right[0, 2:].tolist()
    ([0, 0, 2], [1, 2, 1])
    """
    steps = position_of_step.shape[1]
    earlier = position_of_step[:, :, None]  # (B, T, 1): [k]
    own = position_of_step[:, None, :]  # (B, 1, T): [step]
    is_before = torch.ones(steps, steps, dtype=torch.bool, device=own.device).triu(1)  # [k, step]: k < step
    left = torch.where(is_before & (earlier < own), earlier, -1).argmax(dim=1)
    right = torch.where(is_before & (earlier > own), earlier, _beyond(position_of_step)).argmin(dim=1)
    return left, right


def right_neighbour_after_step(position_of_step: Tensor) -> Tensor:
    """The (B, T, T) steps whose token stands right of token i on the canvas after step t, as [t, i].

    Slots are named by their left token, so this is the list of all slots of all steps, in O(n^2). Entries with i > t
    and the column of <eos> mean nothing. One running minimum: the nearest position to the right, among tokens 0..t.

    >>> right_neighbour_after_step(torch.tensor([[0, 4, 2, 1, 3]]))[0, :, 0].tolist()   # what follows <bos>
    [0, 1, 2, 3, 3]
    """
    later = position_of_step[:, :, None]  # (B, T, 1): [k]
    own = position_of_step[:, None, :]  # (B, 1, T): [i]
    distance = torch.where(later > own, later, _beyond(position_of_step))  # (B, T, T): [k, i]
    return distance.cummin(dim=1).indices


def is_slot_after_step(lengths: Tensor, steps: int) -> Tensor:
    """Whether [t, i] of the matrix above is a slot (B, T, T): token i is there after step t and is not <eos>."""
    step = torch.arange(steps, device=lengths.device)
    is_there = (step[None, :] <= step[:, None]) & (step != 1)[None, :]  # (T, T): [t, i]
    return is_there[None] & (step[None, :, None] < lengths[:, None, None])


def _beyond(position_of_step: Tensor) -> int:
    """A position right of every real one."""
    return torch.iinfo(position_of_step.dtype).max
