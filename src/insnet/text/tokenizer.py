"""What a tokenizer is, and how one is read from a folder."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor

from insnet.files import read_json_object
from insnet.text.byte_level import ByteLevelTokenizer
from insnet.text.marked import CONFIG_FILE, FORMAT, MarkedTokenizer
from insnet.text.pieces import Facts
from insnet.text.specials import Specials
from insnet.text.words import Literal


class Tokenizer(Protocol):
    """Text to token ids and back: a `MarkedTokenizer`, which we learn, or a pretrained `ByteLevelTokenizer`."""

    @property
    def size(self) -> int:
        """How many tokens there are, special ones included; ids run from 0 to size - 1."""

    @property
    def specials(self) -> Specials:
        """The tokens that are no text."""

    @property
    def fingerprint(self) -> str:
        """The same for the same vocabulary and settings, and for no other."""

    @property
    def is_cased(self) -> bool:
        """Whether upper and lower case are different."""

    @property
    def starts_word(self) -> Sequence[bool]:
        """Of each token, whether it begins a word."""

    @property
    def bytes_of_token(self) -> Sequence[bytes]:
        """Each token's own bytes: without the space in front of it, with joiner marks."""

    @property
    def openers(self) -> frozenset[int]:
        """Tokens behind which a word begins with one of its further pieces, like an opening bracket or a space."""

    @property
    def space(self) -> int | None:
        """The token that prints a space and nothing else, if there is one."""

    def __hash__(self) -> int: ...
    def encode(self, text: str) -> list[int]:
        """The token ids of a text, without <bos> and <eos>."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts: the same as `encode` of each, on all cores."""

    def encode_literal(self, literal: Literal, *, stands_first: bool = False) -> list[int]:
        """The token ids of a required stretch, written as they are inside a text, or `stands_first` in it."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids."""

    def render(self, parts: Sequence[int | Literal]) -> str:
        """The text of token ids and required stretches; no piece ever continues a required stretch."""

    def piece(self, token: int) -> str:
        """One token as a reader should see it, without the space in front of it and without joiner marks."""

    def words(self, ids: Sequence[int]) -> list[list[int]]:
        """The token ids grouped into words; a special token is a group of its own."""

    def part_of_token(self, text: str, ids: Sequence[int]) -> list[int]:
        """Which part of `words.split(text)` each token of `encode(text)` belongs to."""

    def facts(self, token: int) -> Facts:
        """What is known about a token."""

    def lexicon(self) -> dict[str, Tensor]:
        """What is known about each token: the tables (V,) of `pieces.Facts`."""

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json and tokenizer_config.json into a folder; a killed save leaves no half file."""


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer of a folder: one that `save` wrote, or the byte-level one of a Hugging Face folder."""
    config = read_json_object(Path(folder) / CONFIG_FILE)
    return MarkedTokenizer.load(folder) if config.get("format") == FORMAT else ByteLevelTokenizer.load(folder)
