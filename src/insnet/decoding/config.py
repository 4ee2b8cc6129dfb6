"""The choices a decoder makes, as they stand in `generation_config.json`."""

import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STOPPING_RULES = ("rehearsed", "counted", "threshold", "sampled", "cumulative")
SLOT_CHOICES = ("nucleus", "argmax")
MODES = ("sequential", "parallel")
CANDIDATE_CHOICES = ("consensus", "likelihood", "both")
CONFLICTS = ("allowed", "same_token", "neighbours")


@dataclass(frozen=True)
class GenerationConfig:
    """How slots and tokens are chosen, and when to stop."""

    slot_choice: str = "nucleus"
    """`nucleus` draws among the slots that hold `slot_mass`; `argmax` takes the likeliest."""
    slot_mass: float = 0.7
    """Share of the slot distribution to draw from; 1 leaves it whole."""
    temperature: float = 1.0
    """Sharpens (below 1) or flattens (above 1) the token distribution."""
    final_temperature: float = 0.0
    """Where the number of insertions is known, what the temperature falls to as the text becomes complete: a word for a
    whole text to come is drawn at `temperature`, the last one at this. 0 leaves it the same throughout."""
    top_k: int = 5
    """Draw among the k likeliest tokens; 1 is greedy, 0 leaves the distribution whole."""
    top_p: float = 1.0
    """Draw among the tokens that hold this share of the distribution; 1 leaves it whole."""
    min_p: float = 0.0
    """Draw among the tokens at least this share as likely as the likeliest; 0 leaves the distribution whole."""
    typical_p: float = 1.0
    """Draw among the tokens whose surprise is nearest to the expected one, until they hold this share (locally typical
    sampling); 1 leaves the distribution whole."""
    stopping: str = "rehearsed"
    """`rehearsed`: as many insertions as some untruncated rehearsals made; `counted`: as many as the model's
    count head says before the first (for models that have one); `threshold`: when the stop probability exceeds
    `stop_threshold`; `sampled`: by a draw; `cumulative`: when the chance of having stopped does."""
    stop_threshold: float = 0.5
    """For `threshold` and `cumulative`; 0.5 is the paper's reading."""
    rehearsals: int = 8
    """Untruncated samples behind a rehearsed length, which all candidates of a text share."""
    count_quantile: float = 0.5
    """Which quantile of the count head's distribution a counted length is, or of the rehearsals a rehearsed one; 0.5 is
    the median."""
    count_spread: float = 0.0
    """How far from that quantile, up or down, each text's own is drawn; candidates then differ in length, too."""
    parallel_count_quantile: float = 0.0
    """The quantile in parallel mode, where insertions make more whole words and fewer pieces; 0 for the same."""
    length_slack: float = 0.25
    """How far, as a share of a rehearsed or counted length, a text may end before or after it: it ends where the stop
    probability exceeds `stop_threshold`, so that it does not break off. 0 keeps to the length exactly."""
    min_words: int = 1
    """Fewest whitespace words of a text."""
    max_words: int = 200
    """Most whitespace words of a text."""
    max_tokens: int = 256
    """Insertions after which a text is cut off as unfinished."""
    no_adjacent_repeats: bool = True
    """Never insert a token beside its equal."""
    no_repeat_ngram: int = 3
    """Never write a run of so many tokens twice; 0 allows it."""
    repetition_penalty: float = 1.0
    """Divides the probability of a token for each time it is on the canvas; 1 leaves it alone."""
    candidates: int = 1
    """Texts written for one, of which the best is kept."""
    candidate_choice: str = "consensus"
    """Which candidate is the best: the one that has most words and runs of words in common with the others
    (`consensus`); the one with the highest likelihood an insertion (`likelihood`); or the one with the highest sum of
    the two, each in standard deviations among the candidates (`both`). A left-to-right model, which may lose required
    words, chooses among the candidates that hold most of them."""
    candidate_orders: int = 2
    """Insertion orders over which a likelihood is averaged; a left-to-right model needs none."""
    revise: int = 0
    """Rounds of revision: the inserted words that the model finds least likely, given most of the rest, are removed and
    as many tokens written in their stead; kept if the text becomes likelier."""
    revise_share: float = 0.3
    """Share of the inserted words that one round of revision replaces, one at least."""
    mode: str = "sequential"
    """`sequential` inserts one token a round, `parallel` one in each of several slots."""
    order: str = ""
    """For a model that has learned several orders of insertion: the one to write in. Left empty, the model's first for
    `sequential` and its last for `parallel`."""
    parallel_mass: float = 0.7
    """A parallel round fills the fewest slots that hold this share of the slot distribution; 1 fills all open slots."""
    rounds: int = 0
    """Rounds after which a text ends (InsNet-uniform: 7); those of a text whose length is known each fill at least
    their part of what is left. 0 sets no limit."""
    round_share: float = 1.0
    """Most of the insertions still to come that one parallel round may make, as a share, if their number is known."""
    slot_need: float = 0.0
    """A parallel round leaves out slots where fewer insertions than this are expected (the number to come, if it is
    known, times the slot's probability)."""
    confidence: float = 0.0
    """A parallel round leaves out tokens that are less likely than this to stand in their gap of the finished text (the
    number to come, if it is known, times the probability of slot and token), but for the surest one."""
    conflicts: str = "allowed"
    """What neighbouring slots may not do in one parallel round, the surer one going first: get the `same_token`; be
    filled both (`neighbours`); `allowed` for neither."""
    polish: int = 0
    """Insertions at the end of a text that parallel decoding makes one by one, if the number to come is known."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, kind = getattr(self, field.name), type(field.default)
            expected = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}[kind]
            _check(field.name, value, isinstance(value, (int, float) if kind is float else kind), expected)
        _one_of("stopping", self.stopping, STOPPING_RULES)
        _one_of("slot_choice", self.slot_choice, SLOT_CHOICES)
        _one_of("mode", self.mode, MODES)
        _one_of("candidate_choice", self.candidate_choice, CANDIDATE_CHOICES)
        _one_of("conflicts", self.conflicts, CONFLICTS)
        for name in ("slot_mass", "top_p", "typical_p", "revise_share", "parallel_mass", "round_share"):
            _check(name, getattr(self, name), 0 < getattr(self, name) <= 1, "a share above 0 and up to 1")
        _check("min_p", self.min_p, 0 <= self.min_p <= 1, "a share from 0 to 1")
        _check("count_quantile", self.count_quantile, 0 < self.count_quantile < 1, "a share between 0 and 1")
        quantile = self.parallel_count_quantile
        _check("parallel_count_quantile", quantile, 0 <= quantile < 1, "0 or a share below 1")
        spread = min(self.length_quantile, 1 - self.length_quantile)
        _check("count_spread", self.count_spread, 0 <= self.count_spread < spread, f"0 or a share below {spread:g}")
        _check("stop_threshold", self.stop_threshold, 0 < self.stop_threshold < 1, "a probability between 0 and 1")
        _check("length_slack", self.length_slack, 0 <= self.length_slack < 1, "a share from 0 up to 1")
        _check("temperature", self.temperature, 0 < self.temperature < math.inf, "a number above 0 (greedy: top_k = 1)")
        final = self.final_temperature
        _check("final_temperature", final, 0 <= final < math.inf, "0 or a number above it")
        _check("repetition_penalty", self.repetition_penalty, self.repetition_penalty >= 1, "1 or more")
        _check("confidence", self.confidence, 0 <= self.confidence < 1, "a probability from 0 up to 1")
        for name in ("top_k", "min_words", "no_repeat_ngram", "rounds", "slot_need", "polish", "revise"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "0 or more")
        for name in ("rehearsals", "candidates", "candidate_orders", "max_tokens", "max_words"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "1 or more")
        if self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is above max_words {self.max_words}")

    @property
    def length_quantile(self) -> float:
        """The quantile of the count that a text's length is, in the mode it is written in."""
        return (self.parallel_count_quantile if self.mode == "parallel" else 0.0) or self.count_quantile

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "GenerationConfig":
        """From a table of settings; an unknown name is an error that tells the nearest valid one."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in settings:
            if name not in names:
                nearest = difflib.get_close_matches(name, names, n=1, cutoff=0)[0]
                raise ValueError(f"unknown generation setting {name!r}; did you mean {nearest!r}?")
        return cls(**settings)

    def untruncated(self) -> "GenerationConfig":
        """The model's own distribution: one insertion a round, nothing cut, nothing sharpened, the stop drawn."""
        return dataclasses.replace(
            self,
            mode="sequential",
            rounds=0,
            slot_choice="nucleus",
            slot_mass=1.0,
            temperature=1.0,
            final_temperature=0.0,
            top_k=0,
            top_p=1.0,
            min_p=0.0,
            typical_p=1.0,
            stopping="sampled",
            no_adjacent_repeats=False,
            no_repeat_ngram=0,
            repetition_penalty=1.0,
            candidates=1,
            revise=0,
        )


def _one_of(name: str, value: str, expected: tuple[str, ...]) -> None:
    _check(name, value, value in expected, f"one of {', '.join(expected)}")


def _check(name: str, value: object, is_right: bool, expected: str) -> None:
    if not is_right:
        raise ValueError(f"{name} is {value!r}; expected {expected}")
