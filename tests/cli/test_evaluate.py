"""`insnet evaluate` and insnet.evaluation.task: the same texts and scores on every path."""

import json
from dataclasses import asdict

import pytest
from small_judge import save_small_judge

from insnet.evaluation.judge import load_judge
from insnet.evaluation.report import score_texts
from insnet.evaluation.task import evaluate_task, read_task
from insnet.shelf import load
from insnet.text.corpus import read_lines
from insnet.text.words import contains_in_order
from insnet.tour import write_corpus

PROMISED = [
    "model", "data", "split", "sentences", "bleu2", "bleu4", "nist2", "nist4", "coverage", "length_ratio",
    "distinct1", "distinct2", "steps", "seed", "signature",
]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "tour"
    write_corpus(folder, train=30, valid=6, test=6)
    return folder


def test_json_holds_what_is_promised(insnet, data):
    [report] = insnet("evaluate", "tiny", "--data", data, "--limit", 4, "--seed", 3, "--json").json_lines()
    assert [name for name in report if name in PROMISED] == PROMISED
    assert [report[name] for name in ("model", "data", "split", "sentences", "seed")] == ["tiny", "tour", "test", 4, 3]
    assert report["coverage"] == 1.0


def test_the_files_hold_the_report_and_the_texts_it_scores(insnet, data, tmp_path):
    [report] = insnet("evaluate", "tiny", "--data", data, "--output", tmp_path, "--json").json_lines()
    assert json.loads((tmp_path / "report.json").read_text()) == report
    outputs = (tmp_path / "report.outputs.txt").read_text().splitlines()
    task = read_task(data, "test")
    again = score_texts(outputs, task.references, task.keywords, steps=[1] * len(outputs))
    assert again.bleu4 == pytest.approx(report["bleu4"])
    assert again.coverage == report["coverage"]


def test_the_table_names_every_score(insnet, data):
    out = insnet("evaluate", "tiny", "--data", data, "--limit", 2).out
    assert "tiny on tour/test, 2 sentences, seed 0" in out
    assert all(name in out for name in ("bleu2", "nist4", "coverage", "length ratio"))


def test_several_seeds_give_means_in_a_results_file(insnet, data, tmp_path):
    path = tmp_path / "quality.json"
    files = ("--result", path, "--output", tmp_path)
    four, two = insnet(
        "evaluate", "tiny", "--data", data, "--seeds", "4,2", "--top-k", 3, *files, "--json"
    ).json_lines()
    assert (four["seed"], two["seed"]) == (4, 2) and four["bleu2"] != two["bleu2"]
    [alone] = insnet("evaluate", "tiny", "--data", data, "--seed", 2, "--top-k", 3, "--json").json_lines()
    assert alone == two
    found = json.loads(path.read_text())
    assert found["seeds"] == [4, 2] and [each["seed"] for each in found["per_seed"]] == [4, 2]
    assert found["headline"]["bleu2"] == pytest.approx((four["bleu2"] + two["bleu2"]) / 2)
    assert found["settings"]["top_k"] == 3 and found["settings"]["rehearsals"] == 2  # the option's and the model's own
    assert found["command"].startswith("insnet evaluate tiny") and "judge_ppl" not in found["headline"]
    first = "".join(f"{line}\n" for line in read_lines(tmp_path / "quality.outputs.txt.xz"))
    assert first == (tmp_path / "seed_4" / "report.outputs.txt").read_text()
    assert first != (tmp_path / "seed_2" / "report.outputs.txt").read_text()


def test_a_judge_adds_the_perplexity_of_outputs_and_references(insnet, data, tmp_path):
    pytest.importorskip("transformers")
    folder = save_small_judge(tmp_path / "llama", positions=2048)
    path = tmp_path / "quality.json"
    out = insnet("evaluate", "tiny", "--data", data, "--seeds", "0,1", "--judge-folder", folder, "--result", path).out
    found = json.loads(path.read_text())
    judge, outputs = load_judge(folder, device="cpu"), list(read_lines(tmp_path / "quality.outputs.txt.xz"))
    assert found["per_seed"][0]["judge_ppl"] == pytest.approx(judge.perplexity(outputs).perplexity)
    of_references = judge.perplexity(read_task(data, "test").references).perplexity
    assert found["headline"]["judge_ppl_reference"] == pytest.approx(of_references)
    assert found["signature"].endswith("|judge:llama")
    assert "tiny on tour/test, 6 sentences, seeds 0, 1" in out and "judge ppl reference" in out
    assert out.splitlines()[1].split() == ["score", "mean", "seed", "0", "seed", "1"]


def test_seeds_that_are_no_numbers_are_named(insnet, data):
    ended = insnet("evaluate", "tiny", "--data", data, "--seeds", "0-2")
    assert ended.code == 2 and "cannot read '0-2'" in ended.err


def test_batch_size_changes_nothing(model_folder, data):
    model = load(model_folder, device="cpu")
    one, _ = evaluate_task(model, read_task(data, "valid"), batch_size=1)
    all_at_once, _ = evaluate_task(model, read_task(data, "valid"), batch_size=64)
    assert asdict(one) == asdict(all_at_once)


def test_keywords_come_from_the_file_beside_the_split(data):
    task = read_task(data, "valid", limit=3)
    lines = (data / "valid.keywords.txt").read_text().splitlines()[:3]
    assert task.keywords == [line.split("\t") for line in lines]
    assert task.references == (data / "valid.txt").read_text().splitlines()[:3]


def test_without_a_keywords_file_they_are_drawn_from_the_sentence(data):
    task = read_task(data, "train", limit=8, keywords_per_line=3)
    assert all(1 <= len(keywords) <= 3 for keywords in task.keywords)
    for reference, keywords in zip(task.references, task.keywords, strict=True):
        assert contains_in_order(reference, keywords)
    assert read_task(data, "train", limit=2, keywords_per_line=3).keywords == task.keywords[:2]


def test_a_keywords_file_that_is_not_parallel_is_refused(tmp_path):
    (tmp_path / "test.txt").write_text("a b\nc d\n")
    (tmp_path / "test.keywords.txt").write_text("a\n")
    with pytest.raises(ValueError, match=r"test\.keywords has 1 lines and test has 2"):
        read_task(tmp_path, "test")
