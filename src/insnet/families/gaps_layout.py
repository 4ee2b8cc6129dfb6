"""Texts and what is given of them as rows for one pass: several texts to a row, so that little is padding.

Shapes: B texts, L places in reading order, R rows of W slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.layers.gaps import Standing
from insnet.text.batching import TokenBatch

_WIDTH = 128  # slots of a row, unless a text needs more
_WIDER_BY = 64
_NO_TEXT = -1


@dataclass(frozen=True)
class Layout:
    """A batch in rows: of each text first what is given, as it stands ahead, then its passage."""

    tokens: Tensor
    """(R, W) ids."""
    standing: Standing
    """(R, W)"""
    is_passed: Tensor
    """(R, W) true for given tokens in a passage."""
    slot_of_place: Tensor
    """(B, L) where, among all R * W slots, each place of a text's passage is; one more where there is none."""
    has_ahead: bool
    """Whether anything is given in any text."""

    def spread(self, values: Tensor, fill: int) -> Tensor:
        """Values (B, L) of the texts' places as (R, W)."""
        flat = values.new_full((self.tokens.numel() + 1,), fill)
        return flat.scatter(0, self.slot_of_place.flatten(), values.flatten())[:-1].view(self.tokens.shape)


def laid_out(batch: TokenBatch, typed: Tensor) -> Layout:
    """The batch in rows. `typed` (V,) is how a token that begins a text is given: ahead it stands as people type it.

    The last token, <eos>, is in no row: nothing is decided behind it. Asks the device once, for the texts' sizes."""
    place = torch.arange(batch.tokens.shape[1], device=batch.tokens.device).expand(batch.tokens.shape)
    is_passage = place < batch.lengths[:, None] - 1  # (B, L)
    is_given = batch.given & is_passage & (place > 0)
    count = is_given.cumsum(dim=1)  # (B, L) given tokens up to each place
    most = count[:, -1]
    sizes, counts = torch.stack([batch.lengths - 1 + most, most]).tolist()
    starts, rows, width = _starts(sizes)
    first = torch.tensor(starts, device=place.device)[:, None]
    slots = rows * width
    slot_of_place = torch.where(is_passage, first + most[:, None] + place, slots)
    slot_ahead = torch.where(is_given, first + count - 1, slots)
    both = torch.cat([slot_of_place, slot_ahead], dim=1).flatten()

    def filled(passage: Tensor, ahead: Tensor, fill: int) -> Tensor:
        flat = torch.full((slots + 1,), fill, dtype=passage.dtype, device=passage.device)
        return flat.scatter(0, both, torch.cat([passage, ahead], dim=1).flatten())[:-1].view(rows, width)

    number = torch.arange(len(starts), device=place.device)[:, None].expand_as(place)
    no, yes = torch.zeros_like(is_given), torch.ones_like(is_given)
    standing = Standing(
        is_ahead=filled(no, yes, 0),
        place=filled(place, place, 0),
        given=filled(count, count, 0),
        text=filled(number, number, _NO_TEXT),
    )
    ahead = torch.where(place == 1, typed[batch.tokens], batch.tokens)
    return Layout(filled(batch.tokens, ahead, 0), standing, filled(is_given, no, 0), slot_of_place, any(counts))


def _starts(sizes: Sequence[int]) -> tuple[list[int], int, int]:
    """The slot that each text of some size begins at, the number of rows and their width: a text goes into the newest
    row, or where it does not fit, a new one.

    >>> _starts([100, 20, 20])
    ([0, 100, 128], 2, 128)
    """
    width = max(_WIDTH, -(-max(sizes) // _WIDER_BY) * _WIDER_BY)
    starts, row, used = [], 0, 0
    for size in sizes:
        if used + size > width:
            row, used = row + 1, 0
        starts.append(row * width + used)
        used += size
    return starts, row + 1, width
