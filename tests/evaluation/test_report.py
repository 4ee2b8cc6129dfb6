"""A report holds what the parts measure, and its two files are whole."""

import dataclasses
import json
import lzma
import math
import os

import pytest

import insnet.evaluation.report as report_module
from insnet import files
from insnet.evaluation.bleu import bleu
from insnet.evaluation.diversity import distinct, self_bleu
from insnet.evaluation.files import json_text
from insnet.evaluation.judge import Judged
from insnet.evaluation.nist import nist
from insnet.evaluation.report import HEADLINE, Report, headline, score_texts, write_figures, write_report

# NIST-2 and NIST-4 differ ("up the" goes on in two ways), and so do the bigrams of first and last references.
OUTPUTS = ["the dog ran up the green hill", "We had good pizza by the sea", ""]
REFERENCES = [
    ["the dog the dog ran up the green hill", "up the road"],
    "we had a good dinner by the sea",
    ["nobody came"],
]
KEYWORDS = [["dog", "hill"], ["pizza", "good"], ["nobody"]]


@pytest.fixture
def report():
    return score_texts(
        OUTPUTS, REFERENCES, KEYWORDS, steps=[7, 7, 1], finished=[True, True, False], model="m", data="d", split="test"
    )


def test_fields_have_the_public_names():
    promised = "model data split sentences bleu2 bleu4 nist2 nist4 coverage length_ratio distinct1 distinct2 steps seed"
    ours = "signature self_bleu all_in_order finished mean_words distinct2_reference distinct2_ratio"
    judged = "judge_ppl judge_ppl_reference judge_nats_per_word judge_nats_per_word_reference"
    read = "loops keyword_lists complete_parses"
    names = {*promised.split(), *ours.split(), *judged.split(), *read.split()}
    assert {field.name for field in dataclasses.fields(Report)} == names


def test_every_score_is_what_its_part_measures(report):
    assert report.nist2 != report.nist4 and report.bleu2 != report.bleu4
    assert report.distinct2_reference < 1
    first_references = ["the dog the dog ran up the green hill", "we had a good dinner by the sea", "nobody came"]
    assert report == Report(
        model="m",
        data="d",
        split="test",
        sentences=3,
        bleu2=bleu(OUTPUTS, REFERENCES, order=2).score,
        bleu4=bleu(OUTPUTS, REFERENCES, order=4).score,
        nist2=nist(OUTPUTS, REFERENCES, order=2),
        nist4=nist(OUTPUTS, REFERENCES, order=4),
        coverage=4 / 5,
        all_in_order=1 / 3,
        length_ratio=14 / (6 + 8 + 2),
        mean_words=14 / 3,
        distinct1=12 / 14,
        distinct2=distinct(OUTPUTS, 2),
        distinct2_reference=distinct(first_references, 2),
        distinct2_ratio=distinct(OUTPUTS, 2) / distinct(first_references, 2),
        self_bleu=self_bleu(OUTPUTS),
        loops=0.0,
        keyword_lists=0.0,
        steps=5.0,
        finished=2 / 3,
        seed=0,
        signature=bleu(OUTPUTS, REFERENCES).signature + "|nist:13a",
    )


def test_without_keywords_or_company_there_is_no_score_for_them():
    report = score_texts(["a b"], ["a"], None, steps=[2])
    assert (report.coverage, report.all_in_order, report.self_bleu, report.finished) == (None, None, None, None)
    assert (report.distinct2_ratio, report.judge_ppl, report.judge_nats_per_word_reference) == (None, None, None)
    assert json.loads(json_text(dataclasses.asdict(report)))["coverage"] is None


class LetterJudge:
    """To whom every letter is a token and half as likely as could be."""

    name = "letters"

    def perplexity(self, texts):
        tokens = sum(map(len, texts))
        return Judged(len(texts), tokens, sum(len(text.split()) for text in texts), tokens * math.log(2) + 1)


def test_the_judge_reads_outputs_and_first_references(report):
    judged = score_texts(OUTPUTS, REFERENCES, KEYWORDS, steps=[7, 7, 1], judge=LetterJudge())
    letters, reference_letters = 29 + 28, 37 + 31 + 11
    assert judged.judge_ppl == pytest.approx(2 * math.exp(1 / letters))
    assert judged.judge_ppl_reference == pytest.approx(2 * math.exp(1 / reference_letters))
    assert judged.judge_nats_per_word == pytest.approx((letters * math.log(2) + 1) / 14)
    assert judged.judge_nats_per_word_reference == pytest.approx((reference_letters * math.log(2) + 1) / 19)
    assert judged.signature == f"{report.signature}|judge:letters"


def test_case_counts_everywhere_or_nowhere():
    exact = score_texts(["a B c d"], ["a b c d"], [["b"]], steps=[4], lower_case=False)
    folded = score_texts(["a B c d"], ["a b c d"], [["b"]], steps=[4])
    assert (exact.coverage, exact.all_in_order) == (0, 0)
    assert (folded.coverage, folded.all_in_order) == (1, 1)
    assert exact.bleu2 < folded.bleu2 and exact.nist2 < folded.nist2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outputs": []}, "no text to score"),
        ({"outputs": OUTPUTS[:2]}, "2 outputs but 3 references"),
        ({"keywords": KEYWORDS[:1]}, "3 outputs but 1 keyword lists"),
        ({"steps": [1]}, "3 outputs but 1 step counts"),
        ({"finished": [True]}, "3 outputs but 1 finished marks"),
    ],
)
def test_a_mistake_is_named(change, message):
    arguments = {"outputs": OUTPUTS, "references": REFERENCES, "keywords": KEYWORDS, "steps": [1, 1, 1], **change}
    with pytest.raises(ValueError, match=message):
        score_texts(**arguments)


def test_report_and_outputs_lie_side_by_side(report, tmp_path):
    path = write_report(report, OUTPUTS, tmp_path / "new" / "yelp.v2.json")
    assert path == tmp_path / "new" / "yelp.v2.json"
    assert json.loads(path.read_text(encoding="utf-8")) == dataclasses.asdict(report)
    assert (tmp_path / "new" / "yelp.v2.outputs.txt").read_text(encoding="utf-8") == "\n".join(OUTPUTS) + "\n"
    assert len(list(path.parent.iterdir())) == 2


def test_a_folder_gets_report_json(report, tmp_path):
    assert write_report(report, OUTPUTS, str(tmp_path)) == tmp_path / "report.json"
    assert (tmp_path / "report.outputs.txt").exists()


def test_an_output_with_line_breaks_stays_one_line_and_keeps_its_score(tmp_path):
    outputs = ["the dog\nran\u2028up the hill", "so it is"]
    report = score_texts(outputs, ["the dog ran up a hill", "so it was"], None, steps=[1, 1])
    path = write_report(report, outputs, tmp_path)
    lines = path.with_name("report.outputs.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert lines == ["the dog ran up the hill", "so it is"]
    assert score_texts(lines, ["the dog ran up a hill", "so it was"], None, steps=[1, 1]) == report


def test_outputs_of_another_report_are_refused(report, tmp_path):
    with pytest.raises(ValueError, match="1 outputs but a report on 3"):
        write_report(report, ["a"], tmp_path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    files.write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        files.write_atomically(path, "x" * 100_000 + "\ud800")

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        files.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def several_seeds(report):
    """The same report of two seeds, with different scores, and the second without coverage."""
    first = dataclasses.replace(report, seed=3, bleu2=10.0, judge_ppl=50.0, judge_ppl_reference=20.0)
    return [first, dataclasses.replace(first, seed=5, bleu2=20.0, judge_ppl=60.0, coverage=None)]


def test_figures_are_means_of_what_every_seed_has(report):
    figures = headline(several_seeds(report))
    assert (figures["bleu2"], figures["judge_ppl"], figures["judge_ppl_reference"]) == (15, 55, 20)
    assert list(headline([report])) == [name for name in HEADLINE if not name.startswith(("judge", "complete"))]
    assert list(figures) == [name for name in HEADLINE if name not in ("coverage", "complete_parses")]


def test_a_results_file_holds_every_seed_and_no_reference(report, tmp_path):
    settings = {"top_k": 5, "stopping": "counted"}
    path = write_figures(
        tmp_path / "q.json", several_seeds(report), OUTPUTS, command="insnet evaluate m", settings=settings
    )
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["seeds"] == [3, 5] and found["data"] == "d" and found["headline"]["bleu2"] == 15
    assert (found["model"], found["split"], found["sentences"], found["settings"]) == ("m", "test", 3, settings)
    assert [(each["seed"], each["bleu2"], each["coverage"]) for each in found["per_seed"]] == [
        (3, 10, 0.8),
        (5, 20, None),
    ]
    assert lzma.decompress((tmp_path / "q.outputs.txt.xz").read_bytes()).decode() == "\n".join(OUTPUTS) + "\n"
    written = (tmp_path / "q.json").read_text(encoding="utf-8") + "\n".join(OUTPUTS)
    assert "good pizza" in written and "good dinner" not in written and "nobody" not in written


def test_loops_lists_and_parses_are_shares_of_the_outputs(monkeypatch):
    asked = []
    monkeypatch.setattr(report_module, "complete_parses", lambda texts: asked.append(list(texts)) or 0.25)
    texts = ["the end of the day is the end of the day", "A cat, a dog and cat, dog, mouse."]
    words = [["end", "day"], ["cat", "dog", "mouse"]]
    report = score_texts(texts, texts, words, steps=[1, 1], parse=True)
    assert (report.loops, report.keyword_lists, report.complete_parses, asked) == (0.5, 0.5, 0.25, [texts])
    assert headline([report])["complete_parses"] == 0.25
