"""Multi-head self-attention, with the paper's offset term or with rotary positions, in one pass or against a cache.

Shapes: B rows, Q queries, K keys, D width, H heads, R = 2 * reach + 1 offsets from -reach to +reach.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.layers.cache import KeyValueCache
from insnet.layers.packing import Packing


@dataclass(frozen=True)
class CachePlace:
    """Where a call reads and writes its keys and values."""

    cache: KeyValueCache
    layer: int
    start: Tensor
    """(B,) the entry of the first new token."""
    used: int
    """How many entries any row needs, the new ones included."""
    packing: Packing | None = None
    """How hidden states (N, D) are packed; None for (B, Q, D)."""


class Projections(nn.Module):
    """Queries, keys, values and output of a multi-head attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def split(self, hidden: Tensor, packing: Packing | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys, values, each (B, H, Q, D/H), of hidden states (B, Q, D) or packed ones (N, D)."""
        mixed = self.query_key_value(hidden)
        mixed = packing.unpack(mixed) if packing else mixed
        rows, queries, width = mixed.shape
        mixed = mixed.view(rows, queries, 3, self.heads, width // 3 // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4).unbind(0)
        return query, key, value

    def queries(self, hidden: Tensor) -> Tensor:
        """The queries (B, H, Q, D/H) alone."""
        return self._part(hidden, 0)

    def memory(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, K, D/H), of hidden states (B, K, D) that ask nothing."""
        return self._part(hidden, 1), self._part(hidden, 2)

    def _part(self, hidden: Tensor, number: int) -> Tensor:
        linear = self.query_key_value
        part = F.linear(hidden, linear.weight.chunk(3)[number], linear.bias.chunk(3)[number])
        return part.view(*part.shape[:2], self.heads, -1).transpose(1, 2)

    def merge(self, attended: Tensor, packing: Packing | None = None) -> Tensor:
        """The output (B, Q, D), or (N, D) if packed, from the heads (B, H, Q, D/H)."""
        joined = attended.transpose(1, 2).flatten(2)
        return self.output(packing.pack(joined) if packing else joined)  # type: ignore[no-any-return]


class OffsetAttention(nn.Module):
    """Section 3.1.3: A = Q'K + Q'P + u'K + v'P, where P projects a sinusoid of the offset between two tokens."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.projections = Projections(width, heads)
        self.position = nn.Linear(width, width, bias=False)  # W_{k,R}
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))  # u
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, width // heads))  # v
        self.dropout = dropout

    def position_keys(self, sinusoids: Tensor) -> Tensor:
        """P (H, D/H, R): the key of every offset."""
        heads = self.projections.heads
        return self.position(sinusoids).view(len(sinusoids), heads, -1).permute(1, 2, 0)  # type: ignore[no-any-return]

    def forward(
        self,
        hidden: Tensor,
        offset_index: Tensor,
        hides: Tensor,
        position_keys: Tensor,
        place: CachePlace | None = None,
    ) -> Tensor:
        """The attended (B, Q, D), packed if the place says so. `offset_index` (B, Q, K) points into R; `hides`
        (B, Q, K) marks keys not seen."""
        packing = place.packing if place else None
        query, key, value = self.projections.split(hidden, packing)  # (B, H, Q, D/H)
        if place is not None:
            key, value = place.cache.append(place.layer, key, value, place.start, place.used)
        return self.projections.merge(self.attend(query, key, value, offset_index, hides, position_keys), packing)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, offset_index: Tensor, hides: Tensor, position_keys: Tensor
    ) -> Tensor:
        """What queries (B, H, Q, D/H) get (B, H, Q, D/H) from keys and values (B, H, K, D/H)."""
        scale = 1 / math.sqrt(query.shape[-1])
        by_offset = _times_shared((query + self.position_bias) * scale, position_keys)  # (B, H, Q, R)
        index = offset_index[:, None].expand(-1, by_offset.shape[1], -1, -1)  # (B, H, Q, K)
        bias = by_offset.gather(3, index).masked_fill(hides[:, None], -math.inf)
        dropout = self.dropout if self.training else 0.0
        content_query = (query + self.content_bias).to(bias.dtype)
        key, value = key.to(bias.dtype), value.to(bias.dtype)
        return F.scaled_dot_product_attention(content_query, key, value, bias, dropout, scale=scale)


class SlotAttention(OffsetAttention):
    """The same, asked by slots, which are no tokens: keys and values are those of what stands on the canvas."""

    def forward(  # type: ignore[override]
        self,
        slots: Tensor,
        offset_index: Tensor,
        hides: Tensor,
        position_keys: Tensor,
        memory: tuple[Tensor, Tensor],
    ) -> Tensor:
        """The attended (B, Q, D) of slots (B, Q, D), offsets and what is hidden (B, Q, K) as above."""
        query = self.projections.queries(slots)
        return self.projections.merge(self.attend(query, *memory, offset_index, hides, position_keys))


def index_of_offsets(offsets: Tensor, position_keys: Tensor) -> Tensor:
    """Where offsets (B, Q, K) stand among the keys (..., R); those beyond their reach at its end."""
    reach = position_keys.shape[-1] // 2
    return offsets.long().clamp(-reach, reach) + reach


def _times_shared(query: Tensor, keys: Tensor) -> Tensor:
    """Products (B, H, Q, R) of queries (B, H, Q, D/H) with keys (H, D/H, R) that all rows share.

    For few queries a row `@` would copy the keys for each row, which takes 70 times as long as the product itself (one
    query, 64 rows, 550 offsets, one core).
    """
    return query @ keys if query.shape[2] > 8 else torch.einsum("bhqd,hdr->bhqr", query, keys)


class RotaryAttention(nn.Module):
    """Left-to-right attention with rotary positions: the autoregressive yardstick's."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.projections = Projections(width, heads)
        self.dropout = dropout

    def forward(
        self, hidden: Tensor, rotation: tuple[Tensor, Tensor], hides: Tensor | None, place: CachePlace | None = None
    ) -> Tensor:
        """The attended (B, Q, D). `hides` (B, Q, K) as above, or None for plain causal attention."""
        query, key, value = self.projections.split(hidden)
        query, key = rotate(query, rotation), rotate(key, rotation)
        if place is not None:
            key, value = place.cache.append(place.layer, key, value, place.start, place.used)
        dropout = self.dropout if self.training else 0.0
        seen = None if hides is None else ~hides[:, None]
        attended = F.scaled_dot_product_attention(query, key, value, seen, dropout, is_causal=hides is None)
        return self.projections.merge(attended)


def rotate(vectors: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Each pair of coordinates of (B, H, Q, D/H) turned by its position's angle."""
    cosine, sine = rotation  # (B, 1, Q, D/H/2)
    first, second = vectors.chunk(2, dim=-1)
    turned = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
    return turned.to(vectors.dtype)


def rotation_of_positions(positions: Tensor, head_width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines (B, 1, Q, D/H/2) for rotary positions (B, Q)."""
    angle = positions[:, None, :, None].double() * _frequencies(head_width, positions.device)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def reach_of(tokens: int, *, truncated: bool) -> int:
    """The largest offset among so many tokens, as a model sees it."""
    return 1 if truncated else max(tokens - 1, 1)


def sinusoids_of_offsets(reach: int, width: int, like: Tensor) -> Tensor:
    """Sines and cosines (R, D) of the offsets from -reach to +reach, less those of offset 0; index by adding `reach`.

    What all offsets have in common adds the same to all keys and is nothing to a softmax, so nothing holds it back:
    left in, it grew to hundreds of times the differences, which 16 bits then rounded away, and training diverged.
    """
    offset = torch.arange(-reach, reach + 1, device=like.device, dtype=torch.float64)
    angle = offset[:, None] * _frequencies(width, like.device)  # (R, D/2)
    return torch.cat([angle.sin(), angle.cos() - 1], dim=1).to(like.dtype)


def _frequencies(width: int, device: torch.device) -> Tensor:
    exponent = torch.arange(0, width, 2, device=device, dtype=torch.float64) / width
    return torch.pow(10_000.0, -exponent)
