"""Weights in eight bits for the shelf: each row of a matrix as int8 and one scale, restored to floats when loaded.

A fourth of float32's size; the products themselves still run in floating point.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE_SUFFIX = ".int8_scale"
_SMALLEST = 4096  # elements; below this a tensor is not worth its scales
_LARGEST = 127


def quantized(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights with every large matrix as int8 rows and, beside it, a float32 scale per row."""
    stored: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if tensor.dim() == 2 and tensor.numel() >= _SMALLEST and tensor.is_floating_point():
            scale = tensor.float().abs().amax(dim=1).clamp_min(1e-12) / _LARGEST  # (rows,)
            stored[name] = (tensor.float() / scale[:, None]).round().to(torch.int8)
            stored[name + SCALE_SUFFIX] = scale
        else:
            stored[name] = tensor
    return stored


def restored(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Float32 weights from what `quantized` gave; other weights are left as they are."""
    weights: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if name.endswith(SCALE_SUFFIX):
            continue
        scale = stored.get(name + SCALE_SUFFIX)
        weights[name] = tensor if scale is None else tensor.float() * scale[:, None]
    return weights
