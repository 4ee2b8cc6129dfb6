"""The token head, tied to the input embedding."""

import torch
from torch import Tensor, nn

_NEVER = -1e4  # exp of it is 0 in every floating point type; an infinity would spoil gradients


class TokenHead(nn.Module):
    """Logits over the vocabulary: the tied embedding and a bias; specials that are never predicted get no mass."""

    never: Tensor

    def __init__(self, vocabulary: int, predictable_specials: tuple[int, ...], specials: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        never = torch.zeros(vocabulary)
        never[[index for index in range(specials) if index not in predictable_specials]] = _NEVER
        self.register_buffer("never", never)

    def forward(self, vectors: Tensor, embedding: Tensor) -> Tensor:
        """Logits (..., V) of vectors (..., D)."""
        return nn.functional.linear(vectors, embedding, self.bias + self.never)
