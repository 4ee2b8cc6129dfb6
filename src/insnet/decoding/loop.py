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


class Decoding:
    """Rows that are being written. Others may join them between two steps, and some may be given up: neither changes
    what is written in the rest."""

    def __init__(self, family: Generator, decide: Decide) -> None:
        self.family, self.decide = family, decide
        self._state: State | None = None
        self._is_active = torch.empty(0)
        self._edits: Edits | None = None
        """Decided, but not carried out."""

    @torch.no_grad()
    def join(self, prompt: Prompt, *, first_row: int = 0) -> None:
        """More rows, numbered from some number on."""
        fresh = self.decide.begin(self.family, self.family.start(prompt))
        fresh = replace(fresh, row=fresh.row + first_row) if first_row else fresh
        is_active = torch.ones_like(fresh.row, dtype=torch.bool)
        if self.goes_on() and self._state is not None:
            fresh, is_active = self._state.join(fresh), torch.cat([self._is_active, is_active])
        self._state, self._is_active = fresh, is_active

    def give_up(self, rows: Tensor) -> None:
        """Writes nothing more in rows of some numbers."""
        if self._state is not None:
            self._is_active = self._is_active & ~torch.isin(self._state.row, rows.to(self._state.row))

    @torch.no_grad()
    def goes_on(self) -> bool:
        """Carries out what was decided last; whether any row goes on. Waits for the device once, to learn that."""
        state, edits, is_active = self._state, self._edits, self._is_active
        if state is None:
            return False
        active = int(is_active.sum())
        if active == 0:
            self._state = self._edits = None
            return False
        if edits is None:
            return True
        if edits.parent is not None:
            state = replace(state.select(edits.parent), row=state.row)  # rows of a beam keep their names
        elif active <= _DROP_BELOW * len(is_active):
            state, edits, is_active = _only_active(state, edits, is_active)
        self._state, self._edits, self._is_active = self.family.advance(state, edits), None, is_active
        return True

    @torch.no_grad()
    def step(self) -> Step:
        """Decides one step of all rows, if any goes on."""
        assert self._state is not None and self._edits is None, "ask goes_on first"
        edits = self.decide(self.family.offer(self._state), self._state).only(self._is_active)
        step = Step(self._state.row, edits, self._is_active)
        self._edits, self._is_active = edits, self._is_active & ~edits.finished
        return step


def decode(family: Generator, prompt: Prompt, decide: Decide) -> Iterator[Step]:
    """One step after the other, until every row is finished."""
    decoding = Decoding(family, decide)
    decoding.join(prompt)
    while decoding.goes_on():
        yield decoding.step()


def _only_active(state: State, edits: Edits, is_active: Tensor) -> tuple[State, Edits, Tensor]:
    rows = is_active.nonzero()[:, 0]
    return state.select(rows).tightened(), edits.select(rows), is_active[rows]
