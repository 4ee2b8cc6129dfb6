"""`insnet edit`, as its user sees it."""

import json
import re
import subprocess
import sys

import pytest

TEXT = "The captain sails the ship today."


def test_without_edits_the_words_are_shown_with_their_numbers(insnet):
    shown = insnet("edit", TEXT)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines() == [TEXT, "1 The  2 captain  3 sails  4 the  5 ship  6 today  7 ."]
    long = insnet("edit", " ".join(["word"] * 40)).out.splitlines()
    assert len(long) > 3 and all(len(line) <= 100 for line in long[1:])
    assert re.findall(r"\d+ word", " ".join(long[1:])) == [f"{number} word" for number in range(1, 41)]


def test_edits_are_shown_before_anything_is_written(insnet):
    edits = ("--lock", "1-2", "--delete", "3", "--drop", "4,6", "--open", "0", "--ban", "ship", "--show")
    assert insnet("edit", TEXT, *edits).out.splitlines() == [
        "___ The captain ___.",
        "___  1 [The]  2 [captain]  ___  3 .",
    ]
    assert insnet("edit", "The ___ sails.", "--close", "1", "--show").out.splitlines()[0] == "The sails."
    assert insnet("edit", TEXT, "--delete", "7", "--show").out.splitlines()[1].endswith("6 today  (___)")


def test_showing_needs_no_model(shelf):
    """Neither does it take the time to load what computes."""
    code = (
        "import sys\n"
        f"sys.argv = ['insnet', 'edit', {TEXT!r}, '--delete', '2', '--show']\n"
        "from insnet.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    assert 'torch' not in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).returncode == 0


def test_a_deleted_word_is_written_anew_and_all_else_stays(insnet):
    texts = insnet("edit", TEXT, "--delete", 3, "-n", 3, "--seed", 1).out.splitlines()
    assert len(set(texts)) == 3
    assert all(re.fullmatch(r"The captain .*\w.* the ship today\.", text) for text in texts)
    opened = insnet("edit", TEXT, "--open", 2, "--seed", 1, "--length", 9).out.strip()
    assert re.fullmatch(r"The captain .*\w.* sails the ship today\.", opened) and len(opened.split()) == 9


def test_locked_words_stay_and_the_rest_is_written_anew(insnet):
    for options in (["--lock", "2,4-5"], ["--lock", "2,4-5", "--rewrite"]):
        text = insnet("edit", TEXT, *options, "--seed", 1).out.strip()
        assert re.fullmatch(r".*\w.* captain .*\w.* the ship .*\w.*", text) and not text.endswith(
            "sails the ship today."
        )
    both = insnet("edit", TEXT, "--lock", "2,4-5", "--delete", 3, "--seed", 1).out.strip()
    assert re.fullmatch(r"The captain .*\w.* the ship today\.", both), "where a word was deleted, only that is written"
    assert insnet("edit", TEXT, "--rewrite", "--seed", 1).out != TEXT


def test_an_edit_goes_on_from_json(insnet, tmp_path, monkeypatch):
    [first] = insnet("edit", TEXT, "--lock", 2, "--ban", "today", "--delete", 3, "--seed", 1, "--json").json_lines()
    assert list(first)[-1] == "draft" and first["text"] != TEXT and first["draft"]["banned"] == ["today"]
    (tmp_path / "draft.json").write_text(json.dumps(first) + "\n")
    assert insnet("edit", "--input", tmp_path / "draft.json").out.splitlines()[0] == first["text"]
    again = insnet("edit", "--input", tmp_path / "draft.json", "--rewrite", "--seed", 2, "--json", "--trace")
    [second] = again.json_lines()
    assert " captain" in second["text"] and "today" not in second["text"] and second["text"] != first["text"]
    assert second["trace"][-1]["text"] == second["text"]
    (tmp_path / "draft.json").write_text(json.dumps(second["draft"]))
    assert insnet("edit", "--input", tmp_path / "draft.json").out.splitlines()[0] == second["text"]


def test_a_generated_text_can_be_edited(insnet, tmp_path):
    for command in (["generate", "captain", "new york"], ["infill", "A ___ sailed (___)."]):
        line = insnet(*command, "--seed", 1, "--json").out
        (tmp_path / "result.json").write_text(line)
        shown = insnet("edit", "--input", tmp_path / "result.json").out
        assert shown.splitlines()[0] == json.loads(line)["text"]
        locked = re.findall(r"\[(\S+)\]", shown)
        assert "".join(locked).lower() == "".join("".join(json.loads(line)["keywords"]).split()).lower()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([TEXT, "--lock", "8"], 1, "there is no 8 here: the numbers run from 1 to 7"),
        ([TEXT, "--lock", "0"], 1, "there is no 0 here"),
        ([TEXT, "--open", "8"], 1, "there is no 8 here: the numbers run from 0 to 7"),
        ([TEXT, "--delete", "5-3"], 1, "there is no 5-3 here"),
        ([TEXT, "--delete", "x"], 2, "cannot read the numbers 'x'"),
        ([TEXT, "--delete", ""], 2, "cannot read the numbers ''"),
        ([TEXT, "--lock", "2", "--delete", "2"], 1, "'captain' is locked and cannot be deleted; unlock it first"),
        ([TEXT, "--lock", "1-7"], 1, "every word of the draft is locked and no place is open"),
        ([TEXT, "--trace"], 2, "--trace is part of the JSON output"),
        ([], 2, "give a text or --input"),
        ([TEXT, "--input", "x"], 2, "give a text or --input"),
        (["--input", "nowhere"], 1, "nowhere: No such file"),
        (["a\x01b"], 1, "holds a control character"),
    ],
)
def test_mistakes_are_told_in_one_line(insnet, monkeypatch, arguments, code, said):
    monkeypatch.setenv("COLUMNS", "120")
    ended = insnet("edit", *arguments)
    assert (ended.code, ended.out) == (code, "") and said in ended.err
    assert code == 2 or len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds 0 lines; expected one"),
        ("{}\n{}\n", "holds 2 lines; expected one"),
        ("The ship", "this is no JSON"),
        ('{"text": "a"}', "this is no draft"),
        ('{"keywords": 1, "text": "a"}', "this is no result"),
        (
            '{"draft": {"format": "insnet draft", "version": 9}}',
            "the draft has version 9; this program reads version 1",
        ),
    ],
)
def test_a_file_that_holds_no_draft_is_told_in_one_line(insnet, tmp_path, content, said):
    (tmp_path / "draft.json").write_text(content)
    ended = insnet("edit", "--input", tmp_path / "draft.json")
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (1, "", 1) and said in ended.err


def test_a_word_both_kept_and_rejected_is_told(insnet, tmp_path):
    (tmp_path / "words.txt").write_text("captain\n")
    ended = insnet("edit", TEXT, "--delete", 3, "--reject", tmp_path / "words.txt")
    assert ended.code == 1 and "is both required and refused" in ended.err
    assert insnet("edit", TEXT, "--lock", 5, "--seed", 1, "--reject", tmp_path / "words.txt").code == 0
