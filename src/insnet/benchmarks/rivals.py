"""Untrained models of one size, to be timed against each other."""

from typing import Any, Protocol

import torch

from insnet.families import FAMILIES
from insnet.families.generator import Generator


class Size(Protocol):
    """What a benchmark's config says of its models."""

    @property
    def vocabulary(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def slot_layers(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def seed(self) -> int: ...


def untrained(family: str, size: Size, **switches: Any) -> Generator:
    """A model with random weights and as many blocks as any other of this size, for slots or not."""
    torch.manual_seed(size.seed)
    blocks = {"layers": size.layers}
    if family == "insnet":
        blocks = {"layers": size.layers - size.slot_layers, "slot_layers": size.slot_layers}
    shape = {"vocabulary_size": size.vocabulary, "width": size.width, "heads": size.heads}
    return FAMILIES[family](FAMILIES[family].Config(**shape, **blocks, **switches))
