"""Tokens of a corpus on disk, memory-mapped, so that a corpus larger than memory trains as fast as a small one.

A folder holds index.json, lengths.npy (tokens of each sentence) and, for each shard, tokens, offsets (where each
sentence begins, and the end) and one byte per token that says how important it is: above 0 in keyword candidates.
"""

import json
import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from insnet.files import read_json_object, write_atomically
from insnet.text.specials import OURS, Specials
from insnet.text.tokenizer import Tokenizer
from insnet.text.words import split

_FORMAT = "insnet-shards-1"
_INDEX, _LENGTHS = "index.json", "lengths.npy"
LINES_AT_A_TIME = 4096
Importance = Callable[[list[str]], Sequence[Sequence[int]]]
"""For some lines, a number from 0 to 255 for each part of `words.split(line)`."""


@dataclass(frozen=True)
class ShardSummary:
    """What a corpus became."""

    sentences: int
    """Sentences written."""
    tokens: int
    """Tokens written, without <bos> and <eos>."""
    left_out: int
    """Sentences that were empty or longer than allowed."""
    shards: int
    """Files the tokens are spread over."""
    keyword_tokens: int
    """Tokens whose importance is above 0: those of keyword candidates."""


@dataclass(frozen=True)
class TokenRows:
    """Some sentences, one behind the other."""

    tokens: npt.NDArray[np.int64]
    """Ids, without <bos> and <eos>."""
    importance: npt.NDArray[np.uint8]
    """Parallel to the tokens."""
    lengths: npt.NDArray[np.int64]
    """Tokens of each sentence."""


@dataclass(frozen=True)
class _Sentence:
    tokens: npt.NDArray[Any]
    importance: npt.NDArray[np.uint8]


def write_shards(
    folder: str | Path,
    lines: Iterable[str],
    tokenizer: Tokenizer,
    *,
    importance: Importance | None,
    max_tokens: int,
    sentences_per_shard: int = 500_000,
    on_progress: Callable[[int], None] | None = None,
) -> ShardSummary:
    """What was written: the tokens of a corpus, streamed into a folder that appears only when it is whole.

    `max_tokens` counts a sentence's own tokens, without <bos> and <eos>. `importance` says, for each line, how
    important its words are. `on_progress` is called with the number of lines read.
    """
    if max_tokens < 1 or sentences_per_shard < 1:
        raise ValueError(f"max_tokens {max_tokens} and sentences_per_shard {sentences_per_shard} must be at least 1")
    folder = Path(folder)
    _refuse_foreign(folder)
    partial = folder.parent / f".{folder.name}.partial"  # a fixed name: what a killed run left behind is cleared away
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        summary = _fill(partial, lines, tokenizer, importance, max_tokens, sentences_per_shard, on_progress)
        _put_in_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return summary


class TokenShards:
    """A corpus of token ids on disk; sentences are read when asked for."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        index = _read_index(self.folder)
        self.vocabulary_size: int = index["vocabulary_size"]
        self._fingerprint: str = index["tokenizer"]
        self.specials = _specials_of(index)
        self.summary = ShardSummary(**index["summary"])
        dtype = np.dtype(index["dtype"])
        sizes: list[int] = index["sentences_of_shard"]
        self._first_of_shard = [0, *np.cumsum(sizes).tolist()]
        shards = range(len(sizes))
        self._offsets = [self._open("offsets", n, np.dtype(np.int64), sizes[n] + 1) for n in shards]
        self._tokens = [self._open("tokens", n, dtype, int(self._offsets[n][-1])) for n in shards]
        self._importance = [self._open("flags", n, np.dtype(np.uint8), int(self._offsets[n][-1])) for n in shards]
        self.lengths = _open_array(self.folder / _LENGTHS, np.dtype(np.int32), self.summary.sentences)
        """(sentences,) int32, memory-mapped: tokens of each sentence, without <bos> and <eos>."""
        if self._first_of_shard[-1] != len(self):
            raise ValueError(f"{self.folder} is inconsistent: {len(self)} sentences announced, {sum(sizes)} in shards")

    def __len__(self) -> int:
        return self.summary.sentences

    def __reduce__(self) -> tuple[type["TokenShards"], tuple[Path]]:
        return TokenShards, (self.folder,)  # another process opens the files again instead of receiving their content

    def tokens(self, sentence: int) -> npt.NDArray[Any]:
        """(length,) The token ids of a sentence, without <bos> and <eos>."""
        return self._slice(self._tokens, sentence)

    def importance(self, sentence: int) -> npt.NDArray[Any]:
        """(length,) uint8: how important each token is; above 0 in keyword candidates."""
        return self._slice(self._importance, sentence)

    def gather(self, sentences: npt.NDArray[np.integer]) -> "TokenRows":
        """Many sentences at once, without a Python step for each: what a batch is made from."""
        lengths = np.asarray(self.lengths)[sentences].astype(np.int64)
        shard_of_row = np.searchsorted(self._first_of_shard, sentences, side="right") - 1
        shard_of_token = np.repeat(shard_of_row, lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # place in its sentence
        tokens = np.empty(len(within), dtype=np.int64)
        importance = np.empty(len(within), dtype=np.uint8)
        for shard in np.unique(shard_of_row):
            is_row, is_token = shard_of_row == shard, shard_of_token == shard
            start = np.asarray(self._offsets[shard])[sentences[is_row] - self._first_of_shard[shard]]
            place = np.repeat(start, lengths[is_row]) + within[is_token]
            tokens[is_token] = np.asarray(self._tokens[shard])[place]
            importance[is_token] = np.asarray(self._importance[shard])[place]
        return TokenRows(tokens, importance, lengths)

    def check(self, tokenizer: Tokenizer) -> None:
        """Refuse another tokenizer than the one that made these tokens."""
        if tokenizer.fingerprint != self._fingerprint:
            raise ValueError(
                f"the tokens in {self.folder} were made with another tokenizer: "
                "prepare the data again with this one, or use the tokenizer that was saved with them"
            )

    def _slice(self, arrays: Sequence[npt.NDArray[Any]], sentence: int) -> npt.NDArray[Any]:
        if not 0 <= sentence < len(self):
            raise IndexError(f"sentence {sentence} of {len(self)}")
        shard = bisect_right(self._first_of_shard, sentence) - 1
        row = sentence - self._first_of_shard[shard]
        start, end = self._offsets[shard][row : row + 2]
        return arrays[shard][start:end]

    def _open(self, what: str, shard: int, dtype: np.dtype[Any], size: int) -> npt.NDArray[Any]:
        return _open_array(_shard_path(self.folder, what, shard), dtype, size)


def _fill(
    folder: Path,
    lines: Iterable[str],
    tokenizer: Tokenizer,
    importance: Importance | None,
    max_tokens: int,
    sentences_per_shard: int,
    on_progress: Callable[[int], None] | None,
) -> ShardSummary:
    """Write all files; one shard at a time is in memory, as arrays."""
    read = 0

    def counted() -> Iterator[str]:
        nonlocal read
        for line in lines:
            read += 1
            if on_progress is not None and read % LINES_AT_A_TIME == 0:
                on_progress(read)
            yield line

    dtype = np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)
    sentences = _sentences(counted(), tokenizer, importance, max_tokens, dtype)
    lengths_of_shard: list[npt.NDArray[np.int32]] = []
    keyword_tokens = 0
    for first in sentences:
        shard = chain([first], islice(sentences, sentences_per_shard - 1))
        lengths, flagged = _write_shard(folder, len(lengths_of_shard), shard, dtype)
        lengths_of_shard.append(lengths)
        keyword_tokens += flagged
    if not lengths_of_shard:
        raise ValueError(f"no sentence of 1 to {max_tokens} tokens in the text ({read} lines read): nothing to write")
    lengths = np.concatenate(lengths_of_shard)
    np.save(folder / _LENGTHS, lengths)
    if on_progress is not None:
        on_progress(read)
    summary = ShardSummary(
        len(lengths), int(lengths.sum(dtype=np.int64)), read - len(lengths), len(lengths_of_shard), keyword_tokens
    )
    _write_index(folder, summary, tokenizer, dtype, [len(of_shard) for of_shard in lengths_of_shard])
    return summary


def _sentences(
    lines: Iterator[str],
    tokenizer: Tokenizer,
    importance: Importance | None,
    max_tokens: int,
    dtype: np.dtype[Any],
) -> Iterator[_Sentence]:
    """Tokens and their importance of every sentence that is neither empty nor too long."""
    while chunk := list(islice(lines, LINES_AT_A_TIME)):
        encoded = zip(chunk, tokenizer.encode_batch(chunk), strict=True)
        kept = [(line, ids) for line, ids in encoded if 1 <= len(ids) <= max_tokens]
        of_words = importance([line for line, _ in kept]) if importance is not None else None
        for row, (line, ids) in enumerate(kept):
            of_pieces = np.zeros(len(ids), dtype=np.uint8)
            if of_words is not None:
                of_pieces = _importance_of_pieces(of_words[row], tokenizer.part_of_token(line, ids), line)
            yield _Sentence(np.array(ids, dtype=dtype), of_pieces)


def _importance_of_pieces(of_words: Sequence[int], word_of_piece: list[int], line: str) -> npt.NDArray[np.uint8]:
    """A word's importance for each of its pieces."""
    words = word_of_piece[-1] + 1
    if len(of_words) != words and len(of_words) != len(split(line)):  # the last piece may be several marks, like "%."
        raise ValueError(f"importance gave {len(of_words)} numbers for {words} words: {line!r}")
    of_pieces: npt.NDArray[np.uint8] = np.array(of_words, dtype=np.uint8)[word_of_piece]
    return of_pieces


def _write_shard(
    folder: Path, number: int, sentences: Iterable[_Sentence], dtype: np.dtype[Any]
) -> tuple[npt.NDArray[np.int32], int]:
    """The sentences' lengths and how many tokens are important; a shard is gathered as bytes, which is most compact."""
    tokens, importance, sizes = bytearray(), bytearray(), []
    for sentence in sentences:
        tokens += sentence.tokens.tobytes()
        importance += sentence.importance.tobytes()
        sizes.append(len(sentence.tokens))
    lengths = np.array(sizes, dtype=np.int32)
    np.save(_shard_path(folder, "offsets", number), np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
    np.save(_shard_path(folder, "tokens", number), np.frombuffer(tokens, dtype=dtype))
    np.save(_shard_path(folder, "flags", number), np.frombuffer(importance, dtype=np.uint8))
    return lengths, len(importance) - importance.count(0)


def _write_index(
    folder: Path, summary: ShardSummary, tokenizer: Tokenizer, dtype: np.dtype[Any], sizes: list[int]
) -> None:
    index = {
        "format": _FORMAT,
        "vocabulary_size": tokenizer.size,
        "dtype": dtype.name,
        "tokenizer": tokenizer.fingerprint,
        "sentences_of_shard": sizes,
        "summary": vars(summary),
        "specials": {**vars(tokenizer.specials), "ids": sorted(tokenizer.specials.ids)},
    }
    write_atomically(folder / _INDEX, json.dumps(index, indent=2) + "\n")


def _refuse_foreign(folder: Path) -> None:
    """Older shards may be replaced; anything else in the way is somebody's and stays."""
    if folder.exists() and not (folder.is_dir() and ((folder / _INDEX).is_file() or not any(folder.iterdir()))):
        raise ValueError(f"{folder} exists and holds no token shards: choose another folder, or remove it")


def _put_in_place(partial: Path, folder: Path) -> None:
    if not folder.exists():
        os.rename(partial, folder)
        return
    replaced = folder.parent / f".{folder.name}.replaced"
    shutil.rmtree(replaced, ignore_errors=True)
    os.rename(folder, replaced)
    os.rename(partial, folder)
    shutil.rmtree(replaced)


def _shard_path(folder: Path, what: str, number: int) -> Path:
    return folder / f"{what}-{number:05d}.npy"


def _read_index(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ValueError(f"no token shards: {folder} does not exist (run prepare first)")
    index = read_json_object(folder / _INDEX)
    expected = {"format", "vocabulary_size", "dtype", "tokenizer", "sentences_of_shard", "summary"}
    is_whole = index.keys() - {"specials"} == expected and index["dtype"] in ("uint16", "uint32")
    if index.get("format") != _FORMAT or not is_whole:
        raise ValueError(f"{folder / _INDEX} does not describe token shards of format {_FORMAT!r}: prepare them again")
    return index


def _specials_of(index: dict[str, Any]) -> Specials:
    """Those of the tokenizer; shards from before there was a choice have ours."""
    stored = index.get("specials")
    return OURS if stored is None else Specials(**{**stored, "ids": frozenset(stored["ids"])})


def _open_array(path: Path, dtype: np.dtype[Any], size: int) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is missing or truncated, prepare the data again: {error}") from None
    if array.dtype != dtype or array.shape != (size,):
        raise ValueError(
            f"{path} holds {array.shape} {array.dtype}, but ({size},) {dtype} was expected: prepare it again"
        )
    return array
