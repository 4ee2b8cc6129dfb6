"""Which insertions may share a step: the layers of InsNet-Dinic (section 3.3).

A layer is what one step inserts; given tokens are layer 0. At first every other token is a layer of its own, in
insertion order. Tokens are visited once, in that order, and each is promoted from its layer l to l - 1 while

1. its slot on the canvas of the layers before l - 1 has no insertion in layer l - 1 yet, and
2. log p(token | slot, context of the layers before l) - log p(token | slot, context of the layers before l - 1) <= tau,

the context of some layers being their newest row: the one inserted last, in the order that was encoded. A layer that
loses its only token vanishes. What makes the visits cheap:

- A token has the same neighbours in every layer it may reach, for (1) fails where one of them is in layer l - 1. So it
  comes to stand behind both neighbours' layers, and its slot vector changes with the newest row only.
- Rows that are the newest of some layer form a chain. A token that stays in the layer whose context is row s takes all
  rows between s and itself out of the chain, for they are in its layer or later ones: behind it comes s, behind that
  the context of s, and so on.
- Hence a row is passed once at most, and (2) is asked at most 2 T times, however deep the layers are. A layer with the
  same newest row as the one behind it costs nothing, whatever tau is.

tau = -inf moves nothing; tau = +inf puts every token at its depth in the search tree that its order builds: neither has
to ask a model. Pieces of a word that go in one after the other (order `random_words`) come to stand in layers that
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

TURNS_A_CALL = 2
"""Turns to take at a time: a GPU runs dry if each is launched by itself. More take longer to compile."""
_TURNS_BEFORE_LOOKING = 0.75  # as a share of the steps: a GPU runs dry while it is asked, and few batches are through


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

    layer: Tensor
    """(B, T + 1) of every step that was visited."""
    context: Tensor
    """(B, T + 1) the newest row of the layers before each visited token's."""
    step: Tensor
    """(B,) whose token is being visited."""
    newest: Tensor
    """(B,) the newest row of the layers before the one this token has reached."""
    log_prob: Tensor
    """(B,) the token's log-probability from there."""

    def older(self) -> Tensor:
        """The row (B,) that would be newest if the token were promoted past `newest`: what condition 2 asks about."""
        return _at(self.context, self.newest)


def layer_of_step(seen: Seen, given: Tensor, take_turns: Callable[[Seen, Visit], Visit], *, turns: int = 1) -> Tensor:
    """The layer (B, T) of every step, without gaps: 0 for the first `given` (B,) steps, T for padding.

    `take_turns` takes so many `turns`. In each it finds the log-probability (B,) of each `visit.step` with
    `visit.older()` as newest row, and goes on with `after_turn` of it. A turn ends the visit of a token or passes a
    row, so that 2 T of them are enough; those after the end change nothing.

    >>> order, zero = torch.tensor([[0, 4, 2, 1, 3]]), torch.zeros(1)
    >>> seen = Seen.of(order, torch.zeros(1, 5), torch.tensor([5]), tau=zero)
    >>> layer_of_step(seen, torch.tensor([2]), lambda seen, visit: after_turn(seen, visit, zero)).tolist()
    [[0, 0, 1, 2, 2]]
    """
    visit = _first_visit(seen, given)
    steps = seen.left.shape[1] - 1
    for taken in range(0, 2 * steps, turns):
        if taken >= _TURNS_BEFORE_LOOKING * steps and not bool((visit.step < seen.lengths).any()):
            break
        visit = take_turns(seen, visit)
    is_padding = torch.arange(steps, device=given.device) >= seen.lengths[:, None]  # (B, T)
    return visit.layer[:, :-1].masked_fill(is_padding, steps)


def layer_of_step_unasked(position_of_step: Tensor, given: Tensor, lengths: Tensor, is_layered: Tensor) -> Tensor:
    """What `layer_of_step` finds where tau is endless, `is_layered` (B,) telling +inf from -inf: nothing need be asked.

    Every token of a layered row goes one layer behind the later of its neighbours.
    >>> order, layered = torch.tensor([[0, 4, 2, 1, 3], [0, 4, 2, 1, 3]]), torch.tensor([True, False])
    >>> layer_of_step_unasked(order, torch.tensor([2, 2]), torch.tensor([5, 5]), layered).tolist()
    [[0, 0, 1, 2, 2], [0, 0, 1, 2, 3]]
    """
    left, right = neighbours_of_step(position_of_step)
    steps = position_of_step.shape[1]
    layer = torch.zeros_like(position_of_step)
    for step in range(1, steps):  # the first is always given
        before = torch.where(
            is_layered,
            torch.maximum(_at(layer, left[:, step]), _at(layer, right[:, step])),
            layer[:, step - 1],
        )
        layer[:, step] = (before + 1).masked_fill(step < given, 0)
    is_padding = torch.arange(steps, device=given.device) >= lengths[:, None]  # (B, T)
    return layer.masked_fill(is_padding, steps)


def after_turn(seen: Seen, visit: Visit, log_prob: Tensor) -> Visit:
    """The visit once condition 2 is decided; `log_prob` (B,) is that with the older row.

    A token that is promoted no further stays, and the next one is visited; if that has nothing to ask, so does it.
    """
    is_promoted = ~_is_behind_neighbours(seen, visit) & (visit.log_prob - log_prob <= seen.tau)
    visit = visit._replace(
        newest=torch.where(is_promoted, visit.older(), visit.newest),
        log_prob=torch.where(is_promoted, log_prob, visit.log_prob),
    )
    visit = _stay(seen, visit, ~is_promoted | _is_behind_neighbours(seen, visit))
    return _stay(seen, visit, _is_behind_neighbours(seen, visit))


def sort_by_layer(position_of_step: Tensor, layer_of_step: Tensor) -> tuple[Tensor, Tensor]:
    """Positions and layers (B, T) of the order in which layers go in one after the other, each from left to right.

    Given tokens keep their order. Encoded in this order, no token has seen one of a later layer.
    >>> order, layer = sort_by_layer(torch.tensor([[0, 4, 2, 3, 1]]), torch.tensor([[0, 0, 1, 2, 2]]))
    >>> order.tolist(), layer.tolist()
    ([[0, 4, 2, 1, 3]], [[0, 0, 1, 2, 2]])
    """
    steps = layer_of_step.shape[1]
    step = torch.arange(steps, device=layer_of_step.device)
    within = torch.where(layer_of_step == 0, step, position_of_step)  # (B, T)
    by_layer = (layer_of_step * steps + within).argsort(dim=1)
    return position_of_step.gather(1, by_layer), layer_of_step.gather(1, by_layer)


def row_before_layer(sorted_layer: Tensor) -> Tensor:
    """The newest row (B, T) of the layers before each token's: the context from which its whole layer is predicted.

    Of sorted layers; for given tokens it means nothing.
    >>> row_before_layer(torch.tensor([[0, 0, 1, 2, 2, 3]])).tolist()
    [[0, 0, 1, 2, 2, 4]]
    """
    return (torch.searchsorted(sorted_layer, sorted_layer) - 1).clamp_min(0)


def ends_layer(sorted_layer: Tensor) -> Tensor:
    """True (B, T) at the last row of every layer.

    >>> ends_layer(torch.tensor([[0, 0, 1, 2, 2]])).tolist()
    [[False, True, True, False, True]]
    """
    return F.pad(sorted_layer[:, 1:] != sorted_layer[:, :-1], (0, 1), value=True)


def _first_visit(seen: Seen, given: Tensor) -> Visit:
    zeros = torch.zeros_like(seen.left)
    return Visit(zeros, zeros.clone(), given, given - 1, _at(seen.log_prob, given))


def _is_behind_neighbours(seen: Seen, visit: Visit) -> Tensor:
    """True (B,) where the token needs no other context: from here it may go right behind its neighbours' layers."""
    return _at(visit.layer, visit.newest) <= _layer_of_neighbours(seen, visit)


def _layer_of_neighbours(seen: Seen, visit: Visit) -> Tensor:
    left, right = _at(seen.left, visit.step), _at(seen.right, visit.step)
    return torch.maximum(_at(visit.layer, left), _at(visit.layer, right))


def _stay(seen: Seen, visit: Visit, stays: Tensor) -> Visit:
    """The visit of the next token where this one `stays` (B,): behind its context and its neighbours."""
    stays = stays & (visit.step < seen.lengths)
    layer = 1 + torch.maximum(_at(visit.layer, visit.newest), _layer_of_neighbours(seen, visit))
    column = torch.arange(visit.layer.shape[1], device=layer.device)
    is_own = (column == visit.step[:, None]) & stays[:, None]  # (B, T + 1): compares, where a scatter would copy first
    step = visit.step + stays.long()
    return Visit(
        layer=torch.where(is_own, layer[:, None], visit.layer),
        context=torch.where(is_own, visit.newest[:, None], visit.context),
        step=step,
        newest=torch.where(stays, visit.step, visit.newest),
        log_prob=torch.where(stays, _at(seen.log_prob, step), visit.log_prob),
    )


def _at(values: Tensor, column: Tensor) -> Tensor:
    """One value (B,) a row of values (B, T + 1)."""
    return values.gather(1, column[:, None])[:, 0]
