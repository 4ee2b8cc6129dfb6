"""How tensors of a GGUF file are stored: as numbers, or in blocks of 32 that share a scale.

A block is read as float32 arithmetic in the order "value times scale, plus minimum", as others read it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Records = NDArray[np.void]

_BLOCK = 32  # values


@dataclass(frozen=True)
class Encoding:
    """One way of storing values."""

    name: str
    record: np.dtype[np.void] | np.dtype[np.generic]
    """What lies behind one another in the file."""
    values: int
    """How many values a record holds."""
    decode: Callable[[Records], Floats]
    """Records (N,) as values (N, `values`)."""

    def bytes_of(self, values: int) -> int:
        """What so many values take."""
        return values // self.values * self.record.itemsize


def _plain(records: Records) -> Floats:
    return records.astype(np.float32)[:, None]


def _of_upper_half(records: Records) -> Floats:
    """BF16: the upper half of a float32."""
    return (records.astype(np.uint32) << 16).view(np.float32)[:, None]


def _nibbles(packed: NDArray[np.uint8]) -> Floats:
    """(N, 32) of bytes (N, 16): the low halves are the first 16 values, the high halves the others."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


def _q8_0(records: Records) -> Floats:
    return records["values"].astype(np.float32) * _column(records["scale"])


def _q4_0(records: Records) -> Floats:
    return (_nibbles(records["nibbles"]) - 8) * _column(records["scale"])


def _q4_1(records: Records) -> Floats:
    return _nibbles(records["nibbles"]) * _column(records["scale"]) + _column(records["minimum"])


def _column(numbers: NDArray[np.float16]) -> Floats:
    return numbers.astype(np.float32)[:, None]


_SCALE, _MINIMUM = ("scale", "<f2"), ("minimum", "<f2")
_NIBBLES = ("nibbles", "u1", (_BLOCK // 2,))

ENCODINGS: Mapping[int, Encoding] = {
    0: Encoding("F32", np.dtype("<f4"), 1, _plain),
    1: Encoding("F16", np.dtype("<f2"), 1, _plain),
    2: Encoding("Q4_0", np.dtype([_SCALE, _NIBBLES]), _BLOCK, _q4_0),
    3: Encoding("Q4_1", np.dtype([_SCALE, _MINIMUM, _NIBBLES]), _BLOCK, _q4_1),
    8: Encoding("Q8_0", np.dtype([_SCALE, ("values", "i1", (_BLOCK,))]), _BLOCK, _q8_0),
    30: Encoding("BF16", np.dtype("<u2"), 1, _of_upper_half),
}
"""Those that are read, by their numbers in the format."""

OTHER_NAMES: Mapping[int, str] = {
    6: "Q5_0",
    7: "Q5_1",
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
}
"""Those that are not."""
