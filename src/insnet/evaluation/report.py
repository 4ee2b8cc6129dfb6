"""The evaluation of a model on a data set: its scores, and the files they are kept in."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from insnet.evaluation.aligned import References, check_same_length, reference_lists
from insnet.evaluation.bleu import bleu
from insnet.evaluation.coverage import Keywords, all_in_order, coverage
from insnet.evaluation.diversity import distinct, self_bleu
from insnet.evaluation.files import json_text, one_per_line
from insnet.evaluation.grammar import complete_parses
from insnet.evaluation.lengths import length_ratio, mean_words
from insnet.evaluation.loops import keyword_lists, loops
from insnet.evaluation.nist import nist
from insnet.evaluation.results import write_result
from insnet.files import write_atomically

if TYPE_CHECKING:
    from insnet.evaluation.judge import Judge

HEADLINE = (
    "bleu2", "bleu4", "nist2", "nist4", "coverage", "length_ratio",
    "distinct1", "distinct2", "distinct2_reference", "distinct2_ratio",
    "loops", "keyword_lists", "complete_parses", "steps", "judge_ppl", "judge_ppl_reference",
)  # fmt: skip
_SAME_FOR_EVERY_SEED = ("model", "split", "sentences", "signature")


@dataclass(frozen=True)
class Report:
    """What `insnet evaluate --json` prints, field by field."""

    model: str
    """The model's name."""
    data: str
    """The data set's name."""
    split: str
    """The part of it that was scored."""
    sentences: int
    """How many outputs were scored."""
    bleu2: float
    """Corpus BLEU up to bigrams, 0 to 100."""
    bleu4: float
    """Corpus BLEU up to 4-grams, 0 to 100."""
    nist2: float
    """Corpus NIST up to bigrams."""
    nist4: float
    """Corpus NIST up to 4-grams."""
    coverage: float | None
    """The share of required words that occur; None where the task has no keywords."""
    all_in_order: float | None
    """The share of outputs with all their required words in order; None where the task has no keywords."""
    length_ratio: float
    """Words of the outputs over words of the references."""
    mean_words: float
    """Words an output."""
    distinct1: float
    """Different words over all words of the outputs."""
    distinct2: float
    """Different bigrams over all bigrams of the outputs."""
    distinct2_reference: float
    """The same for the references (the first of each sentence), which a varied set of outputs comes near."""
    distinct2_ratio: float | None
    """That of the outputs over that of the references; None where no reference has two words."""
    self_bleu: float | None
    """Mean BLEU-4 of an output against the others (at most 1,000 of them); None where there is only one."""
    loops: float
    """The share of outputs in which four words in a row come twice."""
    keyword_lists: float | None
    """The share of outputs that say three keywords in a row; None where the task has no keywords."""
    steps: float
    """Decoding steps an output."""
    finished: float | None
    """The share of outputs that ended by themselves; None where nobody kept count."""
    seed: int
    """The seed of the outputs."""
    signature: str
    """How BLEU and NIST were counted, and who the judge was."""
    judge_ppl: float | None = None
    """The perplexity of the outputs to a language model; this and what follows is None without a judge."""
    judge_ppl_reference: float | None = None
    """The same for the references (the first of each sentence)."""
    judge_nats_per_word: float | None = None
    """The judge's nats a whitespace word of the outputs, for texts that fall into tokens of different sizes."""
    judge_nats_per_word_reference: float | None = None
    """The same for the references."""
    complete_parses: float | None = None
    """The share of outputs that Link Grammar parses whole; None where it was not asked."""


def score_texts(
    outputs: Sequence[str],
    references: References,
    keywords: Keywords | None,
    *,
    steps: Sequence[int],
    finished: Sequence[bool] | None = None,
    lower_case: bool = True,
    model: str = "",
    data: str = "",
    split: str = "",
    seed: int = 0,
    judge: "Judge | None" = None,
    parse: bool = False,
) -> Report:
    """All scores of the outputs on whitespace words; upper and lower case are one throughout if `lower_case`.

    Only the judge and the parser, who read the texts as they are printed, always keep them apart; both take time.
    """
    first_references = [texts[0] for texts in reference_lists(outputs, references)]
    check_same_length("outputs", outputs, "step counts", steps)
    if finished is not None:
        check_same_length("outputs", outputs, "finished marks", finished)
    bleu4 = bleu(outputs, references, order=4, lower_case=lower_case)
    distinct2 = distinct(outputs, 2, lower_case=lower_case)
    distinct2_reference = distinct(first_references, 2, lower_case=lower_case)
    report = Report(
        model=model,
        data=data,
        split=split,
        sentences=len(outputs),
        bleu2=bleu(outputs, references, order=2, lower_case=lower_case).score,
        bleu4=bleu4.score,
        nist2=nist(outputs, references, order=2, lower_case=lower_case),
        nist4=nist(outputs, references, order=4, lower_case=lower_case),
        coverage=None if keywords is None else coverage(outputs, keywords, ignore_case=lower_case),
        all_in_order=None if keywords is None else all_in_order(outputs, keywords, ignore_case=lower_case),
        length_ratio=length_ratio(outputs, references),
        mean_words=mean_words(outputs),
        distinct1=distinct(outputs, 1, lower_case=lower_case),
        distinct2=distinct2,
        distinct2_reference=distinct2_reference,
        distinct2_ratio=distinct2 / distinct2_reference if distinct2_reference else None,
        self_bleu=self_bleu(outputs, lower_case=lower_case) if len(outputs) > 1 else None,
        loops=loops(outputs),
        keyword_lists=None if keywords is None else keyword_lists(outputs, keywords),
        steps=sum(steps) / len(steps),
        finished=None if finished is None else sum(finished) / len(finished),
        seed=seed,
        signature=f"{bleu4.signature}|nist:13a",
        complete_parses=complete_parses(outputs) if parse else None,
    )
    return report if judge is None else _judged(report, outputs, first_references, judge)


def headline(reports: Sequence[Report]) -> dict[str, float]:
    """The figures to publish: of every score that all reports have, the mean."""
    scores = {name: [getattr(report, name) for report in reports] for name in HEADLINE}
    return {name: sum(values) / len(values) for name, values in scores.items() if None not in values}


def detail_of_seeds(reports: Sequence[Report], settings: Mapping[str, object] | None = None) -> dict[str, object]:
    """What stands behind such figures: what is the same for all seeds, the settings, and each seed's scores."""
    same = {name: getattr(reports[0], name) for name in _SAME_FOR_EVERY_SEED}
    known = {*same, "data"}
    of_seed = [{name: value for name, value in asdict(report).items() if name not in known} for report in reports]
    return {**same, "settings": dict(settings or {}), "per_seed": of_seed}


def write_report(report: Report, outputs: Sequence[str], place: str | Path) -> Path:
    """The JSON file written: `place` itself if it ends in .json, else report.json in that folder.

    The outputs lie beside it, one per line, as NAME.outputs.txt.
    """
    if len(outputs) != report.sentences:
        raise ValueError(
            f"{len(outputs)} outputs but a report on {report.sentences}: give the outputs it was made from"
        )
    path = Path(place)
    if path.suffix != ".json":
        path = path / "report.json"
    # The outputs first: where there is a report, its outputs are there too.
    write_atomically(path.with_suffix(".outputs.txt"), one_per_line(outputs))
    write_atomically(path, json_text(asdict(report)))
    return path


def write_figures(
    path: str | Path,
    reports: Sequence[Report],
    outputs: Sequence[str],
    *,
    command: str | Sequence[str],
    settings: Mapping[str, object] | None = None,
) -> Path:
    """The results file of one evaluation with several seeds: means in the headline, each seed's scores below.

    `outputs`, those of the first seed, lie beside it; the references, which may be somebody else's, are not written.
    """
    return write_result(
        path,
        command=command,
        headline=headline(reports),
        seeds=[report.seed for report in reports],
        data=reports[0].data,
        detail=detail_of_seeds(reports, settings),
        outputs=outputs,
    )


def _judged(report: Report, outputs: Sequence[str], references: Sequence[str], judge: "Judge") -> Report:
    ours, theirs = judge.perplexity(outputs), judge.perplexity(references)
    return replace(
        report,
        signature=f"{report.signature}|judge:{judge.name}",
        judge_ppl=ours.perplexity,
        judge_ppl_reference=theirs.perplexity,
        judge_nats_per_word=ours.nats_per_word,
        judge_nats_per_word_reference=theirs.nats_per_word,
    )
