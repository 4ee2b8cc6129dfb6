"""Which rule ends texts best: length and quality under each, and the length of texts that nothing was cut from.

The untruncated length is the first test of a trained model: drawn from its whole distribution, texts must be as long as
the data's, with keywords and without, or something is wrong with training or sampling. That asks for a text like the
one the model has learned from; the rules are better compared on what it is to be used for.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import command
from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, tolerances
from insnet.evaluation.lengths import length_ratio
from insnet.evaluation.task import Task, decoding_settings, evaluate_task, read_task
from insnet.model import Model
from insnet.shelf import load

_QUALITY = ("bleu2", "bleu4", "nist4", "length_ratio", "distinct2")


def measure(
    model: Model,
    task: Task,
    *,
    whole_task: Task | None = None,
    quantiles: Sequence[float] = (0.5, 0.6, 0.7),
    seed: int = 0,
    batch_size: int = 64,
    on_written: Callable[[int], None] | None = None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (untruncated_length_ratio, length_ratio_RULE, bleu4_RULE, ...) and the detail behind it.

    Untruncated texts are compared with those of `whole_task`, if there is one.
    """
    common: dict[str, Any] = {"seed": seed, "batch_size": batch_size, "on_written": on_written}
    headline = _untruncated(model, whole_task or task, common)
    rows = []
    for name, settings in rules(model, quantiles).items():
        report, _ = evaluate_task(model, task, **common, **settings)
        scores = {score: getattr(report, score) for score in _QUALITY}
        rows.append({"rule": name, **settings, **scores})
        headline |= {f"{score}_{name}": scores[score] for score in ("bleu4", "length_ratio")}
    folder = model.folder.resolve().name if model.folder else type(model.family).__name__
    return headline, {"settings": {"model": folder, **decoding_settings(model)}, "rules": rows}


def rules(model: Model, quantiles: Sequence[float]) -> dict[str, dict[str, Any]]:
    """The stopping rules that a model can follow, by name, as options of `generate_batch`."""
    counted = {
        f"counted_q{round(100 * quantile)}": {"stopping": "counted", "count_quantile": quantile}
        for quantile in quantiles
    }
    sampled = {"sampled": {"stopping": "sampled"}}
    if model.family.config.longest is not None:
        return {**counted, **sampled}
    by_hazard = {name: {"stopping": name} for name in ("threshold", "rehearsed")}
    return {**(counted if getattr(model.family.config, "count_head", 0) else {}), **by_hazard, **sampled}


def texts_to_write(model: Model, task: Task, quantiles: Sequence[float], whole_task: Task | None = None) -> int:
    """How many texts `measure` asks for, rehearsals aside."""
    return 2 * len((whole_task or task).keywords) + len(task.keywords) * len(rules(model, quantiles))


def _untruncated(model: Model, task: Task, common: dict[str, Any]) -> dict[str, float]:
    """Mean words of texts drawn from the whole distribution over those of the references, with keywords and without."""
    options = {**common, **model.generation.untruncated().flat()}
    with_keywords = model.generate_batch(task.keywords, **options)
    # One text per seed: a batch of equal requests would give the same text over and over.
    nothing_given = model.generate([], num_samples=len(task.references), **options)
    return {
        "untruncated_length_ratio": length_ratio([result.text for result in with_keywords], task.references),
        "untruncated_length_ratio_nothing_given": length_ratio(
            [result.text for result in nothing_given], task.references
        ),
    }


def main(
    model: command.ModelArgument,
    data: command.DataOption,
    split: command.SplitOption = "valid",
    untruncated: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Text like the model's own, to compare untruncated lengths with; else DATA."),
    ] = None,
    limit: command.LimitOption = None,
    keywords_per_line: command.KeywordsOption = 4,
    quantiles: Annotated[
        str, typer.Option(help="Quantiles of a counted length to try, several with commas.")
    ] = "0.5,0.6,0.7",
    seed: command.SeedOption = 0,
    batch_size: options.BatchSizeOption = 64,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Length and quality under every stopping rule, and the length of untruncated texts."""
    chosen = tolerances(quantiles)
    read = partial(read_task, split=split, limit=limit, keywords_per_line=keywords_per_line)
    task, whole = read(data), None if untruncated is None else read(untruncated)
    writer = load(model, device=device)
    with terminal.progress_bar("generating", total=texts_to_write(writer, task, chosen, whole)) as bar:
        found = measure(
            writer,
            task,
            whole_task=whole,
            quantiles=chosen,
            seed=seed,
            batch_size=batch_size,
            on_written=bar.advance,
        )
    command.report_on(task, seed, output, *found)


if __name__ == "__main__":
    command.run(main)
