"""Which part of a distribution is drawn from, and the draw.

Shapes: B rows, N choices. Log-probabilities need not be normalised; what is ruled out is -inf.
"""

import math

import torch
from torch import Tensor

_BLOCK = 128  # choices
_FEW = 64  # choices that mostly hold all within a share of the likeliest
_SPARE = 8  # equals of the k-th likeliest that are told apart


@torch.no_grad()
def draw(log_probs: Tensor, noise: Tensor) -> Tensor:
    """One index per row (B,) by inverting the distribution (B, N) at `noise` (B,); never one without mass.

    Where there are many choices in two steps, a block of them and then one of the block: of a whole vocabulary only
    these are summed up one by one, in float64.
    """
    rows, choices = log_probs.shape
    largest = log_probs.amax(dim=1, keepdim=True).clamp_min(torch.finfo(log_probs.dtype).min)  # finite
    if choices <= 2 * _BLOCK:
        few = (log_probs - largest).double().exp()
        return _inverted(few.cumsum(dim=1), noise)[:, 0]
    probs = log_probs.new_empty(rows, -(-choices // _BLOCK) * _BLOCK)  # the last block is filled up with nothing
    torch.sub(log_probs, largest, out=probs[:, :choices])
    probs[:, choices:] = -math.inf
    blocks = probs.exp_().view(rows, -1, _BLOCK)  # (B, M, block)
    reached = blocks.sum(dim=2).double().cumsum(dim=1)  # (B, M)
    block = _inverted(reached, noise)  # (B, 1)
    few = blocks.gather(1, block[:, :, None].expand(-1, -1, _BLOCK))[:, 0].double()
    before = torch.nn.functional.pad(reached, (1, 0)).gather(1, block)[:, 0]
    own = few.cumsum(dim=1)
    rest = (noise * reached[:, -1] - before) / own[:, -1].clamp_min(1e-300)
    place = _inverted(own, rest.clamp_max(1.0))
    return (block * _BLOCK + place)[:, 0].clamp_max(choices - 1)  # of a row without mass: any


def _inverted(reached: Tensor, share: Tensor) -> Tensor:
    """The choice (B, 1) at which a running sum (B, N) first reaches a share (B,) of its total; never one without mass,
    in a row that has any, as the share is made more than nothing."""
    point = share[:, None].clamp_min(2.0**-60) * reached[:, -1:]
    return torch.searchsorted(reached, point)


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


def within_share(log_probs: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Choices of each row (B, K) at least `share` as likely as its likeliest, by index, and where they stand (B, K);
    others are -inf or left out. Asks the device whether a few hold them all: then no later work looks at more.
    """
    few, choices = likeliest(log_probs, _FEW if share else 0)
    kept = keep_min_p(few, share)
    if share == 0 or not bool((kept > -math.inf).all(dim=1).any()):
        return kept, choices
    return keep_min_p(log_probs, share), likeliest(log_probs, 0)[1]
