"""A stack of pre-norm transformer blocks; one with offsets (InsNet), one with rotary positions (left to right).

Shapes: B rows, Q new tokens, K keys, D width.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from insnet.layers.attention import (
    CachePlace,
    OffsetAttention,
    RotaryAttention,
    index_of_offsets,
    reach_of,
    rotation_of_positions,
    sinusoids_of_offsets,
)
from insnet.layers.cache import KeyValueCache
from insnet.layers.packing import Packing


@dataclass(frozen=True)
class TransformerShape:
    """The size of a stack."""

    width: int
    layers: int
    heads: int
    dropout: float

    def __post_init__(self) -> None:
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise ValueError(f"width {self.width} must be an even multiple of heads {self.heads}")
        if self.layers < 1:
            raise ValueError(f"layers is {self.layers}; expected at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; expected a share from 0 up to 1")


@dataclass(frozen=True)
class Append:
    """Encode new tokens against a cache: the cache, where each row's first new token goes, and the entries in use; and
    which places hold a new token, if rows have different numbers of them."""

    cache: KeyValueCache
    start: Tensor
    used: int
    packing: Packing | None = None

    def at_layer(self, layer: int) -> CachePlace:
        return CachePlace(self.cache, layer, self.start, self.used, self.packing)

    def hides(self, queries: int) -> Tensor:
        """True (B, Q, K) where a new token must not look: at entries behind its own."""
        entry = torch.arange(self.used, device=self.start.device)
        own = self.start[:, None] + torch.arange(queries, device=self.start.device)  # (B, Q)
        return entry[None, None, :] > own[:, :, None]


class Block(nn.Module):
    """x + attention(norm x), then x + feed-forward(norm x)."""

    def __init__(self, shape: TransformerShape, attention: nn.Module) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(shape.width)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(shape.width)
        self.expand = nn.Linear(shape.width, 4 * shape.width)
        self.contract = nn.Linear(4 * shape.width, shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, hidden: Tensor, *how: Any) -> Tensor:
        """The hidden states (B, Q, D) one block later; `how` is what its attention takes beside them."""
        hidden = hidden + self.dropout(self.attention(self.attention_norm(hidden), *how))
        inner = nn.functional.gelu(self.expand(self.feed_forward_norm(hidden)))
        return hidden + self.dropout(self.contract(inner))  # type: ignore[no-any-return]


class OffsetTransformer(nn.Module):
    """The context encoder of section 3.1: causal in insertion order, positions as offsets."""

    def __init__(self, shape: TransformerShape, *, truncated: bool) -> None:
        super().__init__()
        self.shape = shape
        self.truncated = truncated
        blocks = [Block(shape, OffsetAttention(shape.width, shape.heads, shape.dropout)) for _ in range(shape.layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def position_keys(self, tokens: int, like: Tensor) -> Tensor:
        """Every layer's keys of every offset among so many tokens (N, H, D/H, R); a constant while decoding."""
        sinusoids = sinusoids_of_offsets(reach_of(tokens, truncated=self.truncated), self.shape.width, like)
        return torch.stack([block.attention.position_keys(sinusoids) for block in self.blocks])  # type: ignore[union-attr,operator]

    def forward(
        self, embedded: Tensor, offsets: Tensor, *, append: Append | None = None, position_keys: Tensor | None = None
    ) -> Tensor:
        """Encoded tokens (B, Q, D). Without `append`, all tokens in one pass, offsets (B, T, T); with it, new ones
        against the cache, offsets (B, Q, K); zeros where `append` knows of no token."""
        if position_keys is None:
            position_keys = self.position_keys(offsets.shape[2], embedded)
        offset_index = index_of_offsets(offsets, position_keys)
        queries = embedded.shape[1]
        hides = append.hides(queries) if append else _causal(queries, embedded.device)
        packing = append.packing if append else None
        hidden = self.dropout(packing.pack(embedded) if packing else embedded)
        for layer, block in enumerate(self.blocks):
            keys, place = position_keys[layer], append.at_layer(layer) if append else None
            hidden = block(hidden, offset_index, hides, keys, place)
        encoded: Tensor = self.norm(hidden)
        return packing.unpack(encoded) if packing else encoded


class RotaryTransformer(nn.Module):
    """Rotary positions: a left-to-right decoder or, told what is hidden, an encoder that reads both ways."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        self.shape = shape
        blocks = [Block(shape, RotaryAttention(shape.width, shape.heads, shape.dropout)) for _ in range(shape.layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, embedded: Tensor, *, append: Append | None = None, hides: Tensor | None = None) -> Tensor:
        """Encoded tokens (B, Q, D): a whole text in one pass, or new tokens against the cache. Each sees those before
        it or, of a whole text, all but what `hides` (B, Q or 1, K) says."""
        rows, queries, _ = embedded.shape
        position = torch.arange(queries, device=embedded.device).expand(rows, -1)
        if append is not None:
            position = position + append.start[:, None]
        rotation = rotation_of_positions(position, self.shape.width // self.shape.heads, embedded.dtype)
        hides = append.hides(queries) if append else hides
        hidden = self.dropout(embedded)
        for layer, block in enumerate(self.blocks):
            place = append.at_layer(layer) if append else None
            hidden = block(hidden, rotation, hides, place)
        return self.norm(hidden)  # type: ignore[no-any-return]


def _causal(tokens: int, device: torch.device) -> Tensor:
    """True (1, T, T) above the diagonal: what a token must not see."""
    return torch.ones(1, tokens, tokens, dtype=torch.bool, device=device).triu(1)


def initialise(model: nn.Module, layers: int) -> None:
    """Small normal weights, zero biases; what adds to the residual starts smaller, so that depth does not add up."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            adds_to_residual = name.endswith(("projections.output", "contract"))
            nn.init.normal_(module.weight, std=0.02 / math.sqrt(2 * layers) if adds_to_residual else 0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
