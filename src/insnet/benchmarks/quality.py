"""The paper's main table for one data set: a model at its best, by the paper's decoding, and beside Plan-and-Write."""

from typing import Any

from insnet.benchmarks.decodings import PAPER_DECODING, SCORES, Decoding, check_stops_by_itself, draw
from insnet.benchmarks.drawing import Drawing
from insnet.evaluate import Task
from insnet.evaluation.judge import Judge
from insnet.evaluation.report import headline
from insnet.model import Model

FAITHFUL, BASELINE = "faithful", "ar"
"""What the figures of the paper's decoding and of the left-to-right baseline begin with."""


def ways(best: Decoding, *, baseline: Decoding | None = None, faithful: Model | None = None) -> dict[str, Decoding]:
    """What is to be measured, by what its figures begin with; `faithful` decodes as the paper does."""
    found = {"": best}
    if faithful is not None:
        check_stops_by_itself(faithful, "the model to decode as the paper does")
        found[FAITHFUL] = Decoding(faithful, PAPER_DECODING)
    if baseline is not None:
        found[BASELINE] = baseline
    return found


def measure(
    ways: dict[str, Decoding],
    task: Task,
    drawing: Drawing,
    judge: Judge | None = None,
) -> tuple[dict[str, float], dict[str, Any], dict[str, list[str]]]:
    """The headline (bleu2, ..., faithful_bleu2, ..., ar_bleu2, ...), the detail behind it, and each way's texts of the
    first seed."""
    for way in ways.values():
        way.all_settings()  # refused before anything is written
    drawn = {name: draw(way, task, drawing, judge) for name, way in ways.items()}
    figures, detail = headline(drawn[""].reports), drawn[""].detail()
    for name in (name for name in drawn if name):
        figures |= drawn[name].scores(SCORES, f"{name}_{{}}")
        detail[name] = drawn[name].detail()
    if FAITHFUL in drawn:
        figures[f"{FAITHFUL}_nonterminating"] = drawn[FAITHFUL].nonterminating
    return figures, detail, {name: each.texts for name, each in drawn.items()}
