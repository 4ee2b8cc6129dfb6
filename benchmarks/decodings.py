"""A task written by one model in one way with several seeds: what an entry of the paper's tables is made of."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.drawing import Drawing, DrawnText
from insnet.evaluation.judge import Judge
from insnet.evaluation.report import Report, detail_of_seeds, headline
from insnet.evaluation.task import Task, decoding_settings, score_results
from insnet.families.insnet import InsNet
from insnet.model import Model

PAPER_DECODING: Mapping[str, Any] = {
    "mode": "sequential",
    "slot_mass": 0.7,
    "temperature": 1.0,
    "final_temperature": 0.0,
    "top_k": 5,
    "top_p": 1.0,
    "min_p": 0.0,
    "stopping": "threshold",
    "min_words": 1,
    "rounds": 0,
    "candidates": 1,
    "revise": 0,
    # The paper's own samples say "here here" and "the owner owner": nothing kept words from being repeated.
    "no_repeat_ngram": 0,
    "repetition_penalty": 1.0,
    "decent": False,
}
"""How the paper decodes one by one, and stops where the stop probability q exceeds 0.5 (see its section 4.1)."""
UNIFORM: Mapping[str, Any] = {"parallel_mass": 1, "rounds": 7}
"""InsNet-uniform, which the paper does not define: every open slot is filled, in seven rounds at most. Such a model is
trained with tau = inf; settings may call it `uniform`."""
SCORES = (
    "bleu2", "bleu4", "nist2", "nist4", "coverage", "length_ratio", "distinct2_ratio", "steps", "judge_ppl",
)  # fmt: skip
"""What is published of every way to write."""


@dataclass(frozen=True)
class Decoding:
    """One model's way to write."""

    model: Model
    settings: Mapping[str, Any]
    """Options of `generate_batch`; the model's own settings fill in what they leave open."""

    def all_settings(self) -> dict[str, Any]:
        """Everything it decodes by; wrong settings are refused."""
        return decoding_settings(self.model, **self.settings)


@dataclass(frozen=True)
class Drawn:
    """What came of a way to write."""

    reports: list[Report]
    """The scores of each seed."""
    texts: list[str]
    """The texts of the first seed."""
    nonterminating: float
    """The share of all texts that hit the length cap, in tokens or in words."""
    settings: dict[str, Any]
    """Everything it was decoded by."""
    made: list[dict[str, str]]
    """Where the texts of each seed were kept: by which commit, on what hardware and when they were drawn."""

    def scores(self, names: Sequence[str], form: str = "{}") -> dict[str, float]:
        """The means over all seeds of those scores that there are, each called what `form` makes of its name."""
        found = headline(self.reports)
        return {form.format(name): found[name] for name in names if name in found}

    def detail(self) -> dict[str, Any]:
        """What stands behind the means."""
        made = {"drawn": self.made} if any(self.made) else {}
        return {**detail_of_seeds(self.reports, self.settings), "nonterminating": self.nonterminating, **made}


def draw(decoding: Decoding, task: Task, drawing: Drawing, judge: Judge | None = None) -> Drawn:
    """What a way to write makes of a task with every seed."""
    model, settings = decoding.model, decoding.all_settings()
    draws = drawing.draw(model, task, decoding.settings)
    reports = [
        score_results(model, task, each.texts, seed=seed, judge=judge)
        for seed, each in zip(drawing.seeds, draws, strict=True)
    ]
    cut_off = [hits_cap(text, settings["max_words"]) for each in draws for text in each.texts]
    texts, made = [text.text for text in draws[0].texts], [each.made for each in draws]
    return Drawn(reports, texts, fmean(cut_off), settings, made)


def stops_by_itself(model: Model) -> bool:
    """Whether a model can decode as the paper does: an InsNet that has a stop probability to follow."""
    return isinstance(model.family, InsNet) and model.family.config.longest is None


def check_stops_by_itself(model: Model, name: str) -> None:
    """Refuses a model that cannot stop as the paper's do; `name` is what the user called it."""
    if not stops_by_itself(model):
        kind = type(model.family).__name__
        what = "was given its length" if model.family.config.longest is not None else f"is of the family {kind}"
        raise ValueError(
            f"{name} {what} and has no stop probability to follow, as the paper's decoding does; "
            "give an InsNet with a binary stop head (recipes/yelp_threshold.toml)"
        )


def hits_cap(result: DrawnText, max_words: int) -> bool:
    """Whether a text has no end of its own: it has as many tokens as a text may have, or as many words."""
    return not result.finished or len(result.text.split()) >= max_words


def read_settings(text: str) -> list[dict[str, Any]]:
    """Every combination that a text of settings stands for; slashes part what is to be tried.

    >>> read_settings("parallel_mass=1 top_k=3/5")
    [{'parallel_mass': 1, 'top_k': 3}, {'parallel_mass': 1, 'top_k': 5}]
    """
    choices: dict[str, list[Any]] = {}
    uniform = " ".join(f"{name}={value}" for name, value in UNIFORM.items())
    for part in " ".join(uniform if word == "uniform" else word for word in text.split()).split():
        name, equals, values = part.partition("=")
        if not (name and equals and values):
            raise ValueError(f"cannot read the setting {part!r}; expected NAME=VALUE, as in parallel_mass=0.9")
        choices[name] = [_value(value) for value in values.split("/")]
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def name_of_settings(settings: Mapping[str, Any]) -> str:
    """What settings are called among figures.

    >>> name_of_settings({"candidates": 8, "temperature": 0.9})
    'candidates_8_temperature_0.9'
    """
    return "_".join(f"{key}_{value}" for key, value in settings.items())


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
