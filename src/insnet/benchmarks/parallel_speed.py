"""What parallel decoding saves: the same model and the same keywords, several insertions a step against one.

Whole calls are timed, from keywords to texts, so that nothing a user waits for is left out.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from insnet.benchmarks.spectrum import described
from insnet.benchmarks.timing import time_in_turns
from insnet.evaluate import Task
from insnet.model import Model, Result

MODES = ("sequential", "parallel")


@dataclass(frozen=True)
class ParallelSpeedConfig:
    """What is measured."""

    batch_sizes: tuple[int, ...] = (1, 64)
    """Texts decoded at a time."""
    texts: int = 16
    """Texts that a call writes at least, one batch after the other."""
    rounds: int = 3
    """Calls of each mode that are timed, in turns; medians are compared."""
    warmup: int = 1
    """Calls before that."""
    seed: int = 0
    """The seed of the texts."""

    def __post_init__(self) -> None:
        if min(self.batch_sizes, default=0) < 1:
            raise ValueError(f"batch_sizes are {self.batch_sizes}; expected one or more, each 1 or more")
        if self.texts < 1 or self.rounds < 1 or self.warmup < 0:
            raise ValueError(
                f"texts is {self.texts}, rounds {self.rounds} and warmup {self.warmup}; expected at least 1, 1 and 0"
            )


def measure(
    model: Model,
    task: Task,
    config: ParallelSpeedConfig,
    settings: Mapping[str, Any],
    *,
    batch_size: int = 64,
    on_written: Callable[[int], None] | None = None,
) -> tuple[dict[str, float], dict[str, Any], list[str]]:
    """The headline (latency_ratio_batch1, rounds_per_word, ...), the detail behind it, and the parallel texts.

    `settings` are for both modes. Rounds and quality are those of the whole task, latencies of its first texts.
    """
    modes = {mode: {**settings, "mode": mode} for mode in MODES}
    configs = {mode: asdict(model.job(**options).config) for mode, options in modes.items()}
    common: dict[str, Any] = {"seed": config.seed, "batch_size": batch_size, "on_written": on_written}
    written = {mode: model.generate_batch(task.keywords, **common, **options) for mode, options in modes.items()}
    quality = {mode: described(model, task, results, config.seed) for mode, results in written.items()}
    timings = [_timed(model, task.keywords, modes, size, config) for size in config.batch_sizes]
    detail = {
        "model": model.folder.resolve().name if model.folder else type(model.family).__name__,
        "settings": {**asdict(config), "device": model.device.type, "generation": configs},
        "threads": torch.get_num_threads(),
        "quality": quality,
        "timings": timings,
    }
    return _headline(quality, timings), detail, [result.text for result in written["parallel"]]


def _headline(quality: Mapping[str, Mapping[str, float]], timings: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    ours, theirs = quality["parallel"], quality["sequential"]
    latencies = {f"latency_ratio_batch{row['batch']}": row["latency_ratio"] for row in timings}
    same = {name: ours[name] for name in ("bleu4", "length_ratio", "coverage", "distinct2") if name in ours}
    return {
        **latencies,
        "rounds_ratio": ours["rounds"] / max(theirs["rounds"], 1e-9),
        "rounds_per_word": ours["rounds_per_word"],
        "sequential_ratio": ours["sequential_ratio"],
        **({"bleu4_over_sequential": ours["bleu4"] / theirs["bleu4"]} if theirs["bleu4"] else {}),
        **same,
        "sequential_bleu4": theirs["bleu4"],
    }


def _timed(
    model: Model,
    keywords: Sequence[list[str]],
    modes: Mapping[str, dict[str, Any]],
    batch: int,
    config: ParallelSpeedConfig,
) -> dict[str, Any]:
    """Seconds of a call in each mode, and the rounds that its batches took: a batch lasts as long as its longest."""
    lists = list(itertools.islice(itertools.cycle(keywords), max(batch, config.texts)))

    def call(mode: str) -> Callable[[], list[Result]]:
        return lambda: model.generate_batch(lists, seed=config.seed, batch_size=batch, **modes[mode])

    timings = time_in_turns(
        {mode: call(mode) for mode in modes}, rounds=config.rounds, warmup=config.warmup, device=model.device
    )
    rounds = {mode: [result.steps for result in call(mode)()] for mode in modes}
    return {
        "batch": batch,
        "texts": len(lists),
        "latency_ratio": timings["parallel"].median / timings["sequential"].median,
        **{f"{mode}_seconds": timing.median for mode, timing in timings.items()},
        **{f"{mode}_spread": timing.spread() for mode, timing in timings.items()},
        **{f"{mode}_mean_rounds": sum(steps) / len(steps) for mode, steps in rounds.items()},
        **{f"{mode}_most_rounds": max(steps) for mode, steps in rounds.items()},
    }
