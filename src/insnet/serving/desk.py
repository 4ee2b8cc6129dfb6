"""One decode loop for many callers, each in a thread of its own: their rows share batches and join running ones.

What a row becomes does not depend on the rows beside it, so neither does what a caller receives.
"""

import queue
import threading
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from insnet.decoding.decide import Decider
from insnet.decoding.loop import Decide, Decoding, Step
from insnet.families.generator import Generator, Prompt
from insnet.serving.ticket import DeadlineError, current_ticket

_MOST_ROWS = 256  # in a batch: more wait


class StoppedError(RuntimeError):
    """The service is shutting down."""


@dataclass(eq=False)
class _Caller:
    """Somebody who waits for the steps of some rows."""

    family: Generator
    prompt: Prompt
    decide: Decide
    steps: "queue.SimpleQueue[Step | Exception | None]" = field(default_factory=queue.SimpleQueue)
    """What has been made of them; None when all are finished."""
    first: int = 0
    """The number of the first row in the batch."""
    has_left: bool = False

    @property
    def rows(self) -> int:
        return len(self.prompt.seeds)

    def kind(self) -> Hashable:
        """Callers of the same kind share a batch: those whose decisions follow the same settings."""
        return (id(self.family), self.decide.chooser.config) if isinstance(self.decide, Decider) else id(self)


@dataclass
class _Batch:
    """Callers whose rows are written together."""

    decoding: Decoding
    callers: list[_Caller] = field(default_factory=list)
    next_row: int = 0

    @property
    def rows(self) -> int:
        return sum(caller.rows for caller in self.callers)

    def join(self, caller: _Caller) -> None:
        """A caller's rows among the others."""
        self.decoding.join(caller.prompt, first_row=self.next_row)
        caller.first, self.next_row = self.next_row, self.next_row + caller.rows
        self.callers.append(caller)

    def drop_who_left(self) -> None:
        """Nothing more is written for callers who wait no longer."""
        for caller in self.callers:
            if caller.has_left:
                self.decoding.give_up(torch.arange(caller.first, caller.first + caller.rows))
        self.callers = [caller for caller in self.callers if not caller.has_left]

    def step(self) -> None:
        """One step of all rows, told to each caller as far as it is theirs."""
        if not self.decoding.goes_on():
            self.finish(self.callers)
            return
        step = self.decoding.step()
        done = []
        for caller in self.callers:
            own = ((step.row >= caller.first) & (step.row < caller.first + caller.rows)).nonzero()[:, 0]
            edits, is_active = step.edits.select(own), step.is_active[own]
            caller.steps.put(Step(step.row[own] - caller.first, edits, is_active))
            if not bool((is_active & ~edits.finished).any()):
                done.append(caller)
        self.finish(done)

    def finish(self, callers: list[_Caller]) -> None:
        """Tells callers that all their rows are finished."""
        for caller in callers:
            caller.steps.put(None)
        self.callers = [caller for caller in self.callers if caller not in callers]

    def fail(self, error: Exception) -> None:
        """Tells all callers what went wrong."""
        for caller in self.callers:
            caller.steps.put(error)
        self.callers = []


class SharedDesk:
    """Steps for many callers, made by one thread."""

    def __init__(self, *, most_rows: int = _MOST_ROWS) -> None:
        self._most_rows = most_rows
        self._changed = threading.Condition()
        self._waiting: deque[_Caller] = deque()
        self._batches: dict[Hashable, _Batch] = {}
        self._turn = threading.Lock()
        self._wishes = 0
        """Callers who want a turn, or have it."""
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="steps", daemon=True)
        self._thread.start()

    def rounds(self, family: Generator, prompt: Prompt, decide: Decide) -> Iterator[Step]:
        """One step of a prompt's rows after the other, made together with those of other callers."""
        ticket, caller = current_ticket(), _Caller(family, prompt, decide)
        ticket.check()
        with self._changed:
            if self._stopped:
                raise StoppedError("the service is shutting down")
            self._waiting.append(caller)
            self._changed.notify_all()
        try:
            with ticket.telling(lambda: caller.steps.put(None)):
                while (made := self._next(caller, ticket.remaining())) is not None:
                    yield made
            ticket.check()
        finally:
            with self._changed:
                caller.has_left = True
                self._changed.notify_all()

    @staticmethod
    def _next(caller: _Caller, seconds: float | None) -> Step | None:
        try:
            made = caller.steps.get(timeout=None if seconds is None else max(seconds, 0.0))
        except queue.Empty:
            raise DeadlineError("the deadline has passed") from None
        if isinstance(made, Exception):
            raise made
        return made

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Within it nobody else computes. Those who want a turn go before further steps: they are nearly done."""
        current_ticket().check()
        with self._changed:
            self._wishes += 1
        try:
            with self._turn:
                yield
        finally:
            with self._changed:
                self._wishes -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Takes no more callers, finishes what runs and ends the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while self._wait_for_work():
            with self._turn:
                self._admit()
                for kind, batch in list(self._batches.items()):
                    self._advance(batch)
                    if not batch.callers:
                        del self._batches[kind]

    def _wait_for_work(self) -> bool:
        """Whether there is any; False when the desk is stopped and all is done."""
        with self._changed:
            while self._wishes or not (self._waiting or self._batches):
                if self._stopped and not self._wishes:
                    return False
                self._changed.wait()
            return True

    def _admit(self) -> None:
        """Lets those who wait join a batch, in the order in which they came, while there is room."""
        while True:
            with self._changed:
                if not self._waiting:
                    return
                caller, rows = self._waiting[0], sum(batch.rows for batch in self._batches.values())
                if rows and rows + caller.rows > self._most_rows and not caller.has_left:
                    return
                self._waiting.popleft()
            if not caller.has_left:
                self._join(caller)

    def _join(self, caller: _Caller) -> None:
        kind = caller.kind()
        batch = self._batches.get(kind) or _Batch(Decoding(caller.family, caller.decide))
        try:
            batch.join(caller)
        except Exception as error:  # the caller's own, and nobody else's
            caller.steps.put(error)
        else:
            self._batches[kind] = batch

    @staticmethod
    def _advance(batch: _Batch) -> None:
        try:
            batch.drop_who_left()
            batch.step()
        except Exception as error:  # told to those whose rows were in it; the service goes on
            batch.fail(error)
