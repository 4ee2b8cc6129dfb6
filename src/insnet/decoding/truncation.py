"""Which part of a distribution is drawn from, and the draw.

Shapes: B rows, N choices. Log-probabilities need not be normalised; what is ruled out is -inf.
"""

import math

import torch
from torch import Tensor


def draw(log_probs: Tensor, noise: Tensor) -> Tensor:
    """One index a row (B,) by inverting the distribution (B, N) at `noise` (B,); never one without mass."""
    probs = (log_probs.double() - log_probs.double().amax(dim=1, keepdim=True)).exp().nan_to_num(0.0)
    reached = probs.cumsum(dim=1)
    total = reached[:, -1:]
    below = torch.nextafter(total, torch.zeros_like(total))  # rounding must not carry noise close to 1 past all mass
    index = torch.searchsorted(reached, (noise[:, None] * total).minimum(below), right=True)[:, 0]
    return index.clamp_max(log_probs.shape[1] - 1)


def keep_top_k(log_probs: Tensor, k: int) -> Tensor:
    """Everything but the k largest of each row set to -inf; 0 keeps all. Of equals, those with smaller index stay."""
    if k == 0 or k >= log_probs.shape[1]:
        return log_probs
    kept = log_probs.topk(k, dim=1).values
    above = log_probs > kept[:, -1:]  # fewer than k; the rest are equals of the k-th, which topk takes in any order
    equal = log_probs == kept[:, -1:]
    is_kept = above | (equal & (equal.cumsum(dim=1) <= k - above.sum(dim=1, keepdim=True)))
    return log_probs.masked_fill(~is_kept, -math.inf)


def likeliest(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row (B, K) and where they stand (B, K), by index; 0 takes all. What `keep_top_k` keeps, for
    work that need not look at the rest: a vocabulary has thousands of choices."""
    if k == 0 or k >= log_probs.shape[1]:
        return log_probs, torch.arange(log_probs.shape[1], device=log_probs.device).expand_as(log_probs)
    found = log_probs.topk(k, dim=1)
    smallest = found.values[:, -1:]
    if bool((((log_probs >= smallest).sum(dim=1) > k) & smallest[:, 0].isfinite()).any()):  # equals: see keep_top_k
        found = keep_top_k(log_probs, k).topk(k, dim=1)
    index = found.indices.sort(dim=1).values
    return log_probs.gather(1, index), index


def keep_top_mass(log_probs: Tensor, mass: float) -> Tensor:
    """The smallest set of each row that holds `mass` of it; the rest is set to -inf."""
    return log_probs if mass >= 1 else _keep_mass(log_probs, mass, -log_probs)


def keep_typical(log_probs: Tensor, mass: float) -> Tensor:
    """The tokens of each row whose surprise is nearest to the expected one, until they hold `mass`; the rest is -inf.

    Locally typical sampling (Meister et al., 2022). A row without any choice is left as it is.
    """
    if mass >= 1:
        return log_probs
    surprise = -log_probs.double().log_softmax(dim=1)  # (B, N)
    expected = (surprise.neg().exp() * surprise).nan_to_num(0.0).sum(dim=1, keepdim=True)  # 0 * inf is 0 here
    distance = (surprise - expected).abs()
    return _keep_mass(log_probs, mass, torch.where(log_probs.isfinite(), distance, math.inf))


def keep_min_p(log_probs: Tensor, share: float) -> Tensor:
    """Choices less likely than `share` of the row's likeliest set to -inf; 0 keeps all."""
    if share == 0:
        return log_probs
    return log_probs.masked_fill(log_probs < log_probs.amax(dim=1, keepdim=True) + math.log(share), -math.inf)


def _keep_mass(log_probs: Tensor, mass: float, key: Tensor) -> Tensor:
    """The fewest choices of each row that hold `mass` of it when taken by `key` (B, N), smallest first."""
    order = key.sort(dim=1, stable=True).indices
    ordered = log_probs.gather(1, order)
    probs = ordered.double().softmax(dim=1)
    is_kept = (probs.cumsum(dim=1) - probs) < mass
    kept = ordered.masked_fill(~is_kept, -math.inf)
    return torch.full_like(log_probs, -math.inf).scatter(1, order, kept)
