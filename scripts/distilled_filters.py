"""Which of a model's texts are good enough to learn from: each filter says of one text, or of all, what stays."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import quantiles
from typing import NamedTuple

from insnet.decoding.fluency import is_sentence
from insnet.decoding.samples import essence
from insnet.evaluation.loops import keyword_lists, loops
from insnet.text.decency import unfit_words

SHORTEST, LONGEST = 5, 24  # words
OPENING = 3  # words that texts may not share too often
Keep = Callable[[Sequence["Sample"]], list["Sample"]]


class Sample(NamedTuple):
    """One text that a model wrote."""

    text: str
    keywords: tuple[str, ...]
    """What it was given."""
    finished: bool
    """False if the text was cut off at the limit."""
    score: float
    """The log-probability of an insertion, given the keywords."""

    def line(self) -> str:
        """As `of_line` reads it."""
        return "\t".join([str(int(self.finished)), f"{self.score:.3f}", self.text, *self.keywords])

    @classmethod
    def of_line(cls, line: str) -> "Sample":
        """The sample that a line stands for."""
        finished, score, text, *keywords = line.split("\t")
        return cls(text, tuple(keywords), finished == "1", float(score))


def is_finished(sample: Sample) -> bool:
    """Whether the text ended by itself."""
    return sample.finished


def is_one_sentence(sample: Sample) -> bool:
    """Whether it begins with a capital or a number and ends with a stop, its only one."""
    return is_sentence(sample.text)


def has_usual_length(sample: Sample) -> bool:
    """Whether it has as many words as people want of a sentence."""
    return SHORTEST <= len(sample.text.split()) <= LONGEST


def is_fit(sample: Sample) -> bool:
    """Whether it is decent and tells of no violence."""
    return not unfit_words(sample.text)


def has_no_loop(sample: Sample) -> bool:
    """Whether no four words come twice."""
    return loops([sample.text]) == 0


def lists_nothing(sample: Sample) -> bool:
    """Whether the keywords do not stand there as a bare list."""
    return keyword_lists([sample.text], [list(sample.keywords)]) == 0


OF_ONE: Mapping[str, Callable[[Sample], bool]] = {
    "finished": is_finished,
    "sentence": is_one_sentence,
    "length": has_usual_length,
    "fit": is_fit,
    "no loop": has_no_loop,
    "no list": lists_nothing,
}
"""What looks at one text, what is soonest known first."""


def passing(samples: Iterable[Sample]) -> tuple[list[Sample], Counter[str]]:
    """The samples that pass every filter of one text, and how many each filter was the first to drop."""
    dropped: Counter[str] = Counter()
    kept = []
    for sample in samples:
        failed = next((name for name, passes in OF_ONE.items() if not passes(sample)), None)
        if failed is None:
            kept.append(sample)
        else:
            dropped[failed] += 1
    return kept, dropped


def likely(samples: Sequence[Sample], percent: int) -> list[Sample]:
    """All but the least likely so many percent."""
    if percent == 0 or len(samples) < 2:
        return list(samples)
    least = quantiles([sample.score for sample in samples], n=100, method="inclusive")[percent - 1]
    return [sample for sample in samples if sample.score >= least]


def different(samples: Sequence[Sample]) -> list[Sample]:
    """The first of all texts that differ in marks and case alone."""
    first: dict[str, Sample] = {}
    for sample in samples:
        first.setdefault(essence(sample.text), sample)
    return list(first.values())


def varied(samples: Sequence[Sample], share: float) -> list[Sample]:
    """The first of all texts that begin with the same words, up to some share of the texts, one at least."""
    most, seen = max(1, round(share * len(samples))), Counter[str]()
    kept = []
    for sample in samples:
        opening = " ".join(sample.text.lower().split()[:OPENING])
        seen[opening] += 1
        if seen[opening] <= most:
            kept.append(sample)
    return kept
