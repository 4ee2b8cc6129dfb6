"""The paper's parallel entries for one data set: Dinic beside one insertion a step and beside InsNet-uniform."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from insnet.benchmarks.decodings import SCORES, Decoding, draw
from insnet.benchmarks.drawing import Drawing
from insnet.benchmarks.spectrum import UNIFORM
from insnet.benchmarks.timing import Timing, time_in_turns
from insnet.evaluate import Task
from insnet.evaluation.judge import Judge
from insnet.model import Model

PARALLEL, SEQUENTIAL, UNIFORM_NAME = "parallel", "sequential", "uniform"


@dataclass(frozen=True)
class LatencyConfig:
    """How latencies are measured."""

    texts: int = 16
    """The first so many keyword lists of the task, one text at a time."""
    rounds: int = 3
    """Calls of each model that are timed, in turns; medians are compared."""
    warmup: int = 1
    """Calls before that."""

    def __post_init__(self) -> None:
        if self.texts < 1 or self.rounds < 1 or self.warmup < 0:
            raise ValueError(
                f"texts is {self.texts}, rounds {self.rounds} and warmup {self.warmup}; expected at least 1, 1 and 0"
            )


def ways(
    sequential: Model,
    parallel: Model,
    *,
    uniform: Model | None = None,
    settings: Mapping[str, Any] | None = None,
    sequential_settings: Mapping[str, Any] | None = None,
) -> dict[str, Decoding]:
    """What is to be measured, by what its figures begin with.

    InsNet-uniform is `uniform`, trained with tau = inf, or else the parallel model, made to fill every open slot.
    """
    in_parallel = {**(settings or {}), "mode": "parallel"}
    return {
        "": Decoding(parallel, in_parallel),
        SEQUENTIAL: Decoding(sequential, {**(sequential_settings or {}), "mode": "sequential"}),
        UNIFORM_NAME: Decoding(uniform or parallel, {**in_parallel, **UNIFORM}),
    }


def measure(
    ways: Mapping[str, Decoding],
    task: Task,
    drawing: Drawing,
    judge: Judge | None = None,
    *,
    latency: LatencyConfig | None = None,
) -> tuple[dict[str, float], dict[str, Any], dict[str, list[str]]]:
    """The headline (bleu2, steps, sequential_bleu4, uniform_bleu2, latency_ratio_batch1, ...), the detail behind it,
    and each way's texts of the first seed."""
    for way in ways.values():
        way.all_settings()  # refused before anything is written
    figures: dict[str, float] = {}
    details, texts = {}, {}
    for name, way in ways.items():
        drawn = draw(way, task, drawing, judge)
        figures |= drawn.scores(SCORES, f"{name}_{{}}" if name else "{}")
        details[name], texts[name] = drawn.detail(), drawn.texts
    config = latency or LatencyConfig()
    if judge is not None:
        figures["judge_ppl_reference"] = judge.perplexity(task.references).perplexity
    timings = _timed(ways, task.keywords, drawing.seeds[0], config)
    figures["latency_ratio_batch1"] = timings[PARALLEL].median / timings[SEQUENTIAL].median
    seconds = {name: {"seconds": timing.median, "spread": timing.spread()} for name, timing in timings.items()}
    return figures, {**details.pop(""), **details, "latency": {**asdict(config), **seconds}}, texts


def _timed(
    ways: Mapping[str, Decoding], keywords: Sequence[list[str]], seed: int, config: LatencyConfig
) -> dict[str, Timing]:
    """Whole calls, from keywords to texts, one text after the other, the two models in turns."""
    lists = list(itertools.islice(itertools.cycle(keywords), config.texts))

    def call(way: Decoding) -> Callable[[], object]:
        options: dict[str, Any] = {"seed": seed, "batch_size": 1, **way.settings}
        return lambda: way.model.generate_batch(lists, **options)

    rivals = {PARALLEL: call(ways[""]), SEQUENTIAL: call(ways[SEQUENTIAL])}
    return time_in_turns(rivals, rounds=config.rounds, warmup=config.warmup, device=ways[""].model.device)
