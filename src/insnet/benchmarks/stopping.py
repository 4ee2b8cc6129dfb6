"""Which rule ends texts best: length and quality under each, and the length of texts that nothing was cut from.

The untruncated length is the first test of a trained model: drawn from its whole distribution, texts must be as long as
the data's, with keywords and without, or something is wrong with training or sampling.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from insnet.evaluate import Task, evaluate_task
from insnet.evaluation.lengths import length_ratio
from insnet.model import Model

_QUALITY = ("bleu2", "bleu4", "nist4", "length_ratio", "distinct2")


def measure(
    model: Model,
    task: Task,
    *,
    quantiles: Sequence[float] = (0.5, 0.6, 0.7),
    seed: int = 0,
    batch_size: int = 64,
    on_written: Callable[[int], None] | None = None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (untruncated_length_ratio, length_ratio_RULE, bleu4_RULE, ...) and the detail behind it."""
    common: dict[str, Any] = {"seed": seed, "batch_size": batch_size, "on_written": on_written}
    whole = asdict(model.generation.untruncated())
    nothing = replace(task, keywords=[[] for _ in task.keywords])
    headline = {
        "untruncated_length_ratio": _length_ratio(model, task, {**common, **whole}),
        "untruncated_length_ratio_nothing_given": _length_ratio(model, nothing, {**common, **whole}),
    }
    rows = []
    for name, settings in rules(model, quantiles).items():
        report, _ = evaluate_task(model, task, **common, **settings)
        scores = {score: getattr(report, score) for score in _QUALITY}
        rows.append({"rule": name, **settings, **scores})
        headline |= {f"{score}_{name}": scores[score] for score in ("bleu4", "length_ratio")}
    folder = model.folder.resolve().name if model.folder else type(model.family).__name__
    return headline, {"settings": {"model": folder, **asdict(model.generation)}, "rules": rows}


def rules(model: Model, quantiles: Sequence[float]) -> dict[str, dict[str, Any]]:
    """The stopping rules that a model can follow, by name, as options of `generate_batch`."""
    counted = {
        f"counted_q{round(100 * quantile)}": {"stopping": "counted", "count_quantile": quantile}
        for quantile in quantiles
    }
    sampled = {"sampled": {"stopping": "sampled"}}
    if model.family.is_told_its_length:
        return {**counted, **sampled}
    by_hazard = {name: {"stopping": name} for name in ("threshold", "cumulative", "rehearsed")}
    return {**(counted if getattr(model.family.config, "count_head", 0) else {}), **by_hazard, **sampled}


def texts_to_write(model: Model, task: Task, quantiles: Sequence[float]) -> int:
    """How many texts `measure` asks for, rehearsals aside."""
    return len(task.keywords) * (2 + len(rules(model, quantiles)))


def _length_ratio(model: Model, task: Task, options: dict[str, Any]) -> float:
    """Mean words of the texts over those of the references."""
    texts = [result.text for result in model.generate_batch(task.keywords, **options)]
    return length_ratio(texts, task.references)
