"""The only decode loop."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from insnet.families.generator import Generator, Prompt, State
from insnet.families.offers import Offer
from insnet.insertion.canvas import Edits

_DROP_BELOW = 0.75  # dropping rows copies the cache: worth it once a quarter of them is finished


class Decide(Protocol):
    """Who decides; see insnet.decoding.decide. Pure, and batched like everything else."""

    def begin(self, family: Generator, state: State) -> State:
        """What to settle before the first step."""
        ...

    def __call__(self, offer: Offer, state: State) -> Edits:
        """The next step's edits."""
        ...


@dataclass(frozen=True)
class Step:
    """What one round did."""

    row: Tensor
    """(B,) rows of the prompt."""
    edits: Edits
    is_active: Tensor
    """(B,) true for rows that took part; others were finished before."""


@torch.no_grad()
def decode(family: Generator, prompt: Prompt, decide: Decide) -> Iterator[Step]:
    """One step after the other, until every row is finished. A step waits for the device once, to learn how many rows
    go on."""
    state = decide.begin(family, family.start(prompt))
    is_active = torch.ones_like(state.row, dtype=torch.bool)
    while True:
        edits = decide(family.offer(state), state).only(is_active)
        yield Step(state.row, edits, is_active)
        is_active = is_active & ~edits.finished
        active = int(is_active.sum())
        if active == 0:
            return
        if edits.parent is not None:
            state = replace(state.select(edits.parent), row=state.row)  # rows of a beam keep their names
        elif active <= _DROP_BELOW * len(is_active):
            state, edits, is_active = _only_active(state, edits, is_active)
        state = family.advance(state, edits)


def _only_active(state: State, edits: Edits, is_active: Tensor) -> tuple[State, Edits, Tensor]:
    rows = is_active.nonzero()[:, 0]
    return state.select(rows).tightened(), edits.select(rows), is_active[rows]
