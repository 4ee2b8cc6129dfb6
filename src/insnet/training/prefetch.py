"""Batches made ahead of time, so that a GPU does not wait for them."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from insnet.text.batching import TokenBatch

_AHEAD = 4  # batches in the making or waiting


def prefetched(
    load: Callable[[int], TokenBatch], indices: Iterable[int]
) -> Generator[tuple[int, TokenBatch], None, None]:
    """Each index with its batch, in order; a few of the next ones are made by other threads meanwhile."""
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="batches") as pool:
        waiting: deque[tuple[int, Future[TokenBatch]]] = deque()
        try:
            for index in indices:
                waiting.append((index, pool.submit(load, index)))
                if len(waiting) > _AHEAD:
                    ready, batch = waiting.popleft()
                    yield ready, batch.result()
            for ready, batch in waiting:
                yield ready, batch.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
