"""The paper's parallel entries for one data set: Dinic beside one insertion per step and beside InsNet-uniform."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from benchmarks import command
from benchmarks.decodings import SCORES, UNIFORM, Decoding, draw
from benchmarks.drawing import Drawing
from insnet.benchmarks.timing import Timing, time_in_turns
from insnet.cli import options
from insnet.cli.benchmark import ResultOption, numbers
from insnet.evaluation.judge import Judge
from insnet.evaluation.task import UNFILTERED, Task, read_task
from insnet.model import Model
from insnet.shelf import load

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
        options: dict[str, Any] = {**UNFILTERED, "seed": seed, "batch_size": 1, **way.settings}
        return lambda: way.model.generate_batch(lists, **options)

    rivals = {PARALLEL: call(ways[""]), SEQUENTIAL: call(ways[SEQUENTIAL])}
    return time_in_turns(rivals, rounds=config.rounds, warmup=config.warmup, device=ways[""].model.device)


def main(
    sequential: Annotated[str, typer.Argument(help="A model by name or folder, to insert one by one.")],
    parallel: Annotated[str, typer.Argument(help="A model trained in layers, to insert several at a time.")],
    data: command.DataOption,
    split: command.SplitOption = "test",
    seeds: command.SeedsOption = "0,1,2",
    settings: Annotated[
        str, typer.Option(metavar="TEXT", help='Decoding settings of PARALLEL, as in "parallel_mass=0.9 top_k=1".')
    ] = "",
    sequential_settings: Annotated[str, typer.Option(metavar="TEXT", help="Decoding settings of SEQUENTIAL.")] = "",
    uniform: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="A model trained with tau = inf for InsNet-uniform; else PARALLEL."),
    ] = None,
    judged: command.JudgedOption = False,
    judge_folder: command.JudgeFolderOption = None,
    limit: command.LimitOption = None,
    keywords_per_line: command.KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: command.KeepOption = None,
    texts: command.TextsOption = 16,
    rounds: command.RoundsOption = 3,
    warmup: command.WarmupOption = 1,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Parallel decoding beside one insertion per step and beside InsNet-uniform: quality, rounds, latency.

    python -m benchmarks.dinic runs/yelp runs/yelp_layered --data data/yelp --settings "parallel_mass=0.9"
    """
    all_seeds = numbers(seeds)
    in_parallel, one_by_one = command.one_setting(settings), command.one_setting(sequential_settings)
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    to_measure = ways(
        load(sequential, device=device),
        load(parallel, device=device),
        uniform=None if uniform is None else load(uniform, device=device),
        settings=in_parallel,
        sequential_settings=one_by_one,
    )
    judge = command.wanted_judge(judged, judge_folder, to_measure[""].model)
    with command.with_bar(Drawing(all_seeds, batch_size, keep), to_measure, task) as drawing:
        found = measure(to_measure, task, drawing, judge, latency=LatencyConfig(texts, rounds, warmup))
    command.report_on(task, all_seeds, output, *found)


if __name__ == "__main__":
    command.run(main)
