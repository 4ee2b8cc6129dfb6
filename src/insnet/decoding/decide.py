"""Offers in, edits out: the only place that knows what closed slots, nothing and the end mean for probabilities.

Shapes: B rows, S slots, E slots looked at, N of them in all rows, V vocabulary.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from insnet.decoding.choose import Chooser
from insnet.decoding.lengths import planned
from insnet.families.generator import Generator, State
from insnet.families.offers import ChosenSlots, Insertions, Offer
from insnet.insertion.canvas import CLOSE, NOTHING, Edits


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
    drafting = Drafting(offer, state, chooser, chooser.blanks_first(state, slots), chooser.noise(state))
    draft = drafting.first()
    own_stop = draft.log_stop(state) if log_stop is None else log_stop
    ending = chooser.ending(state, own_stop, ends_when_full=offer.empty != CLOSE)
    if log_stop is None:
        draft = drafting.with_a_token(draft, ~ending.ends & draft.is_last(state))
    draft = drafting.together(draft)
    is_nothing = draft.token == NOTHING
    finished = ending.ends | is_nothing.all(dim=1) | ~is_open.any(dim=1)
    is_nothing = is_nothing | finished[:, None]
    if log_stop is None or log_go is None:
        of_token = draft.log_prob - draft.slot_log_prob
        of_ending = of_token.masked_fill(draft.token != CLOSE, 0.0).sum(dim=1)
    else:
        of_ending = torch.where(finished, log_stop, log_go)
    of_ending = of_ending.masked_fill(ending.is_forced, 0.0)
    return Edits(
        slot=draft.slot,
        token=draft.token.masked_fill(is_nothing, NOTHING),
        log_prob=draft.log_prob.masked_fill(is_nothing, 0.0),
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


@dataclass(frozen=True)
class Draft:
    """A token for each slot that is looked at, before it is known which of them go in."""

    chosen: ChosenSlots
    """The slots."""
    slot: Tensor
    """(B, E) the same, 0 where a row looks at fewer."""
    token: Tensor
    """(B, E), NOTHING or CLOSE where none is to go in, and NOTHING where there is no slot."""
    slot_log_prob: Tensor
    """(B, E) of the slot alone."""
    log_prob: Tensor
    """(B, E) of slot and token."""

    def is_last(self, state: State) -> Tensor:
        """True (B,) where nothing goes anywhere any more: every slot says nothing, or the last open ones close."""
        closings = (self.token == CLOSE).sum(dim=1)
        return (self.token < 0).all(dim=1) & ((closings == 0) | (closings == state.canvas.open_slots().sum(dim=1)))

    def log_stop(self, state: State) -> Tensor:
        """How likely (B,) a text ends whose slots say for themselves whether anything goes there: 0 or -inf."""
        return torch.zeros_like(self.log_prob[:, 0]).masked_fill(~self.is_last(state), -math.inf)

    def only(self, column: Tensor) -> "Draft":
        """One column (B, 1) of each row."""
        slot = self.slot.gather(1, column)
        others = (each.gather(1, column) for each in (self.token, self.slot_log_prob, self.log_prob))
        return Draft(ChosenSlots.of(slot), slot, *others)


@dataclass(frozen=True)
class Drafting:
    """What drafts of one step are made from."""

    offer: Insertions
    state: State
    chooser: Chooser
    slots: Tensor
    """(B, S) log-probabilities of the slots that may be filled now."""
    noise: Tensor
    """(2, B) what a step of one insertion draws from."""

    def first(self) -> Draft:
        """Tokens for the slots chosen for this step. All are, where slots say for themselves whether anything goes
        there and, if one of them is to be filled, where slot and token are one choice."""
        if self.offer.is_single:
            chosen = ChosenSlots.of(self.slots.argmax(dim=1, keepdim=True))
        elif self._looks_at_all:
            index = torch.arange(self.slots.shape[1], device=self.slots.device)
            every = index.expand_as(self.slots)  # a single slot stands for itself; if it is closed, its row ends anyway
            chosen = ChosenSlots.of(every if len(index) == 1 else every.where(self.slots > -math.inf, NOTHING))
        else:
            chosen = ChosenSlots.of(self.chooser.slots(self.state, self.slots, self.noise))
        return self._filled(chosen)

    def with_a_token(self, draft: Draft, needs_token: Tensor) -> Draft:
        """The draft with one token in rows (B,) that must go on, though all their slots want to stay empty: too little
        is written yet. Asks the device whether there are any."""
        if not bool(needs_token.any()):
            return draft
        other = self._filled(draft.chosen, needs_token=True)
        is_kept = torch.arange(other.token.shape[1], device=other.token.device) == self._surest(other)
        return replace(
            draft,
            token=torch.where(needs_token[:, None], other.token.masked_fill(~is_kept, NOTHING), draft.token),
            log_prob=torch.where(needs_token[:, None], other.log_prob, draft.log_prob),
        )

    def together(self, draft: Draft) -> Draft:
        """What goes in in one step: one of the drafted tokens, or as many as get along."""
        if draft.chosen.is_one_per_row:
            return draft
        if self.chooser.config.is_parallel:
            return replace(draft, token=self.chooser.settle(self.state, draft.chosen.slot, draft.token, draft.log_prob))
        return draft.only(self._surest(draft))

    @property
    def _looks_at_all(self) -> bool:
        if self.offer.is_single:
            return False
        return self.offer.stop is None or (self.offer.is_joint and not self.chooser.config.is_parallel)

    def _surest(self, draft: Draft) -> Tensor:
        """The column (B, 1) that is kept if one is."""
        pairs = draft.log_prob.masked_fill(draft.token == NOTHING, -math.inf)
        return self.chooser.one_pair(draft.slot_log_prob, pairs, self.noise)

    def _filled(self, chosen: ChosenSlots, *, needs_token: bool = False) -> Draft:
        """Tokens for some slots; each has noise of its own, unless a step looks at one slot only."""
        log_probs = self.offer.tokens(chosen)  # (N, V) or (N, V + 1)
        words = log_probs.shape[1] - int(self.offer.empty is not None)
        noise = None if self._looks_at_all or self.chooser.config.is_parallel else self.noise
        offered = log_probs[:, :words] if needs_token else log_probs
        token = self.chooser.tokens(self.state, chosen, offered, noise, closes=self.offer.empty == CLOSE)
        log_prob = log_probs.gather(1, token.clamp_min(0)[:, None])[:, 0]
        if self.offer.empty is not None:
            token = token.masked_fill(token == words, self.offer.empty)
        slot = chosen.slot if chosen.is_one_per_row else chosen.slot.clamp_min(0)
        own = self.slots.gather(1, slot)
        return Draft(chosen, slot, chosen.spread(token, NOTHING), own, own + chosen.spread(log_prob, 0.0))
