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
from insnet.decoding.truncation import draw, keep_min_p, keep_top_mass, likeliest
from insnet.families.generator import State
from insnet.families.offers import ChosenSlots
from insnet.insertion.canvas import INSERTED, NOTHING
from insnet.insertion.constraints import (
    FREE,
    Lexicon,
    completing_tokens,
    count_words,
    empty_blanks,
    neighbours_of_slot,
    repeated_sequences,
)
from insnet.randomness import uniform, uniforms

_STOP_NOISE, _SLOT_NOISE, _TOKEN_NOISE = 201, 202, 203
_LIKELIER_THAN_NOT = math.log(0.5)


@dataclass(frozen=True)
class Ending:
    """Which rows (B,) end."""

    ends: Tensor
    is_cut: Tensor
    """Only the limit on tokens ends the row."""
    is_asked: Tensor
    """The model's probability of ending, or of going on, was heeded; elsewhere a bound decided."""


@dataclass(frozen=True)
class Chooser:
    """Chooses by a generation config, within the limits that the state carries."""

    config: GenerationConfig
    lexicon: Lexicon

    def ending(self, state: State, log_stop: Tensor) -> Ending:
        """What the stopping rule, asked with the log-probability (B,) of stopping, and the bounds say."""
        limits = state.limits
        wants = self._wants_to_stop(state, log_stop)
        over = wants | (state.step >= self.config.rounds.rounds) if self.config.rounds.rounds else wants
        words = self._words(state)
        may = words >= limits.min_words
        if limits.has_blanks:
            may = may & ~empty_blanks(state.canvas, limits).any(dim=1)
        ends = (over & may) | (words >= limits.max_words)
        is_full = state.inserted >= limits.max_tokens
        return Ending(ends | is_full, is_full & ~ends, is_asked=(ends | is_full) == wants)

    def _wants_to_stop(self, state: State, log_stop: Tensor) -> Tensor:
        """True (B,) near the planned number of insertions, at the first place that is good to stop at; where there is
        no plan, by the stopping rule."""
        wanted, slack = state.limits.insertions, state.limits.slack
        is_good_place = log_stop > _LIKELIER_THAN_NOT
        near = (state.inserted >= wanted + slack) | ((state.inserted >= wanted - slack) & is_good_place)
        if self.config.length.stopping == "sampled":
            is_good_place = uniform(_STOP_NOISE, state.seeds, state.step) < log_stop.double().exp()
        return torch.where(wanted == FREE, is_good_place, near)

    def noise(self, state: State) -> Tensor:
        """What a step of one insertion draws from (2, B): its slot, and its token."""
        return uniforms((_SLOT_NOISE, _TOKEN_NOISE), state.seeds, state.step)

    def blanks_first(self, state: State, log_probs: Tensor) -> Tensor:
        """The log-probabilities (B, S) of slots that may be filled now: while there are blanks without a word, these
        alone."""
        if not state.limits.has_blanks:
            return log_probs
        blanks = empty_blanks(state.canvas, state.limits)[:, : log_probs.shape[1]]
        return log_probs.masked_fill(blanks.any(dim=1, keepdim=True) & ~blanks, -math.inf)

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

    def tokens(self, state: State, chosen: ChosenSlots, log_probs: Tensor, noise: Tensor | None) -> Tensor:
        """The tokens (N,) to put into the chosen slots, from log-probabilities (N, V), or (N, V + 1) if the last may be
        chosen, too; NOTHING where none may go there. Drawn at `noise` (2, B), or if there is none, at each slot's own.
        """
        row, slot = chosen.row, chosen.flat()
        neighbours, origins = neighbours_of_slot(state.canvas, row, slot)  # (N, 2) each
        refused = self._refused(state, row, slot, origins, log_probs.shape[1])
        if log_probs.shape[1] > self.lexicon.size and self.config.length.stopping == "threshold":
            refused = refused | self._by_threshold(log_probs[:, -1:], refused)
        log_probs = log_probs.masked_fill(refused, -math.inf)
        log_probs = self._without_repetitions(state, row, slot, neighbours, log_probs)
        log_probs = self._tempered(state, row, log_probs)
        log_probs, choices = likeliest(log_probs, self.config.sampling.top_k)  # (N, K) each
        sampling = self.config.sampling
        log_probs = keep_min_p(keep_top_mass(log_probs, sampling.top_p), sampling.min_p)
        own = noise[1] if noise is not None else uniform(_TOKEN_NOISE, state.seeds[row], state.step[row], slot)
        index = draw(log_probs, own)
        token = choices.gather(1, index[:, None])[:, 0]
        return token.where(log_probs.amax(dim=1) > -math.inf, NOTHING)

    def _refused(self, state: State, row: Tensor, slot: Tensor, origins: Tensor, choices: int) -> Tensor:
        """True (N, choices) for what may not go into a slot: it would spoil a required word, complete something
        banned, or leave a blank without a word.

        By induction no piece ever glues itself to a required word: behind one only word-initial pieces may go, so what
        stands behind it is always word-initial, whatever else is inserted later.
        """
        limits, is_required = state.limits, (origins != INSERTED).long()
        left, right = is_required[:, 0], is_required[:, 1]
        is_blank = torch.zeros_like(left)
        if limits.has_blanks:
            is_blank = empty_blanks(state.canvas, limits)[row, slot].long()
        refused = self.lexicon.refused[is_blank, left, right]  # (N, V)
        if limits.forbidden.shape[1]:
            refused = refused | self._completes_banned(state, row, slot)
        more = choices - refused.shape[1]  # nothing may go anywhere but into a blank
        return torch.cat([refused, is_blank[:, None].bool().expand(-1, more)], dim=1) if more else refused

    def _by_threshold(self, log_nothing: Tensor, refused: Tensor) -> Tensor:
        """True (N, V + 1) for all tokens where a slot is likelier to stay empty than not, given its log-probability
        (N, 1), and for staying empty elsewhere; the first only where that is not refused (N, V + 1)."""
        stays_empty = (log_nothing > _LIKELIER_THAN_NOT) & ~refused[:, -1:]
        is_nothing = torch.arange(refused.shape[1], device=refused.device) >= self.lexicon.size
        return stays_empty != is_nothing

    def _completes_banned(self, state: State, row: Tensor, slot: Tensor) -> Tensor:
        """True (N, V) for tokens that would complete something banned, whatever its case."""
        same = self.lexicon.same_letters
        folded = self.lexicon.folded(state.canvas)
        banned = completing_tokens(folded, row, slot, state.limits.forbidden, self.lexicon.size)
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
        self, state: State, row: Tensor, slot: Tensor, neighbours: Tensor, log_probs: Tensor
    ) -> Tensor:
        """Log-probabilities (N, V) with repetitions ruled out, unless nothing else is left."""
        canvas, bounds = state.canvas, self.config.bounds
        if bounds.repetition_penalty > 1:
            each = torch.full_like(canvas.tokens, -math.log(bounds.repetition_penalty), dtype=log_probs.dtype)
            log_probs = log_probs.scatter_add(1, canvas.tokens[row], each[row])
        if not bounds.no_repeat_ngram:
            return log_probs
        sequences = repeated_sequences(canvas, bounds.no_repeat_ngram, state.longest)
        repeats = completing_tokens(canvas, row, slot, sequences, log_probs.shape[1]).scatter_(1, neighbours, True)
        others = log_probs.masked_fill(repeats, -math.inf)
        return torch.where(others.amax(dim=1, keepdim=True) > -math.inf, others, log_probs)

    def settle(self, state: State, slot: Tensor, token: Tensor, log_prob: Tensor) -> Tensor:
        """The tokens (B, E) that may go into their slots (B, E) together, NOTHING in place of the others."""
        return settle(state, slot, token, log_prob, self.room(state), self.config.bounds.no_repeat_ngram, self.lexicon)

    def room(self, state: State) -> Room:
        """How many insertions a step may make."""
        return Room.of(state, self.config.rounds.rounds, self._words(state))

    def _words(self, state: State) -> Tensor:
        return count_words(state.canvas, self.lexicon, state.limits.word_correction)
