"""Corpus BLEU of any order through sacrebleu, so that its signature says how it was counted.

Everything not named here is sacrebleu's own default for a corpus: exponential smoothing of orders without a match
(`smooth:exp`) and no effective order (`eff:no`), so a corpus without a single n-gram of the highest order scores 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from sacrebleu.metrics.bleu import BLEU

from insnet.evaluation.aligned import References, reference_lists
from insnet.evaluation.ngrams import check_order


@dataclass(frozen=True)
class BleuScore:
    """A corpus BLEU with how it was counted."""

    score: float
    """From 0 to 100."""
    order: int
    """The longest n-gram counted, which sacrebleu's signature leaves out."""
    signature: str
    """sacrebleu's own: references, case, effective order, tokenizer, smoothing, version."""


def bleu(
    outputs: Sequence[str],
    references: References,
    *,
    order: int = 4,
    tokenize: str = "none",
    lower_case: bool = True,
) -> BleuScore:
    """The corpus BLEU of the outputs; sentences may differ in how many references they have.

    `tokenize` is a sacrebleu tokenizer: "none" takes whitespace words as they are, "13a" is usual for translation.

    >>> bleu(["The cat sat on the mat"], ["the cat sat on the mat"])
    BleuScore(score=100.0..., order=4, signature='nrefs:1|case:lc|eff:no|tok:none|smooth:exp|version:...')
    """
    check_order(order)
    if tokenize not in BLEU.TOKENIZERS:
        known = ", ".join(sorted(BLEU.TOKENIZERS))
        raise ValueError(f"sacrebleu has no tokenizer {tokenize!r}: give one of {known}")
    # force only silences a warning about texts that look tokenised, which ours are meant to be.
    metric = BLEU(max_ngram_order=order, tokenize=tokenize, lowercase=lower_case, force=True)
    # sacrebleu wants one stream a reference, with None where a sentence has fewer.
    streams = [list(stream) for stream in zip_longest(*reference_lists(outputs, references))]
    score = float(metric.corpus_score(list(outputs), streams).score)
    return BleuScore(score, order, str(metric.get_signature()))
