"""Tokens of a corpus on disk, memory-mapped, so that a corpus larger than memory trains as fast as a small one.

A folder holds index.json, lengths.npy (tokens of each sentence) and, for each shard, tokens, offsets (where each
sentence begins, and the end) and one byte a token that is 1 in keyword candidates.
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
from insnet.text.tokenizer import Tokenizer

_FORMAT = "insnet-shards-1"
_INDEX, _LENGTHS = "index.json", "lengths.npy"
_LINES_AT_A_TIME = 4096
FlagKeywords = Callable[[list[str]], list[list[bool]]]


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
    """Tokens of keyword candidates."""


@dataclass(frozen=True)
class TokenRows:
    """Some sentences, one behind the other."""

    tokens: npt.NDArray[np.int64]
    """Ids, without <bos> and <eos>."""
    flags: npt.NDArray[np.uint8]
    """Parallel to the tokens: 1 in keyword candidates."""
    lengths: npt.NDArray[np.int64]
    """Tokens of each sentence."""


@dataclass(frozen=True)
class _Sentence:
    tokens: npt.NDArray[Any]
    flags: npt.NDArray[np.uint8]


def write_shards(
    folder: str | Path,
    lines: Iterable[str],
    tokenizer: Tokenizer,
    *,
    flag_keywords: FlagKeywords | None,
    max_tokens: int,
    sentences_per_shard: int = 500_000,
    on_progress: Callable[[int], None] | None = None,
) -> ShardSummary:
    """What was written: the tokens of a corpus, streamed into a folder that appears only when it is whole.

    `max_tokens` counts a sentence's own tokens, without <bos> and <eos>. `flag_keywords` says, for each line, which
    of its words are keyword candidates. `on_progress` hears how many lines were read.
    """
    if max_tokens < 1 or sentences_per_shard < 1:
        raise ValueError(f"max_tokens {max_tokens} and sentences_per_shard {sentences_per_shard} must be at least 1")
    folder = Path(folder)
    _refuse_foreign(folder)
    partial = folder.parent / f".{folder.name}.partial"  # a fixed name: what a killed run left behind is cleared away
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        summary = _fill(partial, lines, tokenizer, flag_keywords, max_tokens, sentences_per_shard, on_progress)
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
        self.summary = ShardSummary(**index["summary"])
        dtype = np.dtype(index["dtype"])
        sizes: list[int] = index["sentences_of_shard"]
        self._first_of_shard = [0, *np.cumsum(sizes).tolist()]
        shards = range(len(sizes))
        self._offsets = [self._open("offsets", n, np.dtype(np.int64), sizes[n] + 1) for n in shards]
        self._tokens = [self._open("tokens", n, dtype, int(self._offsets[n][-1])) for n in shards]
        self._flags = [self._open("flags", n, np.dtype(np.uint8), int(self._offsets[n][-1])) for n in shards]
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

    def keyword_flags(self, sentence: int) -> npt.NDArray[Any]:
        """(length,) uint8: 1 where a token belongs to a keyword candidate."""
        return self._slice(self._flags, sentence)

    def gather(self, sentences: npt.NDArray[np.integer]) -> "TokenRows":
        """Many sentences at once, without a Python step for each: what a batch is made from."""
        lengths = np.asarray(self.lengths)[sentences].astype(np.int64)
        shard_of_row = np.searchsorted(self._first_of_shard, sentences, side="right") - 1
        shard_of_token = np.repeat(shard_of_row, lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # place in its sentence
        tokens = np.empty(len(within), dtype=np.int64)
        flags = np.empty(len(within), dtype=np.uint8)
        for shard in np.unique(shard_of_row):
            is_row, is_token = shard_of_row == shard, shard_of_token == shard
            start = np.asarray(self._offsets[shard])[sentences[is_row] - self._first_of_shard[shard]]
            place = np.repeat(start, lengths[is_row]) + within[is_token]
            tokens[is_token] = np.asarray(self._tokens[shard])[place]
            flags[is_token] = np.asarray(self._flags[shard])[place]
        return TokenRows(tokens, flags, lengths)

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
    flag_keywords: FlagKeywords | None,
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
            if on_progress is not None and read % _LINES_AT_A_TIME == 0:
                on_progress(read)
            yield line

    dtype = np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)
    sentences = _sentences(counted(), tokenizer, flag_keywords, max_tokens, dtype)
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
    flag_keywords: FlagKeywords | None,
    max_tokens: int,
    dtype: np.dtype[Any],
) -> Iterator[_Sentence]:
    """Tokens and keyword flags of every sentence that is neither empty nor too long."""
    starts_word = tokenizer.lexicon()["starts_word"].numpy()
    while chunk := list(islice(lines, _LINES_AT_A_TIME)):
        encoded = zip(chunk, tokenizer.encode_batch(chunk), strict=True)
        kept = [(line, ids) for line, ids in encoded if 1 <= len(ids) <= max_tokens]
        word_flags = flag_keywords([line for line, _ in kept]) if flag_keywords is not None else None
        for row, (line, ids) in enumerate(kept):
            tokens = np.array(ids, dtype=dtype)
            if word_flags is None:
                yield _Sentence(tokens, np.zeros(len(ids), dtype=np.uint8))
            else:
                yield _Sentence(tokens, _flags_of_pieces(word_flags[row], starts_word[tokens], line))


def _flags_of_pieces(word_flags: list[bool], starts_word: npt.NDArray[np.bool_], line: str) -> npt.NDArray[np.uint8]:
    """A word's flag for each of its pieces."""
    word_of_piece = np.cumsum(starts_word) - 1
    if len(word_flags) != word_of_piece[-1] + 1:
        raise ValueError(f"flag_keywords gave {len(word_flags)} flags for {word_of_piece[-1] + 1} words: {line!r}")
    flags: npt.NDArray[np.uint8] = np.array(word_flags, dtype=np.uint8)[word_of_piece]
    return flags


def _write_shard(
    folder: Path, number: int, sentences: Iterable[_Sentence], dtype: np.dtype[Any]
) -> tuple[npt.NDArray[np.int32], int]:
    """The sentences' lengths and how many tokens are flagged; a shard is gathered as bytes, which is most compact."""
    tokens, flags, sizes = bytearray(), bytearray(), []
    for sentence in sentences:
        tokens += sentence.tokens.tobytes()
        flags += sentence.flags.tobytes()
        sizes.append(len(sentence.tokens))
    lengths = np.array(sizes, dtype=np.int32)
    np.save(_shard_path(folder, "offsets", number), np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
    np.save(_shard_path(folder, "tokens", number), np.frombuffer(tokens, dtype=dtype))
    np.save(_shard_path(folder, "flags", number), np.frombuffer(flags, dtype=np.uint8))
    return lengths, sum(flags)


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
    if index.get("format") != _FORMAT or index.keys() != expected or index["dtype"] not in ("uint16", "uint32"):
        raise ValueError(f"{folder / _INDEX} does not describe token shards of format {_FORMAT!r}: prepare them again")
    return index


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
