"""The small model's text: sentences that the default model writes for keywords as people give them.

    python -m scripts.make_distilled lists data/everyday/train.txt --output data/distilled/lists.txt
    python -m scripts.make_distilled write MODEL data/distilled/lists.txt --output runs/distilled
    python -m scripts.make_distilled gather runs/distilled --output data/distilled

Keywords are drawn from real sentences by the policy that the default model was trained with, and MODEL writes one text
for each list. Its parts are files that appear whole: a killed run goes on with those that are missing, and several
processes share them (--part 1/3). What is gathered are train.txt and valid.txt, filtered, because a single sample is
seldom a model's best, and beside each line what it was written for (train.keywords.txt). The same input gives the same
output.
"""

import argparse
import gc
import hashlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from insnet.decoding.config import GenerationConfig
from insnet.devices import find_device
from insnet.families.adapters import merge_adapter
from insnet.families.storage import load_model, read_generation
from insnet.files import read_json_object, write_atomically
from insnet.model import Model, Result, load_folder
from insnet.shelf import find
from insnet.text.corpus import read_keyword_lists, read_lines
from insnet.text.tokenizer import load_tokenizer
from insnet.training.recipe import load_recipe
from scripts.distilled_filters import Sample, different, likely, passing, varied
from scripts.distilled_lists import Drawing, different_lists

MOST_TOKENS = 32  # insertions; of what is not finished then, nothing is learned
SETTINGS_FILE = "settings.json"
_PARTS_WORTH_A_POOL = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    lists = commands.add_parser("lists", help="draw keyword lists from sentences")
    lists.add_argument("text", type=Path)
    lists.add_argument("--output", type=Path, required=True)
    lists.add_argument("--count", type=int, default=1_500_000)
    lists.add_argument("--recipe", type=Path, default=Path("recipes/everyday.toml"), help="its [given] draws them")
    lists.set_defaults(run=draw_lists)
    write = commands.add_parser("write", help="write a text for each list")
    write.add_argument("model", type=Path)
    write.add_argument("lists", type=Path)
    write.add_argument("--output", type=Path, required=True)
    write.add_argument("--base", type=Path, help="the model that MODEL is an adapter of")
    write.add_argument("--part", type=share, default=(1, 1), metavar="I/N", help="this is process I of N")
    write.add_argument("--lines", type=int, default=20_480, help="texts of a part")
    write.add_argument("--batch-size", type=int, default=2048)
    write.add_argument("--device", default="auto")
    write.set_defaults(run=write_parts)
    gather = commands.add_parser("gather", help="filter what was written")
    gather.add_argument("parts", type=Path)
    gather.add_argument("--output", type=Path, required=True)
    gather.add_argument("--valid", type=int, default=2000, help="lines of valid.txt, a tenth at most")
    gather.add_argument("--unlikely", type=int, default=10, help="percent of the texts, the least likely, to drop")
    gather.add_argument("--alike", type=float, default=0.002, help="share of the texts that may begin alike")
    gather.set_defaults(run=gather_parts)
    options = parser.parse_args()
    try:
        options.run(options)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None


def draw_lists(options: argparse.Namespace) -> None:
    """Writes keyword lists of a text."""
    lines = list(read_lines(options.text, skip_empty=True))
    drawing = Drawing.of(lines, load_recipe(options.recipe).given)
    lists = different_lists(drawing, lines, options.count)
    write_lines(options.output, map(line_of_keywords, lists))


def write_parts(options: argparse.Namespace) -> None:
    """Writes the parts of one process that are not there yet."""
    lists = read_keyword_lists(options.lists)
    settings = {"lists": fingerprint(lists), "model": options.model.name, "lines": options.lines}
    check_settings(options.output / SETTINGS_FILE, settings)
    starts = range(0, len(lists), options.lines)
    own, processes = options.part
    missing = {
        path: lists[starts[number] : starts[number] + options.lines]
        for number in range(own - 1, len(starts), processes)
        if not (path := options.output / f"part_{number:04}.txt").exists()
    }
    if not missing:
        return
    model = writer(options.model, options.base, options.device)
    gc.disable()  # millions of small objects without cycles: looking for some takes a quarter of the time
    for path, some in missing.items():
        start = time.perf_counter()
        samples = written(model, some, options.batch_size)
        write_atomically(path, "".join(f"{sample.line()}\n" for sample in samples))
        speed = len(some) / (time.perf_counter() - start)
        print(f"{path}: {len(samples):,} texts, {speed:,.0f} per second", flush=True)
        gc.collect()


def writer(folder: Path, base: Path | None, device: str) -> Model:
    """The model in a folder, or an adapter merged into its base; on a GPU in bfloat16, twice as fast and good enough
    for single samples."""
    if base is None:
        model = load_folder(find(folder), device, "float32")
    else:
        family = load_model(base, "cpu")
        merge_adapter(family, folder)
        generation = GenerationConfig.of(read_generation(folder))
        model = Model(family.to(find_device(device)), load_tokenizer(base), generation)
    if model.device.type == "cuda":
        model.family.to(torch.bfloat16)
    return model


def written(model: Model, lists: Sequence[Sequence[str]], batch_size: int) -> list[Sample]:
    """A sample for each list; one that cannot be written for is told and left out."""
    results = results_of(model, lists, batch_size)
    return [sample_of(result) for result in results if result is not None]


def results_of(model: Model, lists: Sequence[Sequence[str]], batch_size: int) -> list[Result | None]:
    """A text for each list, and None for one that fails: it must not cost the others theirs."""
    try:
        texts = model.generate_batch(
            lists, seed=0, candidates=1, revise=0, max_tokens=MOST_TOKENS, batch_size=batch_size
        )
        return list(texts)
    except (ValueError, RuntimeError) as error:
        if "CUDA" in str(error):
            raise
        if len(lists) == 1:
            print(f"left out: {error}", flush=True)
            return [None]
    middle = len(lists) // 2
    return results_of(model, lists[:middle], batch_size) + results_of(model, lists[middle:], batch_size)


def sample_of(result: Result) -> Sample:
    """What is kept of a result."""
    text = " ".join(result.text.split())
    return Sample(text, tuple(result.keywords), result.finished, result.log_prob / max(result.steps, 1))


def gather_parts(options: argparse.Namespace) -> None:
    """Writes the splits of all texts that are good enough, and says how many each filter drops."""
    paths = sorted(options.parts.glob("part_*.txt"))
    if not paths:
        raise ValueError(f"{options.parts} holds no part_0000.txt: write some first")
    samples: list[Sample] = []
    dropped: Counter[str] = Counter()
    for passed, failed in passing_of_parts(paths):
        samples += passed
        dropped += failed
    print(f"{len(samples) + dropped.total():,} texts; dropped by filters of one text: {counted(dropped)}")
    filters_of_all = {
        "likely": lambda texts: likely(texts, options.unlikely),
        "different": different,
        "varied": lambda texts: varied(texts, options.alike),
    }
    for name, keep in filters_of_all.items():
        before, samples = len(samples), keep(samples)
        print(f"dropped by {name}: {before - len(samples):,}")
    random.Random(0).shuffle(samples)
    held_out = min(options.valid, len(samples) // 10)
    for split, own in (("valid", samples[:held_out]), ("train", samples[held_out:])):
        write_lines(options.output / f"{split}.txt", [sample.text for sample in own])
        write_lines(options.output / f"{split}.keywords.txt", [line_of_keywords(sample.keywords) for sample in own])


def passing_of_parts(paths: Sequence[Path]) -> Iterator[tuple[list[Sample], Counter[str]]]:
    """What `passing` says of each part; many are looked at by all cores."""
    if len(paths) < _PARTS_WORTH_A_POOL:
        yield from map(passing_of_part, paths)
        return
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(paths)), mp_context=get_context("spawn")) as pool:
        yield from pool.map(passing_of_part, paths)


def passing_of_part(path: Path) -> tuple[list[Sample], Counter[str]]:
    """What `passing` says of a part."""
    return passing(map(Sample.of_line, path.read_text(encoding="utf-8").split("\n")[:-1]))


def counted(dropped: Counter[str]) -> str:
    """How many each filter dropped, as one line."""
    return ", ".join(f"{name} {number:,}" for name, number in dropped.most_common()) or "none"


def share(text: str) -> tuple[int, int]:
    """Which of how many processes "2/3" says this is."""
    number, _, total = text.partition("/")
    if not (number.isdigit() and total.isdigit() and 1 <= int(number) <= int(total)):
        raise argparse.ArgumentTypeError(f"{text!r}; expected something like 2/3")
    return int(number), int(total)


def fingerprint(lists: Sequence[Sequence[str]]) -> str:
    """The same for the same lists."""
    return hashlib.sha256(json.dumps(lists).encode()).hexdigest()[:16]


def check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """A ValueError where parts are of another making."""
    if not path.exists():
        write_atomically(path, json.dumps(settings, indent=2) + "\n")
    elif (begun := read_json_object(path)) != settings:
        other = next(name for name in settings if begun.get(name) != settings[name])
        raise ValueError(f"{path.parent} was begun with other {other}: choose another --output, or remove it")


def line_of_keywords(keywords: Sequence[str]) -> str:
    """A list as `read_keyword_lists` reads it."""
    return "\t".join(keywords) + "\t" * (len(keywords) == 1)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A text file, told with how many lines it has."""
    all_lines = list(lines)
    write_atomically(path, "".join(f"{line}\n" for line in all_lines))
    print(f"{path}: {len(all_lines):,} lines")


if __name__ == "__main__":
    main()
