"""What the attention of a block knows beside the hidden states.

Shapes: B rows, Q queries, K keys, N = B * Q hidden states (fewer if packed), H heads, G key heads, W head width,
R = 2 * reach + 1 offsets from -reach to +reach.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from insnet.layers.cache import Append, Memory
from insnet.layers.packing import Packing
from insnet.layers.positions import Rotation


@dataclass(frozen=True)
class Context:
    """What attention looks at and how; each kind of attention uses its own part of it."""

    places: tuple[int, int]
    """B and Q."""
    append: Append | None = None
    """Where a cache stores keys and values of the hidden states; None for no cache."""
    layer: int = 0
    """Which layer of the cache that is."""
    memory: Memory | None = None
    """Keys and values to look at: the cache's, or a text's that is only read; None for the hidden states' own."""
    bias: Tensor | None = None
    """(B or 1, 1, Q, K) added to all scores; -inf hides."""
    causal: bool = False
    """In place of a bias: each query sees the keys up to its own."""
    position_keys: tuple[Tensor, Tensor] | None = None
    """What offsets add to scores: (H, W, R + 1) times the query, and (H, 1, R + 1) for all queries alike."""
    offset_index: Tensor | None = None
    """(B, H, Q, K) which column of these; the last is -inf and hides."""
    rotation: Rotation | None = None
    """(N, 1, W/2) of the hidden states."""
    key_rotation: Rotation | None = None
    """(B, Q, 1, K, W/2) of the keys, as each query sees them; they are cached without it. None: cached rotated."""
    given_rotation: Rotation | None = None
    """(N, 1, W/2) of the hidden states by the count of given tokens, where some keys are ahead of a text."""
    is_ahead: Tensor | None = None
    """(B, 1, 1, K) true for these keys."""
    source: "Context | None" = None
    """What a block's second attention knows, if it has one."""

    @property
    def packing(self) -> Packing | None:
        """Which places hold a hidden state; None for all."""
        return self.append.packing if self.append else None


def contexts_of_layers(
    context: Context, layers: int, position_keys: Tensor | None = None, memories: Sequence[Memory] | None = None
) -> list[Context]:
    """One for each layer: with its part of the cache, or its memory if some are given, and with the first of the
    position keys (N, H, W + 1, R + 1)."""
    append = context.append
    if memories is None:
        memories = append.cache.memory(append.used) if append else None
    keys: list[tuple[Tensor, Tensor] | None] = [None] * layers
    if position_keys is not None:
        keys = list(zip(position_keys[:, :, :-1].unbind(0), position_keys[:, :, -1:].unbind(0), strict=True))
    return [
        replace(
            context,
            layer=layer if append else 0,  # without a cache all are alike, for the compiler too
            memory=memories[layer] if memories else None,
            position_keys=keys[layer],
        )
        for layer in range(layers)
    ]


def hides_later(like: Tensor, append: Append | None) -> Tensor:
    """True (B or 1, Q, K) where a token (B, Q, D) must not look: at those that came after it."""
    if append is not None:
        return append.hides()
    tokens = like.shape[1]
    return torch.ones(1, tokens, tokens, dtype=torch.bool, device=like.device).triu(1)


def bias_of(hides: Tensor, like: Tensor) -> Tensor:
    """(B, 1, Q, K): -inf where a key is hidden (B, Q, K), of `like`'s type."""
    return like.new_zeros(()).masked_fill(hides[:, None], -math.inf)


def own_rank(ranks: Tensor, append: Append | None) -> Tensor:
    """Where each token stands itself (B, Q, 1), among the ranks (B, Q, K) that it sees."""
    return append.own(ranks) if append else ranks.diagonal(dim1=1, dim2=2)[:, :, None]
