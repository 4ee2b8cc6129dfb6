"""What the commands `python -m benchmarks.NAME` share: their options, how they end, and how they report."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.decodings import read_settings
from benchmarks.drawing import Drawing
from insnet.cli import app, terminal
from insnet.cli.benchmark import report
from insnet.evaluation.files import one_per_line, outputs_path, write_compressed
from insnet.evaluation.judge import Judge, load_judge
from insnet.evaluation.task import Task, read_task
from insnet.model import Model

ModelArgument = Annotated[str, typer.Argument(help="A model by name or folder.")]
DataOption = Annotated[Path, typer.Option("--data", metavar="DIR", help="A folder with the split.")]
SplitOption = Annotated[str, typer.Option(help="Which part of the data; choose settings on valid.")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first so many sentences.")]
KeywordsOption = Annotated[
    int, typer.Option(min=0, help="Keywords to draw from a sentence, if there is no SPLIT.keywords.txt.")
]
SeedOption = Annotated[int, typer.Option(help="The seed of the texts.")]
SeedsOption = Annotated[str, typer.Option(metavar="A,B,...", help="Seeds of the texts; figures are their means.")]
SettingsOption = Annotated[
    str, typer.Option(metavar="TEXT", help='Decoding settings, as in "candidates=8 min_p=0.1"; else the model\'s own.')
]
KeepOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep drawn texts here: a command that was cut off goes on from them."),
]
JudgedOption = Annotated[bool, typer.Option("--judge", help="Also the perplexity to SmolLM2, which is slow.")]
JudgeFolderOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Another judge: a causal language model that transformers reads.")
]
TextsOption = Annotated[int, typer.Option(min=1, help="Texts to write in a timed call, at least.")]
RoundsOption = Annotated[int, typer.Option(min=1, help="Calls to time of each way.")]
WarmupOption = Annotated[int, typer.Option(min=0, help="Calls before the clock starts.")]
PlotOption = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Also draw it: .svg or .png.")]


def run(command: Callable[..., None]) -> None:
    """Runs one command and leaves with its exit code; a user's mistake becomes one line."""
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    program.command(context_settings={"help_option_names": ["-h", "--help"]})(command)
    app.run(program, f"python -m benchmarks.{Path(sys.argv[0]).stem}")


def command_line() -> list[str]:
    """The command as it was given."""
    return ["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]]


def one_setting(text: str) -> dict[str, Any]:
    """The decoding settings of a text that means one combination of them."""
    chosen = read_settings(text)
    if len(chosen) > 1:
        raise typer.BadParameter(f"{text!r} means several settings; give one, or use python -m benchmarks.settings")
    return chosen[0]


def wanted_judge(wanted: bool, folder: Path | None, model: Model) -> Judge | None:
    """The judge that was asked for, where the model is."""
    return load_judge(folder, device=model.device) if wanted or folder is not None else None


def task_of(written: Mapping[str, Any], data: Path, keywords_per_line: int = 7) -> Task:
    """What a results file was measured on."""
    limit = written.get("sentences")
    return read_task(data, written.get("split", "test"), limit=limit, keywords_per_line=keywords_per_line)


@contextmanager
def with_bar(drawing: Drawing, ways: Collection[object], task: Task) -> Iterator[Drawing]:
    """The drawing with a progress bar for the texts of all these ways to write."""
    total = len(ways) * len(task.keywords) * len(drawing.seeds)
    with terminal.progress_bar("generating", total=total) as bar:
        yield replace(drawing, on_written=bar.advance)


def report_on(
    task: Task,
    seeds: int | Sequence[int],
    output: Path | None,
    headline: dict[str, float],
    detail: dict[str, Any],
    texts: Mapping[str, Sequence[str]] | None = None,
    *,
    main: str = "",
) -> None:
    """Prints and writes a measurement; the texts of `main` go beside it as NAME.outputs.txt.xz, all others by name."""
    texts = texts or {}
    if output is not None:
        write_texts({name: lines for name, lines in texts.items() if name != main}, output)
    lists = f"{task.data}/{task.split}, {len(task.keywords)} keyword lists"
    report(lists, seeds, output, headline, detail, outputs=texts.get(main), command=command_line())


def write_texts(texts: Mapping[str, Sequence[str]], result: Path) -> None:
    """Texts beside a results file NAME.json, one per line, as NAME.WAY.outputs.txt.xz."""
    for name, lines in texts.items():
        write_compressed(outputs_path(result.with_name(f"{result.stem}.{name}.json")), one_per_line(lines))
