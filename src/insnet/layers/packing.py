"""Tokens of rows that have different numbers of them, without the padding, for work that looks at each token alone.

Shapes: B rows, Q places per row, N tokens in all.
"""

from dataclasses import dataclass

from torch import Tensor

_WORTH_IT = 0.8  # a larger share of tokens among all places is not worth the copies


@dataclass(frozen=True)
class Packing:
    """Which of all places (B, Q) hold a token."""

    row: Tensor
    """(N,)"""
    column: Tensor
    """(N,)"""
    places: tuple[int, int]
    """B and Q."""

    @classmethod
    def of(cls, holds_token: Tensor) -> "Packing | None":
        """From a mask (B, Q); None where there is little padding.

        >>> import torch
        >>> packing = Packing.of(torch.tensor([[True, False], [True, True]]))
        >>> packing.unpack(packing.pack(torch.tensor([[[1], [2]], [[3], [4]]]))).tolist()
        [[[1], [0]], [[3], [4]]]
        """
        rows, places = holds_token.shape
        if places == 1:
            return None
        row, column = holds_token.nonzero(as_tuple=True)
        return cls(row, column, (rows, places)) if len(row) <= _WORTH_IT * rows * places else None

    def pack(self, values: Tensor) -> Tensor:
        """The tokens' values (N, ...) among those of all places (B, Q, ...)."""
        return values[self.row, self.column]

    def unpack(self, values: Tensor) -> Tensor:
        """Values (N, ...) at their places (B, Q, ...), zeros elsewhere."""
        return values.new_zeros(*self.places, *values.shape[1:]).index_put((self.row, self.column), values)
