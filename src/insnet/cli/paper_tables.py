"""`insnet benchmark quality`, `baseline`, `ablation`, `dinic`, `judge`: entries of the paper's tables from models."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, numbers, report
from insnet.cli.parallel import DataOption, KeepOption, KeywordsOption, LimitOption

if TYPE_CHECKING:
    from insnet.evaluate import Task
    from insnet.evaluation.judge import Judge
    from insnet.model import Model

SplitOption = Annotated[str, typer.Option(help="Which part of the data; choose settings on valid.")]
SeedsOption = Annotated[str, typer.Option(metavar="A,B,...", help="Seeds of the texts; figures are their means.")]
SettingsOption = Annotated[
    str, typer.Option(metavar="TEXT", help='Decoding settings, as in "candidates=8 min_p=0.1"; else the model\'s own.')
]
JudgedOption = Annotated[bool, typer.Option("--judge", help="Also the perplexity to SmolLM2, which is slow.")]
JudgeFolderOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Another judge: a causal language model that transformers reads.")
]


def quality(
    model: Annotated[str, typer.Argument(help="A model by name or folder.")],
    data: DataOption,
    split: SplitOption = "test",
    seeds: SeedsOption = "0,1,2",
    settings: SettingsOption = "",
    faithful: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Decode this model as the paper does, if MODEL was told its length."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="RUN", help="A left-to-right model (Plan-and-Write) to compare with.")
    ] = None,
    baseline_settings: Annotated[str, typer.Option(metavar="TEXT", help="Decoding settings of --baseline.")] = "",
    judged: JudgedOption = False,
    judge_folder: JudgeFolderOption = None,
    limit: LimitOption = None,
    keywords_per_line: KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Measure a model at its best and by the paper's decoding, beside a left-to-right model: the paper's main table.

    insnet benchmark quality tour --data data/tour --split valid --seeds 0
    """
    all_seeds, chosen, of_baseline = numbers(seeds), _one_setting(settings), _one_setting(baseline_settings)
    from insnet.benchmarks.decodings import Decoding
    from insnet.benchmarks.drawing import Drawing
    from insnet.benchmarks.quality import measure, ways
    from insnet.evaluate import read_task
    from insnet.shelf import load

    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    writer = load(model, device=device)
    to_measure = ways(
        Decoding(writer, chosen),
        baseline=None if baseline is None else Decoding(load(baseline, device=device), of_baseline),
        faithful=_faithful(writer) if faithful is None else load(faithful, device=device),
    )
    judge = wanted_judge(judged, judge_folder, writer)
    with terminal.progress_bar("generating", total=_texts(to_measure, task, all_seeds)) as bar:
        found = measure(to_measure, task, Drawing(all_seeds, batch_size, keep, bar.advance), judge)
    _report(task, all_seeds, output, *found, main="")


def baseline(
    result: Annotated[Path, typer.Argument(metavar="FILE.json", help="What quality has written.")],
    model: Annotated[str, typer.Argument(metavar="RUN", help="A left-to-right model (Plan-and-Write).")],
    data: DataOption,
    settings: SettingsOption = "",
    keywords_per_line: KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
) -> None:
    """Add a left-to-right model to a results file that was measured without one, on the same texts and seeds.

    insnet benchmark baseline benchmarks/results/quality_yelp.json runs/yelp_plan_and_write --data data/yelp
    """
    chosen = _one_setting(settings)
    from insnet.benchmarks.baseline import add_baseline
    from insnet.benchmarks.decodings import Decoding
    from insnet.benchmarks.drawing import Drawing
    from insnet.files import read_json_object
    from insnet.shelf import load

    written = read_json_object(result)
    task = _task_of(written, data, keywords_per_line)
    seeds = written.get("seeds", [])
    way = Decoding(load(model, device=device), chosen)
    with terminal.progress_bar("generating", total=_texts({"": way}, task, seeds)) as bar:
        drawing = Drawing(seeds, batch_size, keep, bar.advance)
        found = add_baseline(result, way, task, drawing, command=_command())
    terminal.note(f"written: {result}")
    terminal.print_json({"headline": found})


def ablation(
    full: Annotated[str, typer.Option("--full", metavar="RUN", help="The whole model (recipes/yelp_full.toml).")],
    truncated: Annotated[str, typer.Option("--truncated", metavar="RUN", help="The one that sees only directions.")],
    noglobal: Annotated[str, typer.Option("--noglobal", metavar="RUN", help="The one without the newest token.")],
    data: DataOption,
    split: SplitOption = "test",
    seeds: SeedsOption = "0,1,2",
    settings: Annotated[
        str, typer.Option(metavar="TEXT", help='What changes the paper\'s decoding, as in "max_words=143".')
    ] = "",
    orders: Annotated[int, typer.Option(min=1, help="Orders a sentence that stop terms are averaged over.")] = 4,
    limit: LimitOption = None,
    keywords_per_line: KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Measure stop NLL, BLEU and texts without end of a model and its two ablations, stopping as the paper does.

    insnet benchmark ablation --full runs/full --truncated runs/truncated --noglobal runs/noglobal --data data/yelp
    """
    all_seeds, chosen = numbers(seeds), _one_setting(settings)
    from insnet.benchmarks.ablation import measure
    from insnet.benchmarks.drawing import Drawing
    from insnet.evaluate import read_task
    from insnet.shelf import load

    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    folders = {"full": full, "truncated": truncated, "noglobal": noglobal}
    models = {name: load(folder, device=device) for name, folder in folders.items()}
    with terminal.progress_bar("generating", total=_texts(models, task, all_seeds)) as bar:
        found = measure(
            models,
            task,
            Drawing(all_seeds, batch_size, keep, bar.advance),
            settings=chosen,
            orders=orders,
        )
    _report(task, all_seeds, output, *found, main="full")


def dinic(
    sequential: Annotated[str, typer.Argument(help="A model by name or folder, to insert one by one.")],
    parallel: Annotated[str, typer.Argument(help="A model trained in layers, to insert several at a time.")],
    data: DataOption,
    split: SplitOption = "test",
    seeds: SeedsOption = "0,1,2",
    settings: Annotated[
        str, typer.Option(metavar="TEXT", help='Decoding settings of PARALLEL, as in "parallel_mass=0.9 top_k=1".')
    ] = "",
    sequential_settings: Annotated[str, typer.Option(metavar="TEXT", help="Decoding settings of SEQUENTIAL.")] = "",
    uniform: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="A model trained with tau = inf for InsNet-uniform; else PARALLEL."),
    ] = None,
    judged: JudgedOption = False,
    judge_folder: JudgeFolderOption = None,
    limit: LimitOption = None,
    keywords_per_line: KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: KeepOption = None,
    texts: Annotated[int, typer.Option(min=1, help="Texts to write in a timed call, one at a time.")] = 16,
    rounds: Annotated[int, typer.Option(min=1, help="Calls to time of each model.")] = 3,
    warmup: Annotated[int, typer.Option(min=0, help="Calls before the clock starts.")] = 1,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Measure parallel decoding beside one insertion a step and beside InsNet-uniform: quality, rounds, latency.

    insnet benchmark dinic runs/yelp runs/yelp_layered --data data/yelp --settings "parallel_mass=0.9"
    """
    all_seeds, chosen, of_sequential = numbers(seeds), _one_setting(settings), _one_setting(sequential_settings)
    from insnet.benchmarks.dinic import LatencyConfig, measure, ways
    from insnet.benchmarks.drawing import Drawing
    from insnet.evaluate import read_task
    from insnet.shelf import load

    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    to_measure = ways(
        load(sequential, device=device),
        load(parallel, device=device),
        uniform=None if uniform is None else load(uniform, device=device),
        settings=chosen,
        sequential_settings=of_sequential,
    )
    judge = wanted_judge(judged, judge_folder, to_measure[""].model)
    with terminal.progress_bar("generating", total=_texts(to_measure, task, all_seeds)) as bar:
        found = measure(
            to_measure,
            task,
            Drawing(all_seeds, batch_size, keep, bar.advance),
            judge,
            latency=LatencyConfig(texts, rounds, warmup),
        )
    _report(task, all_seeds, output, *found, main="")


def judge(
    result: Annotated[Path, typer.Argument(metavar="FILE.json", help="What quality or dinic has written.")],
    data: DataOption,
    judge_folder: JudgeFolderOption = None,
    device: options.DeviceOption = options.Device.auto,
) -> None:
    """Add the perplexity of a results file's texts to it, where they were written without a judge.

    insnet benchmark judge benchmarks/results/quality_yelp.json --data data/yelp
    """
    from insnet.benchmarks.judged import add_perplexities
    from insnet.evaluation.judge import load_judge
    from insnet.files import read_json_object

    task = _task_of(read_json_object(result), data)
    judging = load_judge(judge_folder, device=device)
    found = add_perplexities(result, task, judging, command=_command())
    terminal.note(f"written: {result}")
    terminal.print_json({"headline": found})


def _task_of(written: Mapping[str, Any], data: Path, keywords_per_line: int = 7) -> "Task":
    """What a results file was measured on."""
    from insnet.evaluate import read_task

    limit = written.get("sentences")
    return read_task(data, written.get("split", "test"), limit=limit, keywords_per_line=keywords_per_line)


def _command() -> str:
    return shlex.join(["insnet", *sys.argv[1:]])


def _one_setting(text: str) -> dict[str, Any]:
    from insnet.benchmarks.spectrum import read_settings

    chosen = read_settings(text)
    if len(chosen) > 1:
        raise typer.BadParameter(f"{text!r} means several settings; give one, or use insnet benchmark settings")
    return chosen[0]


def _faithful(model: "Model") -> "Model | None":
    """The model itself, if it can stop as the paper's do."""
    from insnet.benchmarks.decodings import stops_by_itself

    if stops_by_itself(model):
        return model
    terminal.note(
        "the paper's decoding is left out: this model has no stop probability to follow; "
        "--faithful RUN names an InsNet with a binary stop head"
    )
    return None


def wanted_judge(wanted: bool, folder: Path | None, model: "Model") -> "Judge | None":
    """The judge that was asked for, where the model is."""
    if not wanted and folder is None:
        return None
    from insnet.evaluation.judge import load_judge

    return load_judge(folder, device=model.device)


def _texts(ways: Mapping[str, object], task: "Task", seeds: Sequence[int]) -> int:
    return len(ways) * len(task.keywords) * len(seeds)


def _report(
    task: "Task",
    seeds: Sequence[int],
    output: Path | None,
    headline: dict[str, float],
    detail: dict[str, Any],
    texts: Mapping[str, list[str]],
    *,
    main: str,
) -> None:
    """Prints and writes a measurement; the texts of `main` go beside it as NAME.outputs.txt, all others by name."""
    from insnet.benchmarks.spectrum import write_texts

    if output is not None:
        write_texts({name: lines for name, lines in texts.items() if name != main}, output)
    lists = f"{task.data}/{task.split}, {len(task.keywords)} keyword lists"
    report(lists, seeds, output, headline, detail, outputs=texts[main])
