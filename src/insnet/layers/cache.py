"""Keys and values of tokens already encoded, in stores that are about as long as the texts.

Shapes: B rows, N layers, H heads, C entries, D/H head width, Q new tokens.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

_STEP = 32  # entries that a store grows by: few, since all rows of the longest text's length are stored and copied


def entries_for(tokens: int) -> int:
    """How many entries a store for so many tokens has, the last of them a waste bin for rows that are full.

    >>> entries_for(31), entries_for(32)
    (32, 64)
    """
    return (tokens // _STEP + 1) * _STEP


def with_room(store: Tensor, tokens: int) -> Tensor:
    """A store (..., C, W) for so many tokens: this one, or a longer copy."""
    if tokens < store.shape[-2]:
        return store
    return F.pad(store, (0, 0, 0, entries_for(tokens) - store.shape[-2]))


@dataclass(frozen=True)
class KeyValueCache:
    """What every layer has seen of every row. Only appended to: entry t never changes once written."""

    keys: Tensor
    """(B, N, H, C, D/H)"""
    values: Tensor
    """(B, N, H, C, D/H)"""

    @classmethod
    def empty(cls, rows: int, layers: int, heads: int, entries: int, head_width: int, like: Tensor) -> "KeyValueCache":
        """So many entries a row, of `like`'s type and device."""
        shape = (rows, layers, heads, entries, head_width)
        return cls(like.new_zeros(shape), like.new_zeros(shape))

    def with_room(self, tokens: int) -> "KeyValueCache":
        """A cache for so many tokens a row: this one, or a longer copy."""
        return KeyValueCache(with_room(self.keys, tokens), with_room(self.values, tokens))

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
        return self.at(layer, used)

    def at(self, layer: int, used: int) -> tuple[Tensor, Tensor]:
        """The first `used` keys and values (B, H, K, D/H) of `layer`."""
        return self.keys[:, layer, :, :used], self.values[:, layer, :, :used]
