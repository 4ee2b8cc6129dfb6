"""What the paper reports: its main table, its ablation, and where its models lie on the spectrum.

The training sets of these numbers cannot be had: ours are the closest public text, and no number of ours has been made
under quite the same conditions.
"""

from dataclasses import dataclass
from typing import Any

SERIES = "the paper (lengths estimated)"
"""What a plot calls the paper's points."""


@dataclass(frozen=True)
class Entry:
    """One model on one data set (the paper's table 1)."""

    bleu2: float
    bleu4: float
    nist2: float
    nist4: float
    steps: float
    """Decoding steps per text."""


TABLE: dict[str, dict[str, Entry]] = {
    "yelp": {
        "plan_and_write": Entry(16.68, 5.46, 2.79, 2.86, 39.24),
        "nmstg": Entry(10.06, 1.92, 1.11, 1.12, 27.92),
        "indigo": Entry(16.14, 4.63, 3.08, 3.10, 45.63),
        "levenshtein": Entry(14.84, 3.96, 2.84, 2.89, 14.28),
        "pointer_base": Entry(11.48, 2.16, 2.15, 2.15, 6.00),
        "pointer_base_wiki": Entry(15.63, 3.32, 3.27, 3.30, 6.00),
        "pointer_large_wiki": Entry(16.78, 3.79, 3.49, 3.53, 6.00),
        "sequential": Entry(19.36, 5.78, 3.51, 3.54, 48.73),
        "uniform": Entry(12.31, 2.30, 2.19, 2.17, 7.00),
        "dinic": Entry(16.73, 4.35, 3.19, 3.20, 11.83),
    },
    "news": {
        "plan_and_write": Entry(8.79, 2.40, 1.65, 1.67, 36.74),
        "nmstg": Entry(10.67, 1.58, 2.70, 2.70, 27.85),
        "indigo": Entry(13.89, 3.62, 3.08, 3.10, 26.78),
        "levenshtein": Entry(11.76, 1.89, 2.64, 2.71, 16.13),
        "pointer_base": Entry(12.13, 1.63, 2.90, 2.80, 6.00),
        "pointer_base_wiki": Entry(13.01, 2.51, 3.04, 3.06, 6.00),
        "pointer_large_wiki": Entry(14.04, 3.04, 3.28, 3.30, 6.00),
        "sequential": Entry(16.31, 4.96, 3.10, 3.13, 32.69),
        "uniform": Entry(12.89, 2.01, 2.99, 2.90, 7.00),
        "dinic": Entry(14.13, 3.75, 2.97, 3.00, 8.13),
    },
}
"""Each data set's models; "dinic" has a tolerance of 10."""
ABLATION = {
    "full": {"stop_nll": 2.17, "bleu2": 19.17, "bleu4": 5.69},
    "truncated": {"stop_nll": 2.97, "bleu2": 16.13, "bleu4": 3.89},
    "noglobal": {"stop_nll": 2.56, "bleu2": 17.83, "bleu4": 4.81},
}
"""Termination NLL and BLEU of the paper's appendix."""
INSERTIONS = {"yelp": 50.4 - 6.8, "news": 27.9 - 4.0}
"""Words of a public test text less its keywords, on average: what a text as long as these takes."""


def spectrum_points(data: str) -> list[dict[str, Any]]:
    """The paper's points on the spectrum, as rows that `benchmarks.spectrum.draw` takes.

    It prints no numbers beside its plots, but three points follow from its table. Sequential decoding inserts once a
    step; the lengths of the others' texts are not given and are taken to be the test's.
    """
    if data not in TABLE:
        raise ValueError(f"the paper has no points for {data!r}; choose {' or '.join(TABLE)}")
    table = TABLE[data]
    ratio = {name: table[name].steps / INSERTIONS[data] for name in ("uniform", "dinic")} | {"sequential": 1.0}
    labels = {"uniform": "uniform", "dinic": "10", "sequential": "-inf"}
    return [
        {"name": label, "series": SERIES, "settings": {}, "bleu4": table[name].bleu4, "sequential_ratio": ratio[name]}
        for name, label in labels.items()
    ]
