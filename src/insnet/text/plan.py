"""Which sentences form which batch: length buckets and an epoch's shuffle. Numbers only, no text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from insnet import randomness

_SHUFFLE_SENTENCES, _SHUFFLE_BATCHES = 301, 302
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bucket:
    """Sentences that are padded to the same length."""

    width: int
    """The padded length, <bos> and <eos> counted."""
    rows: int
    """Sentences in each batch."""
    members: Integers
    """Numbers of the sentences, ascending."""

    @property
    def batches(self) -> int:
        """Batches an epoch needs to hold every member."""
        return -(-len(self.members) // self.rows)


@dataclass(frozen=True)
class BatchPlan:
    """The batches of one epoch."""

    sentences: Integers
    """All batches' sentences, one batch after the other within each bucket."""
    first: Integers
    """Where in `sentences` each batch begins, in the order of the epoch."""
    rows: Integers
    """Sentences of each batch."""
    widths: Integers
    """Padded length of each batch."""

    @classmethod
    def of_epoch(cls, buckets: Sequence[Bucket], seed: int, epoch: int) -> "BatchPlan":
        """Every sentence once; a bucket's last batch is filled up from the front of its own shuffle."""
        shuffled = [
            np.resize(_shuffled(bucket.members, seed, epoch), bucket.batches * bucket.rows) for bucket in buckets
        ]
        rows = np.concatenate([np.full(bucket.batches, bucket.rows) for bucket in buckets])
        widths = np.concatenate([np.full(bucket.batches, bucket.width) for bucket in buckets])
        first = np.cumsum(rows) - rows
        order = _permutation(np.arange(len(rows)), _SHUFFLE_BATCHES, seed, epoch)
        return cls(np.concatenate(shuffled), first[order], rows[order], widths[order])

    def __len__(self) -> int:
        return len(self.first)

    def batch(self, index: int) -> tuple[Integers, int]:
        """The sentences and the padded length of a batch; past the end it starts over: every process gets one."""
        index %= len(self)
        first = self.first[index]
        return self.sentences[first : first + self.rows[index]], int(self.widths[index])


def in_buckets(lengths: npt.NDArray[np.integer], token_budget: int, max_shapes: int, step: int) -> list[Bucket]:
    """Buckets such that an epoch has as few tokens, padding and fill included, as `max_shapes` lengths allow."""
    if len(lengths) == 0:
        raise ValueError("there are no sentences to put into batches")
    rounded = -(-lengths.astype(np.int64) // step) * step
    if rounded.max() > token_budget:
        raise ValueError(
            f"token_budget {token_budget} is too small: the longest sentence needs {rounded.max()} tokens "
            "(raise the budget, or prepare the data with a smaller max_tokens)"
        )
    candidates, counts = np.unique(rounded, return_counts=True)
    widths = _best_widths(candidates, counts, token_budget, max_shapes)
    bucket_of = np.searchsorted(widths, rounded)
    return [
        Bucket(int(width), token_budget // int(width), np.flatnonzero(bucket_of == number))
        for number, width in enumerate(widths)
    ]


def _best_widths(candidates: Integers, counts: Integers, token_budget: int, max_shapes: int) -> Integers:
    """The padded lengths with the smallest epoch, by dynamic programming over the sorted candidates.

    `best[i]` is the least number of tokens that hold all sentences of the first i candidate lengths.
    """
    rows = token_budget // candidates
    below = np.concatenate([[0], np.cumsum(counts)])  # sentences shorter than each candidate
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
    return members[_permutation(members, _SHUFFLE_SENTENCES, seed, epoch)]


def _permutation(keys: Integers, *counters: int) -> Integers:
    """An order that depends on the counters and the keys alone, not on a library's generator or its version."""
    noise = randomness.mix(*counters, torch.from_numpy(keys)).numpy()
    return np.argsort(noise, kind="stable")
