"""Reads GGUF, the file format of llama.cpp: a header, named facts, then tensors.

Version 2 or 3, little-endian. A tensor is unpacked to float32 when it is asked for; until then it stays in the file.
"""

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from insnet.pretrained.blocks import ENCODINGS, OTHER_NAMES

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = 32  # bytes, unless the file says otherwise
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _LIST = 8, 9
_LONGEST_NAME = 1 << 16  # bytes; more means that this is no GGUF file


@dataclass(frozen=True)
class _Entry:
    """Where a tensor lies, and how it is stored."""

    shape: tuple[int, ...]
    encoding: int
    start: int
    """In bytes, from the first tensor on."""


class GgufFile:
    """The facts and tensors of one file."""

    facts: dict[str, Any]
    """What the file says about its model: numbers, texts and lists of them."""

    def __init__(self, content: bytes | mmap.mmap, name: str) -> None:
        """`name` is what messages call it."""
        self.name = name
        self._content = content
        cursor = _Cursor(content)
        try:
            self._read_head(cursor)
        except (struct.error, UnicodeDecodeError, IndexError):
            raise ValueError(f"{name} is truncated or no GGUF file: get it again") from None

    @classmethod
    def open(cls, path: str | Path) -> "GgufFile":
        """The file at a path, mapped into memory."""
        path = Path(path)
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise ValueError(f"{path} is empty: get it again")
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), str(path))

    @property
    def names(self) -> set[str]:
        """Those of all tensors."""
        return set(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """That of a tensor, rows first."""
        return self._entry(name).shape

    def tensor(self, name: str) -> Tensor:
        """A tensor in float32, in memory of its own."""
        entry = self._entry(name)
        encoding = ENCODINGS.get(entry.encoding)
        if encoding is None:
            stored = OTHER_NAMES.get(entry.encoding, f"type {entry.encoding}")
            known = ", ".join(known.name for known in ENCODINGS.values())
            raise ValueError(f"{self.name} stores {name} as {stored}; this version reads {known}: get such a file")
        values = math.prod(entry.shape)
        start, size = self._first_tensor + entry.start, encoding.bytes_of(values)
        if values % encoding.values or start + size > len(self._content):
            raise ValueError(f"{self.name} is truncated: {name} is not all there, get it again")
        records = np.frombuffer(self._content, encoding.record, values // encoding.values, start)
        return torch.from_numpy(encoding.decode(records).reshape(entry.shape))

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            raise ValueError(f"{self.name} has no tensor {name!r}: this is another kind of model")
        return self._entries[name]

    def _read_head(self, cursor: "_Cursor") -> None:
        if bytes(self._content[:4]) != _MAGIC:
            raise ValueError(f"{self.name} is no GGUF file: it does not begin with {_MAGIC.decode()}")
        cursor.position = 4
        version = cursor.number("<I")
        if version not in _VERSIONS:
            raise ValueError(f"{self.name} is GGUF version {version}; this version of insnet reads 2 and 3")
        tensors, facts = cursor.number("<Q"), cursor.number("<Q")
        self.facts = {cursor.text(_LONGEST_NAME): cursor.value(cursor.number("<I")) for _ in range(facts)}
        self._entries = dict(self._read_entry(cursor) for _ in range(tensors))
        alignment = int(self.facts.get("general.alignment", _ALIGNMENT))
        self._first_tensor = -(-cursor.position // alignment) * alignment

    @staticmethod
    def _read_entry(cursor: "_Cursor") -> tuple[str, _Entry]:
        name = cursor.text(_LONGEST_NAME)
        sizes = [cursor.number("<Q") for _ in range(cursor.number("<I"))]  # the fastest first
        return name, _Entry(tuple(reversed(sizes)), cursor.number("<I"), cursor.number("<Q"))


class _Cursor:
    """Reads one thing after the other."""

    def __init__(self, content: bytes | mmap.mmap) -> None:
        self._content = content
        self.position = 0

    def number(self, kind: str) -> Any:
        (number,) = struct.unpack_from(kind, self._content, self.position)
        self.position += struct.calcsize(kind)
        return number

    def text(self, longest: int | None = None) -> str:
        length = self.number("<Q")
        end = self.position + length
        if end > len(self._content) or (longest is not None and length > longest):
            raise IndexError
        text = self._content[self.position : end].decode("utf-8")
        self.position = end
        return text

    def value(self, kind: int) -> Any:
        """A fact: a number, a text, or a list of one of these."""
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            return self.number(_NUMBERS[kind]) if kind in _NUMBERS else self._unknown(kind)
        kind, count = self.number("<I"), self.number("<Q")
        if count > len(self._content):
            raise IndexError
        if kind in _NUMBERS:
            numbers = np.frombuffer(self._content, np.dtype(_NUMBERS[kind]), count, self._skip(kind, count))
            return numbers.tolist()
        return [self.value(kind) for _ in range(count)]

    def _skip(self, kind: int, count: int) -> int:
        """Where a list of numbers starts, which is then behind us."""
        start = self.position
        self.position += count * struct.calcsize(_NUMBERS[kind])
        if self.position > len(self._content):
            raise IndexError
        return start

    @staticmethod
    def _unknown(kind: int) -> Any:
        raise IndexError(kind)
