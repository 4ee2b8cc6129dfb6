"""Which part of a distribution is drawn from, and the draw.

Shapes: B rows, N choices. Log-probabilities need not be normalised; what is ruled out is -inf.
"""

import math

import torch
from torch import Tensor

_BLOCK = 128  # choices
_SPARE = 8  # equals of the k-th likeliest that are told apart


@torch.no_grad()
def draw(log_probs: Tensor, noise: Tensor) -> Tensor:
    """One index per row (B,) by inverting the distribution (B, N) at `noise` (B,); never one without mass.

    Where there are many choices in two steps, a block of them and then one of the block: of a whole vocabulary only
    these are summed up one by one, in float64.
    """
    rows, choices = log_probs.shape
    largest = log_probs.amax(dim=1, keepdim=True)
    largest = largest.masked_fill(largest == -math.inf, 0.0)
    if choices <= 2 * _BLOCK:
        few = (log_probs - largest).double().exp()
        return _inverted(few, noise * few.sum(dim=1))[0]
    probs = log_probs.new_empty(rows, -(-choices // _BLOCK) * _BLOCK)  # the last block is filled up with nothing
    torch.sub(log_probs, largest, out=probs[:, :choices])
    probs[:, choices:] = -math.inf
    blocks = probs.exp_().view(rows, -1, _BLOCK)  # (B, M, block)
    mass = blocks.sum(dim=2).double()  # (B, M)
    block, rest = _inverted(mass, noise * mass.sum(dim=1))
    place, _ = _inverted(blocks[torch.arange(rows, device=block.device), block].double(), rest)
    return (block * _BLOCK + place).clamp_max(choices - 1)  # of a row without mass: any


def _inverted(mass: Tensor, point: Tensor) -> tuple[Tensor, Tensor]:
    """The choice (B,) at which the running sum of `mass` (B, N) first exceeds `point` (B,), and by how much the sum
    before it falls short of the point; never a choice without mass, in a row that has any."""
    reached = mass.cumsum(dim=1)
    total = reached[:, -1:]
    below = torch.nextafter(total, torch.zeros_like(total))  # rounding must not carry a point past all mass
    point = point[:, None].minimum(below)
    index = torch.searchsorted(reached, point, right=True).clamp_max(mass.shape[1] - 1)
    before = reached.gather(1, index) - mass.gather(1, index)
    return index[:, 0], (point - before).clamp_min(0.0)[:, 0]


def likeliest(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row (B, K) and where they stand (B, K), by index; 0 takes all. Later work need not look at
    the rest: a vocabulary has thousands of choices.

    A few more than k are found, and of equals those with smaller index stay: more equals than that do not occur
    among real probabilities, and looking for them would wait for the device."""
    if k == 0 or k >= log_probs.shape[1]:
        return log_probs, torch.arange(log_probs.shape[1], device=log_probs.device).expand_as(log_probs)
    found = log_probs.topk(min(k + _SPARE, log_probs.shape[1]), dim=1)
    by_index = found.indices.sort(dim=1)
    values = found.values.gather(1, by_index.indices)
    best = values.sort(dim=1, descending=True, stable=True).indices[:, :k].sort(dim=1).values
    return values.gather(1, best), by_index.values.gather(1, best)


def keep_top_mass(log_probs: Tensor, mass: float) -> Tensor:
    """The smallest set of each row that holds `mass` of it; the rest is set to -inf."""
    if mass >= 1:
        return log_probs
    ordered, order = log_probs.sort(dim=1, descending=True, stable=True)
    probs = ordered.double().softmax(dim=1)
    kept = ordered.masked_fill((probs.cumsum(dim=1) - probs) >= mass, -math.inf)
    return torch.empty_like(log_probs).scatter_(1, order, kept)


def keep_min_p(log_probs: Tensor, share: float) -> Tensor:
    """Choices less likely than `share` of the row's likeliest set to -inf; 0 keeps all."""
    if share == 0:
        return log_probs
    return log_probs.masked_fill(log_probs < log_probs.amax(dim=1, keepdim=True) + math.log(share), -math.inf)
