"""How a service holds under load: many clients at a time, every answer looked at, and memory over many requests."""

import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import command
from insnet.cli import terminal
from insnet.cli.benchmark import ResultOption, report
from insnet.text.corpus import read_keyword_lists
from insnet.text.words import contains_in_order

_STARTS_WITHIN = 60.0  # seconds
_PATIENCE = 300.0  # seconds that a client waits for an answer


@dataclass
class Tally:
    """What clients have met."""

    service: str
    """The address of the service."""
    seconds: list[float] = field(default_factory=list)
    """Of each answer."""
    refused: int = 0
    dropped: int = 0
    violations: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, keywords: Sequence[str], seed: int, options: dict[str, Any]) -> None:
        """One request, and again each time that it is told to come back."""
        while True:
            start = time.perf_counter()
            status, answer, wait = post(self.service, {"keywords": list(keywords), "seed": seed, **options})
            took = time.perf_counter() - start
            with self.lock:
                if status == 200:
                    text = answer["results"][0]["text"]
                    self.seconds.append(took)
                    self.violations += not contains_in_order(text, list(keywords))
                elif status == 429:
                    self.refused += 1
                else:
                    self.dropped += 1
            if status != 429:
                return
            time.sleep(wait)


def post(service: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any], float]:
    """Status, answer, and the seconds after which to come again."""
    request = urllib.request.Request(
        f"{service}/v1/generate",
        json.dumps(asked).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return answer.status, json.load(answer), 0.0
    except urllib.error.HTTPError as error:
        return error.code, {}, float(error.headers.get("Retry-After", 0))
    except OSError:
        return 0, {}, 0.0


@contextmanager
def service(model: str) -> Iterator[tuple[str, int]]:
    """A running service: its address and its process."""
    port = free_port()
    arguments = [sys.executable, "-m", "insnet", "serve", "--model", model, "--port", str(port), "--seconds", "120"]
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(arguments)
    try:
        until = time.monotonic() + _STARTS_WITHIN
        while not is_ready(address):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the service did not start")
            time.sleep(0.2)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ready(address: str) -> bool:
    """Whether the service takes requests."""
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def under_load(
    address: str, lists: Sequence[Sequence[str]], clients: int, seconds: float, options: dict[str, Any]
) -> Tally:
    """So many clients who ask one request after the other for so long, and wait for the last answer."""
    tally, until = Tally(address), time.monotonic() + seconds

    def client(number: int) -> None:
        turn = 0
        while time.monotonic() < until:
            tally.ask(lists[(number + turn * clients) % len(lists)], number + turn * clients, options)
            turn += 1

    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(client, range(clients)))
    return tally


def memory_of(process: int) -> float:
    """MiB of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth(model: str, lists: Sequence[Sequence[str]], requests: int) -> dict[str, float]:
    """By how much the memory of a service has grown after so many requests, from a tenth of them on."""
    options = {"candidates": 1}
    with service(model) as (address, process), terminal.progress_bar("asking", total=requests) as bar:
        tally, sizes = Tally(address), []

        def ask(number: int) -> None:
            tally.ask(lists[number % len(lists)], number, options)
            bar.advance(1)

        for part in range(10):
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(ask, range(part * requests // 10, (part + 1) * requests // 10)))
            sizes.append(memory_of(process))
    return {"memory_growth_mib": sizes[-1] - sizes[0], "memory_mib": sizes[-1], "memory_requests": len(tally.seconds)}


def figures(tally: Tally, took: float, alone: Tally, alone_took: float, clients: int) -> dict[str, float]:
    """What is shown of a load."""
    cuts = statistics.quantiles(tally.seconds, n=100, method="inclusive")
    return {
        "clients": clients,
        "requests": len(tally.seconds),
        "dropped": tally.dropped + alone.dropped,
        "keyword_violations": tally.violations + alone.violations,
        "refused": tally.refused,
        **{f"p{share}_ms": 1000 * cuts[share - 1] for share in (50, 95, 99)},
        "throughput": len(tally.seconds) / took,
        "throughput_over_unbatched": (len(tally.seconds) / took) / (len(alone.seconds) / alone_took),
    }


def main(
    model: command.ModelArgument,
    lists: Annotated[Path, typer.Option(help="Keyword lists to ask for, one per line.")],
    clients: Annotated[int, typer.Option(min=2, help="How many ask at a time.")] = 64,
    seconds: Annotated[float, typer.Option(min=0.1, help="For how long they ask.")] = 60.0,
    candidates: Annotated[int | None, typer.Option(min=1, help="Candidates of a text, if not the model's.")] = None,
    small: Annotated[str, typer.Option(help="Whose memory is looked at.")] = "general",
    requests: Annotated[int, typer.Option(min=0, help="Requests while memory is looked at.")] = 10_000,
    seed: command.SeedOption = 0,
    output: ResultOption = None,
) -> None:
    """How `insnet serve` holds: latency of many clients, throughput over one at a time, memory over many requests.

    python -m benchmarks.serve_load default --lists benchmarks/lists/fresh.txt
    """
    wanted = [keywords for keywords in read_keyword_lists(lists) if keywords]
    options = {} if candidates is None else {"candidates": candidates}
    with service(str(model)) as (address, _):
        under_load(address, wanted, 1, 0.1, options)
        start = time.monotonic()
        alone = under_load(address, wanted, 1, seconds / 2, options)
        alone_took, start = time.monotonic() - start, time.monotonic()
        tally = under_load(address, wanted, clients, seconds, options)
        took = time.monotonic() - start
    found = figures(tally, took, alone, alone_took, clients)
    if requests:
        found |= growth(small, wanted, requests)
    detail = {"seconds": seconds, "options": options, "load_average": os.getloadavg()[0]}
    report(f"{lists.name}, {len(wanted)} keyword lists", seed, output, found, detail, command=command.command_line())


if __name__ == "__main__":
    command.run(main)
