"""What parallel decoding saves: the same model and the same keywords, several insertions per step against one.

Whole calls are timed, from keywords to texts, so that nothing a user waits for is left out. A latency ratio is the
ratio of rounds, a batch lasting as long as its longest text, times that of what a round costs: this is what is lost.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import torch
import typer

from benchmarks import command
from benchmarks.drawing import Drawing
from benchmarks.other_results import OtherFigure, check_comparable, with_other_figures
from benchmarks.spectrum import described
from insnet.benchmarks.timing import time_in_turns
from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, numbers
from insnet.evaluation.task import UNFILTERED, Task, model_name, read_task
from insnet.model import Model, Result
from insnet.shelf import load

MODES = ("sequential", "parallel")
_SAME_NAME = ("rounds_per_word", "sequential_ratio", "bleu4", "length_ratio", "coverage", "distinct2")
_FIGURES = (*_SAME_NAME, "rounds_ratio", "bleu4_over_sequential", "sequential_bleu4")


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
    suffix: str = ""
    """What follows the names of latencies, to tell this machine from another; `cpu` makes latency_ratio_batch1_cpu."""

    def __post_init__(self) -> None:
        if min(self.batch_sizes, default=0) < 1:
            raise ValueError(f"batch_sizes are {self.batch_sizes}; expected one or more, each 1 or more")
        if self.texts < 1 or self.rounds < 1 or self.warmup < 0:
            raise ValueError(
                f"texts is {self.texts}, rounds {self.rounds} and warmup {self.warmup}; expected at least 1, 1 and 0"
            )

    def latency_name(self, batch: int) -> str:
        """What the headline calls the latency ratio of a batch size."""
        return f"latency_ratio_batch{batch}" + (f"_{self.suffix}" if self.suffix else "")


def measure(
    model: Model,
    task: Task,
    config: ParallelSpeedConfig,
    settings: Mapping[str, Any],
    *,
    others: Sequence[OtherFigure] = (),
    batch_size: int = 64,
    on_written: Callable[[int], None] | None = None,
) -> tuple[dict[str, float], dict[str, Any], list[str]]:
    """The headline (latency_ratio_batch1, rounds_per_word, ...), the detail behind it, and the parallel texts.

    `settings` are for both modes. Rounds and quality are those of the whole task, latencies of its first texts;
    `others` are figures to be put beside them.
    """
    modes = {mode: {**UNFILTERED, **settings, "mode": mode} for mode in MODES}
    configs = {mode: model.job(**options).config.flat() for mode, options in modes.items()}
    name = model_name(model)
    names = {size: config.latency_name(size) for size in config.batch_sizes}
    check_comparable(others, model=name, generation=configs, own_names=[*names.values(), *_FIGURES])
    drawing = Drawing((config.seed,), batch_size, on_written=on_written)
    written = {mode: drawing.draw(model, task, options)[0].texts for mode, options in modes.items()}
    quality = {mode: described(model, task, results, config.seed) for mode, results in written.items()}
    timings = [_timed(model, task.keywords, modes, size, config) for size in config.batch_sizes]
    detail = {
        "model": name,
        "settings": {**asdict(config), "device": model.device.type, "generation": configs},
        "threads": torch.get_num_threads(),
        "quality": quality,
        "timings": timings,
    }
    latencies = {names[row["batch"]]: row["latency_ratio"] for row in timings}
    headline, detail = with_other_figures({**latencies, **_headline(quality)}, detail, others)
    return headline, detail, [result.text for result in written["parallel"]]


def _headline(quality: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Those of `_FIGURES` that the task has."""
    ours, theirs = quality["parallel"], quality["sequential"]
    return {
        **{name: ours[name] for name in _SAME_NAME if name in ours},
        "rounds_ratio": ours["rounds"] / max(theirs["rounds"], 1e-9),
        **({"bleu4_over_sequential": ours["bleu4"] / theirs["bleu4"]} if theirs["bleu4"] else {}),
        "sequential_bleu4": theirs["bleu4"],
    }


def _timed(
    model: Model,
    keywords: Sequence[list[str]],
    modes: Mapping[str, dict[str, Any]],
    batch: int,
    config: ParallelSpeedConfig,
) -> dict[str, Any]:
    """Seconds of a call in each mode, and where they come from: how many rounds it took and what a round cost."""
    lists = list(itertools.islice(itertools.cycle(keywords), max(batch, config.texts)))
    batches = [lists[first : first + batch] for first in range(0, len(lists), batch)]

    def call(mode: str) -> Callable[[], list[list[Result]]]:
        rows = (
            batch * model.job(**modes[mode]).config.selection.candidates
        )  # a text's candidates are written at the same time
        options: dict[str, Any] = {"seed": config.seed, "batch_size": rows, **modes[mode]}
        return lambda: [model.generate_batch(each, **options) for each in batches]

    timings = time_in_turns(
        {mode: call(mode) for mode in modes}, rounds=config.rounds, warmup=config.warmup, device=model.device
    )
    rounds = {mode: sum(max(result.steps for result in results) for results in call(mode)()) for mode in modes}
    latency_ratio = timings["parallel"].median / timings["sequential"].median
    rounds_ratio = rounds["parallel"] / max(rounds["sequential"], 1)
    return {
        "batch": batch,
        "texts": len(lists),
        "latency_ratio": latency_ratio,
        "rounds_ratio": rounds_ratio,
        "round_cost_ratio": latency_ratio / max(rounds_ratio, 1e-9),
        **{f"{mode}_seconds": timing.median for mode, timing in timings.items()},
        **{f"{mode}_spread": timing.spread() for mode, timing in timings.items()},
        **{f"{mode}_rounds": count for mode, count in rounds.items()},
    }


def main(
    model: command.ModelArgument,
    data: command.DataOption,
    settings: command.SettingsOption = "",
    split: command.SplitOption = "valid",
    limit: command.LimitOption = None,
    keywords_per_line: command.KeywordsOption = 4,
    batch_sizes: Annotated[str, typer.Option(help="Texts at a time, several with commas.")] = "1,64",
    texts: command.TextsOption = 16,
    rounds: command.RoundsOption = 3,
    warmup: command.WarmupOption = 1,
    seed: command.SeedOption = 0,
    suffix: Annotated[
        str, typer.Option(metavar="WORD", help="Ends the names of latencies: cpu for latency_ratio_batch1_cpu.")
    ] = "",
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="FILE.json:NAME[=NEW]",
            help="Copy a figure of another results file, with how it was measured.",
        ),
    ] = None,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Parallel decoding over decoding one by one with the same model: time, rounds and quality.

    python -m benchmarks.parallel_speed tour --data data/tour --suffix cpu --with h200.json:latency_ratio_batch1
    """
    config = ParallelSpeedConfig(numbers(batch_sizes), texts, rounds, warmup, seed, suffix)
    figures, chosen = [OtherFigure.of(text) for text in others or []], command.one_setting(settings)
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    writer = load(model, device=device)
    with terminal.progress_bar("generating", total=2 * len(task.keywords)) as bar:
        headline, detail, outputs = measure(writer, task, config, chosen, others=figures, on_written=bar.advance)
    command.report_on(task, seed, output, headline, detail, {"": outputs})


if __name__ == "__main__":
    command.run(main)
