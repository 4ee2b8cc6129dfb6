"""How a slot looks at the canvas, token by token and head by head: the slow twin of insnet.layers.reader."""

import math

import torch


def read_slowly(family, vector, encoded, places, left):
    """The vector (D,) of the slot right of token `left` after it has looked at all tokens, encoded (K, D) and standing
    at these places of the finished text; as it is for a model whose slots do not look."""
    if not family.config.slot_layers:
        return vector
    canvas = sorted(places)
    rank = [canvas.index(place) for place in places]
    for block in family.reader.blocks:
        vector = vector + _attended(block.attention, block.attention_norm(vector), encoded, rank, rank[left], family)
        inner = torch.nn.functional.gelu(block.expand(block.feed_forward_norm(vector)))
        vector = vector + block.contract(inner)
    return family.reader.norm(vector)


def _attended(attention, asking, encoded, rank, slot, family):
    width, heads = family.config.width, family.config.heads
    size = width // heads
    weight, bias = attention.projections.query_key_value.weight, attention.projections.query_key_value.bias
    query, keys, values = (
        vectors @ weight[first : first + width].T + bias[first : first + width]
        for vectors, first in ((asking, 0), (encoded, width), (encoded, 2 * width))
    )
    results = []
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        content, position = attention.content_bias[head, 0], attention.position_bias[head, 0]
        scores = []
        for token, place in enumerate(rank):
            distance = place - slot if place > slot else place - slot - 1  # a token put there moves what stands right
            distance = max(-1, min(1, distance)) if family.config.truncated else distance
            key_of_offset = attention.position.weight[part] @ _sinusoid(distance, width)
            score = (query[part] + content) @ keys[token, part] + (query[part] + position) @ key_of_offset
            scores.append(score / math.sqrt(size))
        results.append(torch.stack(scores).softmax(0) @ values[:, part])
    return attention.projections.output(torch.cat(results))


def _sinusoid(offset, width):
    angles = [offset * 10_000.0 ** (-index / width) for index in range(0, width, 2)]
    return torch.tensor([*map(math.sin, angles), *(math.cos(angle) - 1 for angle in angles)], dtype=torch.float64)
