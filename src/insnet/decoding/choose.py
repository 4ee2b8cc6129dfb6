"""How a decoder chooses: when to stop, which slots, which tokens.

All draws are functions of (the row's seed, its step, the purpose and, among several, the slot), so a row chooses the
same in any batch. Nothing here asks the device for a number, unless several slots are filled in one step.
Shapes: B rows, S slots, E insertions of a step, N chosen slots, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.decoding.config import GenerationConfig
from insnet.decoding.rounds import Room, settle, slots_of_round
from insnet.decoding.truncation import draw, keep_min_p, keep_top_mass, likeliest, within_share
from insnet.families.generator import State
from insnet.families.offers import ChosenSlots
from insnet.insertion.canvas import INSERTED, NOTHING, Canvas
from insnet.insertion.constraints import (
    FREE,
    GapRoom,
    Lexicon,
    completing_tokens,
    count_words,
    empty_blanks,
    meets_across,
    neighbours_of_slot,
    repeated_sequences,
    within_reach,
)
from insnet.randomness import Purpose, uniform, uniforms

_LIKELIER_THAN_NOT = math.log(0.5)


@dataclass(frozen=True)
class Ending:
    """Which rows (B,) end."""

    ends: Tensor
    is_cut: Tensor
    """Only the limit on tokens ends the row."""
    is_forced: Tensor
    """A bound decided that the row ends, or that it goes on: the model's probability of it does not count."""


@dataclass(frozen=True)
class Chooser:
    """Chooses by a generation config, within the limits that the state carries."""

    config: GenerationConfig
    lexicon: Lexicon

    def ending(self, state: State, log_stop: Tensor, *, ends_when_full: bool = True) -> Ending:
        """What the stopping rule, by the log-probability (B,) of stopping, and the bounds say.

        A text of the most words ends, unless its gaps close one by one: then no more words go in (see `tokens`), but
        what completes the text may."""
        limits = state.limits
        wants = self._wants_to_stop(state, log_stop)
        over = wants | (state.step >= self.config.rounds.rounds) if self.config.rounds.rounds else wants
        words = self._words(state)
        may = words >= limits.min_words
        if limits.has_blanks:
            may = may & ~empty_blanks(state.canvas, limits).any(dim=1)
        is_full_of_words = words >= limits.max_words
        if gaps := self._gaps(state):
            lacks_none = (gaps.lacks == 0).all(dim=1)
            may = may & lacks_none
            is_full_of_words = is_full_of_words & lacks_none & ~gaps.is_full  # what is begun may be completed
            over = over | (gaps.is_full & (log_stop > _LIKELIER_THAN_NOT))
        ends = over & may
        if ends_when_full:
            ends = ends | is_full_of_words
        is_full = state.inserted >= limits.max_tokens
        return Ending(ends | is_full, is_full > ends, is_forced=(ends | is_full) != wants)

    def _wants_to_stop(self, state: State, log_stop: Tensor) -> Tensor:
        """True (B,) near the planned number of insertions, at the first place that is good to stop at; where there is
        no plan, by the stopping rule."""
        wanted, slack = state.limits.insertions, state.limits.slack
        is_good_place = log_stop > _LIKELIER_THAN_NOT
        near = (state.inserted >= wanted + slack) | ((state.inserted >= wanted - slack) & is_good_place)
        if self.config.length.stopping == "sampled":
            is_good_place = uniform(Purpose.STOP, state.seeds, state.step) < log_stop.double().exp()
        return torch.where(wanted == FREE, is_good_place, near)

    def noise(self, state: State) -> Tensor:
        """What a step of one insertion draws from (2, B): its slot, and its token."""
        return uniforms((Purpose.SLOT, Purpose.TOKEN), state.seeds, state.step)

    def blanks_first(self, state: State, log_probs: Tensor) -> Tensor:
        """The log-probabilities (B, S) of slots that may be filled now: while there are blanks that lack a word, these
        alone; of blanks that have all theirs, only slots where something can complete one."""
        if not state.limits.has_blanks:
            return log_probs
        if gaps := self._gaps(state):
            log_probs = _only(~self._opens_in_full(state, gaps), log_probs)
            log_probs = _only(gaps.at_slots(gaps.lacks) > 0, log_probs)
        return _only(empty_blanks(state.canvas, state.limits), log_probs)

    def slots(self, state: State, log_probs: Tensor, noise: Tensor) -> Tensor:
        """The slots (B, E) to fill, from log-probabilities (B, S) over those that may be.

        NOTHING where a row fills fewer than E, but each fills one at least."""
        if self.config.is_parallel:
            return slots_of_round(log_probs, self.room(state), self.config.rounds.parallel_mass)
        return self.one_slot(log_probs, noise)

    def one_slot(self, log_probs: Tensor, noise: Tensor) -> Tensor:
        """One of the likeliest slots (B, 1) for each row."""
        return draw(keep_top_mass(log_probs, self.config.rounds.slot_mass), noise[0])[:, None]

    def one_pair(self, slots: Tensor, pairs: Tensor, noise: Tensor) -> Tensor:
        """Which (B, 1) of some slots is filled, from log-probabilities (B, E) of the slots and of the pairs that they
        make with the tokens drawn for them, -inf where there is none.

        Among the likeliest pairs, as many as hold `slot_mass`, one is drawn by its slot's probability alone: its token
        was drawn before. So the least mass gives the likeliest pair, and all of it a draw from all pairs."""
        kept = keep_top_mass(pairs, self.config.rounds.slot_mass) > -math.inf
        return draw(slots.masked_fill(~kept, -math.inf), noise[0])[:, None]

    def tokens(
        self, state: State, chosen: ChosenSlots, log_probs: Tensor, noise: Tensor | None, *, closes: bool = False
    ) -> Tensor:
        """The tokens (N,) to put into the chosen slots, from log-probabilities (N, V), or (N, V + 1) if these may stay
        empty; NOTHING where none may go there. Drawn at `noise` (2, B), or if there is none, at each slot's own.

        A slot that `closes` where nothing goes in does not close into something banned; and where the text has all the
        words that it may have, none begins there."""
        slot, row = chosen.flat(), chosen.row
        canvas = state.canvas if chosen.is_one_per_row else state.canvas.select(row)
        neighbours, origins = neighbours_of_slot(canvas, slot)  # (N, 2) each
        is_blank = empty_blanks(state.canvas, state.limits)[row, slot] if state.limits.has_blanks else None
        is_full = self._is_full(state, chosen, closes=closes)
        barred = self._barred(neighbours, origins, is_full, is_blank)  # (N, V + 1)
        if log_probs.shape[1] > self.lexicon.size:
            never = self._never_empty(state, chosen, canvas, is_blank, closes=closes)
            log_nothing = log_probs[:, -1:]
            if is_full is not None and state.limits.least_in_gap.shape[1]:
                log_nothing = self._with_words(log_probs, is_full)
            self._bar_by_nothing(barred, never, log_nothing)
        log_probs = log_probs + barred[:, : log_probs.shape[1]]
        if state.limits.forbidden.shape[1]:
            banned = self._completes_banned(canvas, slot, state.limits.forbidden[row])
            log_probs[:, : self.lexicon.size].masked_fill_(banned, -math.inf)
        log_probs = self._without_repetitions(canvas, slot, neighbours, log_probs, state.longest)
        log_probs = self._tempered(state, row, log_probs)
        sampling = self.config.sampling
        if sampling.top_k == 0 and sampling.top_p == 1:
            log_probs, choices = within_share(log_probs, sampling.min_p)  # (N, K) each
        else:
            log_probs, choices = likeliest(log_probs, sampling.top_k)
            log_probs = keep_min_p(keep_top_mass(log_probs, sampling.top_p), sampling.min_p)
        own = noise[1] if noise is not None else uniform(Purpose.TOKEN, state.seeds[row], state.step[row], slot)
        index = draw(log_probs, own)
        token = choices.gather(1, index[:, None])[:, 0]
        return token.where(log_probs.amax(dim=1) > -math.inf, NOTHING)

    def _barred(self, neighbours: Tensor, origins: Tensor, is_full: Tensor | None, is_blank: Tensor | None) -> Tensor:
        """What bars tokens (N, V + 1) from a slot between tokens (N, 2) of these origins: they would spoil a required
        word, begin none in a blank (N,), or begin one too many (N,).

        By induction no piece ever glues itself to a required word: behind one only word-initial pieces may go, so what
        stands behind it is always word-initial, whatever else is inserted later.
        """
        left, right = (origins != INSERTED).long().unbind(1)
        full, blank = (torch.zeros_like(left) if flag is None else flag.long() for flag in (is_full, is_blank))
        full = full if is_full is None else full * (1 + self.lexicon.is_symbol[neighbours[:, 0]])
        return self.lexicon.barred[full, blank, left, right]

    def _is_full(self, state: State, chosen: ChosenSlots, *, closes: bool) -> Tensor | None:
        """True (N,) where no word may begin: the gap has as many as it may or, where slots close, the row's text does,
        those that other blanks lack included."""
        row, gaps = chosen.row, self._gaps(state)
        in_gap = None if gaps is None else gaps.at_slots(gaps.room == 0)[row, chosen.flat()]
        if not closes:
            return in_gap
        if gaps is None or in_gap is None:
            return self._words(state)[row] >= state.limits.max_words[row]
        words = state.limits.given_words + (gaps.words + gaps.lacks).sum(dim=1)
        lacks = gaps.at_slots(gaps.lacks)[row, chosen.flat()]
        return in_gap | (words[row] - lacks >= state.limits.max_words[row])

    def _opens_in_full(self, state: State, gaps: GapRoom) -> Tensor:
        """True (B, L) at slots of full gaps in which nothing can complete a word: behind what is given, or behind an
        opening mark, where a mark would make one more of the word that follows."""
        left = (state.canvas.origin != INSERTED) | self.lexicon.joins_right[state.canvas.tokens]
        place = torch.arange(left.shape[1], device=left.device)
        return gaps.at_slots(gaps.room == 0) & (left | (place == 0))

    def _never_empty(
        self, state: State, chosen: ChosenSlots, canvas: Canvas, is_blank: Tensor | None, *, closes: bool
    ) -> Tensor:
        """True (N,) for slots that cannot stay empty: blanks, and those that would close into something banned."""
        never = torch.zeros_like(chosen.row, dtype=torch.bool) if is_blank is None else is_blank
        if gaps := self._gaps(state):
            never = never | (gaps.at_slots(gaps.lacks) > 0)[chosen.row, chosen.flat()]
        if closes and state.limits.forbidden.shape[1]:
            folded = self.lexicon.folded(canvas)
            forbidden = within_reach(folded, state.limits.forbidden[chosen.row], missing=0)
            never = never | meets_across(folded, chosen.flat(), forbidden)
        return never

    def _bar_by_nothing(self, barred: Tensor, never: Tensor, log_nothing: Tensor) -> None:
        """Bars slots from staying empty, in place in the last column of (N, V + 1): some (N,) cannot. By threshold a
        slot does, and bars all tokens, if that is likelier than not, of log-probability (N, 1)."""
        never = never[:, None]
        if self.config.length.stopping == "threshold":
            stays_empty = (log_nothing > _LIKELIER_THAN_NOT) & ~never
            barred += barred.new_zeros(never.shape).masked_fill(stays_empty, -math.inf)
            never = ~stays_empty
        barred[:, -1:] = barred.new_zeros(never.shape).masked_fill(never, -math.inf)

    def _with_words(self, log_probs: Tensor, is_full: Tensor) -> Tensor:
        """The log-probability (N, 1) of nothing, in full gaps (N,) with that of all words that may not begin there:
        what would go on with another one has come to an end, and not to a further piece of the last."""
        begins, log_nothing = self.lexicon.is_parted[0], log_probs[:, -1:]
        of_words = log_probs[:, :-1].masked_fill(~begins, -math.inf).logsumexp(dim=1, keepdim=True)
        return torch.where(is_full[:, None], torch.logaddexp(log_nothing, of_words), log_nothing)

    def _completes_banned(self, canvas: Canvas, slot: Tensor, forbidden: Tensor) -> Tensor:
        """True (N, V) for tokens that would complete something banned, whatever its case."""
        same = self.lexicon.same_letters
        folded = self.lexicon.folded(canvas)
        near = within_reach(folded, forbidden, missing=1)
        banned = completing_tokens(folded, slot, near, self.lexicon.size)
        return banned[:, same] if len(same) else banned

    def _tempered(self, state: State, row: Tensor, log_probs: Tensor) -> Tensor:
        """Log-probabilities (N, V) over the temperature, which lies between the first and the final one as the share of
        a text that is missing."""
        first, final = self.config.sampling.temperature, self.config.sampling.final_temperature
        if not final:
            return log_probs if first == 1 else log_probs / first
        remaining = (state.limits.insertions - state.inserted).clamp_min(0).float()
        missing = remaining / (remaining + state.canvas.length - 2).clamp_min(1)
        is_known = state.limits.insertions != FREE
        return log_probs / torch.where(is_known, final + (first - final) * missing, first)[row, None]

    def _without_repetitions(
        self, canvas: Canvas, slot: Tensor, neighbours: Tensor, log_probs: Tensor, longest: int
    ) -> Tensor:
        """Log-probabilities (N, V) with repetitions ruled out, unless nothing else is left."""
        bounds = self.config.bounds
        if bounds.repetition_penalty > 1:
            each = torch.full_like(canvas.tokens, -math.log(bounds.repetition_penalty), dtype=log_probs.dtype)
            log_probs = log_probs.scatter_add(1, canvas.tokens, each)
        if not bounds.no_repeat_ngram:
            return log_probs
        sequences = repeated_sequences(canvas, bounds.no_repeat_ngram, longest)
        repeats = completing_tokens(canvas, slot, sequences, log_probs.shape[1]).scatter_(1, neighbours, True)
        others = log_probs.masked_fill(repeats, -math.inf)
        return torch.where(others.amax(dim=1, keepdim=True) > -math.inf, others, log_probs)

    def settle(self, state: State, slot: Tensor, token: Tensor, log_prob: Tensor) -> Tensor:
        """The tokens (B, E) that may go into their slots (B, E) together, NOTHING in place of the others."""
        room, gaps, repeat_size = self.room(state), self._gaps(state), self.config.bounds.no_repeat_ngram
        return settle(state, slot, token, log_prob, room, repeat_size, self.lexicon, gaps)

    def room(self, state: State) -> Room:
        """How many insertions a step may make."""
        return Room.of(state, self.config.rounds.rounds, self._words(state))

    def _words(self, state: State) -> Tensor:
        return count_words(state.canvas, self.lexicon, state.limits.word_correction)

    def _gaps(self, state: State) -> GapRoom | None:
        """How many words each gap lacks and may get, if there are blanks."""
        has_gaps = state.limits.least_in_gap.shape[1] > 0
        return GapRoom.of(state.canvas, state.limits, self.lexicon) if has_gaps else None


def _only(wanted: Tensor, log_probs: Tensor) -> Tensor:
    """The log-probabilities (B, S) of the wanted slots (B, L) alone, in rows where one of these is open."""
    wanted = wanted[:, : log_probs.shape[1]] & (log_probs > -math.inf)
    return log_probs.masked_fill(wanted.any(dim=1, keepdim=True) & ~wanted, -math.inf)
