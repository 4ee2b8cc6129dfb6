"""What turns gradients into steps: AdamW, or Muon for the matrices inside a model and AdamW for the rest.

Muon (Jordan and others, 2024) makes every step of a matrix as large in all directions. Its steps are scaled to the size
that AdamW's have, so that one learning rate serves both. Embeddings and heads, whose rows are words or decisions of
their own, stay with AdamW, as do biases and norms.
"""

from typing import Literal

import torch
from torch import nn

from insnet.training.muon import Muon

OptimizerName = Literal["adamw", "muon"]


def make_optimizers(
    model: nn.Module, *, learning_rate: float, weight_decay: float, name: OptimizerName = "adamw"
) -> list[torch.optim.Optimizer]:
    """All that must step, each parameter that learns in one of them; matrices and embeddings decay."""
    learning = {key: value for key, value in model.named_parameters() if value.requires_grad}
    inner = {key: value for key, value in learning.items() if name == "muon" and is_inner_matrix(key, value)}
    rest = {key: value for key, value in learning.items() if key not in inner}
    decayed = [value for key, value in rest.items() if value.dim() >= 2 and not key.endswith("bias")]
    kept = [value for key, value in rest.items() if value.dim() < 2 or key.endswith("bias")]
    optimizers: list[torch.optim.Optimizer] = []
    if inner:
        optimizers.append(Muon(list(inner.values()), lr=learning_rate, weight_decay=weight_decay))
    if rest:
        groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": kept, "weight_decay": 0.0}]
        is_on_gpu = all(parameter.is_cuda for parameter in model.parameters())
        own = [group for group in groups if group["params"]]
        optimizers.append(torch.optim.AdamW(own, lr=learning_rate, fused=is_on_gpu))
    return optimizers


def is_inner_matrix(name: str, parameter: nn.Parameter) -> bool:
    """Whether a parameter maps vectors of the model to vectors of the model.

    >>> is_inner_matrix("encoder.blocks.0.expand.weight", nn.Parameter(torch.zeros(8, 4)))
    True
    >>> is_inner_matrix("stop_head.weight", nn.Parameter(torch.zeros(8, 4)))
    False
    """
    part = name.split(".")[0]
    return parameter.dim() == 2 and not part.endswith(("embedding", "head"))
