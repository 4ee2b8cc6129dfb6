"""Slot vectors, and the slot logits of all steps of a sentence without ever forming them.

Shapes: B rows, T steps, S slots of one canvas, D width, W = D/2.
"""

import torch
from torch import Tensor, nn


class SlotComposer(nn.Module):
    """Section 3.2: slot = LayerNorm(concat(f_l(left), f_r(right)) + last), `last` being the newest token's encoding."""

    def __init__(self, width: int, *, use_global: bool) -> None:
        super().__init__()
        self.left = nn.Linear(width, width // 2)
        self.right = nn.Linear(width, width // 2)
        self.norm = nn.LayerNorm(width)
        self.use_global = use_global

    def halves(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """What each token (..., D) is as a left and as a right neighbour, (..., W) each; computed once a token."""
        return self.left(encoded), self.right(encoded)

    def compose(self, left: Tensor, right: Tensor, last: Tensor) -> Tensor:
        """Slot vectors (..., D) from neighbours' halves (..., W) and the newest token (..., D)."""
        joined = torch.cat([left, right], dim=-1)
        return self.norm(joined + last if self.use_global else joined)  # type: ignore[no-any-return]

    def logits_of_all_steps(
        self, encoded: Tensor, right_neighbour: Tensor, weight: Tensor, last: Tensor | None = None
    ) -> Tensor:
        """The logit (B, T, T) of the slot right of token i on the canvas after step t, as [t, i]; O(n^2) memory.

        `last` (B, T, D) is what each step adds to its slots; the newest token's encoding unless given.
        Equals `compose(...) @ weight` up to the constant `weight . norm.bias`, which a softmax ignores. With both
        halves of a slot centred on their own means, the variance is a sum of squares plus two matrix products, so
        it is spared the cancellation of E[x^2] - E[x]^2; still, all of it runs in float32 or better.
        """
        left, right = self.halves(encoded)
        with torch.autocast(encoded.device.type, enabled=False):
            dtype = torch.float64 if encoded.dtype == torch.float64 else torch.float32
            gain = (weight * self.norm.weight).to(dtype)  # (D,)
            newest = encoded if last is None else last
            newest = newest.to(dtype) if self.use_global else torch.zeros_like(newest, dtype=dtype)
            left_gain, right_gain = gain.chunk(2)
            at_left = _HalfSlots.of(left.to(dtype), newest.chunk(2, dim=-1)[0], left_gain)
            at_right = _HalfSlots.of(right.to(dtype), newest.chunk(2, dim=-1)[1], right_gain).at(right_neighbour)
            difference = (at_left.mean - at_right.mean) / 2
            width = encoded.shape[-1]
            variance = (at_left.square + at_right.square).clamp_min(0) / width + difference**2
            product = at_left.product + at_right.product + difference * (left_gain.sum() - right_gain.sum())
            return product * torch.rsqrt(variance + self.norm.eps)


class _HalfSlots:
    """Sums over one half of every slot vector, [t, i] for neighbour i after step t."""

    def __init__(self, mean: Tensor, square: Tensor, product: Tensor) -> None:
        self.mean, self.square, self.product = mean, square, product

    @classmethod
    def of(cls, neighbour: Tensor, last: Tensor, gain: Tensor) -> "_HalfSlots":
        """From what neighbours (B, T, W) and newest tokens (B, T, W) contribute to this half."""
        neighbour_mean, last_mean = neighbour.mean(dim=-1), last.mean(dim=-1)  # (B, T)
        neighbour, last = neighbour - neighbour_mean[..., None], last - last_mean[..., None]
        square = last.square().sum(-1)[:, :, None] + neighbour.square().sum(-1)[:, None, :]
        return cls(
            mean=last_mean[:, :, None] + neighbour_mean[:, None, :],
            square=square + 2 * last @ neighbour.transpose(1, 2),
            product=(last @ gain)[:, :, None] + (neighbour @ gain)[:, None, :],
        )

    def at(self, neighbour: Tensor) -> "_HalfSlots":
        """The same sums for neighbour[t, i] instead of i."""
        return _HalfSlots(*(values.gather(2, neighbour) for values in (self.mean, self.square, self.product)))
