"""`insnet benchmark learning-curve`."""

from pathlib import Path
from typing import Annotated

import typer

from insnet.cli import terminal
from insnet.cli.benchmark import ResultOption, report


def learning_curve(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    windows: Annotated[int, typer.Option(min=2, help="Into how many stretches the updates are put.")] = 100,
    seed: Annotated[int, typer.Option(help="The seed the run had.")] = 0,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Also draw it: .svg or .png.")] = None,
    output: ResultOption = None,
) -> None:
    """Tell how a run learned: its losses by stretches of updates, and on the valid split."""
    from insnet.benchmarks.learning_curve import draw, measure

    headline, detail = measure(run, windows=windows)
    if plot is not None:
        draw(detail, plot)
        terminal.note(f"drawn: {plot}")
    report(f"the metrics of {run.name}", seed, output, headline, detail)
