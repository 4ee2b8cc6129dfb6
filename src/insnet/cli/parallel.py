"""`insnet benchmark spectrum` and `insnet benchmark parallel-speed`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, numbers, report

DataOption = Annotated[Path, typer.Option("--data", metavar="DIR", help="A folder with the split.")]
SplitOption = Annotated[str, typer.Option(help="Which part of the data; settings are chosen on valid.")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first so many sentences.")]
KeywordsOption = Annotated[
    int, typer.Option(min=0, help="Keywords to draw from a sentence, if there is no SPLIT.keywords.txt.")
]
KeepOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Keep texts here as they are drawn: a command that was cut off goes on from them."
    ),
]


def spectrum(
    data: DataOption,
    model: Annotated[
        str | None, typer.Argument(help="A model by name or folder, to be decoded one by one and in several ways.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--settings",
            metavar="TEXT",
            help='What to try with MODEL, as in "parallel_mass=0.7/0.9 top_k=1" or uniform (InsNet-uniform).',
        ),
    ] = None,
    tau: Annotated[
        list[str] | None,
        typer.Option(
            "--tau",
            metavar="TAU=DIR",
            help="A model for each tolerance, with the paper's top-k: 10=runs/tau10; inf is InsNet-uniform.",
        ),
    ] = None,
    split: SplitOption = "valid",
    limit: LimitOption = None,
    keywords_per_line: KeywordsOption = 4,
    seeds: Annotated[str, typer.Option(metavar="A,B,...", help="Seeds of the texts; figures are their means.")] = "0",
    batch_size: options.BatchSizeOption = 64,
    keep: KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Also draw it: .svg or .png.")] = None,
    paper: Annotated[
        str | None, typer.Option(metavar="DATA", help="Draw the paper's points beside ours: yelp or news.")
    ] = None,
    output: ResultOption = None,
) -> None:
    """Measure quality against rounds: one model from one insertion a step to many, or one model for each tau.

    insnet benchmark spectrum tour --data data/tour --plot spectrum.png
    """
    if model is None and not tau:
        raise typer.BadParameter("give MODEL, or --tau TAU=DIR for each of several models")
    if model is None and settings:
        raise typer.BadParameter("--settings are for MODEL; those of --tau are the paper's")
    if paper is not None and plot is None:
        raise typer.BadParameter("--paper adds to a picture: name one with --plot FILE")
    all_seeds, folders = numbers(seeds), _folder_of_tau(tau or [])
    from insnet.benchmarks.drawing import Drawing
    from insnet.benchmarks.paper import spectrum_points
    from insnet.benchmarks.spectrum import DEFAULT_SETTINGS, draw, measure, points_of_model, points_of_taus, write_texts
    from insnet.evaluate import read_task
    from insnet.shelf import load

    of_paper = [] if paper is None else spectrum_points(paper)
    points = points_of_taus(folders)
    if model is not None:
        points = [*points_of_model(model, settings or DEFAULT_SETTINGS), *points]
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    with terminal.progress_bar("generating", total=len(points) * len(task.keywords) * len(all_seeds)) as bar:
        headline, detail, texts = measure(
            points,
            task,
            lambda name: load(name, device=device),
            Drawing(all_seeds, batch_size, keep, bar.advance),
        )
    if plot is not None:
        draw([*detail["points"], *of_paper], plot)
        terminal.note(f"drawn: {plot}")
    if output is not None:
        write_texts(texts, output)
    report(f"{task.data}/{task.split}, {len(task.keywords)} keyword lists", all_seeds, output, headline, detail)


def parallel_speed(
    model: Annotated[str, typer.Argument(help="A model by name or folder.")],
    data: DataOption,
    settings: Annotated[
        str, typer.Option(metavar="TEXT", help='Decoding settings, as in "parallel_mass=1 confidence=0.1".')
    ] = "",
    split: SplitOption = "valid",
    limit: LimitOption = None,
    keywords_per_line: KeywordsOption = 4,
    batch_sizes: Annotated[str, typer.Option(help="Texts at a time, several with commas.")] = "1,64",
    texts: Annotated[int, typer.Option(min=1, help="Texts to write in a timed call, at least.")] = 16,
    rounds: Annotated[int, typer.Option(min=1, help="Calls to time of each mode.")] = 3,
    warmup: Annotated[int, typer.Option(min=0, help="Calls before the clock starts.")] = 1,
    seed: Annotated[int, typer.Option(help="The seed of the texts.")] = 0,
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
    """Time parallel decoding over decoding one by one, with the same model, and compare what they write.

    insnet benchmark parallel-speed tour --data data/tour --suffix cpu --with h200.json:latency_ratio_batch1
    """
    from insnet.benchmarks.other_results import OtherFigure
    from insnet.benchmarks.parallel_speed import ParallelSpeedConfig, measure
    from insnet.benchmarks.spectrum import read_settings
    from insnet.evaluate import read_task
    from insnet.shelf import load

    chosen = read_settings(settings)
    if len(chosen) > 1:
        raise typer.BadParameter(f"{settings!r} means several settings; give one, or use insnet benchmark spectrum")
    config = ParallelSpeedConfig(numbers(batch_sizes), texts, rounds, warmup, seed, suffix)
    figures = [OtherFigure.of(text) for text in others or []]
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    writer = load(model, device=device)
    with terminal.progress_bar("generating", total=2 * len(task.keywords)) as bar:
        headline, detail, outputs = measure(writer, task, config, chosen[0], others=figures, on_written=bar.advance)
    lists = f"{task.data}/{task.split}, {len(task.keywords)} keyword lists"
    report(lists, seed, output, headline, detail, outputs=outputs)


def _folder_of_tau(texts: Sequence[str]) -> dict[float, str]:
    from insnet.benchmarks.spectrum import read_tau

    try:
        return dict(read_tau(text) for text in texts)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
