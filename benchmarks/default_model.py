"""What the default model promises, measured: every word kept, usual lengths, whole sentences, and how long it takes."""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import command
from benchmarks.hostile_lists import hostile_lists
from insnet.cli import terminal
from insnet.cli.benchmark import ResultOption, report
from insnet.cli.options import parse_length
from insnet.evaluation.coverage import all_in_order
from insnet.evaluation.grammar import complete_parses
from insnet.evaluation.loops import keyword_lists, loops
from insnet.files import read_json_object
from insnet.model import Model, Result
from insnet.shelf import find, load
from insnet.text.corpus import read_keyword_lists
from insnet.threads import set_threads

HOSTILE = 1000  # lists of each of two seeds
USUAL = range(8, 17)  # words of a text for two to four given ones
BATCH = 16
OTHERS = ("small", "general", "prompted", "grammar")  # whose texts readers had beside the default model's
_AT_A_TIME = 50
ROUNDS = 5
_BUSY = "while True: pass"
_LOAD = """
import time, torch
start = time.perf_counter()
import insnet, sys
insnet.load(sys.argv[1], device="cpu")
print(time.perf_counter() - start)
"""


def kept(model: Model, count: int) -> dict[str, float]:
    """How many of the hostile lists are kept whole, in order, among those that are not refused in one line."""
    lists = [keywords for seed in (1, 2) for keywords in hostile_lists(seed, count)]
    written = [
        pair
        for first in range(0, len(lists), _AT_A_TIME)
        for pair in accepted(model, lists[first : first + _AT_A_TIME])
    ]
    texts, own = [text for text, _ in written], [keywords for _, keywords in written]
    return {"coverage": all_in_order(texts, own), "hostile_lists": len(own), "hostile_refused": len(lists) - len(own)}


def accepted(model: Model, lists: Sequence[list[str]]) -> list[tuple[str, list[str]]]:
    """The texts of all lists that are not refused; those of one that is are written without it."""
    try:
        results = model.generate_batch(lists, seed=1, candidates=1)
    except ValueError:
        if len(lists) == 1:
            return []
        middle = len(lists) // 2
        return accepted(model, lists[:middle]) + accepted(model, lists[middle:])
    return [(result.text, keywords) for result, keywords in zip(results, lists, strict=True)]


def form_of(results: Sequence[Result], lists: Sequence[Sequence[str]]) -> dict[str, float]:
    """Lengths, parses and loops of what the lists became."""
    texts = [result.text for result in results]
    words = [len(text.split()) for text in texts]
    return {
        "words_mean": statistics.fmean(words),
        "words_usual": sum(count in USUAL for count in words) / len(words),
        "kept_in_order": all_in_order(texts, lists),
        "parses": complete_parses(texts),
        "loops": loops(texts),
        "keyword_lists": keyword_lists(texts, lists),
        "begun_and_ended": sum(text[:1] == text[:1].upper() and text[-1:] in '.!?"' for text in texts) / len(texts),
    }


def of_reading(reading: dict[str, Any]) -> dict[str, float]:
    """What a blind reading found: the default model's figures by their own names, those of others with theirs.

    >>> score = {"usable": 0.7, "grammar": 4.8, "sense": 4.2}
    >>> of_reading({"systems": {"default": score, "second": score}, "headline": {"usable_of_five": 0.9}})
    {'usable_first': 0.7, 'grammar': 4.8, 'sense': 4.2, 'usable_of_five': 0.9}
    """
    found = {}
    for system in ("default", *OTHERS):
        if system in reading["systems"]:
            for name in ("usable", "grammar", "sense"):
                own = (f"{name}_first" if name == "usable" else name) if system == "default" else f"{name}_{system}"
                found[own] = reading["systems"][system][name]
    if "usable_of_five" in reading["headline"]:
        found["usable_of_five"] = reading["headline"]["usable_of_five"]
    return found


def seconds_of(call: Callable[[int], object]) -> list[float]:
    """What each of some calls took, the first of which does not count; calls are numbered."""
    seconds = []
    for number in range(ROUNDS + 1):
        start = time.perf_counter()
        call(number)
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def speed(model: Model, lists: Sequence[Sequence[str]], length: str) -> tuple[dict[str, float], dict[str, Any]]:
    """A sentence's latency on idle and on busy cores, and what writing several at a time saves: the best of five."""
    options: dict[str, Any] = {"length": parse_length(length)}

    def one(number: int) -> object:
        return model.generate(lists[number % len(lists)], seed=number, **options)

    def several(number: int) -> object:
        return model.generate_batch([*lists, *lists][number : number + BATCH], seed=number, **options)

    def in_turn(number: int) -> object:
        return [
            model.generate(keywords, seed=number, **options) for keywords in [*lists, *lists][number : number + BATCH]
        ]

    load_before = os.getloadavg()[0]
    seconds = {"one": seconds_of(one), "batch": seconds_of(several), "in_turn": seconds_of(in_turn)}
    with busy_cores():
        seconds["one_busy"] = seconds_of(one)
    best = {name: min(values) for name, values in seconds.items()}
    figures = {
        "seconds_per_text_cpu": best["one"],
        "busy_over_idle": best["one_busy"] / best["one"],
        "throughput_ratio_batch16": best["in_turn"] / best["batch"],
    }
    return figures, {"seconds": seconds, "load_average": load_before, "length": length, "threads": threads()}


@contextmanager
def busy_cores() -> Iterator[None]:
    """Every core has something else to do, too."""
    others = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def loading(folder: Path) -> float:
    """Seconds beyond importing torch, in a process of its own: the least of three."""
    command = [sys.executable, "-c", _LOAD, str(folder)]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(3)]
    return min(float(run.stdout) for run in runs)


def threads() -> int:
    """How many this process computes with."""
    import torch

    return torch.get_num_threads()


def memory() -> float:
    """The most MiB that this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(
    model: command.ModelArgument,
    lists: Annotated[Path, typer.Option(help="Keyword lists to write for, one per line.")],
    seed: command.SeedOption = 0,
    length: Annotated[str, typer.Option(help="Words of the sentences that are timed.")] = "12",
    hostile: Annotated[int, typer.Option(min=1, help="Hostile lists of each of two seeds.")] = HOSTILE,
    reading: Annotated[Path | None, typer.Option(help="Figures of a blind reading: scripts.reading score.")] = None,
    small: Annotated[str | None, typer.Option(help="Also count the parallel rounds of this small model.")] = None,
    output: ResultOption = None,
) -> None:
    """What the default model promises: words kept, lengths, parses, seconds; with a reading, how usable it is.

    python -m benchmarks.default_model default --lists benchmarks/lists/fresh.txt
    """
    set_threads()
    wanted = [keywords for keywords in read_keyword_lists(lists) if keywords]
    writer = load(model, device="cpu")
    timed, detail = speed(writer, wanted, length)
    figures = {**timed, "load_seconds": loading(find(model)), "memory_mib": memory()}
    with terminal.progress_bar("generating", total=len(wanted)) as bar:
        results = writer.generate_batch(wanted, seed=seed, on_written=bar.advance)
    figures |= form_of(results, wanted) | kept(writer, hostile)
    if small is not None:
        parallel = load(small, device="cpu").generate_batch(wanted, seed=seed, mode="parallel")
        figures["small_rounds_per_word"] = rounds_per_word(parallel)
    if reading is not None:
        figures |= of_reading(read_json_object(reading))
    texts = [result.text for result in results]
    data = f"{lists.name}, {len(wanted)} keyword lists"
    report(data, seed, output, figures, detail, outputs=texts, command=command.command_line())


def rounds_per_word(results: Sequence[Result]) -> float:
    """How many rounds a word takes."""
    return sum(result.steps for result in results) / sum(len(result.text.split()) for result in results)


if __name__ == "__main__":
    command.run(main)
