"""The tokenizer that we learn: whole words or byte-level pieces, over text split into words and marked symbols.

`words.split` decides what a word is; the tokenizers library does the counting, merging and looking up.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal as OneOf

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers
from torch import Tensor

from insnet.files import read_json_object, write_atomically
from insnet.text import words as text_words
from insnet.text.pieces import (
    BYTE_OF_CHARACTER,
    MAY_JOIN_AFTER_REQUIRED,
    MAY_JOIN_BEFORE_REQUIRED,
    SPACE,
    Facts,
    has_letter,
    is_printable,
    tables,
    text_or_none,
)
from insnet.text.specials import OURS, SPECIALS, UNK
from insnet.text.words import MARK, Literal

FORMAT = "insnet-tokenizer-1"
_VOCABULARY_FILE, CONFIG_FILE = "tokenizer.json", "tokenizer_config.json"
_LIBRARY_MODEL = {"word": "WordLevel", "bpe": "BPE"}


@dataclass(frozen=True)
class TokenizerConfig:
    """How a vocabulary is learned."""

    kind: OneOf["word", "bpe"]
    """`word`: every word one token, rare ones unknown; `bpe`: byte-level pieces, nothing is ever unknown."""
    vocabulary_size: int
    """The most tokens the vocabulary may have, special ones included."""
    lower_case: bool
    """Whether text is lower-cased before anything else."""
    minimum_count: int = 1
    """How often a word (or a pair of pieces to merge) must occur to enter the vocabulary."""

    def __post_init__(self) -> None:
        if self.kind not in _LIBRARY_MODEL:
            raise ValueError(f"tokenizer kind {self.kind!r} is unknown: choose 'word' or 'bpe'")
        smallest = len(SPECIALS) + (len(BYTE_OF_CHARACTER) if self.kind == "bpe" else 1)
        if self.vocabulary_size < smallest:
            raise ValueError(
                f"vocabulary_size {self.vocabulary_size} is too small: a {self.kind} tokenizer needs {smallest} or more"
            )
        if self.minimum_count < 1:
            raise ValueError(f"minimum_count {self.minimum_count} is below 1")


class MarkedTokenizer:
    """Text to token ids and back; made by `learn` or `load`."""

    specials = OURS
    openers: frozenset[int] = frozenset()
    """Behind every symbol a word begins with a word-initial piece."""
    space: int | None = None
    """No token holds a space."""

    def __init__(self, library: tokenizers.Tokenizer, config: TokenizerConfig) -> None:
        self.config = config
        self._library = library
        self._surfaces = [library.id_to_token(token) or "" for token in range(library.get_vocab_size())]
        self.starts_word = [self._begins_word(token) for token in range(self.size)]
        self.bytes_of_token = [self._bytes_of(token) for token in range(self.size)]
        self.fingerprint = _fingerprint(library, config)
        """The same for the same vocabulary and settings, and for no other."""

    @classmethod
    def learn(cls, lines: Iterable[str], config: TokenizerConfig) -> "MarkedTokenizer":
        """The tokenizer of a corpus, read once; the same lines give the same tokenizer."""
        learn = _learn_words if config.kind == "word" else _learn_pieces
        return cls(learn(lines, config), config)

    @classmethod
    def load(cls, folder: str | Path) -> "MarkedTokenizer":
        """The tokenizer that `save` wrote into a folder."""
        folder = Path(folder)
        config = _read_config(folder / CONFIG_FILE)
        return cls(_read_library(folder / _VOCABULARY_FILE, config), config)

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json and tokenizer_config.json into a folder; a killed save leaves no half file."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / _VOCABULARY_FILE, self._library.to_str(pretty=True))
        settings = {"format": FORMAT, **asdict(self.config)}
        write_atomically(folder / CONFIG_FILE, json.dumps(settings, indent=2) + "\n")

    @property
    def is_cased(self) -> bool:
        """Whether upper and lower case are different."""
        return not self.config.lower_case

    @property
    def size(self) -> int:
        """How many tokens there are, special ones included; ids run from 0 to size - 1."""
        return len(self._surfaces)

    def encode(self, text: str) -> list[int]:
        """The token ids of a text, without <bos> and <eos>."""
        return list(self._library.encode(self._marked(text), add_special_tokens=False).ids)

    def encode_literal(self, literal: Literal, *, stands_first: bool = False) -> list[int]:
        """The token ids of a required stretch, written as they are where a word stands in the blank that it touches;
        the same wherever it stands."""
        groups = self.words(self.encode("a" * literal.joins_left + literal.text + "a" * literal.joins_right))
        groups = groups[literal.joins_left : len(groups) - literal.joins_right]
        return [token for group in groups for token in group]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts: the same as `encode` of each, on all cores."""
        marked = [self._marked(text) for text in texts]
        return [list(encoding.ids) for encoding in self._library.encode_batch_fast(marked, add_special_tokens=False)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; special tokens other than <unk> leave no trace."""
        return self.render([int(token) for token in ids])

    def render(self, parts: Sequence[int | Literal]) -> str:
        """The text of token ids and required stretches: pieces make words, words are joined where they say so.

        A literal ends the word before it, and no piece after it continues it.
        """
        return text_words.render(list(self._printable(parts)), capitals=self.is_cased)

    def piece(self, token: int) -> str:
        """One token as a reader should see it, without word-start and joiner marks."""
        return self.bytes_of_token[token].decode("utf-8", errors="backslashreplace").strip(MARK)

    def words(self, ids: Sequence[int]) -> list[list[int]]:
        """The token ids grouped into words; a special token is a group of its own."""
        groups: list[list[int]] = []
        for index, token in enumerate(ids):
            if index == 0 or self.starts_word[token] or ids[index - 1] < len(SPECIALS):
                groups.append([])
            groups[-1].append(token)
        return groups

    def part_of_token(self, text: str, ids: Sequence[int]) -> list[int]:
        """Which part of `words.split(text)` each token of `encode(text)` belongs to: a token that begins a word begins
        a part."""
        return [number - 1 for number in accumulate(self.starts_word[token] for token in ids)]

    def lexicon(self) -> dict[str, Tensor]:
        """What is known about each token, as `pieces.Facts` says."""
        return tables(map(self.facts, range(self.size)))

    def facts(self, token: int) -> Facts:
        """What is known about a token."""
        if token < len(SPECIALS):
            return Facts.of_special()
        starts_word, text = self.starts_word[token], text_or_none(self.bytes_of_token[token])
        if text is None:  # half a character may be anything: keep it away from required words
            return Facts(starts_word)
        core = text.strip(MARK)
        joins_left = starts_word and text.startswith(MARK)
        joins_right = text.endswith(MARK) and not (text == MARK and starts_word)
        # "3" followed by "￭.￭" and "14" would read 3.14: what joins a required word must end there.
        ends_there = _all_in(core, MAY_JOIN_AFTER_REQUIRED) and not joins_right
        return Facts(
            starts_word,
            joins_left,
            joins_right,
            may_follow_required=starts_word and (not joins_left or ends_there),
            may_precede_required=not joins_right or _all_in(core, MAY_JOIN_BEFORE_REQUIRED),
            generatable=is_printable(core),
            is_word=starts_word and has_letter(core),
        )

    def _printable(self, parts: Sequence[int | Literal]) -> Iterator[str | Literal]:
        """Words as marked text, and literals; token ids between two literals are assembled together."""
        pending: list[int] = []
        for part in parts:
            if isinstance(part, Literal):
                yield from self._assembled(pending)
                pending = []
                yield part
            elif 0 <= part < self.size:
                pending.append(part)
            else:
                raise ValueError(f"token id {part} is outside the vocabulary of {self.size} tokens")
        yield from self._assembled(pending)

    def _assembled(self, ids: Sequence[int]) -> Iterator[str]:
        for word in self.words(ids):
            if word[0] == UNK or word[0] >= len(SPECIALS):
                text = b"".join(self.bytes_of_token[token] for token in word).decode("utf-8", errors="replace")
                yield text[:1] + text[1:-1].replace(MARK, "") + text[1:][-1:]  # a mark inside a word joins nothing

    def _marked(self, text: str) -> str:
        return " ".join(text_words.split(text, self.config.lower_case))

    def _begins_word(self, token: int) -> bool:
        is_piece = self.config.kind == "bpe" and token >= len(SPECIALS)
        return not is_piece or self._surfaces[token].startswith(SPACE)

    def _bytes_of(self, token: int) -> bytes:
        """A token's own bytes: without the space in front of it, with joiner marks."""
        surface = self._surfaces[token]
        if self.config.kind == "word" or token < len(SPECIALS):
            return surface.encode()
        return bytes(BYTE_OF_CHARACTER[character] for character in surface.removeprefix(SPACE))


def _learn_words(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(text_words.split(line, config.lower_case))
    frequent = (word for word, count in counts.items() if count >= config.minimum_count)
    by_frequency = sorted(frequent, key=lambda word: (-counts[word], word))
    vocabulary = [*SPECIALS, *by_frequency[: config.vocabulary_size - len(SPECIALS)]]
    if len(vocabulary) == len(SPECIALS):
        raise ValueError(f"no word occurs {config.minimum_count} times in the text: there is no vocabulary to learn")
    word_ids = {word: token for token, word in enumerate(vocabulary)}
    library = tokenizers.Tokenizer(models.WordLevel(word_ids, unk_token=SPECIALS[UNK]))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    library.add_special_tokens(list(SPECIALS))
    return library


def _learn_pieces(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), byte_level])
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocabulary_size,
        min_frequency=config.minimum_count,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator((" ".join(text_words.split(line, config.lower_case)) for line in lines), trainer)
    return library


def _all_in(text: str, allowed: frozenset[str]) -> bool:
    return text != "" and allowed.issuperset(text)


def _fingerprint(library: tokenizers.Tokenizer, config: TokenizerConfig) -> str:
    identity = library.to_str() + json.dumps([config.kind, config.lower_case])
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def _read_config(path: Path) -> TokenizerConfig:
    content = read_json_object(path)
    if content.pop("format", None) != FORMAT:
        raise ValueError(f"{path} was not written by insnet: 'format' is not {FORMAT!r}")
    try:
        return TokenizerConfig(**content)
    except TypeError as error:
        raise ValueError(f"{path} does not describe a tokenizer: {error}") from None


def _read_library(path: Path, config: TokenizerConfig) -> tokenizers.Tokenizer:
    content = read_json_object(path)
    model = content.get("model")
    if not isinstance(model, dict) or model.get("type") != _LIBRARY_MODEL[config.kind]:
        raise ValueError(f"{path} holds no {config.kind} vocabulary, but {CONFIG_FILE} beside it says so")
    try:
        library = tokenizers.Tokenizer.from_str(json.dumps(content))
    except Exception as error:  # the library raises bare Exceptions
        raise ValueError(f"{path} is not a readable tokenizer: {error}") from None
    _check_vocabulary(library, config, path)
    return library


def _check_vocabulary(library: tokenizers.Tokenizer, config: TokenizerConfig, path: Path) -> None:
    size = library.get_vocab_size()
    surfaces = [library.id_to_token(token) or "" for token in range(size)]
    if tuple(surfaces[: len(SPECIALS)]) != SPECIALS:
        raise ValueError(f"{path} does not begin with the special tokens {' '.join(SPECIALS)}")
    if "" in surfaces or size > config.vocabulary_size:
        raise ValueError(f"{path} has {size} tokens, but {CONFIG_FILE} allows at most {config.vocabulary_size}")
    if config.kind == "bpe" and not set("".join(surfaces[len(SPECIALS) :])) <= BYTE_OF_CHARACTER.keys():
        raise ValueError(f"{path} is not byte-level: its pieces hold characters outside the byte alphabet")
