"""Requests let in, as many as there is room for, each worked for in a thread until it is done, late or called off."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from insnet.serving.ticket import Ticket, working_for

_Answer = TypeVar("_Answer")
_FEW_SECONDS = 1.0
_MEMORY = 0.9  # of what was known about how long requests take, when one more is done


class FullError(RuntimeError):
    """There is no room for another request."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many requests at a time: try again in {seconds} s")
        self.seconds = seconds


class ClosedError(RuntimeError):
    """No more requests are let in."""


class Office:
    """Lets requests in and counts them: no more than there is room for, and none that would be late."""

    def __init__(self, most_requests: int) -> None:
        self._most = most_requests
        self._threads = ThreadPoolExecutor(most_requests, thread_name_prefix="request")
        self._lock = threading.Lock()
        self._tickets: set[Ticket] = set()
        self._seconds = _FEW_SECONDS
        """Between two that are done, on average."""
        self._last_done = 0.0
        self._is_open = True

    @property
    def requests(self) -> int:
        """How many there are."""
        return len(self._tickets)

    @property
    def is_open(self) -> bool:
        """Whether more are let in."""
        return self._is_open

    async def answer(
        self, work: Callable[[], _Answer], seconds: float, gone: Callable[[], Coroutine[Any, Any, object]]
    ) -> _Answer | None:
        """What some work comes to; None if `gone` returns first: the client has left."""
        ticket = self._enter(seconds)

        def worked() -> _Answer:
            try:
                with working_for(ticket):
                    return work()
            finally:
                self._leave(ticket)

        answer = asyncio.get_running_loop().run_in_executor(self._threads, worked)
        leaving = asyncio.ensure_future(gone())
        waited_for: list[asyncio.Future[Any]] = [answer, leaving]
        try:
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            answer.add_done_callback(_forget)
            return None
        finally:
            leaving.cancel()
            ticket.call_off()

    async def stream(self, work: Callable[[], Iterator[Any]], seconds: float) -> AsyncIterator[Any]:
        """What some work makes, one after the other; it is called off when nobody asks for the next one any more."""
        ticket, loop = self._enter(seconds), asyncio.get_running_loop()
        made: asyncio.Queue[Any] = asyncio.Queue()

        def put(item: Any) -> None:
            loop.call_soon_threadsafe(made.put_nowait, item)

        def worked() -> None:
            try:
                with working_for(ticket):
                    for item in work():
                        put((item,))
                put(None)
            except Exception as error:  # the one who asked is told
                put(error)
            finally:
                self._leave(ticket)

        self._threads.submit(worked)
        try:
            while (item := await made.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item[0]
        finally:
            ticket.call_off()

    async def close(self) -> None:
        """Lets nobody in any more, and waits until all have gone."""
        self._is_open = False
        while self._tickets:
            await asyncio.sleep(0.02)
        self._threads.shutdown()

    def _enter(self, seconds: float) -> Ticket:
        with self._lock:
            if not self._is_open:
                raise ClosedError("the service is shutting down")
            wait = self._seconds * len(self._tickets)
            if len(self._tickets) >= self._most or wait > seconds:
                raise FullError(max(1, round(wait)))
            ticket = Ticket(seconds)
            self._tickets.add(ticket)
            return ticket

    def _leave(self, ticket: Ticket) -> None:
        with self._lock:
            self._tickets.discard(ticket)
            now = time.monotonic()
            if self._last_done and self._tickets:  # somebody waited all the time
                self._seconds = _MEMORY * self._seconds + (1 - _MEMORY) * (now - self._last_done)
            self._last_done = now


def _forget(answer: "asyncio.Future[Any]") -> None:
    """Looks at what nobody waits for, so that nobody complains about it."""
    if not answer.cancelled():
        answer.exception()
