"""The loss of a large vocabulary whose matrix stays as it is: a few rows of logits at a time, their gradient at once.

A row's loss depends on its own vector alone, so the gradient for the vector is known as soon as the logits are, and
nothing as large as all logits is ever kept.

Shapes: N decisions, D width, V vocabulary.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_MOST_LOGITS = {"cpu": 1 << 22, "cuda": 1 << 28}  # at a time: 16 MiB of a processor's cache, or 1 GiB


def nats_under_frozen(vectors: Tensor, weight: Tensor, target: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """-log p(target) (N,) of vectors (N, D) under a matrix (V, D) that learns nothing; in float32 or better."""
    if torch.is_autocast_enabled(vectors.device.type):
        half = torch.get_autocast_dtype(vectors.device.type)
        vectors, weight = vectors.to(half), weight.to(half)
    nats: Tensor = _FrozenNats.apply(vectors, weight, target, label_smoothing)  # type: ignore[no-untyped-call]
    return nats


class _FrozenNats(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, vectors: Tensor, weight: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
        rows = max(1, _MOST_LOGITS.get(vectors.device.type, 1 << 24) // len(weight))
        wants_gradient = context.needs_input_grad[0]
        nats, gradients = [], []
        for part, wanted in zip(torch.split(vectors, rows), torch.split(target, rows), strict=True):
            logits = F.linear(part, weight)
            logits = logits if logits.dtype == torch.float64 else logits.float()
            log_probs = logits.log_softmax(dim=1)
            at_target = log_probs.gather(1, wanted[:, None])[:, 0]
            nats.append(-(1 - label_smoothing) * at_target - label_smoothing * log_probs.mean(dim=1))
            if wants_gradient:
                share = log_probs.exp_().sub_(label_smoothing / len(weight))
                less = torch.full_like(at_target, label_smoothing - 1)
                share.scatter_add_(1, wanted[:, None], less[:, None])
                gradients.append(share.to(weight.dtype) @ weight)
        context.save_for_backward(torch.cat(gradients) if gradients else torch.empty_like(vectors))
        return torch.cat(nats) if nats else vectors.new_zeros(0)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (saved,) = context.saved_tensors
        return (gradients[0][:, None] * saved).to(saved.dtype), None, None, None
