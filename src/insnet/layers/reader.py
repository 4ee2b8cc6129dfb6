"""Slots that look at the whole canvas before they become tokens.

A slot's neighbours were encoded when they were inserted and know nothing of what came later; of that, only the newest
token's encoding tells, one vector for all slots. So the slot to be filled asks every token on the canvas. Tokens are
still encoded only once: what slots look at is cached beside the encoder's own keys and values.
Shapes: B rows, Q slots, K tokens, N blocks, D width, H heads, R offsets.
"""

import torch
from torch import Tensor, nn

from insnet.layers.attention import SlotAttention, index_of_offsets, reach_of, sinusoids_of_offsets
from insnet.layers.transformer import Block, TransformerShape

Memory = list[tuple[Tensor, Tensor]]
"""Keys and values (B, H, K, D/H) of every block."""


class SlotReader(nn.Module):
    """A stack of blocks between slot vectors and the token head."""

    def __init__(self, shape: TransformerShape, *, truncated: bool) -> None:
        super().__init__()
        self.shape = shape
        self.truncated = truncated
        blocks = [Block(shape, SlotAttention(shape.width, shape.heads, shape.dropout)) for _ in range(shape.layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(shape.width)

    def memory(self, encoded: Tensor) -> Memory:
        """What slots see of encoded tokens (B, K, D)."""
        return [block.attention.projections.memory(encoded) for block in self.blocks]  # type: ignore[union-attr,operator]

    def position_keys(self, tokens: int, like: Tensor) -> Tensor:
        """Every block's keys of every offset among so many tokens (N, H, D/H, R); a constant while decoding."""
        sinusoids = sinusoids_of_offsets(reach_of(tokens, truncated=self.truncated), self.shape.width, like)
        return torch.stack([block.attention.position_keys(sinusoids) for block in self.blocks])  # type: ignore[union-attr,operator]

    def forward(
        self, slots: Tensor, offsets: Tensor, hides: Tensor, memory: Memory, position_keys: Tensor | None = None
    ) -> Tensor:
        """Slot vectors (B, Q, D) that know the canvas: `offsets` (B, Q, K) are what a token in the slot would see, and
        `hides` (B, Q, K) marks tokens that are not there."""
        if position_keys is None:
            position_keys = self.position_keys(offsets.shape[2], slots)
        offset_index = index_of_offsets(offsets, position_keys)
        for block, keys, own in zip(self.blocks, position_keys, memory, strict=True):
            slots = block(slots, offset_index, hides, keys, own)
        return self.norm(slots)  # type: ignore[no-any-return]
