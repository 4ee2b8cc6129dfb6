"""What a model's valid losses are, what rounding its weights costs, and how layers depend on their tolerance."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from benchmarks import command
from insnet.cli.benchmark import ResultOption, report, tolerances
from insnet.families.generator import Generator
from insnet.families.insnet_config import InsNetObjective
from insnet.families.quantize import quantized, restored
from insnet.families.storage import load_model
from insnet.shelf import find, made_ready
from insnet.text.batching import Batches, BatchingConfig
from insnet.text.tokenizer import load_tokenizer
from insnet.training.devices import make_accelerator
from insnet.training.prepare import load_prepared
from insnet.training.recipe import Recipe, load_recipe
from insnet.training.updates import SummedLosses, evaluate

_BATCH_TOKENS = 8192  # of a valid batch: small enough for any machine
RECIPE_FILE = "recipe.toml"
_OF_LAYERS = ("layers_per_insertion", "layered_loss")

Weights = dict[str, Tensor]


def bf16(weights: Mapping[str, Tensor]) -> Weights:
    """The weights with the digits that bfloat16 keeps."""
    return {name: tensor.bfloat16().to(tensor.dtype) for name, tensor in weights.items()}


def int8(weights: Mapping[str, Tensor]) -> Weights:
    """The weights as a model on the shelf has them."""
    return restored(quantized(weights))


ROUNDINGS: dict[str, Callable[[Mapping[str, Tensor]], Weights]] = {"bf16": bf16, "int8": int8}


def measure(
    folder: str | Path,
    recipe: Recipe | None = None,
    *,
    rounded: bool = False,
    taus: Sequence[float] = (),
    limit: int | None = None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (valid_loss, valid_token, ...) and all losses behind it; if `rounded`, int8_minus_bf16, too, and for
    every tolerance of `taus` how many layers it makes of an insertion (layers_per_insertion_tau_3, ...).

    The text is the valid split that the model's recipe names, prepared, or another `recipe`: models that learned
    from different given words are compared by what one of them is given. Given words and orders are always the same.
    """
    folder = Path(folder)
    recipe = recipe or load_recipe(folder / RECIPE_FILE)
    if load_tokenizer(folder).fingerprint != load_prepared(recipe).tokenizer.fingerprint:
        raise ValueError(
            f"{recipe.data.prepared} was prepared with another tokenizer than {folder} has: prepare it again"
        )
    model = load_model(folder, "cpu")
    layered = {f"tau_{tau:g}": replace(recipe, objective=InsNetObjective((tau,))) for tau in taus}
    of_taus = {name: _losses(model, own, limit) for name, own in layered.items()}
    found = {"as_stored": _losses(model, recipe, limit), **of_taus}
    if rounded:
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        for name, rounding in ROUNDINGS.items():
            model.load_state_dict(rounding(weights))
            found[name] = _losses(model, recipe, limit)
    headline = {f"valid_{name}": value for name, value in found["as_stored"].items()}
    if rounded:
        headline |= {f"{name}_loss": found[name]["loss"] for name in ROUNDINGS}
        headline["int8_minus_bf16"] = found["int8"]["loss"] - found["bf16"]["loss"]
    for name, losses in of_taus.items():
        headline |= {f"{figure}_{name}": losses[figure] for figure in _OF_LAYERS if figure in losses}
    return headline, {"model": folder.resolve().name, "losses": found}


def _losses(model: Generator, recipe: Recipe, limit: int | None) -> dict[str, float]:
    """Nats a decision on the valid split, by term, and `loss`: all of them over insertions."""
    prepared = load_prepared(recipe)
    accelerator = make_accelerator(recipe.train)
    batching = BatchingConfig(_BATCH_TOKENS, recipe.train.max_shapes, recipe.train.seed)
    batches = Batches(prepared.valid, batching, recipe.given, prepared.tokenizer.lexicon()["starts_word"])
    module = SummedLosses(model.to(accelerator.device), objective=recipe.objective)
    with torch.no_grad():
        return evaluate(accelerator, module, batches.in_order(limit), progress=1.0)


def main(
    model: Annotated[str, typer.Argument(help="A model by name or folder, with its recipe.")],
    rounded: Annotated[bool, typer.Option("--rounded", help="Also with weights rounded to bf16 and to int8.")] = False,
    tau: Annotated[str, typer.Option(metavar="A,B,...", help="Also in layers of these tolerances.")] = "",
    recipe: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Measure on this recipe's text and given words, not its own.")
    ] = None,
    limit: command.LimitOption = None,
    output: ResultOption = None,
) -> None:
    """A model's losses on the valid split of its recipe, what rounding costs, and what layers it makes."""
    folder = find(model)
    of_valid = load_recipe(recipe or folder / RECIPE_FILE)
    sentences = "" if limit is None else f", the first {limit}"
    found = measure(made_ready(folder), of_valid, rounded=rounded, taus=tolerances(tau), limit=limit)
    what = f"{of_valid.data.folder}/valid{sentences}"
    report(what, of_valid.train.seed, output, *found, command=command.command_line())


if __name__ == "__main__":
    command.run(main)
