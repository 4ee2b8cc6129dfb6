"""Translation pairs as two sets of token shards with one numbering: sentence i of one is that of the other."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from insnet.text.shards import LINES_AT_A_TIME, ShardSummary, TokenShards, write_shards
from insnet.text.tokenizer import Tokenizer

_SOURCE, _TARGET = "source", "target"
Pairs = Callable[[], Iterable[tuple[str, str]]]
"""Gives all (source, target) pairs, from the first one each time it is called."""


def write_pair_shards(
    folder: str | Path, pairs: Pairs, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, *, max_tokens: int
) -> tuple[ShardSummary, ShardSummary]:
    """What was written of each side; a pair is left out where either side is empty or longer than `max_tokens`."""
    sides = ((_SOURCE, source_tokenizer), (_TARGET, target_tokenizer))
    source, target = (
        write_shards(
            Path(folder) / name,
            (pair[side] for pair in _kept(pairs(), source_tokenizer, target_tokenizer, max_tokens)),
            tokenizer,
            importance=None,
            max_tokens=max_tokens,
        )
        for side, (name, tokenizer) in enumerate(sides)
    )
    return source, target


def open_pair_shards(folder: str | Path) -> tuple[TokenShards, TokenShards]:
    """The source and the target side; `Batches` checks that they pair."""
    return TokenShards(Path(folder) / _SOURCE), TokenShards(Path(folder) / _TARGET)


def _kept(
    pairs: Iterable[tuple[str, str]], source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, max_tokens: int
) -> Iterator[tuple[str, str]]:
    """The pairs with 1 to `max_tokens` tokens on both sides."""
    remaining = iter(pairs)
    while chunk := list(islice(remaining, LINES_AT_A_TIME)):
        sources = source_tokenizer.encode_batch([source for source, _ in chunk])
        targets = target_tokenizer.encode_batch([target for _, target in chunk])
        for pair, *ids in zip(chunk, sources, targets, strict=True):
            if all(1 <= len(side) <= max_tokens for side in ids):
                yield pair
