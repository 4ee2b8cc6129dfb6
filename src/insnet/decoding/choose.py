"""How a decoder decides: when to stop, which slots, which tokens.

All draws are functions of (the row's seed, its step, the purpose and, among several, the slot), so a row decides the
same in any batch.
Shapes: B rows, S slots, E insertions of a round, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.decoding.config import GenerationConfig
from insnet.decoding.rounds import Room, settle, slots_of_round
from insnet.decoding.truncation import draw, keep_min_p, keep_top_mass, keep_typical, likeliest
from insnet.families.generator import State
from insnet.insertion.canvas import INSERTED, Edits
from insnet.insertion.constraints import (
    Constraints,
    Lexicon,
    allowed_tokens,
    completing_tokens,
    count_words,
    neighbours_of_slot,
    repeated_sequences,
)
from insnet.randomness import uniform

_STOP_NOISE, _SLOT_NOISE, _TOKEN_NOISE = 201, 202, 203


@dataclass(frozen=True)
class Chooser:
    """Decides by a generation config, within the constraints that the state carries."""

    config: GenerationConfig
    lexicon: Lexicon

    def stop(self, state: State, log_stop: Tensor) -> Tensor:
        """True (B,) where the stopping rule and the bounds end the text."""
        limits = state.constraints
        wants = torch.where(
            limits.insertions == Constraints.FREE,
            self._stopping_rule(state, log_stop),
            self._near_wanted(state, log_stop),
        )
        if self.config.rounds:
            wants = wants | (state.step >= self.config.rounds)
        words = count_words(state.canvas, self.lexicon, limits.word_correction)
        may = (words >= limits.min_words) & ~_empty_blanks(state).any(dim=1)
        return (wants & may) | (words >= limits.max_words) | (state.inserted >= limits.max_tokens)

    def _stopping_rule(self, state: State, log_stop: Tensor) -> Tensor:
        theta = self.config.stop_threshold
        if self.config.stopping == "threshold":
            return log_stop > math.log(theta)
        if self.config.stopping == "cumulative":
            log_go = torch.log1p(-log_stop.double().exp().clamp_max(1.0))
            return state.log_survival + log_go < math.log(1 - theta)
        return uniform(_STOP_NOISE, state.seeds, state.step) < log_stop.double().exp()

    def _near_wanted(self, state: State, log_stop: Tensor) -> Tensor:
        """True (B,) at the first good place to stop near the wanted number of insertions."""
        wanted, slack = state.constraints.insertions, state.constraints.slack
        earliest, latest = wanted - slack, wanted + slack
        is_good_place = log_stop > math.log(self.config.stop_threshold)
        return (state.inserted >= latest) | ((state.inserted >= earliest) & is_good_place)

    def slots(self, state: State, log_probs: Tensor) -> Tensor:
        """The slots (B, E) to fill; blanks that must be filled come first."""
        blanks = _empty_blanks(state)[:, : log_probs.shape[1]]
        log_probs = log_probs.masked_fill(blanks.any(dim=1, keepdim=True) & ~blanks, -math.inf)
        if self.is_parallel:
            return slots_of_round(log_probs, self._room(state), self.config)
        if self.config.slot_choice == "argmax":
            return log_probs.argmax(dim=1, keepdim=True)
        noise = uniform(_SLOT_NOISE, state.seeds, state.step)
        return draw(keep_top_mass(log_probs, self.config.slot_mass), noise)[:, None]

    def token(self, state: State, slot: Tensor, log_probs: Tensor) -> Tensor:
        """The token (B,) to put into `slot` (B,)."""
        forbidden = state.constraints.forbidden
        log_probs = log_probs.masked_fill(~allowed_tokens(state.canvas, slot, self.lexicon, forbidden), -math.inf)
        log_probs = self._without_repetitions(state, slot, log_probs) / self._temperature(state)
        log_probs, choices = likeliest(log_probs, self.config.top_k)  # (B, K) each
        log_probs = self._truncated(log_probs)
        counters = (state.seeds, state.step, slot) if self.is_parallel else (state.seeds, state.step)
        chosen = draw(log_probs, uniform(_TOKEN_NOISE, *counters))
        token = choices.gather(1, chosen[:, None])[:, 0]
        return token.where(log_probs.amax(dim=1) > -math.inf, Edits.NOTHING)

    def _temperature(self, state: State) -> Tensor | float:
        """Of each row (B, 1), between the first and the final one as the share of its text that is missing."""
        first, final = self.config.temperature, self.config.final_temperature
        if not final:
            return first
        to_come = (state.constraints.insertions - state.inserted).clamp_min(0).float()
        missing = to_come / (to_come + state.canvas.length - 2).clamp_min(1)
        is_known = state.constraints.insertions != Constraints.FREE
        return torch.where(is_known, final + (first - final) * missing, first)[:, None]

    def _truncated(self, log_probs: Tensor) -> Tensor:
        """What is left (B, K) of the likeliest tokens; each cut sees what the one before it left."""
        config = self.config
        log_probs = keep_min_p(keep_top_mass(log_probs, config.top_p), config.min_p)
        return keep_typical(log_probs, config.typical_p)

    def settle(self, state: State, slot: Tensor, token: Tensor, log_prob: Tensor) -> Tensor:
        """The tokens (B, E) that may go in together."""
        if token.shape[1] == 1:
            return token
        return settle(state, slot, token, log_prob, self._room(state), self.config, self.lexicon)

    @property
    def is_parallel(self) -> bool:
        return self.config.mode == "parallel"

    def _room(self, state: State) -> Room:
        return Room.of(state, self.config, self.lexicon)

    def _without_repetitions(self, state: State, slot: Tensor, log_probs: Tensor) -> Tensor:
        """Log-probabilities with repetitions ruled out, unless nothing else is left."""
        canvas, config = state.canvas, self.config
        vocabulary = log_probs.shape[1]
        repeats = torch.zeros_like(log_probs, dtype=torch.bool)
        if config.no_repeat_ngram:
            longest = int(canvas.length.max())  # the unused rest of the canvas repeats nothing
            sequences = repeated_sequences(canvas, config.no_repeat_ngram)[:, :longest]
            repeats = completing_tokens(canvas, slot, sequences, vocabulary)
        if config.no_adjacent_repeats:
            left, right, _, _ = neighbours_of_slot(canvas, slot)
            repeats.scatter_(1, torch.stack([left, right], dim=1), True)
        if config.repetition_penalty > 1:
            each = torch.full_like(canvas.tokens, -math.log(config.repetition_penalty), dtype=log_probs.dtype)
            log_probs = log_probs.scatter_add(1, canvas.tokens, each)
        remaining = log_probs.masked_fill(repeats, -math.inf)
        return torch.where(remaining.amax(dim=1, keepdim=True) > -math.inf, remaining, log_probs)


def _empty_blanks(state: State) -> Tensor:
    """True (B, L) at open slots between two given stretches, in rows whose blanks must all be filled."""
    canvas = state.canvas
    place = torch.arange(canvas.capacity, device=canvas.length.device)[None, :]
    is_border = (place == 0) | (place == canvas.length[:, None] - 1)  # <bos> and <eos>
    is_given = is_border | (canvas.origin != INSERTED)
    follows = torch.nn.functional.pad(is_given[:, 1:], (0, 1), value=False)
    return canvas.open_slots() & is_given & follows & state.constraints.fills_blanks[:, None]
