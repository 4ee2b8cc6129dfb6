"""Blind readings: the sheet gives nothing away, the key gives every text back, and readers' verdicts are averaged."""

import json

import pytest

from scripts.reading import BEFORE, Entry, Verdict, agreement, figures, make_sheet, read_verdicts, score

LISTS = "coffee rain\ndog park\nNew York\ttea\n"
OURS = "Coffee helps when it rains.\nThe dog is in the park.\nShe had tea in New York.\n"
THEIRS = "Coffee rain coffee.\n\nTea is New York.\n"
SCORED = (
    "keywords\ttext\tgrammar\tsense\tcomplete\tusable\tsystem\ncat\tA cat.\t5\t5\ty\ty\tx\ncat\tCat a.\t1\t1\ty\tn\ty\n"
)


@pytest.fixture
def folder(tmp_path):
    for name, text in (("lists.txt", LISTS), ("ours.txt", OURS), ("theirs.txt", THEIRS), ("scored.tsv", SCORED)):
        (tmp_path / name).write_text(text)
    systems = {"ours": tmp_path / "ours.txt", "theirs": tmp_path / "theirs.txt"}
    make_sheet(tmp_path / "reading", tmp_path / "lists.txt", systems, tmp_path / "scored.tsv")
    return tmp_path / "reading"


def fill_in(folder, name, verdict_of_system):
    entries = json.loads((folder / "key.json").read_text())["entries"]
    path = folder / name
    path.write_text("".join(f"{e['number']}\t{verdict_of_system[e['system']]}\n" for e in entries))
    return path


def test_a_sheet_holds_every_text_once_and_no_system(folder):
    lines = (folder / "sheet.tsv").read_text().splitlines()
    texts = sorted(line.split("\t")[2] for line in lines[1:])
    assert texts == sorted([*OURS.splitlines(), *filter(None, THEIRS.splitlines()), "A cat.", "Cat a."])
    assert not any(name in "\n".join(lines) for name in ("ours", "theirs", BEFORE))
    assert [line.split("\t")[0] for line in lines[1:]] == [str(number) for number in range(1, 8)]
    systems = [entry["system"] for entry in json.loads((folder / "key.json").read_text())["entries"]]
    assert systems != sorted(systems)


def test_figures_are_means_over_texts_and_readers(folder, tmp_path):
    first = fill_in(folder, "a.tsv", {"ours": "5\t4\ty\ty", "theirs": "3\t1\ty\tn", BEFORE: "5\t5\ty\ty"})
    second = fill_in(folder, "b.tsv", {"ours": "4\t4\ty\tn", "theirs": "2\t1\tn\tn", BEFORE: "5\t5\ty\ty"})
    found = score(folder, [first, second], tmp_path / "r.json", {"both": ["ours", "theirs"]})
    assert found["systems"]["ours"] == {"grammar": 4.5, "sense": 4, "complete": 1, "usable": 0.5, "texts": 3}
    assert found["systems"]["theirs"] == {"grammar": 2.5, "sense": 1, "complete": 0.5, "usable": 0, "texts": 2}
    assert found["agreement"] == pytest.approx(4 / 7)
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["headline"]["usable_ours"] == written["headline"]["usable_of_both"] == 0.5
    assert len(written["texts"]) == 5 and "A cat." not in json.dumps(written)


def test_one_reader_agrees_with_nobody():
    entries = [Entry(1, "a", "cat", "A cat.")]
    verdicts = [{1: Verdict(5, 5, True, True)}]
    assert agreement(entries, verdicts) is None
    assert figures(entries, verdicts)["a"]["usable"] == 1


@pytest.mark.parametrize("line", ["1\t6\t4\ty\ty", "1\t5\t4\tyes\ty", "1\t5\t4", "1\tx\t4\ty\tn"])
def test_a_verdict_that_is_none_is_refused_by_its_line(tmp_path, line):
    (tmp_path / "r.tsv").write_text(f"number\tgrammar\n{line}\n")
    with pytest.raises(ValueError, match="line 2: expected number"):
        read_verdicts(tmp_path / "r.tsv", [Entry(1, "a", "cat", "A cat.")])


def test_a_text_without_a_verdict_is_named(folder, tmp_path):
    (tmp_path / "r.tsv").write_text("1\t5\t5\ty\ty\n3\t5\t5\ty\ty\n")
    with pytest.raises(ValueError, match="no verdict on 5 texts, the first of them number 2"):
        score(folder, [tmp_path / "r.tsv"], tmp_path / "r.json")


def test_a_system_with_too_few_texts_is_refused(tmp_path):
    (tmp_path / "lists.txt").write_text(LISTS)
    (tmp_path / "one.txt").write_text("A text.\n")
    with pytest.raises(ValueError, match="one has 1 texts for 3 keyword lists"):
        make_sheet(tmp_path, tmp_path / "lists.txt", {"one": tmp_path / "one.txt"}, None)
