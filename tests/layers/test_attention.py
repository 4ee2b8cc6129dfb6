"""Attention against slow loops written from the equations, causality in insertion order, and the cache."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from insnet.insertion.offsets import offsets_of_order, ranks_of_order
from insnet.layers.attention import OffsetAttention, RotaryAttention
from insnet.layers.cache import Append, KeyValueCache
from insnet.layers.context import Context, bias_of, contexts_of_layers
from insnet.layers.heads import TokenHead
from insnet.layers.packing import Packing
from insnet.layers.positions import offset_index, rotate, rotation_of, sinusoids_of_offsets
from insnet.layers.shape import TransformerShape
from insnet.layers.transformer import OffsetTransformer, RotaryTransformer

WIDTH, HEADS, TOKENS = 12, 2, 7
ORDER = torch.tensor([[0, 6, 2, 4, 1, 3, 5], [0, 6, 5, 4, 3, 2, 1]])
SHAPE = TransformerShape(WIDTH, 2, HEADS, 0.0)
LATER = torch.ones(1, TOKENS, TOKENS, dtype=torch.bool).triu(1)


def shaken(module):
    for parameter in module.parameters():
        parameter.data.normal_()
    return module.double().eval()


def sinusoid(offset, width):
    """Sines of the offset at falling frequencies, then cosines."""
    angles = [offset / 10_000 ** (2 * k / width) for k in range(width // 2)]
    return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles], dtype=torch.float64)


def attended_by_offset(module, hidden, offsets, reach):
    """What the module makes of hidden states (B, T, D)."""
    keys = module.position_keys(sinusoids_of_offsets(reach, WIDTH, hidden))
    index = offset_index(offsets, LATER, keys, HEADS)
    context = Context(tuple(hidden.shape[:2]), position_keys=(keys[:, :-1], keys[:, -1:]), offset_index=index)
    return module(hidden.flatten(0, 1), context).view(hidden.shape)


def slow_offset_attention(module, hidden, offsets):
    """Section 3.1: score = q'k + q'p + u'k + v'p, over the tokens inserted until now; head by head, pair by pair."""
    head_width = WIDTH // HEADS
    qkv = module.projections.query_key_value
    rows = []
    for b in range(hidden.shape[0]):
        outputs = []
        for t in range(hidden.shape[1]):
            heads = []
            for h in range(HEADS):
                part = slice(h * head_width, (h + 1) * head_width)
                weights = [qkv.weight[i * WIDTH : (i + 1) * WIDTH][part] for i in range(3)]
                biases = [qkv.bias[i * WIDTH : (i + 1) * WIDTH][part] for i in range(3)]
                query = weights[0] @ hidden[b, t] + biases[0]
                u, v = module.content_bias[h, 0], module.position_bias[h, 0]
                scores, values = [], []
                for j in range(t + 1):
                    key = weights[1] @ hidden[b, j] + biases[1]
                    place = module.position.weight[part] @ sinusoid(int(offsets[b, t, j]), WIDTH)
                    scores.append((query @ key + query @ place + u @ key + v @ place) / math.sqrt(head_width))
                    values.append(weights[2] @ hidden[b, j] + biases[2])
                heads.append(torch.stack(scores).softmax(0) @ torch.stack(values))
            outputs.append(module.projections.output(torch.cat(heads)))
        rows.append(torch.stack(outputs))
    return torch.stack(rows)


@torch.no_grad()
@pytest.mark.parametrize("reach", [TOKENS - 1, 1])
def test_offset_attention_equals_the_equation(reach):
    """Also truncated: offsets clamped to [-1, 1] before the sinusoid."""
    module = shaken(OffsetAttention(SHAPE))
    hidden = torch.randn(2, TOKENS, WIDTH, dtype=torch.float64)
    offsets = offsets_of_order(ORDER)
    found = attended_by_offset(module, hidden, offsets, reach)
    expected = slow_offset_attention(module, hidden, offsets.clamp(-reach, reach))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@torch.no_grad()
def test_what_all_offsets_have_in_common_costs_no_precision():
    """A large weight of the slowest cosine, nearly the same for all offsets, is nothing to a softmax: with 16-bit
    products it must not drown what tells offsets apart."""
    module = shaken(OffsetAttention(SHAPE)).float()
    hidden = torch.randn(2, TOKENS, WIDTH)

    def attended():
        with torch.autocast("cpu", torch.bfloat16):
            return attended_by_offset(module, hidden, offsets_of_order(ORDER), TOKENS - 1).float()

    before = attended()
    module.position.weight[:, -1] += 256
    torch.testing.assert_close(attended(), before, rtol=0, atol=0.2)


def encoder(truncated=False):
    return shaken(OffsetTransformer(SHAPE, truncated=truncated))


@torch.no_grad()
def test_a_truncated_encoder_sees_directions_only():
    """Offsets of 2 and of 5 look the same to it, and not to the full one; -1 and +1 differ for both."""
    embedded = torch.randn(1, 3, WIDTH, dtype=torch.float64)
    near = torch.tensor([[[0, 0, 0], [-2, 0, 0], [-3, 2, 0]]])
    far = torch.tensor([[[0, 0, 0], [-5, 0, 0], [-4, 5, 0]]])
    for truncated in (True, False):
        model = encoder(truncated)
        keys = model.position_keys(9, embedded)
        assert keys.shape[3] == (3 if truncated else 17) + 1
        assert model.reaches(keys, 9) and model.reaches(keys, 10) == truncated
        same = torch.allclose(*(model(embedded, o, position_keys=keys) for o in (near, far)), rtol=0, atol=1e-12)
        assert same == truncated
        mirrored = torch.allclose(*(model(embedded, o, position_keys=keys) for o in (near, -near)), rtol=0, atol=1e-6)
        assert not mirrored


@torch.no_grad()
def test_ranks_count_from_anywhere():
    model = encoder()
    embedded = torch.randn(2, TOKENS, WIDTH, dtype=torch.float64)
    by_offsets = model(embedded, offsets_of_order(ORDER))
    assert torch.equal(model(embedded, ranks_of_order(ORDER)), by_offsets)
    assert torch.equal(model(embedded, ranks_of_order(ORDER) + 100), by_offsets)


@torch.no_grad()
def test_changing_a_later_token_changes_no_earlier_row():
    model = encoder()
    embedded = torch.randn(2, TOKENS, WIDTH, dtype=torch.float64)
    before = model(embedded, offsets_of_order(ORDER))
    for step in range(1, TOKENS):
        changed = embedded.clone()
        changed[:, step].normal_()
        after = model(changed, offsets_of_order(ORDER))
        assert torch.equal(after[:, :step], before[:, :step])
        assert not torch.isclose(after[:, step:], before[:, step:]).all(dim=-1).any()


@torch.no_grad()
def test_inserting_another_token_later_changes_no_earlier_row():
    """Offsets are counted when a token goes in: the first k rows do not know how the sentence goes on."""
    model = encoder()
    embedded = torch.randn(1, TOKENS, WIDTH, dtype=torch.float64)
    whole = model(embedded, offsets_of_order(ORDER[:1]))
    for kept in range(2, TOKENS):
        ranks = ORDER[:1, :kept].argsort(dim=1).argsort(dim=1)
        prefix = model(embedded[:, :kept], offsets_of_order(ranks))
        torch.testing.assert_close(prefix, whole[:, :kept], rtol=0, atol=1e-12)


@torch.no_grad()
def test_tokens_encoded_in_pieces_against_the_cache_equal_one_pass():
    model = encoder()
    embedded = torch.randn(2, TOKENS, WIDTH, dtype=torch.float64)
    offsets = offsets_of_order(ORDER).long()
    whole = model(embedded, offsets)
    cache = KeyValueCache.empty(2, 2, HEADS, TOKENS + 4, WIDTH // HEADS, embedded)
    keys = model.position_keys(TOKENS + 3, embedded)
    for first, last in ((0, 3), (3, 4), (4, 7)):
        start = torch.full((2,), first)
        piece = model(
            embedded[:, first:last],
            offsets[:, first:last, :last],
            append=Append.after(cache, start, last - first, last),
            position_keys=keys,
        )
        torch.testing.assert_close(piece, whole[:, first:last], rtol=0, atol=1e-12)


@torch.no_grad()
def test_tokens_packed_without_padding_equal_one_pass():
    """Rows that get different numbers of tokens per round, none at times: only what holds a token is computed."""
    model = encoder()
    embedded = torch.randn(2, TOKENS, WIDTH, dtype=torch.float64)
    offsets = offsets_of_order(ORDER).long()
    whole = model(embedded, offsets)
    cache = KeyValueCache.empty(2, 2, HEADS, TOKENS + 8, WIDTH // HEADS, embedded)
    keys = model.position_keys(TOKENS + 3, embedded)
    start = torch.zeros(2, dtype=torch.long)
    for counts in ((3, 1), (0, 4), (3, 0), (1, 2)):
        places = torch.arange(max(counts))
        holds_token = places < torch.tensor(counts)[:, None]  # (B, Q)
        step = (start[:, None] + places).clamp_max(TOKENS - 1)
        padded = embedded.gather(1, step[:, :, None].expand(-1, -1, WIDTH)).masked_fill(~holds_token[:, :, None], 99.0)
        own_offsets = offsets.gather(1, step[:, :, None].expand(-1, -1, TOKENS))
        packing = Packing.of(holds_token)
        assert packing is not None and len(packing.row) == sum(counts)
        piece = model(
            padded, own_offsets, append=Append.after(cache, start, max(counts), TOKENS, packing), position_keys=keys
        )
        for row, count in enumerate(counts):
            wanted = whole[row, start[row] : start[row] + count]
            torch.testing.assert_close(piece[row, :count], wanted, rtol=0, atol=1e-12)
            assert piece[row, count:].eq(0).all()
        start = start + torch.tensor(counts)
    assert start.tolist() == [TOKENS, TOKENS]
    assert Packing.of(torch.ones(2, 3, dtype=torch.bool)) is None and Packing.of(holds_token[:, :1]) is None


class Operations(TorchDispatchMode):
    """The names of all operations that are dispatched."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


@torch.no_grad()
@pytest.mark.parametrize("inserts", [True, False])
def test_a_decoding_step_makes_few_operations_and_none_that_waits_for_the_device(inserts):
    model = encoder() if inserts else shaken(RotaryTransformer(SHAPE))
    cache = KeyValueCache.empty(2, 2, HEADS, TOKENS + 1, WIDTH // HEADS, torch.zeros(1, dtype=torch.float64))
    one, start = torch.randn(2, 1, WIDTH, dtype=torch.float64), torch.tensor([4, 2])
    seen, keys = torch.randint(5, (2, 1, 5)), encoder().position_keys(TOKENS, one)
    with Operations() as operations:
        append = Append.after(cache, start, 1, 5)
        _ = model(one, seen, append=append, position_keys=keys) if inserts else model(one, append=append)
    assert len(operations.names) <= (90 if inserts else 102)
    assert not [name for name in operations.names if "local_scalar" in name or "nonzero" in name or "item" in name]


def test_cache_appends_at_each_rows_own_place_and_wastes_overflow():
    cache = KeyValueCache.empty(2, 3, 1, 5, 2, torch.zeros(0, dtype=torch.float64))
    first = torch.arange(8, dtype=torch.float64).view(4, 1, 2) + 1  # (T, G, W)
    keys, values = cache.memory(used=4)[1]
    Append.after(cache, torch.tensor([0, 2]), 2, 4).write(1, torch.cat([first, -first], dim=1))
    assert keys[:, 0].tolist() == [[[1, 2], [3, 4], [0, 0], [0, 0]], [[0, 0], [0, 0], [5, 6], [7, 8]]]
    assert torch.equal(values, -keys)
    assert cache.store[:, 0].eq(0).all() and cache.store[:, 2].eq(0).all()
    before = cache.store.clone()
    Append.after(cache, torch.tensor([2, 9]), 1, 5).write(1, torch.full((2, 2, 2), 50.0))
    changed = (cache.store != before).any(dim=-1)[:, :, 0].nonzero().tolist()
    assert changed == [[0, 1, 0, 2], [1, 1, 0, 4]]  # the full row wrote into the waste bin, and nowhere else


@torch.no_grad()
def test_rotary_scores_depend_on_distance_alone():
    query, key = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64)

    def score(at_query, at_key):
        turned = [
            rotate(x, rotation_of(torch.tensor([[[p]]]), 8, 10_000.0, torch.float64))
            for x, p in ((query, at_query), (key, at_key))
        ]
        return float((turned[0] * turned[1]).sum())

    assert score(9, 4) == pytest.approx(score(105, 100), abs=1e-12)
    assert abs(score(9, 4) - score(9, 5)) > 1e-3
    turned = rotate(query, rotation_of(torch.tensor([[[77]]]), 8, 10_000.0, torch.float64))
    assert float(turned.norm()) == pytest.approx(float(query.norm()), abs=1e-12)


@torch.no_grad()
def test_rotary_attention_equals_a_slow_loop_and_its_cached_self():
    module = shaken(RotaryAttention(SHAPE))
    hidden = torch.randn(TOKENS, WIDTH, dtype=torch.float64)
    rotation = rotation_of(torch.arange(TOKENS)[:, None], WIDTH // HEADS, 10_000.0, torch.float64)
    query, key, value = module.projections.mixed(hidden).chunk(3, dim=1)  # (T, H, W)
    query, key = rotate(query, rotation), rotate(key, rotation)
    attended = torch.zeros_like(query)
    for head in range(HEADS):
        for t in range(TOKENS):
            scores = torch.stack([query[t, head] @ key[j, head] for j in range(t + 1)])
            attended[t, head] = (scores / math.sqrt(WIDTH // HEADS)).softmax(0) @ value[: t + 1, head]
    whole = module(hidden, Context((1, TOKENS), rotation=rotation, causal=True))
    torch.testing.assert_close(whole, module.projections.output(attended.flatten(1)), rtol=0, atol=1e-12)
    cache = KeyValueCache.empty(1, 1, HEADS, TOKENS + 1, WIDTH // HEADS, hidden)
    for t in range(TOKENS):
        here = tuple(part[t : t + 1] for part in rotation)
        append = Append.after(cache, torch.tensor([t]), 1, t + 1)
        context = Context((1, 1), append, rotation=here, bias=bias_of(append.hides(), hidden))
        one = module(hidden[t : t + 1], contexts_of_layers(context, 1)[0])
        torch.testing.assert_close(one, whole[t : t + 1], rtol=0, atol=1e-12)


@torch.no_grad()
def test_rotary_transformer_is_causal():
    model = shaken(RotaryTransformer(SHAPE))
    embedded = torch.randn(1, TOKENS, WIDTH, dtype=torch.float64)
    before = model(embedded)
    changed = embedded.clone()
    changed[:, 4].normal_()
    assert torch.equal(model(changed)[:, :4], before[:, :4])
    assert not torch.isclose(model(changed)[:, 4:], before[:, 4:]).all(dim=-1).any()


def test_token_head_gives_no_mass_to_what_is_never_predicted():
    head = TokenHead(9, predictable_specials=(4,), specials=5)
    for dtype in (torch.float32, torch.bfloat16):
        probs = head.to(dtype)(torch.randn(6, 3, dtype=dtype), torch.randn(9, 3, dtype=dtype)).float().softmax(dim=-1)
        assert probs[:, :4].eq(0).all() and probs[:, 4:].gt(0).all()


def test_impossible_shapes_are_refused_in_a_sentence():
    for shape, words in (((10, 1, 4, 0.0), "even multiple"), ((8, 0, 2, 0.0), "layers"), ((8, 1, 2, 1.0), "dropout")):
        with pytest.raises(ValueError, match=words):
            TransformerShape(*shape)
    with pytest.raises(ValueError, match="divisor of heads 6"):
        TransformerShape(12, 1, 6, 0.0, key_heads=4)
