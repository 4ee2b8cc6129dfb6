"""`insnet benchmark learning-curve`."""

from pathlib import Path
from typing import Annotated

import typer

from insnet.cli import terminal
from insnet.cli.benchmark import ResultOption, report


def learning_curve(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="A run folder, or several to compare.")],
    windows: Annotated[int, typer.Option(min=2, help="Into how many stretches the updates are put.")] = 100,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Also draw it: .svg or .png.")] = None,
    output: ResultOption = None,
) -> None:
    """Tell how a run learned, or several: losses by stretches of updates, and on the valid split."""
    from insnet.benchmarks.learning_curve import draw, draw_together, measure, measure_together, seeds_of

    if len(runs) == 1:
        headline, detail = measure(runs[0], windows=windows)
    else:
        headline, detail = measure_together(runs, windows=windows)
    if plot is not None:
        draw_together(detail["runs"], plot) if "runs" in detail else draw(detail, plot)
        terminal.note(f"drawn: {plot}")
    report(f"the metrics of {', '.join(run.name for run in runs)}", seeds_of(runs), output, headline, detail)
