"""Offers in, edits out: the only place that knows what closed slots, nothing and the end mean for probabilities.

Shapes: B rows, S slots, E edits per step, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.decoding.choose import Chooser
from insnet.decoding.lengths import planned
from insnet.families.generator import Generator, State
from insnet.families.offers import ChosenSlots, Insertions, Offer
from insnet.insertion.canvas import NOTHING, Edits


@dataclass(frozen=True)
class Decider:
    """What the decode loop asks at every step; the same for all families."""

    chooser: Chooser

    def begin(self, family: Generator, state: State) -> State:
        """The first state with the lengths that the model itself plans, if it is to."""
        return planned(family, state, self.chooser.config, self.chooser.lexicon)

    def __call__(self, offer: Offer, state: State) -> Edits:
        """The next step's edits; changes nothing."""
        return decide_insertions(offer, state, self.chooser)


def decide_insertions(offer: Insertions, state: State, chooser: Chooser) -> Edits:
    """Whether the rows end, which slots are filled, and with what."""
    is_open = (offer.slots > -math.inf) & ~state.canvas.closed_after[:, : offer.slots.shape[1]]
    slots, log_stop, log_go = of_open_slots(offer, is_open)
    ending, noise = chooser.ending(state, log_stop), chooser.noise(state)
    if log_stop is None:  # every slot says for itself whether anything goes there
        index = torch.arange(slots.shape[1], device=slots.device)
        every = index.expand_as(slots)  # a single slot stands for itself, closed or not: closed, its row ends anyway
        chosen = ChosenSlots.of(every if len(index) == 1 else torch.where(is_open, every, NOTHING))
    else:
        chosen = ChosenSlots.of(chooser.slots(state, slots, noise))
    token, log_prob = _tokens(offer, state, chosen, noise, chooser)
    slot = chosen.slot if chosen.is_one_per_row else chosen.slot.clamp_min(0)
    log_prob = log_prob + slots.gather(1, slot)
    if not chosen.is_one_per_row:
        token = _together(state, chosen.slot, token, log_prob, noise, chooser)
    is_nothing = token == NOTHING
    finished = ending.ends | is_nothing.all(dim=1) | ~is_open.any(dim=1)
    is_nothing = is_nothing | finished[:, None]
    if log_stop is None or log_go is None:
        of_ending = torch.zeros_like(log_prob[:, 0])
    else:
        of_ending = torch.where(finished, log_stop, log_go).masked_fill(ending.is_forced, 0.0)
    return Edits(
        slot=slot,
        token=token.masked_fill(is_nothing, NOTHING),
        log_prob=log_prob.masked_fill(is_nothing, 0.0),
        stop_log_prob=of_ending,
        finished=finished,
        cut=ending.is_cut,
    ).left_to_right()


def of_open_slots(offer: Insertions, is_open: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Log-probabilities of open slots (B, S), of stopping and of going on (B,): the mass of closed slots counts as
    stopping."""
    is_closed = ~is_open
    among_open = offer.slots.masked_fill(is_closed, -math.inf)
    log_open = among_open.logsumexp(dim=1)
    slots = (among_open - log_open[:, None]).masked_fill(is_closed, -math.inf)  # a row may have none
    if offer.stop is None or offer.go is None:
        return slots, None, None
    log_closed = offer.slots.masked_fill(is_open, -math.inf).logsumexp(dim=1)
    return slots, torch.logaddexp(offer.stop, offer.go + log_closed), offer.go + log_open


def _tokens(
    offer: Insertions, state: State, chosen: ChosenSlots, noise: Tensor, chooser: Chooser
) -> tuple[Tensor, Tensor]:
    """The tokens (B, E) for the chosen slots and their log-probabilities; NOTHING where there is no slot."""
    log_probs = offer.tokens(chosen)  # (N, V) or (N, V + 1)
    token = chooser.tokens(state, chosen, log_probs, noise)
    log_prob = log_probs.gather(1, token.clamp_min(0)[:, None])[:, 0]
    if offer.empty is not None:
        token = token.masked_fill(token == log_probs.shape[1] - 1, offer.empty)
    return chosen.spread(token, NOTHING), chosen.spread(log_prob, 0.0)


def _together(state: State, slot: Tensor, token: Tensor, log_prob: Tensor, noise: Tensor, chooser: Chooser) -> Tensor:
    """Those of the tokens (B, E) that go in in one step: one of them, or as many as get along."""
    if chooser.config.is_parallel:
        return chooser.settle(state, slot, token, log_prob)
    kept = chooser.one_slot(log_prob.masked_fill(token == NOTHING, -math.inf), noise)
    is_kept = torch.arange(token.shape[1], device=token.device) == kept
    return token.masked_fill(~is_kept, NOTHING)
