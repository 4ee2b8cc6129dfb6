"""A request's leave to compute: until its deadline, or until it is called off."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class CalledOffError(Exception):
    """Nobody waits for the answer any more."""


class DeadlineError(TimeoutError):
    """The answer would come too late."""


class Ticket:
    """Checked by whatever works for a request; what waits is told at once when it is called off."""

    def __init__(self, seconds: float | None = None) -> None:
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._lock = threading.Lock()
        self._is_called_off = False
        self._tell: Callable[[], None] | None = None

    def call_off(self) -> None:
        """Ends the work for the request, from any thread."""
        with self._lock:
            self._is_called_off = True
            if self._tell is not None:
                self._tell()

    def check(self) -> None:
        """Raises if no work should be done any more."""
        if self._is_called_off:
            raise CalledOffError("the request was called off")
        if (remaining := self.remaining()) is not None and remaining <= 0:
            raise DeadlineError("the deadline has passed")

    def remaining(self) -> float | None:
        """Seconds until the deadline; None where there is none."""
        return None if self._deadline is None else self._deadline - time.monotonic()

    @contextmanager
    def telling(self, tell: Callable[[], None]) -> Iterator[None]:
        """Within it `tell` is called when the request is called off, at once if it has been already."""
        with self._lock:
            self._tell = tell
            if self._is_called_off:
                tell()
        try:
            yield
        finally:
            with self._lock:
                self._tell = None


_CURRENT: ContextVar[Ticket | None] = ContextVar("ticket", default=None)


def current_ticket() -> Ticket:
    """The ticket that this thread works for; without one, an unlimited one."""
    return _CURRENT.get() or Ticket()


@contextmanager
def working_for(ticket: Ticket) -> Iterator[None]:
    """Within it what this thread computes is for a ticket."""
    token = _CURRENT.set(ticket)
    try:
        yield
    finally:
        _CURRENT.reset(token)
