"""A left-to-right decoder that also sees the given words still ahead of it (the gaps family).

Two kinds of rows share all weights. What stands ahead is encoded once, in order, its positions counted among the given
tokens. The passage is the text itself: causal, its positions those of the text, just as the decoder was pretrained. A
passage row also sees what is still ahead of it, at the offset that lies between them if only given tokens are counted.

Shapes: B rows, Q new tokens, K keys, N = B * Q hidden states, D width, H heads, G key heads, W = D/H.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.layers.attention import Projections
from insnet.layers.cache import Append, Memory
from insnet.layers.context import Context, bias_of, contexts_of_layers
from insnet.layers.positions import Rotation, rotate, rotation_of
from insnet.layers.shape import TransformerShape
from insnet.layers.transformer import Stack

_FEW = 6  # rows of a product


@dataclass(frozen=True)
class Standing:
    """Where tokens stand. All are (B, Q)."""

    is_ahead: Tensor
    """True for given tokens that the text has not come to yet."""
    place: Tensor
    """The place in the text, <bos> being at 0; means nothing for what is ahead."""
    given: Tensor
    """How many given tokens there are up to here, this one included if it is given."""
    text: Tensor | None = None
    """Which text a token belongs to, where a row holds several; None where it holds one."""

    def position(self) -> Tensor:
        """What a token's key is turned by (B, Q)."""
        return torch.where(self.is_ahead, self.given, self.place)

    def hides(self, keys: "Standing") -> Tensor:
        """True (B, Q, K) where a token must not look: at what comes after it in its own kind, at given words that the
        text has come to, from ahead at the passage, and at other texts."""
        own, other = (each.position()[:, :, None] for each in (self, keys))
        other = other.transpose(1, 2)
        query_is_ahead, key_is_ahead = self.is_ahead[:, :, None], keys.is_ahead[:, None, :]
        is_later = (query_is_ahead == key_is_ahead) & (other > own)
        is_passed = key_is_ahead & ~query_is_ahead & (keys.given[:, None, :] <= self.given[:, :, None])
        hidden: Tensor = is_later | is_passed | (query_is_ahead & ~key_is_ahead)
        if self.text is not None and keys.text is not None:
            hidden = hidden | (self.text[:, :, None] != keys.text[:, None, :])
        return hidden


class GapsAttention(nn.Module):
    """Attention whose queries are turned twice: as the text stands for what they have passed, and by the count of given
    tokens for what is ahead. A key is turned once, before it is cached."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        self.projections = Projections(shape)
        self.dropout = shape.dropout

    def forward(self, hidden: Tensor, context: Context) -> Tensor:
        """The attended (N, D)."""
        assert context.rotation is not None and context.bias is not None
        projections = self.projections
        mixed = projections.mixed(hidden)  # (N, H + 2 * G, W)
        turned = projections.heads + projections.key_heads
        own = rotate(mixed[:, :turned], context.rotation)
        query, memory = projections.ask_mixed(torch.cat([own, mixed[:, turned:]], dim=1), context)
        if context.given_rotation is not None and context.is_ahead is not None:
            by_given = rotate(mixed[:, : projections.heads], context.given_rotation)
            by_given = by_given.view(*context.places, *by_given.shape[1:]).transpose(1, 2)
            both = _scores(torch.cat([query, by_given], dim=2), memory)  # (B, H, 2 * Q, K)
            of_passage, of_ahead = both.chunk(2, dim=2)
            scores = torch.where(context.is_ahead, of_ahead, of_passage)
        else:
            scores = _scores(query, memory)
        shares = (scores + context.bias).softmax(dim=-1)  # (B, H, Q, K)
        shares = F.dropout(shares, self.dropout, self.training).to(query.dtype)
        return projections.merge(_received(shares, memory), context)


def _scores(query: Tensor, memory: Memory) -> Tensor:
    """(B, H, Q, K) of queries (B, H, Q, W); H/G of them share a key."""
    rows, heads, queries, width = query.shape
    keys = memory[0].to(query.dtype)
    grouped = query.reshape(rows, keys.shape[1], -1, width) * width**-0.5  # (B, G, H/G * Q, W)
    return _product(grouped, keys.transpose(2, 3)).reshape(rows, heads, queries, -1)


def _received(shares: Tensor, memory: Memory) -> Tensor:
    """(B, H, Q, W) of values by their shares (B, H, Q, K)."""
    rows, heads, queries, keys = shares.shape
    values = memory[1].to(shares.dtype)
    grouped = shares.reshape(rows, values.shape[1], -1, keys)
    return _product(grouped, values).reshape(rows, heads, queries, -1)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """(B, G, M, O) of (B, G, M, I) and (B, G, I, O); few rows are filled up, for kernels add up fewer in another order,
    and what a text receives must not depend on how much others have just been given."""
    rows = left.shape[2]
    padded = left if rows >= _FEW else F.pad(left, (0, 0, 0, _FEW - rows))
    product: Tensor = padded @ right
    return product[:, :, :rows]


class GapsTransformer(Stack):
    """A pretrained decoder's blocks, for rows of both kinds."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__(shape, GapsAttention)

    def forward(
        self,
        embedded: Tensor,
        own: Standing,
        *,
        append: Append | None = None,
        cached: Standing | None = None,
        has_ahead: bool = True,
    ) -> Tensor:
        """Encoded tokens (B, Q, D): all in one pass, or new ones against a cache, whose entries stand as `cached`
        says. Without anything ahead in any row, only the text's own positions are looked at."""
        keys = own if cached is None else _first(cached, append.used if append else 0)
        hides = own.hides(keys)
        if append is not None:
            hides = hides | append.hides()
        context = Context(
            (embedded.shape[0], embedded.shape[1]),
            append,
            rotation=self._rotation(own.position(), embedded),
            given_rotation=self._rotation(own.given, embedded) if has_ahead else None,
            is_ahead=keys.is_ahead[:, None, None, :] if has_ahead else None,
            bias=bias_of(hides, embedded),
        )
        return self.run(self.dropout(embedded), contexts_of_layers(context, self.shape.layers))

    def _rotation(self, positions: Tensor, like: Tensor) -> Rotation:
        """Of each hidden state (N, 1, W/2)."""
        own = positions.flatten()[:, None]
        return rotation_of(own, self.shape.head_width, self.shape.rotary_base, like.dtype)


def _first(standing: Standing, used: int) -> Standing:
    """Where the first `used` entries of a cache stand."""
    each = (standing.is_ahead, standing.place, standing.given)
    is_ahead, place, given = (tensor[:, :used] for tensor in each)
    return replace(standing, is_ahead=is_ahead, place=place, given=given)
