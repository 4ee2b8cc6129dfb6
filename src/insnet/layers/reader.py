"""Slots that look at the whole canvas before they become tokens.

A slot's neighbours were encoded when they were inserted and know nothing of what came later; of that, only the newest
token's encoding tells, one vector for all slots. So the slot to be filled asks every token on the canvas. Tokens are
still encoded only once: what slots look at is cached beside the encoder's own keys and values.
Shapes: B rows, Q slots, K tokens, N blocks, D width, H heads, G key heads, W = D/H, R offsets.
"""

from collections.abc import Sequence
from typing import cast

from torch import Tensor

from insnet.layers.attention import OffsetAttention, memory_of
from insnet.layers.cache import Append, Memory
from insnet.layers.context import Context, contexts_of_layers
from insnet.layers.positions import offset_index, reach_among
from insnet.layers.shape import TransformerShape
from insnet.layers.transformer import Stack, position_keys_of


class SlotReader(Stack):
    """A stack of blocks between slot vectors and the token head."""

    def __init__(self, shape: TransformerShape, *, truncated: bool) -> None:
        super().__init__(shape, OffsetAttention)
        self.truncated = truncated

    def memory(self, encoded: Tensor) -> list[Memory]:
        """What slots see in each block, of encoded tokens (B, K, D)."""
        shape = *encoded.shape[:2], 2, self.shape.cached_heads, self.shape.head_width
        return [memory_of(keys_values.view(shape)) for keys_values in self._keys_values(encoded.flatten(0, 1))]

    def remember(self, encoded: Tensor, append: Append, first: int) -> None:
        """Stores what slots see of new tokens (B, Q, D), in the cache's layers from `first` on."""
        for layer, keys_values in enumerate(self._keys_values(append.pack(encoded)), start=first):
            append.write(layer, keys_values)

    def position_keys(self, tokens: int, like: Tensor) -> Tensor:
        """What every offset among so many tokens adds in every block (N, H, W + 1, R + 1); constant while decoding."""
        return position_keys_of(self.blocks, reach_among(tokens, truncated=self.truncated), like)

    def forward(
        self,
        slots: Tensor,
        offsets: Tensor,
        hides: Tensor,
        memory: Sequence[Memory],
        position_keys: Tensor | None = None,
    ) -> Tensor:
        """Slot vectors (B, Q, D) that know the canvas: `offsets` (B, Q, K) are what a token in the slot would see, and
        `hides` (B, Q, K) marks tokens that are not there."""
        if position_keys is None:
            position_keys = self.position_keys(offsets.shape[2], slots)
        index = offset_index(offsets, hides, position_keys, self.shape.heads)
        context = Context((slots.shape[0], slots.shape[1]), offset_index=index)
        return self.run(slots, contexts_of_layers(context, self.shape.layers, position_keys, memory))

    def _keys_values(self, encoded: Tensor) -> list[Tensor]:
        """Of every block (N, 2 * G, W), of encoded tokens (N, D)."""
        attentions = [cast(OffsetAttention, block.attention) for block in self.blocks]
        return [attention.projections.keys_values(encoded) for attention in attentions]
