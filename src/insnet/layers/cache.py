"""Keys and values of tokens already encoded.

Shapes: B rows, N layers, H heads, C capacity, D/H head width, Q new tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeyValueCache:
    """What every layer has seen of every row. Only appended to: entry t never changes once written."""

    keys: Tensor
    """(B, N, H, C, D/H)"""
    values: Tensor
    """(B, N, H, C, D/H)"""

    @classmethod
    def empty(cls, rows: int, layers: int, heads: int, capacity: int, head_width: int, like: Tensor) -> "KeyValueCache":
        """Room for `capacity` tokens a row, of `like`'s type and device."""
        shape = (rows, layers, heads, capacity, head_width)
        return cls(like.new_zeros(shape), like.new_zeros(shape))

    def append(self, layer: int, keys: Tensor, values: Tensor, start: Tensor, used: int) -> tuple[Tensor, Tensor]:
        """The first `used` keys and values of `layer`, after writing new ones (B, H, Q, D/H) at `start` (B,).

        Written in place: an earlier state keeps its meaning, because it never looks past its own length. The last
        entry is a waste bin for rows that are full.
        """
        place = start[:, None] + torch.arange(keys.shape[2], device=start.device)  # (B, Q)
        place = place.clamp_max(self.keys.shape[3] - 1)
        index = place[:, None, :, None].expand_as(keys)
        for store, new in ((self.keys, keys), (self.values, values)):
            store[:, layer].scatter_(2, index, new.to(store.dtype))
        return self.keys[:, layer, :, :used], self.values[:, layer, :, :used]
