"""CommonGen: sets of concepts in, one sentence for each, scored against all that people wrote."""

import gzip
import json

import pytest
from sacrebleu import corpus_bleu

from benchmarks.commongen import ConceptSet, covered, read_concept_sets, read_lemmas, scores
from insnet.text.corpus import read_lines
from insnet.text.words import contains_in_order

PAIRS = [
    ("dog run park", "A dog runs in the park."),
    ("dog run park", "Two dogs ran through a park."),
    ("", "Nobody knows what this is about."),
    ("child leaf", "The children rake leaves."),
    ("park run dog", "Dogs are running in the parks!"),
]
LEMMAS = """
ran,verb,run
running,noun,running
running,verb,run
runs,verb,run
dogs,noun,dog
children,noun,child
leaves,noun,leave/leaf
"""


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "dev.src.txt").write_text("".join(f"{source}\n" for source, _ in PAIRS))
    (folder / "dev.tgt.txt").write_text("".join(f"{target}\n" for _, target in PAIRS))
    return folder


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "lemma_lu.csv.gz"
    path.write_bytes(gzip.compress(LEMMAS.lstrip().encode()))
    return path


def test_lines_with_the_same_concepts_in_any_order_are_references_of_one_set(data):
    sets = read_concept_sets(data, "dev")
    assert [each.concepts for each in sets] == [("dog", "run", "park"), ("child", "leaf")]
    assert [len(each.references) for each in sets] == [3, 1]
    assert sets[0].keywords == ["dog*", "run*", "park*"]


def test_a_concept_is_covered_by_any_of_its_forms_and_by_no_other_word(table):
    lemmas = read_lemmas(table)
    assert covered("Dogs ran, children LEFT frisbees", ["dog", "run", "child", "leave", "frisbee"], lemmas) == 4 / 5
    assert covered("The leaves", ["leaf"], lemmas) == covered("He leaves", ["leave"], lemmas) == 1
    assert covered("a dogma", ["dog"], lemmas) == 0


def test_bleu_counts_all_references_of_a_set(data, table):
    """Beside sacrebleu's own call, whose references are streams with None where a set has fewer."""
    sets, texts = read_concept_sets(data, "dev"), ["Two dogs ran in the park.", "The children rake the leaves."]
    streams = [[sets[0].references[0], sets[1].references[0]], *([text, None] for text in sets[0].references[1:])]
    figures, _ = scores(texts, sets, read_lemmas(table))
    assert figures["bleu4"] == pytest.approx(corpus_bleu(texts, streams, lowercase=True).score)
    alone = [ConceptSet(each.concepts, each.references[:1]) for each in sets]
    assert figures["bleu4"] > scores(texts, alone, {})[0]["bleu4"]
    assert (figures["coverage"], figures["words_mean"]) == (100, 5.5)


def test_commongen_is_one_command_and_every_text_holds_some_form_of_each_concept(
    benchmark, model_folder, data, table, tmp_path
):
    path = tmp_path / "commongen.json"
    command = ["commongen", model_folder, "--data", data, "--split", "dev", "--device", "cpu", "--output", path]
    ended = benchmark(*command, "--lemmas", table, "--settings", "candidates=2")
    stored = json.loads(path.read_text())
    assert ended.code == 0, ended.err
    assert stored["headline"]["coverage"] == 100
    assert stored["data"] == "sets/dev, 2 concept sets" and stored["settings"]["any_order"] is True
    texts = list(read_lines(path.with_name("commongen.outputs.txt.xz")))
    assert any(contains_in_order(texts[1], [word], ignore_case=True) for word in ("leaf", "leaves")) and len(texts) == 2


def test_a_missing_table_is_told_in_one_line(benchmark, model_folder, data, monkeypatch):
    from importlib.metadata import PackageNotFoundError

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("benchmarks.commongen.distribution", missing)
    ended = benchmark("commongen", model_folder, "--data", data, "--split", "dev")
    assert ended.code == 1 and len(ended.err.splitlines()) == 1 and "insnet[commongen]" in ended.err
