"""CommonGen: sentences that hold a set of everyday concepts, each in any form and in any order.

BLEU-4 is the corpus BLEU of sacrebleu against all references of a set, lower-cased, in its tokens `13a`; what others
publish is counted by coco-caption on lower-cased PTB tokens without punctuation, and is a few tenths to points apart.
Coverage is the task's own rule: the share of a set's concepts that are the lemma of some word of the sentence, on
average. The lemmas are those of the table in the package lemminflect, which knows nothing of the forms that we write;
of a word that is not there, the word without an s.

A model that has read captions: `insnet finetune data/commongen/train.tgt.txt.xz --model MODEL --output runs/captions`.
"""

import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer

from benchmarks import command
from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption, report
from insnet.evaluation.bleu import bleu
from insnet.evaluation.task import decoding_settings, model_name
from insnet.shelf import load
from insnet.text.corpus import find_split, read_pairs

_TABLE = "lemminflect/resources/lemma_lu.csv.gz"
_WORD = re.compile(r"[^\W\d_]+")
Lemmas = Mapping[str, frozenset[str]]
"""The dictionary forms that a word may be a form of."""


@dataclass(frozen=True)
class ConceptSet:
    """One thing to write."""

    concepts: tuple[str, ...]
    """Dictionary forms of nouns and verbs."""
    references: tuple[str, ...]
    """All sentences that people wrote for them."""

    @property
    def keywords(self) -> list[str]:
        """What is asked of a model: every concept in any form."""
        return [f"{concept}*" for concept in self.concepts]


def read_concept_sets(folder: Path, split: str) -> list[ConceptSet]:
    """The sets of SPLIT.src.txt, each once, with all their sentences of SPLIT.tgt.txt; the order of its words is none.

    Lines without concepts say nothing and are left out.
    """
    references: dict[frozenset[str], list[str]] = {}
    concepts: dict[frozenset[str], tuple[str, ...]] = {}
    for source, target in read_pairs(find_split(folder, f"{split}.src"), find_split(folder, f"{split}.tgt")):
        words = tuple(source.split())
        if words and target:
            concepts.setdefault(frozenset(words), words)
            references.setdefault(frozenset(words), []).append(target)
    if not references:
        raise ValueError(f"{folder} has no concept sets in {split}: expected parallel {split}.src.txt and .tgt.txt")
    return [ConceptSet(concepts[own], tuple(texts)) for own, texts in references.items()]


def read_lemmas(table: Path | None = None) -> dict[str, frozenset[str]]:
    """The lemmas of a table `word,kind,lemma/lemma`, else of the installed lemminflect's, which is read, not run."""
    if table is None:
        try:
            table = Path(str(distribution("lemminflect").locate_file(_TABLE)))
        except PackageNotFoundError:
            raise ValueError(
                "coverage is counted with the lemmas of lemminflect: pip install 'insnet[commongen]', "
                "or name its lemma_lu.csv.gz with --lemmas"
            ) from None
    found: dict[str, frozenset[str]] = {}
    with gzip.open(table, "rt", encoding="utf-8") as file:
        for line in file:
            word, _, lemmas = line.strip().split(",", 2)
            found[word] = found.get(word, frozenset()) | frozenset(lemmas.split("/"))
    return found


def covered(text: str, concepts: Sequence[str], lemmas: Lemmas) -> float:
    """The share of the concepts of which some form is in the text.

    >>> covered("Two dogs lay there.", ["dog", "lie", "run"], {"dogs": frozenset({"dog"}), "lay": frozenset({"lie"})})
    0.6666666666666666
    """
    words = _WORD.findall(text.lower())
    present = {lemma for word in words for lemma in (word, *lemmas.get(word, (word.removesuffix("s"),)))}
    return fmean(concept in present for concept in concepts)


def scores(texts: Sequence[str], sets: Sequence[ConceptSet], lemmas: Lemmas) -> tuple[dict[str, float], str]:
    """BLEU-4, coverage in percent and words per text, and how the BLEU was counted."""
    found = bleu(texts, [each.references for each in sets], tokenize="13a")
    shares = [covered(text, each.concepts, lemmas) for text, each in zip(texts, sets, strict=True)]
    figures = {
        "bleu4": found.score,
        "coverage": 100 * fmean(shares),
        "words_mean": fmean(len(text.split()) for text in texts),
    }
    return figures, found.signature


def main(
    model: command.ModelArgument,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="A folder with SPLIT.src.txt and SPLIT.tgt.txt.")],
    split: Annotated[str, typer.Option(help="Which part of the data; choose settings on dev.")] = "test",
    seed: command.SeedOption = 0,
    settings: command.SettingsOption = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many concept sets.")] = None,
    lemmas: Annotated[
        Path | None, typer.Option(metavar="FILE", help="lemma_lu.csv.gz of lemminflect; else the installed one's.")
    ] = None,
    batch_size: options.BatchSizeOption = 64,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """CommonGen: BLEU-4 and coverage of sentences that hold everyday concepts in any form and order.

    python -m benchmarks.commongen default --data data/commongen --split dev
    """
    sets, table, chosen = read_concept_sets(data, split)[:limit], read_lemmas(lemmas), command.one_setting(settings)
    writer = load(model, device=device)
    how = {"any_order": True, **chosen}
    with terminal.progress_bar("generating", total=len(sets)) as bar:
        results = writer.generate_batch(
            [each.keywords for each in sets], seed=seed, batch_size=batch_size, on_written=bar.advance, **how
        )
    texts = [result.text for result in results]
    figures, signature = scores(texts, sets, table)
    detail = {
        "model": model_name(writer),
        "references": sum(len(each.references) for each in sets),
        "signature": signature,
        "settings": decoding_settings(writer, **how),
    }
    lists = f"{data.resolve().name}/{split}, {len(sets)} concept sets"
    report(lists, seed, output, figures, detail, outputs=texts, command=command.command_line())


if __name__ == "__main__":
    command.run(main)
