"""How a slot looks at the canvas, head by head: the slow twin of insnet.layers.reader."""

import math

import torch


def read_slowly(family, vector, encoded, places, left):
    """The vector (D,) of the slot right of token `left` after it has looked at all tokens, encoded (K, D) and standing
    at these places of the finished text; as it is for a model whose slots do not look."""
    if not family.config.slot_layers:
        return vector
    canvas = sorted(places)
    rank = [canvas.index(place) for place in places]
    slot = rank[left]
    distances = [place - slot if place > slot else place - slot - 1 for place in rank]  # a token there moves the right
    if family.config.truncated:
        distances = [max(-1, min(1, distance)) for distance in distances]
    sinusoids = torch.stack([_sinusoid(distance, family.config.width) for distance in distances])  # (K, D)
    for block in family.reader.blocks:
        vector = vector + _attended(block.attention, block.attention_norm(vector), encoded, sinusoids, family.config)
        inner = torch.nn.functional.gelu(block.expand(block.feed_forward_norm(vector)))
        vector = vector + block.contract(inner)
    return family.reader.norm(vector)


def _attended(attention, asking, encoded, sinusoids, config):
    size = config.width // config.heads
    weight, bias = attention.projections.query_key_value.weight, attention.projections.query_key_value.bias
    query, keys, values = (
        vectors @ weight[first : first + config.width].T + bias[first : first + config.width]
        for vectors, first in ((asking, 0), (encoded, config.width), (encoded, 2 * config.width))
    )
    results = []
    for head in range(config.heads):
        part = slice(head * size, (head + 1) * size)
        content, position = attention.content_bias[head, 0], attention.position_bias[head, 0]
        keys_of_offsets = sinusoids @ attention.position.weight[part].T  # (K, size)
        scores = keys[:, part] @ (query[part] + content) + keys_of_offsets @ (query[part] + position)
        results.append((scores / math.sqrt(size)).softmax(0) @ values[:, part])
    return attention.projections.output(torch.cat(results))


def _sinusoid(offset, width):
    angles = [offset * 10_000.0 ** (-index / width) for index in range(0, width, 2)]
    return torch.tensor([*map(math.sin, angles), *(math.cos(angle) - 1 for angle in angles)], dtype=torch.float64)
