"""Keys and values of tokens already encoded, in stores that are about as long as the texts.

Shapes: B rows, N layers, G key heads, C entries, W head width, Q new tokens, T new tokens of all rows.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from insnet.layers.packing import Packing

Memory = tuple[Tensor, Tensor]
"""Keys and values (B, G, K, W)."""

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

    store: Tensor
    """(B, N, 2, G, C, W) keys and values."""

    @classmethod
    def empty(cls, rows: int, layers: int, heads: int, entries: int, head_width: int, like: Tensor) -> "KeyValueCache":
        """So many entries per row, for so many heads of keys, of `like`'s type and device."""
        return cls(like.new_zeros(rows, layers, 2, heads, entries, head_width))

    def with_room(self, tokens: int) -> "KeyValueCache":
        """A cache for so many tokens per row: this one, or a longer copy."""
        return KeyValueCache(with_room(self.store, tokens))

    def memory(self, used: int) -> list[Memory]:
        """The first `used` keys and values (B, G, K, W) of every layer: views, which show what is written later."""
        layers = self.store.narrow(4, 0, used).flatten(1, 2).unbind(1)
        return list(zip(layers[::2], layers[1::2], strict=True))


@dataclass(frozen=True)
class Append:
    """Where new tokens go in a cache, and how much of it they look at.

    Written in place: an earlier state keeps its meaning, because it never looks past its own length.
    """

    cache: KeyValueCache
    entry: Tensor
    """(B, Q) of each new token; the last one, a waste bin, for rows that are full."""
    used: int
    """How many entries any row needs, the new ones included."""
    at: tuple[Tensor, Tensor]
    """Row and entry of each token that is written: (B, 1) and (B, Q), or (T,) and (T,) if they are packed."""
    stores: tuple[Tensor, ...]
    """(B, C, 2, G, W) of each layer, to be written to."""
    packing: Packing | None = None
    """Which places hold a new token, if rows have different numbers of them."""

    @classmethod
    def after(
        cls, cache: KeyValueCache, start: Tensor, tokens: int, used: int, packing: Packing | None = None
    ) -> "Append":
        """So many new tokens per row, from the entries `start` (B,) on."""
        entry = start[:, None] + torch.arange(tokens, device=start.device)
        entry = entry.clamp_max(cache.store.shape[4] - 1)
        if packing is not None:
            at = packing.row, entry[packing.row, packing.column]
        else:
            at = torch.arange(start.shape[0], device=start.device)[:, None], entry
        return cls(cache, entry, used, at, cache.store.movedim(4, 2).unbind(1), packing)

    def hides(self) -> Tensor:
        """True (B, Q, K) where a new token must not look: at entries behind its own."""
        return torch.arange(self.used, device=self.entry.device) > self.entry[:, :, None]

    def own(self, seen: Tensor) -> Tensor:
        """What each new token sees at its own entry (B, Q, 1), of all that it sees (B, Q, K)."""
        return seen.gather(2, self.entry.clamp_max(seen.shape[2] - 1)[:, :, None])

    def pack(self, values: Tensor) -> Tensor:
        """Values (N, ...) of the new tokens, of those at all places (B, Q, ...); N = B * Q, or fewer if packed."""
        return self.packing.pack(values) if self.packing else values.flatten(0, 1)

    def write(self, layer: int, keys_values: Tensor) -> None:
        """Stores new tokens' keys and values of a layer (N, 2 * G, W)."""
        self.put(self.stores[layer], keys_values)

    def put(self, store: Tensor, values: Tensor) -> None:
        """Writes values (N, ...) of new tokens into a store (B, C, ...). Gradients end here: this is for decoding."""
        values = values.detach() if values.requires_grad else values
        store[self.at] = values.view(*self.at[1].shape, *store.shape[2:]).to(store.dtype)
