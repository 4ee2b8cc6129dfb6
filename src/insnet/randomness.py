"""Noise as a pure function of counters: a row's draws do not depend on its batch, and a resumed run repeats them.

A generator shared by a batch would give a row another text in another batch; a stored generator state would have
to travel in every checkpoint. Hashing (seed, step, purpose, index) needs neither.
"""

from enum import IntEnum, unique
from functools import lru_cache

import torch
from torch import Tensor


@unique
class Purpose(IntEnum):
    """What noise is for: the first counter of a draw."""

    ORDER = 101
    """Where a token stands in its text's insertion order."""
    ORDER_NUMBER = 102
    """Which of a model's orders a text goes in."""
    PRESENT_NUMBER = 111
    """How many of a text's tokens are on a canvas to learn from."""
    PRESENT_WHICH = 112
    """Which ones."""
    TOLD = 121
    """Whether a text is told how many words are to come."""
    STOP = 201
    SLOT = 202
    TOKEN = 203
    REHEARSAL = 301
    """The seeds of the samples that a length is rehearsed with."""
    COUNT = 302
    """How far from the expected count a text's own lies."""
    PERMUTATION = 401
    """Orders of required words, where any will do."""
    SAMPLE = 402
    TAU = 403
    """How much likelihood a text may lose by sharing rounds."""
    ATTEMPT = 404
    CANDIDATE = 405
    SCORE = 406
    """The orders that a score averages over."""
    FORM = 407
    """Which form of a required word appears, where any will do."""
    REQUEST = 501
    """What parts the texts of one call."""
    CANDIDATE_ORDER = 601
    """The orders that candidates are compared along."""
    REVISION = 701


@unique
class ShufflePurpose(IntEnum):
    """The same for an epoch's order, whose seed is a recipe's and no text's."""

    SENTENCES = 301
    BATCHES = 302
    GROUPS = 303


@unique
class SeededPurpose(IntEnum):
    """The same for draws whose seed came first before purposes did: theirs is the second counter, so that recipes still
    see the batches, given words and dropout that published models have seen."""

    GIVEN_MODE = 101
    GIVEN_NUMBER = 102
    GIVEN_WHICH = 103
    UNKNOWN = 104
    GIVEN_IMPORTANT = 105
    GIVEN_PHRASE = 106
    GIVEN_GROWS = 107
    SENTENCE = 201
    DROPOUT = 401
    WEIGHTS = 402


_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed integer: splitmix64's increment
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB


_MASK = 2**64 - 1


def _scramble(state: Tensor) -> Tensor:
    """splitmix64's finaliser; int64 products wrap around like the unsigned ones it was designed with."""
    state = (state ^ _logical_shift(state, 30)) * _FIRST
    state = (state ^ _logical_shift(state, 27)) * _SECOND
    return state ^ _logical_shift(state, 31)


def _scramble_integer(state: int) -> int:
    """The same of a plain integer."""
    state &= _MASK
    state = (state ^ (state >> 30)) * _FIRST & _MASK
    state = (state ^ (state >> 27)) * _SECOND & _MASK
    return _signed(state ^ (state >> 31))


def _signed(state: int) -> int:
    """The 64-bit integer with these bits."""
    return (state + 2**63 & _MASK) - 2**63


def _logical_shift(value: Tensor, bits: int) -> Tensor:
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def mix(*counters: int | Tensor) -> Tensor:
    """One well-mixed int64 for each combination of counters; tensors are broadcast together.

    >>> bool(mix(1, torch.tensor([2, 3]))[0] == mix(1, 2))
    True
    """
    state: int | Tensor = 0  # stays a plain integer as long as it can: tensors cost time, and drag a state off the GPU
    for counter in counters:
        if isinstance(counter, Tensor):
            counter = counter.long()
        elif isinstance(state, int):
            state = _scramble_integer(state * 3 + counter + _GOLDEN)
            continue
        if isinstance(state, int):
            assert isinstance(counter, Tensor)
            state = _scramble(counter + _signed(state * 3 + _GOLDEN & _MASK))
        else:
            state = _scramble(state * 3 + counter + _GOLDEN)
    return state if isinstance(state, Tensor) else torch.tensor(state)


def uniform(*counters: int | Tensor) -> Tensor:
    """Float64 noise strictly between 0 and 1, one value for each combination of counters."""
    return _as_share(mix(*counters))


def uniforms(purposes: tuple[int, ...], *counters: Tensor) -> Tensor:
    """The same for several purposes (P, ...) at the price of one.

    >>> noise = uniforms((7, 8), torch.tensor([1, 2]))
    >>> bool((noise[1] == uniform(8, torch.tensor([1, 2]))).all())
    True
    """
    state = _scramble(_mixed_purposes(purposes, counters[0].device) + counters[0])  # (P, ...)
    for counter in counters[1:]:
        state = _scramble(state * 3 + counter + _GOLDEN)
    return _as_share(state)


@lru_cache(maxsize=16)
def _mixed_purposes(purposes: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor([[int(mix(purpose))] for purpose in purposes], device=device) * 3 + _GOLDEN


def _as_share(state: Tensor) -> Tensor:
    """52 bits and a half: with a 53rd bit the half would no longer fit, and the largest value would round up to 1. Held
    so far below 1 that a share of some mass is never all of it, whatever is rounded."""
    return ((_logical_shift(state, 12).double() + 0.5) * 2.0**-52).clamp_max(1 - 2.0**-52)
