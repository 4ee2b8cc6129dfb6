"""What tells attention where tokens stand: sinusoids of offsets, and rotations.

Shapes: B rows, Q queries, K keys, D width, H heads, W = D/H, R = 2 * reach + 1 offsets from -reach to +reach.
"""

import torch
from torch import Tensor

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines (..., W/2) of a position's angles."""


def rotate(vectors: Tensor, rotation: Rotation) -> Tensor:
    """Vectors (..., W) turned by their positions' angles; the pairs are coordinates i and i + W/2, as in Llama."""
    cosine, sine = rotation
    first, second = vectors.chunk(2, dim=-1)
    turned = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
    return turned.to(vectors.dtype)


def rotation_of(positions: Tensor, head_width: int, base: float, dtype: torch.dtype) -> Rotation:
    """Cosines and sines (..., W/2) of positions (...)."""
    angle = positions[..., None].double() * _frequencies(head_width, base, positions.device)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def reach_among(tokens: int, *, truncated: bool) -> int:
    """The largest offset among so many tokens, as a model sees it."""
    return 1 if truncated else max(tokens - 1, 1)


def sinusoids_of_offsets(reach: int, width: int, like: Tensor) -> Tensor:
    """Sines and cosines (R, D) of the offsets from -reach to +reach, less those of offset 0; index by adding `reach`.

    What all offsets have in common adds the same to all keys and is nothing to a softmax, so nothing holds it back:
    left in, it grew to hundreds of times the differences, which 16 bits then rounded away, and training diverged.
    """
    offset = torch.arange(-reach, reach + 1, device=like.device, dtype=torch.float64)
    angle = offset[:, None] * _frequencies(width, 10_000.0, like.device)  # (R, D/2)
    return torch.cat([angle.sin(), angle.cos() - 1], dim=1).to(like.dtype)


def offset_index(offsets: Tensor, hides: Tensor, position_keys: Tensor, heads: int) -> Tensor:
    """The column (B, H, Q, K) of `position_keys` (..., R + 1) for each pair: its offset (B, Q, K), at most the reach;
    the last, which is -inf, where a key is hidden."""
    columns = position_keys.shape[-1]
    reach = columns // 2 - 1
    index = (offsets.clamp(-reach, reach) + reach).masked_fill(hides, columns - 1)
    return index.long()[:, None].expand(-1, heads, -1, -1)


def _frequencies(width: int, base: float, device: torch.device) -> Tensor:
    exponent = torch.arange(0, width, 2, device=device, dtype=torch.float64) / width
    return torch.pow(base, -exponent)
