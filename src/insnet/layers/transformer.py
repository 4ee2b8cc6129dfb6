"""Stacks of pre-norm transformer blocks: one with offsets (InsNet), one with rotary positions.

Shapes: B rows, Q new tokens, K keys, N = B * Q hidden states (fewer if packed), D width, H heads, W = D/H, T tokens,
R offsets.
"""

import math
from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.layers.attention import OffsetAttention, RotaryAttention
from insnet.layers.cache import Append
from insnet.layers.context import Context, bias_of, contexts_of_layers, hides_later, own_rank
from insnet.layers.positions import Rotation, offset_index, reach_among, rotation_of, sinusoids_of_offsets
from insnet.layers.shape import TransformerShape


class Block(nn.Module):
    """x + attention(norm x), then x + feed-forward(norm x); between them x + memory_attention(norm x), if there is one:
    it looks at `context.source`."""

    def __init__(
        self, shape: TransformerShape, attention: nn.Module, memory_attention: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.attention_norm = shape.make_norm()
        self.attention = attention
        self.memory_norm = None if memory_attention is None else shape.make_norm()
        self.memory_attention = memory_attention
        self.feed_forward_norm = shape.make_norm()
        self.is_gated = shape.feed_forward == "swiglu"
        self.expand = nn.Linear(shape.width, (1 + self.is_gated) * shape.inner_width, bias=shape.biases)
        self.contract = nn.Linear(shape.inner_width, shape.width, bias=shape.biases)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, hidden: Tensor, context: Context) -> Tensor:
        """The hidden states (N, D) one block later."""
        hidden = hidden + self.dropout(self.attention(self.attention_norm(hidden), context))
        if self.memory_norm is not None and self.memory_attention is not None:
            hidden = hidden + self.dropout(self.memory_attention(self.memory_norm(hidden), context.source))
        inner = self.expand(self.feed_forward_norm(hidden))
        inner = _gated(inner) if self.is_gated else F.gelu(inner)
        return hidden + self.dropout(self.contract(inner))  # type: ignore[no-any-return]


def _gated(inner: Tensor) -> Tensor:
    gate, value = inner.chunk(2, dim=-1)
    return F.silu(gate) * value


class Stack(nn.Module):
    """Blocks of one shape and a last norm."""

    def __init__(self, shape: TransformerShape, attention: Callable[[TransformerShape], nn.Module]) -> None:
        super().__init__()
        self.shape = shape
        self.blocks = nn.ModuleList([Block(shape, attention(shape)) for _ in range(shape.layers)])
        self.norm = shape.make_norm()
        self.dropout = nn.Dropout(shape.dropout)

    def run(self, vectors: Tensor, contexts: Sequence[Context]) -> Tensor:
        """Vectors (B, Q, D) after all blocks, each with its own context; zeros at places that hold none."""
        packing = contexts[0].packing
        hidden = packing.pack(vectors) if packing else vectors.flatten(0, 1)
        for block, context in zip(self.blocks, contexts, strict=True):
            hidden = block(hidden, context)
        hidden = self.norm(hidden)
        return packing.unpack(hidden) if packing else hidden.view(vectors.shape)


class OffsetTransformer(Stack):
    """The context encoder of section 3.1: causal in insertion order, positions as offsets."""

    def __init__(self, shape: TransformerShape, *, truncated: bool) -> None:
        super().__init__(shape, OffsetAttention)
        self.truncated = truncated

    def position_keys(self, tokens: int, like: Tensor) -> Tensor:
        """What every offset among so many tokens adds in every layer (N, H, W + 1, R + 1); constant while decoding."""
        return position_keys_of(self.blocks, reach_among(tokens, truncated=self.truncated), like)

    def reaches(self, position_keys: Tensor, tokens: int) -> bool:
        """Whether position keys are enough for so many tokens."""
        return position_keys.shape[-1] // 2 - 1 >= reach_among(tokens, truncated=self.truncated)

    def forward(
        self, embedded: Tensor, ranks: Tensor, *, append: Append | None = None, position_keys: Tensor | None = None
    ) -> Tensor:
        """Encoded tokens (B, Q, D). Without `append`, all tokens in one pass, ranks (B, T, T); with it, new ones
        against the cache, ranks (B, Q, K), zeros where `append` knows of no token.

        Each row of ranks is what one token sees: where the others stood when it went in, and itself, counted from
        anywhere. Where it stood itself is read at its own entry.
        """
        if position_keys is None:
            position_keys = self.position_keys(ranks.shape[2], embedded)
        offsets = ranks - own_rank(ranks, append)
        index = offset_index(offsets, hides_later(embedded, append), position_keys, self.shape.heads)
        context = Context(_places(embedded), append, offset_index=index)
        return self.run(self.dropout(embedded), contexts_of_layers(context, self.shape.layers, position_keys))


class RotaryTransformer(Stack):
    """Rotary positions: a decoder, left to right or by insertion, or an encoder of texts that are there as a whole."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__(shape, RotaryAttention)

    def forward(
        self,
        embedded: Tensor,
        ranks: Tensor | None = None,
        *,
        append: Append | None = None,
        hides: Tensor | None = None,
    ) -> Tensor:
        """Encoded tokens (B, Q, D): all in one pass, or new ones against the cache. Each sees those before it or, of a
        text that is there as a whole, all but what `hides` (B, Q or 1, K) says.

        Left to right, a token's position is its entry. By insertion, its positions are the `ranks` that it sees, as an
        `OffsetTransformer` takes them: the same as turning each pair by its offset.
        """
        key_rotation = None
        if ranks is not None:
            own, key_rotation = own_rank(ranks, append)[:, :, 0], self._rotation(ranks[:, :, None], embedded)
        elif append is not None:
            own = append.entry
        else:
            own = torch.arange(embedded.shape[1], device=embedded.device).expand(embedded.shape[:2])
        causal = append is None and ranks is None and hides is None
        hides = hides_later(embedded, append) if hides is None else hides
        context = Context(
            _places(embedded),
            append,
            rotation=self._rotation((append.pack(own) if append else own.flatten())[:, None], embedded),
            key_rotation=key_rotation,
            bias=None if causal else bias_of(hides, embedded),
            causal=causal,
        )
        return self.run(self.dropout(embedded), contexts_of_layers(context, self.shape.layers))

    def _rotation(self, positions: Tensor, like: Tensor) -> Rotation:
        return rotation_of(positions, self.shape.head_width, self.shape.rotary_base, like.dtype)


def position_keys_of(blocks: nn.ModuleList, reach: int, like: Tensor) -> Tensor:
    """What every offset up to a reach adds to the scores of all blocks (N, H, W + 1, R + 1)."""
    attentions = [cast(OffsetAttention, block.attention) for block in blocks]
    sinusoids = sinusoids_of_offsets(reach, attentions[0].position.in_features, like)
    return torch.stack([attention.position_keys(sinusoids) for attention in attentions])


def initialise(model: nn.Module, layers: int) -> None:
    """Small normal weights, zero biases; what adds to the residual starts smaller, so that depth does not add up."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            adds_to_residual = name.endswith(("projections.output", "contract"))
            nn.init.normal_(module.weight, std=0.02 / math.sqrt(2 * layers) if adds_to_residual else 0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def _places(vectors: Tensor) -> tuple[int, int]:
    return vectors.shape[0], vectors.shape[1]
