"""Planned lengths: how many insertions a text gets, as the model's count head expects or as somebody else says."""

from dataclasses import replace

import torch
from torch import Tensor

from insnet.decoding.config import GenerationConfig
from insnet.families.generator import Generator, State
from insnet.insertion.constraints import FREE, Lexicon, Limits, count_words
from insnet.randomness import Purpose, uniform

_SLACK = 0.25
"""How far, as a share of a planned length, a text may end before or after it where the model finds a good place to, so
that it does not break off."""


def with_length(limits: Limits, insertions: Tensor) -> Limits:
    """The limits of texts that end after so many insertions (B,), or a little earlier or later; FREE plans nothing.

    A length within the limit on tokens is reached within it: such a text is never cut off."""
    slack = (insertions.clamp_min(0) * _SLACK).long()
    room = (limits.max_tokens - insertions).clamp_min(0)
    return replace(limits, insertions=insertions, slack=torch.minimum(slack, room))


@torch.no_grad()
def planned(family: Generator, state: State, config: GenerationConfig, lexicon: Lexicon) -> State:
    """A first state with each row's number of insertions as the count head expects, if lengths come from there and are
    not known yet."""
    is_counted = config.length.stopping == "counted"
    if not is_counted and family.config.longest is None:
        return state
    counts = family.offer(state).counts
    if counts is None:
        raise ValueError("stopping is 'counted', but this model has no count head; use rehearsed, threshold or sampled")
    log_probs = _within_bounds(counts, state, lexicon)
    noise = uniform(Purpose.COUNT, state.seeds)
    quantile = config.length_quantile + config.length.count_spread * (2 * noise - 1)
    if config.length.stopping == "sampled":
        quantile = noise
    is_below = log_probs.double().exp().cumsum(dim=1) < quantile[:, None]
    count = is_below.sum(dim=1).clamp_max(log_probs.shape[1] - 1)
    known, own = state.limits, with_length(state.limits, count)
    is_free = known.insertions == FREE
    insertions = torch.where(is_free, own.insertions, known.insertions)
    return replace(
        state, limits=replace(known, insertions=insertions, slack=torch.where(is_free, own.slack, known.slack))
    )


def _within_bounds(log_probs: Tensor, state: State, lexicon: Lexicon) -> Tensor:
    """The distribution (B, N) over counts that can meet the bounds on words and tokens; where none can, the count
    nearest to them.

    An insertion makes at most one word, so a text must get as many as it lacks words; and, punctuation aside, no more
    than it may have.
    """
    limits = state.limits
    words = count_words(state.canvas, lexicon, limits.word_correction)[:, None]
    count = torch.arange(log_probs.shape[1], device=log_probs.device)[None, :]
    least = (limits.min_words[:, None] - words).clamp_max(log_probs.shape[1] - 1)
    most = torch.minimum(limits.max_words[:, None] - words, limits.max_tokens[:, None])
    fits = (count >= torch.minimum(least, most.clamp_min(0))) & (count <= most.clamp_min(0))
    return log_probs.masked_fill(~fits, -torch.inf).log_softmax(dim=1)
