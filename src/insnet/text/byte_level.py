"""The byte-level tokenizer of a pretrained model, as GPT-2, SmolLM and Llama 3 have it.

A word begins at the space in front of it. Punctuation is printed where its piece says: "," has no space, " (" has one,
and the word behind an opening bracket has none. Text is encoded as text, even where it is the name of a special.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import tokenizers
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
from insnet.text.specials import Specials
from insnet.text.words import Literal

_VOCABULARY_FILE, _CONFIG_FILE = "tokenizer.json", "tokenizer_config.json"
_CONTINUATION_BYTES = range(0x80, 0xC0)
_LEAD_BYTES = {*range(0x80), *range(0xC2, 0xF5)}
_SPACES = re.compile(" {2,}")
_STRAIGHT_QUOTE = '"'
_NEVER_BEFORE_REQUIRED = frozenset("'’‘@/_-")  # printed apart from the word behind it, which reads like a mistake


class ByteLevelTokenizer:
    """Text to token ids and back, for a vocabulary that a pretrained model brings."""

    is_cased = True

    def __init__(self, content: dict[str, Any], bos: str, eos: str) -> None:
        """`content` is that of a tokenizer.json, `bos` and `eos` are the names of special tokens in it."""
        self._content = content
        names = _names(content)
        self._surfaces = [names.get(token, f"<{token}>") for token in range(max(names, default=-1) + 1)]
        special_ids = frozenset(range(self.size)) - _ids_of_text(content)
        ids = {self._surfaces[token]: token for token in special_ids}
        if missing := [name for name in (bos, eos) if name not in ids]:
            raise ValueError(f"{missing[0]!r} is no special token of this vocabulary")
        self.specials = Specials(special_ids, ids[bos], ids[eos], pad=ids[eos], unk=None)
        self._printed = [b"" if token in special_ids else _bytes_of(name) for token, name in enumerate(self._surfaces)]
        self._lacking = _lacking({piece[0] for piece in self._printed if len(piece) == 1})
        encoder = json.dumps(_for_text_alone(content, special_ids))
        self._library = _read_library(encoder)
        self._facts = [self._facts_of(token) for token in range(self.size)]
        self.starts_word = [facts.starts_word for facts in self._facts]
        self.space: int | None = self._printed.index(b" ") if b" " in self._printed else None
        self.openers = frozenset(
            token for token, facts in enumerate(self._facts) if facts.joins_right or token == self.space
        )
        self.bytes_of_token = [
            self._surfaces[token].encode() if token in special_ids else printed.removeprefix(b" ")
            for token, printed in enumerate(self._printed)
        ]
        identity = encoder + json.dumps([sorted((token, self._surfaces[token]) for token in special_ids), bos, eos])
        self.fingerprint = hashlib.sha256(identity.encode()).hexdigest()[:32]

    @classmethod
    def load(cls, folder: str | Path, *, bos: str | None = None, eos: str | None = None) -> "ByteLevelTokenizer":
        """The tokenizer of a Hugging Face folder; `bos` and `eos` stand in for those that tokenizer_config.json names.

        A vocabulary with one of the two only has it for both.
        """
        folder = Path(folder)
        content = read_json_object(folder / _VOCABULARY_FILE)
        named = read_json_object(folder / _CONFIG_FILE) if (folder / _CONFIG_FILE).is_file() else {}
        if not _is_byte_level(content):
            raise ValueError(
                f"{folder / _CONFIG_FILE} was not written by insnet, and its {_VOCABULARY_FILE} is no byte-level BPE"
            )
        bos, eos = bos or _name(named.get("bos_token")), eos or _name(named.get("eos_token"))
        if not (bos or eos):
            raise ValueError(f"{folder / _CONFIG_FILE} names no bos_token and no eos_token: say which tokens they are")
        return cls(content, bos or eos or "", eos or bos or "")

    @classmethod
    def of_pieces(
        cls,
        pieces: Sequence[str],
        merges: Iterable[str | tuple[str, str]],
        specials: Collection[int],
        *,
        bos: str,
        eos: str,
        single_digits: bool,
    ) -> "ByteLevelTokenizer":
        """The tokenizer of a vocabulary as GGUF files list it: pieces by id, merges ("a b" or a pair) by rank, and the
        ids of specials. `single_digits`: every digit is a piece of its own, as in SmolLM."""
        digits = [{"type": "Digits", "individual_digits": True}] if single_digits else []
        pairs = [merge.split(" ", 1) if isinstance(merge, str) else list(merge) for merge in merges]
        content = {
            "version": "1.0",
            "added_tokens": [_added(token, pieces[token]) for token in sorted(specials)],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*digits, _BYTE_LEVEL]},
            "decoder": _BYTE_LEVEL,
            "model": {"type": "BPE", "vocab": {piece: token for token, piece in enumerate(pieces)}, "merges": pairs},
        }
        return cls(content, bos, eos)

    def save(self, folder: str | Path) -> None:
        """Write the tokenizer.json and tokenizer_config.json of a Hugging Face folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / _VOCABULARY_FILE, json.dumps(self._content, ensure_ascii=False) + "\n")
        bos, eos = self._surfaces[self.specials.bos], self._surfaces[self.specials.eos]
        write_atomically(folder / _CONFIG_FILE, json.dumps({"bos_token": bos, "eos_token": eos}, indent=2) + "\n")

    @property
    def size(self) -> int:
        """How many tokens there are, special ones included."""
        return len(self._surfaces)

    def encode(self, text: str) -> list[int]:
        """The token ids of a text in NFC, runs of spaces as one; `decode` gives that text back."""
        return list(self._library.encode(self._normalised(text), add_special_tokens=False).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts."""
        encodings = self._library.encode_batch_fast(list(map(self._normalised, texts)), add_special_tokens=False)
        return [list(encoding.ids) for encoding in encodings]

    def encode_literal(self, literal: Literal, *, stands_first: bool = False) -> list[int]:
        """The token ids of a required stretch: with a space in front of it, unless it joins left or `stands_first`."""
        space = "" if literal.joins_left or stands_first else " "
        return list(self._library.encode(space + self._normalised(literal.text), add_special_tokens=False).ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; special tokens leave no trace."""
        return self.render([int(token) for token in ids])

    def render(self, parts: Sequence[int | Literal]) -> str:
        """The text of token ids and required stretches, which no piece continues."""
        stretches: list[Literal] = []
        for is_required, run in groupby(parts, lambda part: isinstance(part, Literal)):
            if is_required:
                stretches += [part for part in run if isinstance(part, Literal)]
            else:
                stretches += self._run([part for part in run if isinstance(part, int)], is_first=not stretches)
        return text_words.render(stretches, capitals=self.is_cased)

    def piece(self, token: int) -> str:
        """One token as a reader should see it."""
        return self.bytes_of_token[token].decode("utf-8", errors="backslashreplace")

    def words(self, ids: Sequence[int]) -> list[list[int]]:
        """The token ids grouped into words: behind a symbol a word begins, whether there is a space or not."""
        groups: list[list[int]] = []
        for index, token in enumerate(ids):
            if index == 0 or self.starts_word[token] or self._is_symbol(ids[index - 1]):
                groups.append([])
            groups[-1].append(token)
        return groups

    def part_of_token(self, text: str, ids: Sequence[int]) -> list[int]:
        """Which part of `words.split(text)` each token belongs to: both tile the same characters."""
        ends = list(accumulate(len(part.strip(text_words.MARK).encode()) for part in text_words.split(text)))
        is_inner = [not character.isspace() for character in self._normalised(text) for _ in character.encode()]
        parts, part, position, inner = [], 0, 0, 0
        for token in ids:
            inside = is_inner[position : position + len(self._printed[token])]
            while any(inside) and inner >= ends[part]:
                part += 1
            parts.append(part)
            position, inner = position + len(inside), inner + sum(inside)
        return parts

    def lexicon(self) -> dict[str, Tensor]:
        """What is known about each token, as `pieces.Facts` says."""
        return tables(self._facts)

    def _normalised(self, text: str) -> str:
        """The text in NFC with single spaces, U+FFFD for what the vocabulary has no bytes for."""
        return self._lacking.sub("\ufffd", _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip(" "))

    def facts(self, token: int) -> Facts:
        """What is known about a token."""
        return self._facts[token]

    def _run(self, ids: Sequence[int], *, is_first: bool) -> Iterator[Literal]:
        """Inserted tokens that stand together, as one stretch."""
        encoded = b"".join(self._printed[token] for token in ids)
        text = _SPACES.sub(" ", encoded.decode("utf-8", errors="replace"))
        inner = text.strip(" ")
        if inner:
            joins_left = not text.startswith(" ") and self._facts[ids[0]].may_follow_required
            yield Literal(inner, joins_left, _opens(inner, after_space=is_first or text.startswith(" ")))

    def _is_symbol(self, token: int) -> bool:
        """Whether a token is special or holds symbols alone: what stands behind it is another word."""
        text = text_or_none(self.bytes_of_token[token])
        is_text = token not in self.specials.ids
        return not is_text or (self.starts_word[token] and bool(text) and not has_letter(text or ""))

    def _facts_of(self, token: int) -> Facts:
        if token in self.specials.ids:
            return Facts.of_special()
        text = text_or_none(self._printed[token])
        has_space = self._printed[token].startswith(b" ")
        if text is None:  # half a character may be anything: keep it away from required words
            return Facts(starts_word=has_space)
        core = text[has_space:]
        if core == "":  # the space in front of a number whose digits are pieces of their own
            return Facts(True, may_follow_required=True, may_precede_required=True, generatable=self._spaces_digits())
        starts_word = has_space or not text_words.touches(core[0])
        return Facts(
            starts_word=starts_word,
            joins_left=starts_word and not has_space,
            joins_right=_opens(core, after_space=has_space),
            may_follow_required=has_space or MAY_JOIN_AFTER_REQUIRED.issuperset(core),
            may_precede_required=core[-1] not in _NEVER_BEFORE_REQUIRED or text == " -",
            generatable=is_printable(core),
            is_word=has_space and has_letter(core),
        )

    def _spaces_digits(self) -> bool:
        """Whether a number is written as a space and its digits."""
        return self._printed[self.encode("a 1")[1]] == b" "


_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def _opens(text: str, *, after_space: bool) -> bool:
    """Whether a word behind this text stands against it: it ends in an opening bracket or quote.

    >>> _opens("(", after_space=True), _opens('"', after_space=True), _opens('"', after_space=False)
    (True, True, False)
    >>> _opens('said "', after_space=True), _opens('no."', after_space=True)
    (True, False)
    """
    before = text.rstrip(_STRAIGHT_QUOTE)
    if before == text:
        return text[-1] in MAY_JOIN_BEFORE_REQUIRED
    return before[-1] in MAY_JOIN_BEFORE_REQUIRED | {" "} if before else after_space


def _added(token: int, name: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token, "content": name, **flags, "special": True}


def _names(content: dict[str, Any]) -> dict[int, str]:
    """The name of every token by its id."""
    names = {int(token): str(name) for name, token in content["model"]["vocab"].items()}
    return names | {int(added["id"]): str(added["content"]) for added in content.get("added_tokens") or ()}


def _ids_of_text(content: dict[str, Any]) -> frozenset[int]:
    """What is no added token and made of the byte alphabet alone."""
    added = {int(token["id"]) for token in content.get("added_tokens") or ()}
    return frozenset(int(token) for token in content["model"]["vocab"].values()) - added


def _for_text_alone(content: dict[str, Any], special_ids: frozenset[int]) -> dict[str, Any]:
    """The same tokenizer without specials, so that no text is ever taken for one."""
    model = content["model"]
    vocabulary = {name: token for name, token in model["vocab"].items() if token not in special_ids}
    dropped: dict[str, Any] = {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    return {"version": "1.0", "normalizer": None, **content, **dropped, "model": {**model, "vocab": vocabulary}}


def _is_byte_level(content: dict[str, Any]) -> bool:
    """Whether this is a BPE over bytes; a vocabulary of characters would lose what it does not know."""
    model = content.get("model")
    if not isinstance(model, dict) or model.get("type") != "BPE" or not isinstance(model.get("vocab"), dict):
        return False
    return '"ByteLevel"' in json.dumps(content.get("pre_tokenizer")) and SPACE in model["vocab"]


def _name(token: object) -> str | None:
    """A special token's name, which some configs wrap up."""
    name = token.get("content") if isinstance(token, dict) else token
    return name if isinstance(name, str) else None


def _bytes_of(surface: str) -> bytes:
    try:
        return bytes(BYTE_OF_CHARACTER[character] for character in surface)
    except KeyError:
        raise ValueError(f"the vocabulary is not byte-level: {surface!r} is outside the byte alphabet") from None


def _lacking(present: Collection[int]) -> re.Pattern[str]:
    """What finds the characters that no token begins: some vocabularies lack bytes of controls and unused planes."""
    if missing := {*_CONTINUATION_BYTES, *"\ufffd".encode()} - set(present):
        raise ValueError(f"the vocabulary lacks the bytes {sorted(missing)}: most texts could not be written")
    ranges = [_characters_led_by(lead) for lead in sorted(_LEAD_BYTES - set(present))]
    return re.compile("".join(["[\ud800-\udfff", *(f"{re.escape(a)}-{re.escape(b)}" for a, b in ranges), "]"]))


def _characters_led_by(lead: int) -> tuple[str, str]:
    """The first and the last character whose UTF-8 begins with a byte."""
    if lead < 0x80:
        return chr(lead), chr(lead)
    more = 1 + (lead >= 0xE0) + (lead >= 0xF0)
    first = (lead & (0x3F >> more)) << (6 * more)
    least = (0x80, 0x800, 0x10000)[more - 1]
    return chr(max(first, least)), chr(min(first + (1 << 6 * more) - 1, 0x10FFFF))


def _read_library(content: str) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_str(content)
    except Exception as error:  # the library raises bare Exceptions
        raise ValueError(f"this is not a readable tokenizer: {error}") from None
