"""Part of a text on a canvas, and what is missing in each of its slots: the Insertion Transformer's teacher.

Shapes: B rows, L places of the text in reading order, which a canvas has no more of.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from insnet.insertion.order import Sentence
from insnet.randomness import Purpose, uniform

SpanOrder = Literal["uniform", "balanced_tree", "left_to_right"]


@dataclass(frozen=True)
class Subset:
    """A canvas with some of a text's tokens, and where the others go. All of them that go into one slot are a run of
    the text, the slot's missing span."""

    tokens: Tensor
    """(B, L) the tokens present, <bos> ... <eos>, zeros behind."""
    length: Tensor
    """(B,) how many they are."""
    is_missing: Tensor
    """(B, L) true at the text's places whose tokens are not on the canvas."""
    slot: Tensor
    """(B, L) the slot of the canvas that each missing token goes into; elsewhere the one right of the token itself."""

    @classmethod
    def of(cls, sentence: Sentence, is_present: Tensor) -> "Subset":
        """From the places (B, L) whose tokens are present.

        >>> four = torch.ones(1, 6, dtype=torch.bool)
        >>> text = Sentence(torch.tensor([[1, 7, 8, 9, 2, 0]]), torch.tensor([5]), ~four, four, torch.tensor([0]))
        >>> subset = Subset.of(text, torch.tensor([[True, False, False, True, True, False]]))
        >>> subset.tokens.tolist(), subset.slot[subset.is_missing].tolist()
        ([[1, 9, 2, 0, 0, 0]], [0, 0])
        """
        length = is_present.sum(dim=1)
        place = torch.arange(is_present.shape[1], device=length.device)
        first = (~is_present).long().argsort(dim=1, stable=True)  # (B, L): what is present, left to right
        tokens = sentence.tokens.gather(1, first).masked_fill(place >= length[:, None], 0)
        is_missing = ~is_present & (place < sentence.lengths[:, None])
        return cls(tokens, length, is_missing, (is_present.cumsum(dim=1) - 1).clamp_max(is_present.shape[1] - 2))

    def per_slot(self, values: Tensor) -> Tensor:
        """The sums (B, L - 1) over each slot's missing span of values (B, L)."""
        sums = values.new_zeros(values.shape[0], values.shape[1] - 1)
        return sums.scatter_add(1, self.slot, values.masked_fill(~self.is_missing, 0))

    def weights(self, order: SpanOrder, tau: float) -> Tensor:
        """How much (B, L) each missing token counts as the next one of its slot; sums to 1 for every slot with a span.

        With d the distance to the middle of the span, `balanced_tree` is a softmax of -d / tau, and `uniform` the same
        at tau = infinity. `left_to_right` has one target in the whole row, the first token that is missing.
        """
        if order == "left_to_right":
            return (self.is_missing & (self.is_missing.cumsum(dim=1) == 1)).double()
        size = self.per_slot(self.is_missing.double()).gather(1, self.slot)  # (B, L): of each token's span
        if order == "uniform":
            return (1 / size).masked_fill(~self.is_missing, 0.0)
        place = torch.arange(size.shape[1], device=size.device).expand_as(self.slot)
        before = place.masked_fill(self.is_missing, -1).cummax(dim=1).values  # (B, L): the token left of the span
        distance = (before + (size + 1) / 2 - place).abs()
        nearest = (size % 2 == 0) / 2  # in an even span two tokens are half a place off its middle
        weight = ((nearest - distance) / tau).exp().masked_fill(~self.is_missing, 0.0)
        return weight / self.per_slot(weight).gather(1, self.slot).clamp_min(torch.finfo(weight.dtype).tiny)


def open_places(sentence: Sentence) -> Tensor:
    """True (B, L) at tokens that are to be inserted; the others are given, <bos> and <eos> among them, or padding."""
    place = torch.arange(sentence.tokens.shape[1], device=sentence.lengths.device)
    is_inner = (place > 0) & (place < sentence.lengths[:, None] - 1)
    return is_inner & ~sentence.given


def draw_subset(sentence: Sentence, *, is_prefix: bool) -> Subset:
    """All that is given and a number of the other tokens, each number from none to all as likely: a random subset of
    them, or the first ones."""
    is_open = open_places(sentence)
    place = torch.arange(is_open.shape[1], device=is_open.device)
    count = (uniform(Purpose.PRESENT_NUMBER, sentence.seeds) * (is_open.sum(dim=1) + 1)).long()
    noise = uniform(Purpose.PRESENT_WHICH, sentence.seeds[:, None], place)
    key = (place / len(place)).expand_as(noise) if is_prefix else noise
    rank = key.masked_fill(~is_open, 2.0).argsort(dim=1, stable=True).argsort(dim=1)
    is_given = ~is_open & (place < sentence.lengths[:, None])
    return Subset.of(sentence, is_given | (is_open & (rank < count[:, None])))
