"""Batches of sentences: few shapes, any batch of any epoch at random access.

Shapes: B sentences, L positions in reading order, S positions of a source, <bos> and <eos> counted.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from insnet import randomness
from insnet.randomness import SeededPurpose
from insnet.text.given import GivenPolicy
from insnet.text.plan import BatchPlan, Bucket, Visits, in_buckets, visit_rates
from insnet.text.shards import TokenShards
from insnet.text.specials import OURS, UNK, Specials

_BOUNDARIES = 2  # <bos> and <eos>


@dataclass(frozen=True)
class TokenBatch:
    """Sentences as a family trains on them."""

    tokens: Tensor
    """(B, L) int64 in reading order: <bos> ... <eos>, then <pad>."""
    lengths: Tensor
    """(B,) int64, <bos> and <eos> counted."""
    given: Tensor
    """(B, L) bool: on the canvas from the start; <bos> and <eos> always."""
    starts_word: Tensor
    """(B, L) bool: where a word begins."""
    seeds: Tensor
    """(B,) int64, a pure function of run seed, sentence and how often it was visited; orders are drawn from it."""
    order: Tensor | None = None
    """(B, L) position_of_step, where somebody prescribes it."""
    source: Tensor | None = None
    """(B, S) int64, <bos> ... <eos>, then <pad>: what the text is a translation of."""
    source_lengths: Tensor | None = None
    """(B,) int64, <bos> and <eos> counted."""
    importance: Tensor | None = None
    """(B, L) uint8, how important each token is, as the shards say: above 0 in keyword candidates."""

    def __post_init__(self) -> None:
        assert self.tokens.shape == self.given.shape == self.starts_word.shape
        assert self.lengths.shape == self.seeds.shape == self.tokens.shape[:1]

    def to(self, device: torch.device | str) -> "TokenBatch":
        """The same batch on a device."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> "TokenBatch":
        """The same batch in memory from which a GPU copies by itself: from any other the copy waits for all work that
        was launched before it, and the launching of the next step waits with it."""
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> "TokenBatch":
        return TokenBatch(**{name: change(value) for name, value in vars(self).items() if value is not None})

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sequence[int]],
        *,
        starts_word: Tensor,
        given: Sequence[Sequence[bool]] | None = None,
        seeds: Sequence[int] | None = None,
        pad_to: int | None = None,
        specials: Specials = OURS,
    ) -> "TokenBatch":
        """A batch of sentences without <bos> and <eos>, which are added; `starts_word` is the lexicon's (V,) table.

        `given` runs parallel to the sentences. Row numbers serve as seeds unless others are given.
        """
        if not sentences:
            raise ValueError("a batch needs at least one sentence")
        longest = max(map(len, sentences)) + _BOUNDARIES
        if pad_to is not None and pad_to < longest:
            raise ValueError(f"pad_to {pad_to} is too short: a sentence has {longest} tokens with <bos> and <eos>")
        width = pad_to or longest
        own_lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        flat = np.fromiter(itertools.chain.from_iterable(sentences), dtype=np.int64, count=int(own_lengths.sum()))
        tokens, lengths, inside = _framed(flat, own_lengths, width, specials)
        on_canvas = _is_frame(lengths, inside)
        if given is not None:
            if [len(row) for row in given] != [len(sentence) for sentence in sentences]:
                raise ValueError("given does not run parallel to the sentences: one flag a token is expected")
            on_canvas[inside] = torch.tensor([flag for row in given for flag in row], dtype=torch.bool)
        rows = torch.tensor(list(seeds) if seeds is not None else range(len(sentences)), dtype=torch.int64)
        return cls(tokens, lengths, on_canvas, starts_word.cpu()[tokens], rows)


@dataclass(frozen=True)
class BatchingConfig:
    """How sentences are put together."""

    token_budget: int
    """The most tokens a batch may have, padding included."""
    max_shapes: int = 6
    """How many padded lengths there may be; fewer compile faster, more waste less."""
    seed: int = 0
    """The run's seed: shuffling, given words and orders all follow from it."""
    bucket_step: int = 8
    """Padded lengths are multiples of this."""
    length_shares: tuple[float, ...] = ()
    """Shares of visits to texts of 0 to 9 tokens, of 10 to 19, and so on; none named: every text once an epoch."""
    padded_lengths: tuple[int, ...] = ()
    """The padded lengths, <bos> and <eos> counted, instead of the best `max_shapes`."""

    def __post_init__(self) -> None:
        for name in ("token_budget", "max_shapes", "bucket_step"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)} is below 1")


class Batches:
    """All batches of all epochs, for one of `world` processes.

    Of an epoch's batches, number i goes to process i % world; each gets the same number. Which words are given, and
    a sentence's seed, depend on the run's seed, the sentence and how often it was visited, never on the batch.

    With a `source` of as many sentences the texts are translations; the longer side decides on the padded length.
    """

    def __init__(
        self,
        shards: TokenShards,
        config: BatchingConfig,
        given: GivenPolicy,
        starts_word: Tensor,
        rank: int = 0,
        world: int = 1,
        *,
        source: TokenShards | None = None,
    ) -> None:
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} is not one of {world} processes (0 to {world - 1})")
        if len(starts_word) != shards.vocabulary_size:
            raise ValueError(f"starts_word has {len(starts_word)} entries for {shards.vocabulary_size} tokens")
        if source is not None and len(source) != len(shards):
            raise ValueError(f"{len(source)} source sentences do not pair with {len(shards)} texts: prepare both again")
        if given.unknown and shards.specials.unk is None:
            raise ValueError(f"unknown is {given.unknown}, but this vocabulary knows every word: leave it at 0")
        self.shards, self.config, self.policy, self.rank, self.world = shards, config, given, rank, world
        self.source = source
        self._starts_word = starts_word.cpu()
        lengths = np.asarray(shards.lengths if source is None else np.maximum(shards.lengths, source.lengths))
        rates = visit_rates(lengths, config.length_shares) if config.length_shares else None
        self.buckets: list[Bucket] = in_buckets(
            lengths + _BOUNDARIES,
            config.token_budget,
            config.max_shapes,
            config.bucket_step,
            rates,
            config.padded_lengths,
        )
        self._plan_of_epoch = lru_cache(maxsize=2)(self._plan)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Every (B, L) that training can meet."""
        return [(bucket.rows, bucket.width) for bucket in self.buckets]

    @property
    def updates_per_epoch(self) -> int:
        """Batches of one epoch for each process."""
        return -(-sum(bucket.batches for bucket in self.buckets) // self.world)

    @cached_property
    def mean_tokens(self) -> float:
        """Tokens of a batch on average, without <bos>, <eos> and padding."""
        groups = [group for bucket in self.buckets for group in bucket.groups]
        lengths = np.asarray(self.shards.lengths)
        tokens = sum(group.visits * int(lengths[group.members].sum()) / len(group.members) for group in groups)
        return tokens / sum(bucket.batches for bucket in self.buckets)

    def at(self, epoch: int, index: int) -> TokenBatch:
        """This process's batch number `index` of an epoch."""
        if not 0 <= index < self.updates_per_epoch:
            raise IndexError(f"batch {index} of {self.updates_per_epoch}")
        return self._load(*self._plan_of_epoch(epoch).batch(index * self.world + self.rank))

    def in_order(self, limit: int | None = None) -> Iterator[TokenBatch]:
        """Each sentence (of the first `limit`) exactly once, unshuffled, with fixed seeds: for validation.

        The last batch of each length may have fewer rows; the processes' shares may differ by one batch.
        """
        pieces = [
            (members[start : start + bucket.rows], bucket.width)
            for bucket in self.buckets
            for members in [bucket.members[bucket.members < limit] if limit is not None else bucket.members]
            for start in range(0, len(members), bucket.rows)
        ]
        for sentences, width in pieces[self.rank :: self.world]:
            yield self._load(Visits(sentences, np.zeros_like(sentences)), width)

    def _plan(self, epoch: int) -> BatchPlan:
        return BatchPlan.of_epoch(self.buckets, self.config.seed, epoch)

    def _load(self, visits: Visits, width: int) -> TokenBatch:
        rows = self.shards.gather(visits.sentences)
        specials = self.shards.specials
        tokens, lengths, inside = _framed(rows.tokens, rows.lengths, width, specials)
        importance = torch.zeros_like(inside, dtype=torch.uint8)
        importance[inside] = torch.from_numpy(rows.importance)
        passes, sentences = torch.from_numpy(visits.passes), torch.from_numpy(visits.sentences)
        seeds = randomness.mix(self.config.seed, SeededPurpose.SENTENCE, passes, sentences)
        starts_word = self._starts_word[tokens]
        given = self.policy.choose(starts_word, importance, inside, seeds)
        shown = self.policy.hide(tokens, given, seeds, UNK if specials.unk is None else specials.unk)
        given |= _is_frame(lengths, inside)
        source, source_lengths = self._load_source(visits, width)
        return TokenBatch(
            shown,
            lengths,
            given,
            starts_word,
            seeds,
            source=source,
            source_lengths=source_lengths,
            importance=importance if self.shards.summary.keyword_tokens else None,
        )

    def _load_source(self, visits: Visits, width: int) -> tuple[Tensor, Tensor] | tuple[None, None]:
        if self.source is None:
            return None, None
        rows = self.source.gather(visits.sentences)
        tokens, lengths, _ = _framed(rows.tokens, rows.lengths, width, self.source.specials)
        return tokens, lengths


def _framed(
    flat: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], width: int, specials: Specials
) -> tuple[Tensor, Tensor, Tensor]:
    """(B, L) int64 tokens between <bos> and <eos>, (B,) their lengths, (B, L) bool: the sentences' own positions.

    The sentences come one behind the other, with the length of each.
    """
    position, length = torch.arange(width), torch.from_numpy(lengths)[:, None]
    inside = (position >= 1) & (position <= length)  # (B, L)
    tokens = torch.full(inside.shape, specials.pad)
    tokens[inside] = torch.from_numpy(flat)
    tokens[:, 0] = specials.bos
    return tokens.scatter_(1, length + 1, specials.eos), length[:, 0] + _BOUNDARIES, inside


def _is_frame(lengths: Tensor, inside: Tensor) -> Tensor:
    """(B, L) bool: at <bos> and <eos>."""
    return (torch.arange(inside.shape[1]) < lengths[:, None]) & ~inside
