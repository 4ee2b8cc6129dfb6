"""Which sentences form which batch: length buckets and an epoch's shuffle. Numbers only, no text.

Unless somebody says otherwise, every sentence is visited once an epoch. With shares for classes of length
(`visit_rates`) an epoch has as many visits, but distributed like the shares: sentences of a rare class are visited
several times, of a frequent one only some, and in the end each sentence of a class as often as any other of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from insnet import randomness
from insnet.randomness import ShufflePurpose

CLASS_WIDTH = 10  # tokens: texts of 0 to 9 are the first class of length, of 10 to 19 the second
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Visits:
    """Sentences at one time each."""

    sentences: Integers
    """Numbers of the sentences."""
    passes: Integers
    """How often each of them has been visited before: with the sentence, what its noise is drawn from."""


@dataclass(frozen=True)
class Group:
    """Sentences that are visited equally often."""

    members: Integers
    """Numbers of the sentences, ascending."""
    visits: int
    """Visits an epoch makes to them in all; at least one."""

    def of_epoch(self, seed: int, epoch: int) -> Visits:
        """The epoch's visits: the members are gone through pass by pass, each in an order of its own, and an epoch goes
        on where the one before it stopped."""
        passes, place = np.divmod(np.arange(epoch * self.visits, (epoch + 1) * self.visits), len(self.members))
        first, last = int(passes[0]), int(passes[-1])
        orders = np.stack([_shuffled(self.members, seed, number) for number in range(first, last + 1)])
        return Visits(orders[passes - first, place], passes)


@dataclass(frozen=True)
class Bucket:
    """Sentences that are padded to the same length."""

    width: int
    """The padded length, <bos> and <eos> counted."""
    rows: int
    """Sentences in each batch."""
    groups: tuple[Group, ...]
    """The sentences; those that are visited equally often are together."""

    @property
    def members(self) -> Integers:
        """Numbers of all its sentences, ascending."""
        return np.sort(np.concatenate([group.members for group in self.groups]))

    @property
    def batches(self) -> int:
        """Batches an epoch needs for all visits."""
        return -(-sum(group.visits for group in self.groups) // self.rows)

    def of_epoch(self, seed: int, epoch: int) -> Visits:
        """The epoch's visits in full batches, the last one filled up from the front of the shuffle."""
        parts = [group.of_epoch(seed, epoch) for group in self.groups]
        sentences = np.concatenate([part.sentences for part in parts])
        passes = np.concatenate([part.passes for part in parts])
        if len(parts) > 1:  # a single group is shuffled already
            order = _permutation(np.arange(len(sentences)), ShufflePurpose.GROUPS, seed, epoch)
            sentences, passes = sentences[order], passes[order]
        size = self.batches * self.rows
        return Visits(np.resize(sentences, size), np.resize(passes, size))


@dataclass(frozen=True)
class BatchPlan:
    """The batches of one epoch."""

    visits: Visits
    """All batches' sentences, one batch after the other within each bucket."""
    first: Integers
    """Where in `visits` each batch begins, in the order of the epoch."""
    rows: Integers
    """Sentences of each batch."""
    widths: Integers
    """Padded length of each batch."""

    @classmethod
    def of_epoch(cls, buckets: Sequence[Bucket], seed: int, epoch: int) -> "BatchPlan":
        """All visits; a bucket's last batch is filled up from the front of its own shuffle."""
        parts = [bucket.of_epoch(seed, epoch) for bucket in buckets]
        sentences = np.concatenate([part.sentences for part in parts])
        passes = np.concatenate([part.passes for part in parts])
        rows = np.concatenate([np.full(bucket.batches, bucket.rows) for bucket in buckets])
        widths = np.concatenate([np.full(bucket.batches, bucket.width) for bucket in buckets])
        first = np.cumsum(rows) - rows
        order = _permutation(np.arange(len(rows)), ShufflePurpose.BATCHES, seed, epoch)
        return cls(Visits(sentences, passes), first[order], rows[order], widths[order])

    def __len__(self) -> int:
        return len(self.first)

    def batch(self, index: int) -> tuple[Visits, int]:
        """The visits and the padded length of a batch; past the end it starts over: every process gets one."""
        index %= len(self)
        of_batch = slice(self.first[index], self.first[index] + self.rows[index])
        return Visits(self.visits.sentences[of_batch], self.visits.passes[of_batch]), int(self.widths[index])


def visit_rates(lengths: npt.NDArray[np.integer], shares: Sequence[float]) -> npt.NDArray[np.float64]:
    """How often an epoch visits each sentence, if visits are to be distributed over classes of length like `shares`.

    `lengths` are without <bos> and <eos>. An epoch has as many visits as there are sentences; here those of fewer than
    ten tokens are to be a quarter, not a half:
    >>> visit_rates(np.array([5, 6, 15, 16]), [1, 3]).tolist()
    [0.5, 0.5, 1.5, 1.5]
    """
    class_of_sentence = lengths // CLASS_WIDTH
    sizes = np.bincount(class_of_sentence, minlength=len(shares))
    wanted = np.zeros(len(sizes))
    wanted[: len(shares)] = np.asarray(shares) * len(lengths) / sum(shares)
    for number in np.flatnonzero((wanted > 0) & (sizes == 0)).tolist():
        texts = f"{number * CLASS_WIDTH} to {(number + 1) * CLASS_WIDTH - 1} tokens"
        raise ValueError(f"length_shares gives {shares[number]} to texts of {texts}, of which there are none: give 0")
    rates: npt.NDArray[np.float64] = (wanted / np.maximum(sizes, 1))[class_of_sentence]
    return rates


def in_buckets(
    lengths: npt.NDArray[np.integer],
    token_budget: int,
    max_shapes: int,
    step: int,
    rates: npt.NDArray[np.float64] | None = None,
    padded_lengths: Sequence[int] = (),
) -> list[Bucket]:
    """Buckets such that an epoch has as few tokens, padding and fill included, as `max_shapes` lengths allow.

    `rates` tell how often an epoch visits each sentence: once, unless given. With `padded_lengths`, only these
    are used.
    """
    if len(lengths) == 0:
        raise ValueError("there are no sentences to put into batches")
    rates = np.ones(len(lengths)) if rates is None else rates
    visited = np.flatnonzero(rates)
    if padded_lengths:
        rounded, max_shapes = _fixed_lengths(lengths[visited], padded_lengths), len(padded_lengths)
    else:
        rounded = -(-lengths[visited].astype(np.int64) // step) * step
    if rounded.max() > token_budget:
        raise ValueError(
            f"token_budget {token_budget} is too small: the longest sentence needs {rounded.max()} tokens "
            "(raise the budget, or prepare the data with a smaller max_tokens)"
        )
    candidates, candidate_of = np.unique(rounded, return_inverse=True)
    visits = np.bincount(candidate_of, weights=rates[visited]).astype(np.float64)
    widths = _best_widths(candidates, visits, token_budget, max_shapes)
    bucket_of = np.searchsorted(widths, rounded)
    return [
        Bucket(int(width), token_budget // int(width), _in_groups(visited[bucket_of == number], rates))
        for number, width in enumerate(widths)
    ]


def _in_groups(members: Integers, rates: npt.NDArray[np.float64]) -> tuple[Group, ...]:
    """The sentences, those of one rate together; whole numbers of visits, so that epochs have equal sizes."""
    own = rates[members]
    return tuple(Group(members[own == rate], max(1, round(rate * (own == rate).sum()))) for rate in np.unique(own))


def _fixed_lengths(lengths: npt.NDArray[np.integer], padded_lengths: Sequence[int]) -> Integers:
    """For each sentence the shortest padded length that holds it."""
    allowed = np.unique(np.array(padded_lengths, dtype=np.int64))
    if lengths.max() > allowed[-1]:
        raise ValueError(
            f"padded_lengths end at {allowed[-1]}, but the longest sentence needs {lengths.max()} tokens "
            "(name a longer one, or prepare the data with a smaller max_tokens)"
        )
    fixed: Integers = allowed[np.searchsorted(allowed, lengths)]
    return fixed


def _best_widths(candidates: Integers, visits: npt.NDArray[np.float64], token_budget: int, max_shapes: int) -> Integers:
    """The padded lengths with the smallest epoch, by dynamic programming over the sorted candidates.

    `best[i]` is the least number of tokens that hold all sentences of the first i candidate lengths.
    """
    rows = token_budget // candidates
    below = np.concatenate([[0], np.cumsum(visits)])  # visits of sentences shorter than each candidate
    best = np.full(len(candidates) + 1, np.inf)
    best[0] = 0
    choices: list[Integers] = []
    for _ in range(min(max_shapes, len(candidates))):
        previous, best, came_from = best, best.copy(), np.full(len(candidates) + 1, -1)
        for end in range(1, len(candidates) + 1):
            batches = -(-(below[end] - below[:end]) // rows[end - 1])
            tokens = previous[:end] + batches * rows[end - 1] * candidates[end - 1]
            start = int(tokens.argmin())
            if tokens[start] < best[end]:
                best[end], came_from[end] = tokens[start], start
        choices.append(came_from)
    return _read_back(candidates, choices)


def _read_back(candidates: Integers, choices: list[Integers]) -> Integers:
    """The chosen lengths, ascending; a round that improved nothing (-1) adds none."""
    end, chosen = len(candidates), []
    for came_from in reversed(choices):
        if end > 0 and came_from[end] >= 0:
            chosen.append(candidates[end - 1])
            end = int(came_from[end])
    assert end == 0, "the chosen lengths do not hold every sentence"
    return np.array(chosen[::-1])


def _shuffled(members: Integers, seed: int, epoch: int) -> Integers:
    return members[_permutation(members, ShufflePurpose.SENTENCES, seed, epoch)]


def _permutation(keys: Integers, *counters: int) -> Integers:
    """An order that depends on the counters and the keys alone, not on a library's generator or its version."""
    noise = randomness.mix(*counters, torch.from_numpy(keys)).numpy()
    return np.argsort(noise, kind="stable")
