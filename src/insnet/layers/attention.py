"""Multi-head attention with the paper's offset term, with rotations, or with neither; to itself, a cache or a memory.

Shapes: B rows, Q queries, K keys, N = B * Q hidden states (fewer if packed), D width, H heads, G key heads, W = D/H,
R = 2 * reach + 1 offsets from -reach to +reach.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.layers.cache import Memory
from insnet.layers.context import Context
from insnet.layers.low_rank import part_of_linear
from insnet.layers.positions import Rotation, rotate
from insnet.layers.shape import TransformerShape


def attend(query: Tensor, memory: Memory, bias: Tensor | None, *, causal: bool = False, dropout: float = 0.0) -> Tensor:
    """What queries (B, H, Q, W) receive (B, H, Q, W) from keys and values; H/G queries share a key."""
    key, value = (part.to(query.dtype) for part in memory)
    bias = None if bias is None else bias.to(query.dtype)
    (rows, heads, queries, width), key_heads = query.shape, key.shape[1]
    if heads == key_heads or causal:
        return F.scaled_dot_product_attention(query, key, value, bias, dropout, causal, enable_gqa=heads != key_heads)
    grouped = query.reshape(rows, key_heads, -1, width)  # (B, G, H/G * Q, W): copies no keys
    if bias is not None:
        bias = bias.expand(-1, heads, queries, -1).reshape(bias.shape[0], key_heads, -1, bias.shape[3])
    attended = F.scaled_dot_product_attention(grouped, key, value, bias, dropout)
    return attended.view(rows, heads, queries, width)


class Projections(nn.Module):
    """Queries, keys, values and output of an attention."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        self.heads, self.key_heads, self.head_width = shape.heads, shape.cached_heads, shape.head_width
        columns = (shape.heads + 2 * shape.cached_heads) * shape.head_width
        self.query_key_value = nn.Linear(shape.width, columns, bias=shape.biases)
        self.output = nn.Linear(shape.width, shape.width, bias=shape.biases)

    def ask(self, hidden: Tensor, context: Context) -> tuple[Tensor, Memory]:
        """Queries (B, H, Q, W) of hidden states (N, D), and what they look at."""
        if context.memory is not None and context.append is None:
            query = part_of_linear(self.query_key_value, hidden, slice(None, self.heads * self.head_width))
            return self._queries(query.view(-1, self.heads, self.head_width), context), context.memory
        return self.ask_mixed(self.mixed(hidden), context)

    def mixed(self, hidden: Tensor) -> Tensor:
        """Queries, keys and values (N, H + 2 * G, W) of hidden states (N, D)."""
        mixed: Tensor = self.query_key_value(hidden)
        return mixed.view(-1, self.heads + 2 * self.key_heads, self.head_width)

    def ask_mixed(self, mixed: Tensor, context: Context) -> tuple[Tensor, Memory]:
        """Queries (B, H, Q, W) and what they look at, which holds these keys and values afterwards."""
        query, keys_values = mixed.split_with_sizes([self.heads, 2 * self.key_heads], dim=1)
        query = self._queries(query, context)
        if context.append is None:
            return query, memory_of(keys_values.view(*context.places, 2, self.key_heads, self.head_width))
        assert context.memory is not None
        context.append.write(context.layer, keys_values)
        return query, context.memory

    def keys_values(self, hidden: Tensor) -> Tensor:
        """Keys and values (N, 2 * G, W) of hidden states (N, D) that ask nothing."""
        part = part_of_linear(self.query_key_value, hidden, slice(self.heads * self.head_width, None))
        return part.view(-1, 2 * self.key_heads, self.head_width)

    def merge(self, attended: Tensor, context: Context) -> Tensor:
        """The output (N, D) of what the heads received (B, H, Q, W)."""
        joined = attended.transpose(1, 2)
        joined = context.packing.pack(joined) if context.packing else joined
        return self.output(joined.reshape(-1, self.heads * self.head_width))  # type: ignore[no-any-return]

    def _queries(self, query: Tensor, context: Context) -> Tensor:
        """(B, H, Q, W) of (N, H, W)."""
        if context.packing is not None:
            return context.packing.unpack(query).transpose(1, 2)
        return query.view(*context.places, *query.shape[1:]).transpose(1, 2)


def memory_of(keys_values: Tensor) -> Memory:
    """Keys and values (B, G, K, W) out of (B, K, 2, G, W)."""
    keys, values = keys_values.permute(2, 0, 3, 1, 4).unbind(0)
    return keys, values


class MemoryAttention(nn.Module):
    """Attention without positions: to a memory, or of hidden states to each other."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        self.projections = Projections(shape)
        self.dropout = shape.dropout

    def forward(self, hidden: Tensor, context: Context) -> Tensor:
        """The attended (N, D)."""
        query, memory = self.projections.ask(hidden, context)
        dropout = self.dropout if self.training else 0.0
        attended = attend(query, memory, context.bias, causal=context.causal, dropout=dropout)
        return self.projections.merge(attended, context)


class RotaryAttention(nn.Module):
    """Attention with rotary positions. Positions that stay turn keys before they are cached; where tokens are inserted
    positions move, so that keys are cached as they are and turned by the ranks that each query sees."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        self.projections = Projections(shape)
        self.dropout = shape.dropout

    def forward(self, hidden: Tensor, context: Context) -> Tensor:
        """The attended (N, D)."""
        assert context.rotation is not None
        projections, dropout = self.projections, self.dropout if self.training else 0.0
        turned = projections.heads + (projections.key_heads if context.key_rotation is None else 0)
        mixed = projections.mixed(hidden)  # (N, H + 2 * G, W)
        mixed = torch.cat([rotate(mixed[:, :turned], context.rotation), mixed[:, turned:]], dim=1)
        query, memory = projections.ask_mixed(mixed, context)
        if context.key_rotation is None:
            attended = attend(query, memory, context.bias, causal=context.causal, dropout=dropout)
        else:
            assert context.bias is not None
            attended = _attend_turned(query, memory, context.key_rotation, context.bias, dropout)
        return projections.merge(attended, context)


def _attend_turned(query: Tensor, memory: Memory, rotation: Rotation, bias: Tensor, dropout: float) -> Tensor:
    """What queries (B, H, Q, W) receive from keys that each sees turned (B, Q, 1, K, W/2) another way: as B * Q rows,
    which copies all keys for each query beyond the first."""
    rows, _, queries, _ = query.shape
    keys = rotate(memory[0][:, None], rotation).flatten(0, 1)  # (B * Q, G, K, W)
    values = memory[1][:, None].expand(-1, queries, -1, -1, -1).flatten(0, 1)
    bias = bias.expand(rows, -1, -1, -1).transpose(1, 2).flatten(0, 1)[:, None]  # (B * Q, 1, 1, K)
    attended = attend(query.transpose(1, 2).flatten(0, 1)[:, :, None], (keys, values), bias, dropout=dropout)
    return attended.view(rows, queries, *attended.shape[1::2]).transpose(1, 2)


class OffsetAttention(nn.Module):
    """Section 3.1.3: A = Q'K + Q'P + u'K + v'P, where P projects a sinusoid of the offset between two tokens."""

    def __init__(self, shape: TransformerShape) -> None:
        super().__init__()
        self.projections = Projections(shape)
        self.position = nn.Linear(shape.width, shape.width, bias=False)  # W_{k,R}
        self.content_bias = nn.Parameter(torch.zeros(shape.heads, 1, shape.head_width))  # u
        self.position_bias = nn.Parameter(torch.zeros(shape.heads, 1, shape.head_width))  # v
        self.dropout = shape.dropout

    def position_keys(self, sinusoids: Tensor) -> Tensor:
        """(H, W + 1, R + 1) what each offset adds to a score: times the query, and in the last row v'P, for all queries
        alike. The last column is -inf for all of them: what is hidden."""
        heads, _, head_width = self.position_bias.shape
        keys = self.position(sinusoids / math.sqrt(head_width)).view(-1, heads, head_width)  # (R, H, W)
        keys = keys.permute(1, 2, 0)
        shared = F.pad(self.position_bias @ keys, (0, 1), value=-math.inf)
        return torch.cat([F.pad(keys, (0, 1)), shared], dim=1)

    def forward(self, hidden: Tensor, context: Context) -> Tensor:
        """The attended (N, D)."""
        query, memory = self.projections.ask(hidden, context)
        bias = _bias_of_offsets(query, context)
        dropout = self.dropout if self.training else 0.0
        attended = attend((query + self.content_bias).to(bias.dtype), memory, bias, dropout=dropout)
        return self.projections.merge(attended, context)


def _bias_of_offsets(query: Tensor, context: Context) -> Tensor:
    """q'P + v'P (B, H, Q, K) of each pair's offset; -inf where a key is hidden.

    One product per head for all rows: `query @ keys` would copy the keys for each row, which takes 70 times as long as
    the product itself (one query, 64 rows, 550 offsets, one core).
    """
    assert context.position_keys is not None and context.offset_index is not None
    keys, shared = context.position_keys
    by_offset = torch.baddbmm(shared, query.transpose(0, 1).flatten(1, 2), keys)  # (H, B * Q, R + 1)
    by_offset = by_offset.view(keys.shape[0], *context.places, keys.shape[2]).transpose(0, 1)  # (B, H, Q, R + 1)
    return by_offset.gather(3, context.offset_index)
