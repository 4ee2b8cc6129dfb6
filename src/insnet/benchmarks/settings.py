"""Which decoding settings suit a model: several beside its own, on the same texts; a question for the valid split."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from insnet.benchmarks.decodings import SCORES, Decoding, draw
from insnet.benchmarks.drawing import Drawing
from insnet.benchmarks.spectrum import name_of_settings
from insnet.evaluate import Task
from insnet.evaluation.judge import Judge
from insnet.model import Model

OWN = "own"
"""What the model's own settings are called."""


def measure(
    model: Model,
    choices: Sequence[Mapping[str, Any]],
    task: Task,
    drawing: Drawing,
    judge: Judge | None = None,
    *,
    on_measured: Callable[[str, Mapping[str, float]], None] | None = None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (bleu4_NAME, ...) and the detail behind it, the model's own settings first; `on_measured` hears of
    each choice as soon as it is known."""
    ways = {name_of_settings(settings) or OWN: Decoding(model, settings) for settings in ({}, *choices)}
    if len(ways) <= len(choices):
        raise ValueError("the same settings are asked for twice; give them once")
    for way in ways.values():
        way.all_settings()  # refused before anything is written
    figures: dict[str, float] = {}
    detail: dict[str, Any] = {"split": task.split, "sentences": len(task.references), "choices": {}}
    for name, way in ways.items():
        drawn = draw(way, task, drawing, judge)
        figures |= drawn.scores(SCORES, f"{{}}_{name}")
        detail["choices"][name] = drawn.detail()
        if on_measured is not None:
            on_measured(name, drawn.scores(SCORES))
    return figures, detail
