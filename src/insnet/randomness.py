"""Noise as a pure function of counters: a row's draws do not depend on its batch, and a resumed run repeats them.

A generator shared by a batch would give a row another text in another batch; a stored generator state would have
to travel in every checkpoint. Hashing (seed, step, purpose, index) needs neither.
"""

from enum import IntEnum, unique

import torch
from torch import Tensor


@unique
class Purpose(IntEnum):
    """What noise is for: the first counter of a draw. Decoding has constants of its own."""

    ORDER = 101
    """Where a token stands in its text's insertion order."""
    ORDER_NUMBER = 102
    """Which of a model's orders a text goes in."""
    SHUFFLE_SENTENCES = 301
    SHUFFLE_BATCHES = 302
    SHUFFLE_GROUPS = 303
    TAU = 403
    """How much likelihood a text may lose by sharing rounds."""
    SCORE = 406
    """The orders that a score averages over."""


@unique
class SeededPurpose(IntEnum):
    """The same for draws whose seed came first before purposes did: theirs is the second counter, so that recipes still
    see the batches, given words and dropout that published models have seen."""

    GIVEN_MODE = 101
    GIVEN_NUMBER = 102
    GIVEN_WHICH = 103
    UNKNOWN = 104
    SENTENCE = 201
    DROPOUT = 401
    WEIGHTS = 402


_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed integer: splitmix64's increment
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB


def _scramble(state: Tensor) -> Tensor:
    """splitmix64's finaliser; int64 products wrap around like the unsigned ones it was designed with."""
    state = (state ^ _logical_shift(state, 30)) * _FIRST
    state = (state ^ _logical_shift(state, 27)) * _SECOND
    return state ^ _logical_shift(state, 31)


def _logical_shift(value: Tensor, bits: int) -> Tensor:
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def mix(*counters: int | Tensor) -> Tensor:
    """One well-mixed int64 for each combination of counters; tensors are broadcast together.

    >>> bool(mix(1, torch.tensor([2, 3]))[0] == mix(1, 2))
    True
    """
    state = torch.zeros((), dtype=torch.int64)
    for counter in counters:
        # Plain integers stay plain: as tensors they would live on the CPU and drag a state on the GPU back there.
        counter = counter.long() if isinstance(counter, Tensor) else counter
        state = _scramble(state * 3 + counter + _GOLDEN)
    return state


def uniform(*counters: int | Tensor) -> Tensor:
    """Float64 noise strictly between 0 and 1, one value for each combination of counters.

    52 bits and a half: with a 53rd bit the half would no longer fit, and the largest value would round up to 1.
    """
    return (_logical_shift(mix(*counters), 12).double() + 0.5) * 2.0**-52
