"""The token head, tied to the input embedding.

Shapes: D width, V vocabulary.
"""

import torch
import torch.nn.functional as F
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
        return F.linear(vectors, embedding, self.bias + self.never)

    def nats(self, vectors: Tensor, embedding: Tensor, target: Tensor, label_smoothing: float = 0.0) -> Tensor:
        """-log p(target) (...) of vectors (..., D), in float32 or better.

        Label smoothing takes a share of the target's place and gives it to all tokens that can be predicted, alike.
        """
        logits = self(vectors, embedding)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        nats = F.cross_entropy(logits.flatten(0, -2), target.flatten(), reduction="none").view_as(target)
        if label_smoothing == 0:
            return nats
        return nats + label_smoothing * self._above_mean(vectors, embedding, target)

    def _above_mean(self, vectors: Tensor, embedding: Tensor, target: Tensor) -> Tensor:
        """How far the target's logit (...) lies above the mean of all that can be predicted: what smoothing punishes.

        Logits are linear, so that their mean is that of the mean embedding: no second pass over (..., V) values, nor
        memory for its gradient.
        """
        possible = (self.never == 0).to(embedding.dtype)
        share = possible / possible.sum()  # (V,)
        mean = (share[:, None] * embedding).sum(dim=0)  # (D,)
        products = vectors.to(embedding.dtype) * (F.embedding(target, embedding) - mean)  # (..., D)
        return products.sum(dim=-1) + self.bias[target] - (share * self.bias).sum()
