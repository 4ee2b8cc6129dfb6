"""Which insertions may share a step: the rounds of InsNet-Dinic (section 3.3, which calls them layers).

A round is what one step inserts; given tokens are round 0. At first every other token is a round of its own, in
insertion order. Tokens are visited once, in that order, and each is promoted from its round r to r - 1 while

1. its slot on the canvas of the rounds before r - 1 has no insertion in round r - 1 yet, and
2. log p(token | slot, context of the rounds before r) - log p(token | slot, context of the rounds before r - 1) <= tau,

the context of some rounds being their newest row: the one inserted last, in the order that was encoded. A round that
loses its only token vanishes. What makes the visits cheap:

- A token has the same neighbours in every round it may reach, for (1) fails where one of them is in round r - 1. So it
  comes to stand behind both neighbours' rounds, and its slot vector changes with the newest row only.
- Rows that are the newest of some round form a chain. A token that stays in the round whose context is row s takes all
  rows between s and itself out of the chain, for they are in its round or later ones: behind it comes s, behind that
  the context of s, and so on.
- Hence a row is passed once at most, and (2) is checked at most 2 T times, however deep rounds are. A round with the
  same newest row as the one behind it costs nothing, whatever tau is.

tau = -inf moves nothing; tau = +inf puts every token at its depth in the search tree that its order builds: neither
needs a model. Pieces of a word that go in one after the other (order `random_words`) come to stand in rounds that
follow each other, whatever tau is: each finds its slot opened by the one before, and its context too. So a word that
was begun is finished at once, but several words may be unfinished on one canvas, which never happens one by one.

Shapes: B rows, T steps in insertion order.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from insnet.insertion.trajectory import neighbours_of_step

TURNS_PER_CALL = 2
"""Turns to take at a time: a GPU runs dry if each is launched by itself. More take longer to compile."""
_TURNS_BEFORE_LOOKING = 0.75  # as a share of the steps: looking lets a GPU run dry, and few batches are through


class Seen(NamedTuple):
    """What visits look at, with a column to spare (T + 1) for rows that are through."""

    left: Tensor
    """(B, T + 1) the step of each token's left neighbour."""
    right: Tensor
    """(B, T + 1) the step of its right neighbour."""
    log_prob: Tensor
    """(B, T + 1) its log-probability in the sequential order."""
    lengths: Tensor
    """(B,)"""
    tau: Tensor
    """(B,)"""

    @classmethod
    def of(cls, position_of_step: Tensor, log_prob_of_step: Tensor, lengths: Tensor, tau: Tensor) -> "Seen":
        """From an order (B, T) and the log-probabilities (B, T) of its tokens when they go in one by one."""
        left, right = neighbours_of_step(position_of_step)
        left, right, log_prob = (F.pad(values, (0, 1)) for values in (left, right, log_prob_of_step))
        return cls(left, right, log_prob, lengths, tau)


class Visit(NamedTuple):
    """Where every row stands: rows go at their own pace."""

    round: Tensor
    """(B, T + 1) of every step that was visited."""
    context: Tensor
    """(B, T + 1) the newest row of the rounds before each visited token's."""
    step: Tensor
    """(B,) whose token is being visited."""
    newest: Tensor
    """(B,) the newest row of the rounds before the one this token has reached."""
    log_prob: Tensor
    """(B,) the token's log-probability from there."""

    def older(self) -> Tensor:
        """The row (B,) that would be newest if the token were promoted past `newest`: for condition 2."""
        return _at(self.context, self.newest)


def round_of_step(seen: Seen, given: Tensor, take_turns: Callable[[Seen, Visit], Visit], *, turns: int = 1) -> Tensor:
    """The round (B, T) of every step, without gaps: 0 for the first `given` (B,) steps, T for padding.

    `take_turns` takes so many `turns`. In each it finds the log-probability (B,) of each `visit.step` with
    `visit.older()` as newest row, and goes on with `after_turn` of it. A turn ends the visit of a token or passes a
    row, so that 2 T of them are enough; those after the end change nothing.

    >>> order, zero = torch.tensor([[0, 4, 2, 1, 3]]), torch.zeros(1)
    >>> seen = Seen.of(order, torch.zeros(1, 5), torch.tensor([5]), tau=zero)
    >>> round_of_step(seen, torch.tensor([2]), lambda seen, visit: after_turn(seen, visit, zero)).tolist()
    [[0, 0, 1, 2, 2]]
    """
    visit = _first_visit(seen, given)
    steps = seen.left.shape[1] - 1
    for taken in range(0, 2 * steps, turns):
        if taken >= _TURNS_BEFORE_LOOKING * steps and not bool((visit.step < seen.lengths).any()):
            break
        visit = take_turns(seen, visit)
    is_padding = torch.arange(steps, device=given.device) >= seen.lengths[:, None]  # (B, T)
    return visit.round[:, :-1].masked_fill(is_padding, steps)


def round_of_step_by_order(position_of_step: Tensor, given: Tensor, lengths: Tensor, merges: Tensor) -> Tensor:
    """What `round_of_step` finds where tau is infinite, which needs no likelihoods; `merges` (B,) where it is +inf.

    Every token of a row that merges goes one round behind the later of its neighbours.
    >>> order, merges = torch.tensor([[0, 4, 2, 1, 3], [0, 4, 2, 1, 3]]), torch.tensor([True, False])
    >>> round_of_step_by_order(order, torch.tensor([2, 2]), torch.tensor([5, 5]), merges).tolist()
    [[0, 0, 1, 2, 2], [0, 0, 1, 2, 3]]
    """
    left, right = neighbours_of_step(position_of_step)
    steps = position_of_step.shape[1]
    rounds = torch.zeros_like(position_of_step)
    for step in range(1, steps):  # the first is always given
        before = torch.where(
            merges,
            torch.maximum(_at(rounds, left[:, step]), _at(rounds, right[:, step])),
            rounds[:, step - 1],
        )
        rounds[:, step] = (before + 1).masked_fill(step < given, 0)
    is_padding = torch.arange(steps, device=given.device) >= lengths[:, None]  # (B, T)
    return rounds.masked_fill(is_padding, steps)


def after_turn(seen: Seen, visit: Visit, log_prob: Tensor) -> Visit:
    """The visit once condition 2 is decided; `log_prob` (B,) is that with the older row.

    A token that is promoted no further stays, and the next one is visited; if that cannot move, it stays, too.
    """
    is_promoted = ~_is_behind_neighbours(seen, visit) & (visit.log_prob - log_prob <= seen.tau)
    visit = visit._replace(
        newest=torch.where(is_promoted, visit.older(), visit.newest),
        log_prob=torch.where(is_promoted, log_prob, visit.log_prob),
    )
    visit = _stay(seen, visit, ~is_promoted | _is_behind_neighbours(seen, visit))
    return _stay(seen, visit, _is_behind_neighbours(seen, visit))


def sort_by_round(position_of_step: Tensor, round_of_step: Tensor) -> tuple[Tensor, Tensor]:
    """Positions and rounds (B, T) of the order in which rounds go in one after the other, each from left to right.

    Given tokens keep their order. Encoded in this order, no token has seen one of a later round.
    >>> order, rounds = sort_by_round(torch.tensor([[0, 4, 2, 3, 1]]), torch.tensor([[0, 0, 1, 2, 2]]))
    >>> order.tolist(), rounds.tolist()
    ([[0, 4, 2, 1, 3]], [[0, 0, 1, 2, 2]])
    """
    steps = round_of_step.shape[1]
    step = torch.arange(steps, device=round_of_step.device)
    within = torch.where(round_of_step == 0, step, position_of_step)  # (B, T)
    by_round = (round_of_step * steps + within).argsort(dim=1)
    return position_of_step.gather(1, by_round), round_of_step.gather(1, by_round)


def row_before_round(sorted_rounds: Tensor) -> Tensor:
    """The newest row (B, T) of the rounds before each token's: the context from which its whole round is predicted.

    Of sorted rounds; for given tokens it means nothing.
    >>> row_before_round(torch.tensor([[0, 0, 1, 2, 2, 3]])).tolist()
    [[0, 0, 1, 2, 2, 4]]
    """
    return (torch.searchsorted(sorted_rounds, sorted_rounds) - 1).clamp_min(0)


def ends_round(sorted_rounds: Tensor) -> Tensor:
    """True (B, T) at the last row of every round.

    >>> ends_round(torch.tensor([[0, 0, 1, 2, 2]])).tolist()
    [[False, True, True, False, True]]
    """
    return F.pad(sorted_rounds[:, 1:] != sorted_rounds[:, :-1], (0, 1), value=True)


def _first_visit(seen: Seen, given: Tensor) -> Visit:
    zeros = torch.zeros_like(seen.left)
    return Visit(zeros, zeros.clone(), given, given - 1, _at(seen.log_prob, given))


def _is_behind_neighbours(seen: Seen, visit: Visit) -> Tensor:
    """True (B,) where the token needs no other context: from here it may go right behind its neighbours' rounds."""
    return _at(visit.round, visit.newest) <= _round_of_neighbours(seen, visit)


def _round_of_neighbours(seen: Seen, visit: Visit) -> Tensor:
    left, right = _at(seen.left, visit.step), _at(seen.right, visit.step)
    return torch.maximum(_at(visit.round, left), _at(visit.round, right))


def _stay(seen: Seen, visit: Visit, stays: Tensor) -> Visit:
    """The visit of the next token where this one `stays` (B,): behind its context and its neighbours."""
    stays = stays & (visit.step < seen.lengths)
    own = 1 + torch.maximum(_at(visit.round, visit.newest), _round_of_neighbours(seen, visit))
    column = torch.arange(visit.round.shape[1], device=own.device)
    is_own = (column == visit.step[:, None]) & stays[:, None]  # (B, T + 1): compares, where a scatter would copy first
    step = visit.step + stays.long()
    return Visit(
        round=torch.where(is_own, own[:, None], visit.round),
        context=torch.where(is_own, visit.newest[:, None], visit.context),
        step=step,
        newest=torch.where(stays, visit.step, visit.newest),
        log_prob=torch.where(stays, _at(seen.log_prob, step), visit.log_prob),
    )


def _at(values: Tensor, column: Tensor) -> Tensor:
    """One value (B,) a row of values (B, T + 1)."""
    return values.gather(1, column[:, None])[:, 0]
