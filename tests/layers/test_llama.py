"""The same classes make a Llama: RMSNorm, SwiGLU, shared key heads, no biases; and a rotary encoder by insertion."""

import math

import pytest
import torch

from insnet.insertion.offsets import insert_into_ranks, ranks_of_order
from insnet.layers.attention import MemoryAttention, attend, memory_of
from insnet.layers.cache import Append, KeyValueCache
from insnet.layers.context import Context, bias_of
from insnet.layers.packing import Packing
from insnet.layers.shape import TransformerShape
from insnet.layers.transformer import Block, RotaryTransformer

LLAMA = TransformerShape(
    width=24,
    layers=2,
    heads=6,
    key_heads=2,
    dropout=0.0,
    norm="rms",
    feed_forward="swiglu",
    inner=40,
    biases=False,
    rotary_base=100_000.0,
)
TOKENS = 7
ORDER = torch.tensor([[0, 6, 2, 4, 1, 3, 5], [0, 6, 5, 4, 3, 2, 1]])


def llama():
    model = RotaryTransformer(LLAMA)
    for parameter in model.parameters():
        parameter.data.normal_()
    return model.double().eval()


def embedded(rows=2):
    return torch.randn(rows, TOKENS, LLAMA.width, dtype=torch.float64)


def root_mean_square_norm(vector, gain):
    return vector / math.sqrt(sum(float(x) ** 2 for x in vector) / len(vector) + 1e-5) * gain


def turned(vector, position):
    """Coordinates i and i + W/2 turned by position * base^(-2i/W)."""
    half = len(vector) // 2
    result = vector.clone()
    for i in range(half):
        angle = position * 100_000.0 ** (-2 * i / len(vector))
        result[i] = vector[i] * math.cos(angle) - vector[i + half] * math.sin(angle)
        result[i + half] = vector[i + half] * math.cos(angle) + vector[i] * math.sin(angle)
    return result


def slow_block(block, hidden, offsets):
    """One Llama block of hidden states (T, D), query by query; a key is turned by its offset (T, T) from the query."""
    heads, groups, size = LLAMA.heads, LLAMA.key_heads, LLAMA.head_width
    weight = block.attention.projections.query_key_value.weight.view(heads + 2 * groups, size, -1)
    normed = [root_mean_square_norm(vector, block.attention_norm.weight) for vector in hidden]
    results = []
    for t, vector in enumerate(hidden):
        received = []
        for head in range(heads):
            group = head // (heads // groups)
            query = weight[head] @ normed[t]
            keys = [turned(weight[heads + group] @ normed[j], int(offsets[t, j])) for j in range(t + 1)]
            values = [weight[heads + groups + group] @ normed[j] for j in range(t + 1)]
            scores = torch.stack([query @ key / math.sqrt(size) for key in keys])
            received.append(scores.softmax(0) @ torch.stack(values))
        vector = vector + block.attention.projections.output.weight @ torch.cat(received)
        gate, up = (block.expand.weight @ root_mean_square_norm(vector, block.feed_forward_norm.weight)).chunk(2)
        results.append(vector + block.contract.weight @ (gate * torch.sigmoid(gate) * up))
    return torch.stack(results)


def slow(model, hidden, offsets):
    for block in model.blocks:
        hidden = slow_block(block, hidden, offsets)
    return torch.stack([root_mean_square_norm(vector, model.norm.weight) for vector in hidden])


@torch.no_grad()
def test_a_llama_equals_its_slow_twin():
    model, vectors = llama(), embedded()
    offsets = torch.arange(TOKENS)[None, :] - torch.arange(TOKENS)[:, None]
    expected = torch.stack([slow(model, row, offsets) for row in vectors])
    torch.testing.assert_close(model(vectors), expected, rtol=0, atol=1e-11)


@torch.no_grad()
def test_a_llama_equals_that_of_transformers():
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=9,
        hidden_size=LLAMA.width,
        intermediate_size=LLAMA.inner,
        num_hidden_layers=LLAMA.layers,
        num_attention_heads=LLAMA.heads,
        num_key_value_heads=LLAMA.key_heads,
        rms_norm_eps=LLAMA.norm_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": LLAMA.rotary_base},
        attention_bias=False,
        mlp_bias=False,
    )
    theirs, ours = transformers.LlamaModel(config).eval(), RotaryTransformer(LLAMA).eval()
    for parameter in theirs.parameters():
        parameter.normal_(std=0.3)
    ours.norm.weight.copy_(theirs.norm.weight)
    for block, layer in zip(ours.blocks, theirs.layers, strict=True):
        own, attention = block.attention.projections, layer.self_attn
        parts = [attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]
        own.query_key_value.weight.copy_(torch.cat(parts))
        own.output.weight.copy_(attention.o_proj.weight)
        block.expand.weight.copy_(torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight]))
        block.contract.weight.copy_(layer.mlp.down_proj.weight)
        block.attention_norm.weight.copy_(layer.input_layernorm.weight)
        block.feed_forward_norm.weight.copy_(layer.post_attention_layernorm.weight)
    vectors = embedded().float()
    expected = theirs(inputs_embeds=vectors).last_hidden_state
    torch.testing.assert_close(ours(vectors), expected, rtol=0, atol=1e-5)


def encoded_in_pieces(model, vectors, ranks, counts_of_pieces):
    """Both rows encoded against a cache, so many tokens of each at a time."""
    rows = len(vectors)
    shape = model.shape
    cache = KeyValueCache.empty(rows, shape.layers, shape.cached_heads, TOKENS + 4, shape.head_width, vectors)
    found, start = torch.zeros_like(vectors), torch.zeros(rows, dtype=torch.long)
    for counts in counts_of_pieces:
        places = torch.arange(max(counts))
        packing = Packing.of(places < torch.tensor(counts)[:, None])
        step = (start[:, None] + places).clamp_max(TOKENS - 1)
        piece = vectors.gather(1, step[:, :, None].expand(-1, -1, vectors.shape[2]))
        seen = None if ranks is None else ranks.gather(1, step[:, :, None].expand(-1, -1, TOKENS))
        encoded = model(piece, seen, append=Append.after(cache, start, max(counts), TOKENS, packing))
        for row, count in enumerate(counts):
            found[row, start[row] : start[row] + count] = encoded[row, :count]
        start = start + torch.tensor(counts)
    assert start.tolist() == [TOKENS] * rows
    return found


PIECES = {
    "one by one": [(1, 1)] * TOKENS,
    "several": [(3, 3), (4, 4)],
    "ragged": [(3, 1), (0, 4), (3, 0), (1, 2)],
}


@torch.no_grad()
@pytest.mark.parametrize("pieces", list(PIECES))
@pytest.mark.parametrize("inserts", [False, True])
def test_rotary_tokens_encoded_against_the_cache_equal_one_pass(pieces, inserts):
    model, vectors = llama(), embedded()
    ranks = ranks_of_order(ORDER) if inserts else None
    found = encoded_in_pieces(model, vectors, ranks, PIECES[pieces])
    torch.testing.assert_close(found, model(vectors, ranks), rtol=0, atol=1e-12)


@torch.no_grad()
def test_turning_by_the_ranks_of_a_step_equals_turning_each_pair_by_its_offset():
    model, vectors = llama(), embedded()
    ranks = ranks_of_order(ORDER)
    offsets = ranks - ranks.diagonal(dim1=1, dim2=2)[:, :, None]
    expected = torch.stack([slow(model, *row) for row in zip(vectors, offsets, strict=True)])
    torch.testing.assert_close(model(vectors, ranks), expected, rtol=0, atol=1e-11)
    appended = torch.arange(TOKENS).expand(2, TOKENS, TOKENS)  # ranks of texts that are written from left to right
    torch.testing.assert_close(model(vectors, appended), model(vectors), rtol=0, atol=1e-12)


@torch.no_grad()
def test_ranks_of_single_insertions_are_what_a_rotary_encoder_takes():
    """Ranks kept step by step, as a decoder does, instead of those of the whole order."""
    model, vectors = llama(), embedded()
    whole = model(vectors, ranks_of_order(ORDER))
    shape = model.shape
    cache = KeyValueCache.empty(2, shape.layers, shape.cached_heads, TOKENS + 1, shape.head_width, vectors)
    ends = torch.tensor([[[0, 1, 0, 0, 0, 0, 0]] * 2] * 2)
    model(vectors[:, :2], ends[:, :, :2], append=Append.after(cache, torch.zeros(2, dtype=torch.long), 2, 2))
    rank = ends[:, 0]
    for step in range(2, TOKENS):
        length = torch.full((2,), step)
        slot = (ORDER[:, :step] < ORDER[:, step : step + 1]).sum(dim=1, keepdim=True) - 1
        rank, seen = insert_into_ranks(rank, length, slot, torch.ones(2, 1, dtype=torch.bool))
        append = Append.after(cache, length, 1, step + 1)
        one = model(vectors[:, step : step + 1], seen[:, :, : step + 1], append=append)
        torch.testing.assert_close(one, whole[:, step : step + 1], rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("bias_heads", [None, 1, 6])
def test_groups_of_queries_share_a_key_head(bias_heads):
    """As if the key heads were repeated, in scores with a bias for each head, for all heads, or with none."""
    query = torch.randn(3, 6, 4, 8, dtype=torch.float64)
    memory = torch.randn(3, 2, 5, 8, dtype=torch.float64), torch.randn(3, 2, 5, 8, dtype=torch.float64)
    bias = None if bias_heads is None else torch.randn(3, bias_heads, 4, 5, dtype=torch.float64)
    repeated = tuple(part.repeat_interleave(3, dim=1) for part in memory)
    torch.testing.assert_close(attend(query, memory, bias), attend(query, repeated, bias), rtol=0, atol=1e-14)


@torch.no_grad()
def test_a_block_looks_at_a_source_between_its_attention_and_its_feed_forward_part():
    """Cross-attention written out; a padded source token changes nothing."""
    block = Block(LLAMA, MemoryAttention(LLAMA), MemoryAttention(LLAMA)).double().eval()
    hidden = torch.randn(2 * 3, LLAMA.width, dtype=torch.float64)
    source = torch.randn(2, 5, LLAMA.width, dtype=torch.float64)
    keys_values = block.memory_attention.projections.keys_values(source.flatten(0, 1))
    keys, values = memory_of(keys_values.view(2, 5, 2, 2, 4))
    hides = torch.tensor([[[False] * 5], [[False] * 3 + [True] * 2]])

    def read(keys):
        about_source = Context((2, 3), memory=(keys, values), bias=bias_of(hides, hidden))
        return block(hidden, Context((2, 3), causal=True, source=about_source))

    changed = keys.clone()
    changed[1, :, 3:].normal_()
    assert torch.equal(read(changed), read(keys))
    after_own = hidden + block.attention(block.attention_norm(hidden), Context((2, 3), causal=True))
    query = block.memory_norm(after_own) @ block.memory_attention.projections.query_key_value.weight[:24].T
    expected = torch.zeros(6, 24, dtype=torch.float64)
    for place in range(6):
        row, seen = place // 3, 5 if place < 3 else 3
        for head in range(6):
            part = slice(4 * head, 4 * head + 4)
            scores = keys[row, head // 3, :seen] @ query[place, part] / 2
            expected[place, part] = scores.softmax(0) @ values[row, head // 3, :seen]
    after_source = after_own + block.memory_attention.projections.output(expected)
    gate, up = block.expand(block.feed_forward_norm(after_source)).chunk(2, dim=1)
    expected = after_source + block.contract(gate.sigmoid() * gate * up)
    torch.testing.assert_close(read(keys), expected, rtol=0, atol=1e-12)
