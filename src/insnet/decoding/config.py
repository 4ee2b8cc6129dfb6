"""The choices a decoder makes: six small tables, flat in `generation_config.json`.

A field's docstring is also its help on the command line.
"""

import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STOPPING_RULES = ("rehearsed", "counted", "threshold", "sampled")
MODES = ("sequential", "parallel")
CANDIDATE_CHOICES = ("consensus", "likelihood", "both", "fluency")


@dataclass(frozen=True)
class Bounds:
    """What a text must keep to."""

    min_words: int = 1
    """Fewest words of a text."""
    max_words: int = 200
    """Most words of a text."""
    max_tokens: int = 256
    """Insertions after which a text is cut off as unfinished."""
    no_repeat_ngram: int = 3
    """Never write a run of so many tokens twice, nor a token beside its equal; 0 allows both."""
    repetition_penalty: float = 1.0
    """Divide the probability of a token by this for each time it is in the text; 1 leaves it alone."""
    decent: bool = True
    """Insert no slurs, sexual or coarse words; those that are given stay."""

    def __post_init__(self) -> None:
        _check_kinds(self)
        _at_least(self, 0, "min_words", "no_repeat_ngram")
        _at_least(self, 1, "max_words", "max_tokens", "repetition_penalty")
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is above max_words {self.max_words}")


@dataclass(frozen=True)
class Sampling:
    """Which token goes into a slot."""

    temperature: float = 1.0
    """Below 1 safer, above 1 wilder."""
    final_temperature: float = 0.0
    """What the temperature falls to as a text of known length becomes complete; 0 leaves it the same."""
    top_k: int = 5
    """Draw among the k likeliest tokens; 1 is greedy, 0 takes all."""
    top_p: float = 1.0
    """Draw among the likeliest tokens that hold this share."""
    min_p: float = 0.0
    """Draw among the tokens at least this share as likely as the best; 0 takes all."""

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check("temperature", self.temperature, 0 < self.temperature < math.inf, "a number above 0 (greedy: top_k = 1)")
        final = self.final_temperature
        _check("final_temperature", final, 0 <= final < math.inf, "0 or a number above it")
        _at_least(self, 0, "top_k")
        _share(self, "top_p")
        _check("min_p", self.min_p, 0 <= self.min_p <= 1, "a share from 0 to 1")


@dataclass(frozen=True)
class Length:
    """When a text ends."""

    stopping: str = "rehearsed"
    """How the end is found. `rehearsed`: after as many insertions as some untruncated rehearsals made; `counted`: after
    as many as the model's count head says before the first (for models that have one); `threshold`: when stopping is
    likelier than going on; `sampled`: by a draw. Where slots say for themselves whether anything goes there,
    `threshold` leaves those empty that are likelier to be than not; else nothing is drawn like a token."""
    rehearsals: int = 8
    """Untruncated samples behind a rehearsed length, which all candidates of a text share."""
    count_quantile: float = 0.5
    """Which quantile of the counts, or of the rehearsals, a planned length is; 0.5 is the median."""
    parallel_count_quantile: float = 0.0
    """The same in parallel mode, where insertions make more whole words and fewer pieces; 0 for the same."""
    count_spread: float = 0.0
    """How far from that quantile, up or down, each text's own is drawn; candidates then differ in length, too."""

    def __post_init__(self) -> None:
        _check_kinds(self)
        _one_of("stopping", self.stopping, STOPPING_RULES)
        _at_least(self, 1, "rehearsals")
        _check("count_quantile", self.count_quantile, 0 < self.count_quantile < 1, "a share between 0 and 1")
        parallel = self.parallel_count_quantile
        _check("parallel_count_quantile", parallel, 0 <= parallel < 1, "0 or a share below 1")
        nearest = min(min(quantile, 1 - quantile) for quantile in (self.count_quantile, parallel or 0.5))
        _check("count_spread", self.count_spread, 0 <= self.count_spread < nearest, f"0 or a share below {nearest:g}")


@dataclass(frozen=True)
class Rounds:
    """Which slots are filled, and how many in one step."""

    mode: str = "sequential"
    """`sequential` inserts one token per step, `parallel` one in each of several slots."""
    order: str = ""
    """The order to insert in, of those the model has learned; left empty, its first for `sequential` and its last for
    `parallel`."""
    slot_mass: float = 0.7
    """In sequential mode: draw among the likeliest slots that hold this share."""
    parallel_mass: float = 0.7
    """In parallel mode: fill the likeliest slots that hold this share."""
    rounds: int = 0
    """Steps after which a text ends (InsNet-uniform: 7), each doing its part of a known length; 0 sets no limit."""

    def __post_init__(self) -> None:
        _check_kinds(self)
        _one_of("mode", self.mode, MODES)
        _share(self, "slot_mass", "parallel_mass")
        _at_least(self, 0, "rounds")


@dataclass(frozen=True)
class Selection:
    """Which of several texts is kept, and what is mended in it."""

    candidates: int = 1
    """Write so many texts for one and keep the best."""
    candidate_choice: str = "consensus"
    """The best is what has most words and runs of words in common with the others (`consensus`), the likeliest per
    insertion (`likelihood`), the best in the sum of the two, each in standard deviations (`both`), or what reads best
    by itself, whatever was given (`fluency`)."""
    candidate_orders: int = 2
    """Orders of insertion that a likelihood is averaged over; a left-to-right model needs none."""
    revise: int = 0
    """Rounds that write the least likely words anew; kept if the text becomes likelier."""
    revise_share: float = 0.3
    """Share of the inserted words that one round of revision replaces, one at least."""

    def __post_init__(self) -> None:
        _check_kinds(self)
        _at_least(self, 1, "candidates", "candidate_orders")
        _one_of("candidate_choice", self.candidate_choice, CANDIDATE_CHOICES)
        _at_least(self, 0, "revise")
        _share(self, "revise_share")


@dataclass(frozen=True)
class Fluency:
    """What the candidate choice `fluency` adds to the log-probability of a text by itself, in nats."""

    piece_bonus: float = 0.9
    """Added for each token; without it, short texts win."""
    repeat_penalty: float = 7.5
    """Taken off each time a content word is said again."""
    short_penalty: float = 2.0
    """Taken off for each word short of `short_words`."""
    short_words: int = 6
    """A text of fewer words is short."""
    usual_least: int = 8
    """Fewest words of a usual text. One outside is kept only where none is inside and no length was asked for."""
    usual_most: int = 16
    """Most words of a usual text with up to three given words, each further one allowing two more; 0: any length."""

    def __post_init__(self) -> None:
        _check_kinds(self)
        for name in ("piece_bonus", "repeat_penalty", "short_penalty"):
            value = getattr(self, name)
            _check(name, value, 0 <= value < math.inf, "0 or a number above it")
        _at_least(self, 0, "short_words", "usual_least", "usual_most")
        if 0 < self.usual_most < self.usual_least:
            raise ValueError(f"usual_least {self.usual_least} is above usual_most {self.usual_most}")


@dataclass(frozen=True)
class GenerationConfig:
    """All choices of a decoder."""

    bounds: Bounds = field(default_factory=Bounds)
    sampling: Sampling = field(default_factory=Sampling)
    length: Length = field(default_factory=Length)
    rounds: Rounds = field(default_factory=Rounds)
    selection: Selection = field(default_factory=Selection)
    fluency: Fluency = field(default_factory=Fluency)

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None = None, **more: Any) -> "GenerationConfig":
        """From a flat table of settings; an unknown name is an error that names the nearest valid one."""
        return cls().changed(**{**(settings or {}), **more})

    def changed(self, **settings: Any) -> "GenerationConfig":
        """The same with some settings changed, by their own names."""
        tables: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            if name not in TABLE_OF_SETTING:
                nearest = difflib.get_close_matches(name, TABLE_OF_SETTING, n=1, cutoff=0)[0]
                raise ValueError(f"unknown generation setting {name!r}; did you mean {nearest!r}?")
            tables.setdefault(TABLE_OF_SETTING[name], {})[name] = value
        changed = {table: dataclasses.replace(getattr(self, table), **own) for table, own in tables.items()}
        return dataclasses.replace(self, **changed)

    def flat(self) -> dict[str, Any]:
        """Every setting by its name."""
        return {name: getattr(getattr(self, table), name) for name, table in TABLE_OF_SETTING.items()}

    @property
    def is_parallel(self) -> bool:
        return self.rounds.mode == "parallel"

    @property
    def length_quantile(self) -> float:
        """The quantile of the count that a text's length is, in the mode it is written in."""
        return (self.length.parallel_count_quantile if self.is_parallel else 0.0) or self.length.count_quantile

    def untruncated(self) -> "GenerationConfig":
        """The model's own distribution: one insertion per step, nothing cut, nothing sharpened, the stop drawn."""
        return GenerationConfig(
            bounds=dataclasses.replace(self.bounds, no_repeat_ngram=0, repetition_penalty=1.0, decent=False),
            sampling=Sampling(top_k=0),
            length=dataclasses.replace(self.length, stopping="sampled"),
            rounds=dataclasses.replace(self.rounds, mode="sequential", slot_mass=1.0, rounds=0),
        )


TABLE_OF_SETTING: dict[str, str] = {
    setting.name: table.name
    for table in dataclasses.fields(GenerationConfig)
    for setting in dataclasses.fields(table.default_factory)  # type: ignore[arg-type]
}


_EXPECTED = {int: "a whole number", float: "a number", str: "a word", bool: "True or False"}


def _check_kinds(table: Any) -> None:
    """Every field's value is of its default's type; a whole number will do for a number."""
    for each in dataclasses.fields(table):
        value, kind = getattr(table, each.name), type(each.default)
        wanted = (int, float) if kind is float else kind
        is_right = isinstance(value, wanted) and isinstance(value, bool) == (kind is bool)
        _check(each.name, value, is_right, _EXPECTED[kind])


def _at_least(table: Any, smallest: int, *names: str) -> None:
    for name in names:
        _check(name, getattr(table, name), getattr(table, name) >= smallest, f"{smallest} or more")


def _share(table: Any, *names: str) -> None:
    for name in names:
        _check(name, getattr(table, name), 0 < getattr(table, name) <= 1, "a share above 0 and up to 1")


def _one_of(name: str, value: str, expected: tuple[str, ...]) -> None:
    _check(name, value, value in expected, f"one of {', '.join(expected)}")


def _check(name: str, value: object, is_right: bool, expected: str) -> None:
    if not is_right:
        raise ValueError(f"{name} is {value!r}; expected {expected}")
