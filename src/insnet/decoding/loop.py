"""The only decode loop."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from insnet.families.generator import Choose, Generator, Prompt, State
from insnet.insertion.canvas import Edits

_DROP_BELOW = 0.75  # dropping rows copies the cache: worth it once a quarter of them is finished


@dataclass(frozen=True)
class Step:
    """What one round did: the prompt's rows (B,) that took part, and their edits."""

    row: Tensor
    edits: Edits


@torch.no_grad()
def decode(family: Generator, start: Prompt | State, choose: Choose) -> Iterator[Step]:
    """One step after the other, from a prompt or a state, until every row is finished; finished rows appear in no later
    step."""
    state = family.start(start) if isinstance(start, Prompt) else start
    is_active = torch.ones_like(state.row, dtype=torch.bool)
    while bool(is_active.any()):
        edits = _only(family.propose(state, choose), is_active)
        active = is_active.nonzero()[:, 0]
        yield Step(state.row[active], _select(edits, active))
        is_active = is_active & ~edits.finished
        state, edits, is_active = _drop_finished(state, edits, is_active)
        if len(is_active):
            state = family.advance(state, edits)


def _drop_finished(state: State, edits: Edits, is_active: Tensor) -> tuple[State, Edits, Tensor]:
    """The same without finished rows, if there are enough of them."""
    active = is_active.nonzero()[:, 0]
    if len(active) > _DROP_BELOW * len(is_active):
        return state, edits, is_active
    return state.select(active), _select(edits, active), is_active[active]


def _only(edits: Edits, is_active: Tensor) -> Edits:
    """Edits that leave rows alone which are not active."""
    return Edits(
        slot=edits.slot,
        token=edits.token.masked_fill(~is_active[:, None], Edits.NOTHING),
        log_prob=edits.log_prob,
        stop_log_prob=edits.stop_log_prob,
        finished=edits.finished | ~is_active,
    )


def _select(edits: Edits, rows: Tensor) -> Edits:
    return Edits(**{field.name: getattr(edits, field.name)[rows] for field in fields(Edits)})
