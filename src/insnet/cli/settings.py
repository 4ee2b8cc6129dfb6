"""`insnet benchmark settings`."""

from collections.abc import Mapping
from itertools import chain
from typing import Annotated

import typer

from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, numbers, report
from insnet.cli.paper_tables import JudgedOption, JudgeFolderOption, SeedsOption, SplitOption, wanted_judge
from insnet.cli.parallel import DataOption, KeepOption, KeywordsOption, LimitOption


def settings(
    model: Annotated[str, typer.Argument(help="A model by name or folder.")],
    data: DataOption,
    tried: Annotated[
        list[str],
        typer.Option("--try", metavar="TEXT", help='Settings to try, as in "temperature=0.7/0.9 candidates=8".'),
    ],
    split: SplitOption = "valid",
    seeds: SeedsOption = "0",
    judged: JudgedOption = False,
    judge_folder: JudgeFolderOption = None,
    limit: LimitOption = None,
    keywords_per_line: KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Measure a model's own decoding settings and others on the same texts, to choose from.

    insnet benchmark settings tour --data data/tour --try "temperature=0.7/0.9" --try "candidates=8 top_k=0"
    """
    all_seeds = numbers(seeds)
    from insnet.benchmarks.drawing import Drawing
    from insnet.benchmarks.settings import measure
    from insnet.benchmarks.spectrum import read_settings
    from insnet.evaluate import read_task
    from insnet.shelf import load

    choices = list(chain.from_iterable(map(read_settings, tried)))
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    writer = load(model, device=device)
    judge = wanted_judge(judged, judge_folder, writer)
    total = (1 + len(choices)) * len(task.keywords) * len(all_seeds)
    with terminal.progress_bar("generating", total=total) as bar:
        found = measure(
            writer,
            choices,
            task,
            Drawing(all_seeds, batch_size, keep, bar.advance),
            judge,
            on_measured=_tell,
        )
    report(f"{task.data}/{task.split}, {len(task.keywords)} keyword lists", all_seeds, output, *found)


def _tell(name: str, scores: Mapping[str, float]) -> None:
    terminal.note(f"{name}: " + ", ".join(f"{score} {value:.4g}" for score, value in scores.items()))
