"""The paper's ablation: what offsets and the newest token's encoding are good for, above all for stopping in time.

`full` is the whole model, `truncated` sees of an offset only its direction, `noglobal` chooses and fills slots without
the newest token.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from insnet.benchmarks.decodings import PAPER_DECODING, SCORES, Decoding, Drawn, check_stops_by_itself, draw
from insnet.benchmarks.drawing import Drawing
from insnet.benchmarks.stop_nll import sentence_nats
from insnet.evaluate import Task
from insnet.model import Model

SWITCHES = {
    "full": {"truncated": False, "noglobal": False},
    "truncated": {"truncated": True, "noglobal": False},
    "noglobal": {"truncated": False, "noglobal": True},
}
"""How the config of each model is set."""
_FIXED = ("stopping", "stop_threshold")


def measure(
    models: Mapping[str, Model],
    task: Task,
    drawing: Drawing,
    *,
    settings: Mapping[str, Any] | None = None,
    orders: int = 4,
) -> tuple[dict[str, float], dict[str, Any], dict[str, list[str]]]:
    """The headline (stop_nll_full, bleu2_full, nonterminating_full, ...), the detail behind it, and each model's texts
    of the first seed.

    All decode as the paper does; `settings` change that, but for how it stops.
    """
    ways = {name: _way(name, model, settings or {}) for name, model in models.items()}
    figures: dict[str, float] = {}
    detail: dict[str, Any] = {"split": task.split, "sentences": len(task.references), "orders": orders}
    texts: dict[str, list[str]] = {}
    for name, way in ways.items():
        nats = sentence_nats(way.model, task, orders=orders, seed=drawing.seeds[0])
        drawn = draw(way, task, drawing)
        figures |= {f"stop_nll_{name}": nats.stop, **_figures(name, drawn)}
        detail[name] = {**drawn.detail(), "nats_per_sentence": asdict(nats)}
        texts[name] = drawn.texts
    return figures, detail, texts


def _figures(name: str, drawn: Drawn) -> dict[str, float]:
    return {**drawn.scores(SCORES, f"{{}}_{name}"), f"nonterminating_{name}": drawn.nonterminating}


def _way(name: str, model: Model, settings: Mapping[str, Any]) -> Decoding:
    """How a model decodes; refused if it is not the one its name says, or cannot stop as the paper's do."""
    config = getattr(model.family, "config", None)
    for switch, wanted in SWITCHES[name].items():
        if getattr(config, switch, None) is not wanted:
            raise ValueError(
                f"the model given as {name} has {switch} = {getattr(config, switch, None)}; expected {wanted}: "
                "give an InsNet trained with the recipe of that name"
            )
    check_stops_by_itself(model, f"the model given as {name}")
    for setting in _FIXED:
        if settings.get(setting, PAPER_DECODING[setting]) != PAPER_DECODING[setting]:
            raise ValueError(f"{setting} is {settings[setting]!r}; the ablation stops as the paper does: leave it out")
    way = Decoding(model, {**PAPER_DECODING, **settings})
    way.all_settings()
    return way
