"""Candidates drawn for requests, and several different texts for one of them, best first."""

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

from insnet.decoding.job import Job
from insnet.decoding.request import Request
from insnet.decoding.rerank import ranked
from insnet.decoding.write import Scribe, Written

ROUNDS_FOR_DIFFERENT = 4  # rounds of fresh samples in search of texts that differ


def candidates_of(scribe: Scribe, pairs: Sequence[tuple[Request, int]], job: Job) -> list[list[list[Written]]]:
    """For each pair of request and seed the candidates that will do, by the order of their words."""
    requests, seeds = [request for request, _ in pairs], [seed for _, seed in pairs]
    requests = scribe.rehearse(requests, seeds, job.config, batch_size=job.batch_size)
    drafts = [job.drafts(request, seed) for request, seed in zip(requests, seeds, strict=True)]
    flat = [draft for orders in drafts for order in orders for draft in order]
    written = iter(
        scribe.write(
            [request for request, _ in flat],
            [seed for _, seed in flat],
            job.config,
            batch_size=job.batch_size,
            on_written=_in_wholes(job.on_written, len(pairs), len(flat)),
        )
    )
    return [
        [[text for text in itertools.islice(written, len(order)) if job.accepts(text)] for order in orders]
        for orders in drafts
    ]


def best_samples(scribe: Scribe, request: Request, count: int, job: Job) -> list[tuple[Written, int]]:
    """So many different texts of one pool of candidates, best first, each with the seed that it was drawn with. Where
    the pool holds fewer, more is drawn, within a bound; there may still be fewer, or none."""
    pool: list[tuple[Written, int]] = []
    best: list[tuple[Written, int]] = []
    first = 0
    for _ in range(job.attempts if job.may_refuse(request) else ROUNDS_FOR_DIFFERENT):
        missing = -(-(count - len(best)) // job.config.selection.candidates)
        seeds = [job.sample_seed(number) for number in range(first, first + missing)]
        first += missing
        groups = candidates_of(scribe, [(request, seed) for seed in seeds], job)
        pool += [(text, seed) for orders, seed in zip(groups, seeds, strict=True) for own in orders for text in own]
        best = _best(scribe, pool, job)[:count]
        if len(best) == count:
            break
    return best


def _best(scribe: Scribe, pool: Sequence[tuple[Written, int]], job: Job) -> list[tuple[Written, int]]:
    """The different texts of a pool, best first."""
    seeds = {id(text): seed for text, seed in pool}
    [texts] = ranked(scribe, [[text for text, _ in pool]], [job.seed], job.config)
    different: dict[str, Written] = {}
    for text in texts:
        different.setdefault(essence(text.text), text)
    return [(text, seeds[id(text)]) for text in different.values()]


def essence(text: str) -> str:
    """What two texts must not share to be different: their words, whatever the case and the marks around them.

    >>> essence("Hello, the World!") == essence("hello the world"), essence("?!")
    (True, '?!')
    """
    return " ".join(re.findall(r"\w+", text.casefold())) or text


def distinct(texts: Iterable[str]) -> int:
    """How many of the texts are different."""
    return len(set(map(essence, texts)))


def _in_wholes(on_written: Callable[[int], None] | None, wholes: int, parts: int) -> Callable[[int], None] | None:
    """What to call with parts that are done, so that `on_written` receives wholes."""
    if on_written is None:
        return None
    done = 0

    def count_parts(count: int) -> None:
        nonlocal done
        before, done = done * wholes // parts, done + count
        on_written(done * wholes // parts - before)

    return count_parts
