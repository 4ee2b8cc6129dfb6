"""`insnet benchmark losses`."""

from pathlib import Path
from typing import Annotated

import typer

from insnet.cli.benchmark import ResultOption, report, tolerances


def losses(
    model: Annotated[str, typer.Argument(help="A model by name or folder, with its recipe.")],
    rounded: Annotated[bool, typer.Option("--rounded", help="Also with weights rounded to bf16 and to int8.")] = False,
    tau: Annotated[str, typer.Option(metavar="A,B,...", help="Also in layers of these tolerances.")] = "",
    recipe: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Measure on this recipe's text and given words, not its own.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many sentences.")] = None,
    output: ResultOption = None,
) -> None:
    """Measure a model's losses on the valid split of its recipe, what rounding costs, and what layers it makes."""
    from insnet.benchmarks.losses import RECIPE_FILE, measure
    from insnet.shelf import find
    from insnet.training.recipe import load_recipe

    folder = find(model)
    of_valid = load_recipe(recipe or folder / RECIPE_FILE)
    sentences = "" if limit is None else f", the first {limit}"
    report(
        f"{of_valid.data.folder}/valid{sentences}",
        of_valid.train.seed,
        output,
        *measure(folder, of_valid, rounded=rounded, taus=tolerances(tau), limit=limit),
    )
