"""Where computing is done: each caller by itself, or, in a service, all callers together (`insnet.serving.desk`)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from insnet.decoding.loop import Decide, Step, decode
from insnet.families.generator import Generator, Prompt


class Desk(Protocol):
    """What makes steps for whoever writes."""

    def rounds(self, family: Generator, prompt: Prompt, decide: Decide) -> Iterator[Step]:
        """One step of a prompt's rows after the other, until all are finished."""
        ...

    def turn(self) -> AbstractContextManager[object]:
        """Within it nobody else computes: for what is not a step, such as reading finished texts."""
        ...


class OwnDesk:
    """Of a caller who is alone."""

    def rounds(self, family: Generator, prompt: Prompt, decide: Decide) -> Iterator[Step]:
        return decode(family, prompt, decide)

    def turn(self) -> AbstractContextManager[object]:
        return nullcontext()
