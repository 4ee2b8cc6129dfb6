"""`insnet generate --input`: every line gets its texts, whatever happens on the way."""

import json
import shutil
import time

import pytest

from insnet.cli.resumable import resumable_file
from insnet.text.words import contains_in_order

LISTS = [["captain", "ship"], ["new york", "pizza"], [], ["baker", "bread", "market"], ["rope"]]


@pytest.fixture
def keywords(tmp_path):
    path = tmp_path / "keywords.txt"
    path.write_text("captain ship\nnew york\tpizza\n\nbaker bread market\nrope\n")
    return path


def test_every_line_gets_its_text_in_order(insnet, keywords, tmp_path):
    output = tmp_path / "deep" / "out.jsonl"
    ended = insnet("generate", "--input", keywords, "--output", output, "--batch-size", 2, "--seed", 1)
    results = [json.loads(line) for line in output.read_text().splitlines()]
    assert (ended.code, ended.out) == (0, "")
    assert [result["keywords"] for result in results] == LISTS
    assert all(contains_in_order(result["text"], result["keywords"]) for result in results)


@pytest.mark.parametrize("ending", ["txt", "jsonl"])
def test_a_blank_line_stays_blank(insnet, tmp_path, ending):
    keywords, output = tmp_path / "keywords.txt", tmp_path / f"out.{ending}"
    keywords.write_text("\ncaptain\n  \n\t\nship\n\n")
    command = ["generate", "--input", keywords, "-n", 2, "--seed", 1, "--batch-size", 2]
    ended = insnet(*command, "--output", output)
    assert (ended.code, ended.err) == (0, "")
    lines = output.read_text().splitlines()
    texts = lines if ending == "txt" else [json.loads(line)["text"] for line in lines]
    assert [bool(text) for text in texts] == [False, False, True, True, *[False] * 4, True, True, False, False]
    assert insnet(*command).out.splitlines() == texts
    if ending == "jsonl":
        first, third = json.loads(lines[0]), json.loads(lines[2])
        assert (first["keywords"], first["tokens"], list(first)) == ([], 0, list(third))
    output.write_text("".join(f"{line}\n" for line in lines[:5]))  # cut: going on counts no blank line as refused
    assert insnet(*command, "--output", output).code == 0
    assert output.read_text().splitlines() == lines


def test_a_line_gets_the_text_it_would_get_alone(insnet, keywords, tmp_path):
    output = tmp_path / "out.txt"
    insnet("generate", "--input", keywords, "--output", output, "--seed", 4)
    assert output.read_text().splitlines()[0] + "\n" == insnet("generate", "captain", "ship", "--seed", 4).out


def test_a_starred_keyword_of_a_line_takes_any_form(insnet, tmp_path):
    (tmp_path / "keywords.txt").write_text("dog* ship\nice cream*\tship*\n")
    results = insnet("generate", "--input", tmp_path / "keywords.txt", "-n", 3, "--seed", 1, "--json").json_lines()
    assert all(contains_in_order(result["text"], result["keywords"]) for result in results)
    assert all(result["keywords"][0] in ("dog", "dogs") for result in results[:3])
    assert all(result["keywords"][0] in ("ice cream", "ice creams") for result in results[3:])
    assert len(results) == 6


def test_samples_of_a_line_stand_together(insnet, keywords, tmp_path):
    output = tmp_path / "out.jsonl"
    insnet("generate", "--input", keywords, "--output", output, "-n", 2, "--seed", 1)
    found = [json.loads(line)["keywords"] for line in output.read_text().splitlines()]
    assert found == [keywords for keywords in LISTS for _ in range(2)]


def test_without_an_output_file_results_are_printed(insnet, keywords):
    ended = insnet("generate", "--input", keywords, "--seed", 1, "--json", "--trace")
    assert [result["keywords"] for result in ended.json_lines()] == LISTS
    assert all("trace" in result for result in ended.json_lines())


def test_a_line_that_cannot_be_taken_costs_no_other_line(insnet, tmp_path):
    keywords, output, good = tmp_path / "keywords.txt", tmp_path / "out.jsonl", tmp_path / "good.jsonl"
    keywords.write_text("captain\nbad\x01word\tship\nrope\n")
    ended = insnet("generate", "--input", keywords, "--output", output, "--seed", 1)
    first, refused, last = [json.loads(line) for line in output.read_text().splitlines()]
    assert ended.code == 1
    assert ended.err.splitlines()[-1].startswith("error: 1 of 3 lines could not be taken")
    assert list(refused) == ["keywords", "error"]
    assert "control character" in refused["error"]
    keywords.write_text("captain\nrope\n")
    assert insnet("generate", "--input", keywords, "--output", good, "--seed", 1).code == 0
    assert [first["text"], last["text"]] == [json.loads(line)["text"] for line in good.read_text().splitlines()]


def test_rejected_words_cost_only_the_lines_that_require_them(insnet, keywords, tmp_path):
    words, output, free = tmp_path / "words.txt", tmp_path / "out.txt", tmp_path / "free.txt"
    insnet("generate", "--input", keywords, "--output", free, "--seed", 1)
    first = free.read_text().splitlines()
    words.write_text(f"pizza\n{first[0].split()[0]}\n")
    ended = insnet("generate", "--input", keywords, "--output", output, "--seed", 1, "--reject", words)
    lines = output.read_text().splitlines()
    assert ended.err.splitlines()[-1].startswith("error: 1 of 5 lines could not be taken")
    assert "line 2: 'pizza' is both required and refused" in ended.err
    assert lines[1] == ""
    assert lines[0] != first[0]
    assert first[0].split()[0] not in lines[0].split()
    other = insnet("generate", "--input", keywords, "--output", output, "--seed", 1)
    assert "another reject;" in other.err


def test_a_refused_line_is_still_counted_when_nothing_is_left_to_do(insnet, tmp_path):
    keywords, output = tmp_path / "keywords.txt", tmp_path / "out.txt"
    keywords.write_text("captain\nbad\x01word\tship\n")
    first = insnet("generate", "--input", keywords, "--output", output)
    again = insnet("generate", "--input", keywords, "--output", output)
    assert first.code == again.code == 1
    assert first.err.splitlines()[-1] == again.err.splitlines()[-1]
    assert output.read_text().splitlines()[1] == ""


@pytest.mark.parametrize("kept", [0, 1, 70, 100, 400, 10_000])
def test_a_file_cut_anywhere_is_completed_to_the_same_file(insnet, keywords, tmp_path, kept):
    output = tmp_path / "out.jsonl"
    command = ["generate", "--input", keywords, "--output", output, "--batch-size", 2]
    insnet(*command)  # no seed: going on must use the one that was drawn
    whole = output.read_bytes()
    output.write_bytes(whole[:kept])
    ended = insnet(*command) if kept else insnet(*command, "--seed", json.loads(whole.splitlines()[0])["seed"])
    assert ended.code == 0
    assert output.read_bytes() == whole


def test_a_killed_run_goes_on_where_it_was(insnet, start_insnet, model_folder, tmp_path):
    keywords, output, whole = tmp_path / "keywords.txt", tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    keywords.write_text("".join(f"captain {number} ship\n" for number in range(200)))
    model = shutil.copytree(model_folder, tmp_path / "model")  # not on the shelf, which the other process has not
    options = ["--batch-size", 4, "--seed", 3, "--model", model]
    process = start_insnet("generate", "--input", keywords, "--output", output, *options)
    deadline = time.monotonic() + 60
    while not (output.exists() and output.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    done = output.read_bytes().count(b"\n")
    assert 0 < done < 200
    assert insnet("generate", "--input", keywords, "--output", output, *options).code == 0
    assert insnet("generate", "--input", keywords, "--output", whole, *options).code == 0
    assert output.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("options", "named"), [(["--top-k", 3], "top_k"), (["--seed", 2], "seed"), (["-n", 2], "samples")]
)
def test_a_file_begun_otherwise_is_refused_and_left_alone(insnet, keywords, tmp_path, options, named):
    output = tmp_path / "out.jsonl"
    insnet("generate", "--input", keywords, "--output", output, "--seed", 1)
    before = output.read_bytes()
    ended = insnet(
        "generate", "--input", keywords, "--output", output, *(options if named == "seed" else ["--seed", 1, *options])
    )
    assert ended.code == 1
    assert f"another {named};" in ended.err
    assert output.read_bytes() == before


def test_another_input_is_refused_unless_one_starts_anew(insnet, keywords, tmp_path):
    output = tmp_path / "out.txt"
    insnet("generate", "--input", keywords, "--output", output, "--seed", 1)
    keywords.write_text("captain\n")
    assert insnet("generate", "--input", keywords, "--output", output, "--seed", 1).code == 1
    assert insnet("generate", "--input", keywords, "--output", output, "--seed", 1, "--overwrite").code == 0
    assert len(output.read_text().splitlines()) == 1


def test_a_file_of_another_origin_is_never_touched(insnet, keywords, tmp_path):
    output = tmp_path / "precious.txt"
    output.write_text("mine\n")
    ended = insnet("generate", "--input", keywords, "--output", output)
    assert ended.code == 1
    assert "--overwrite" in ended.err
    assert output.read_text() == "mine\n"


def test_two_processes_never_write_the_same_file(insnet, keywords, tmp_path):
    output = tmp_path / "out.jsonl"
    options = {"drawn": {}, "lines": 5, "lines_a_chunk": 2, "overwrite": False}
    with resumable_file(output, {"seed": 1}, **options) as other:
        other.append("{}\n")
        ended = insnet("generate", "--input", keywords, "--output", output, "--overwrite")
    assert ended.code == 1
    assert "another process is writing" in ended.err
    assert output.read_text() == "{}\n"


def test_a_setting_that_is_refused_destroys_nothing(insnet, keywords, tmp_path):
    output = tmp_path / "out.jsonl"
    insnet("generate", "--input", keywords, "--output", output)
    before = output.read_bytes()
    ended = insnet("generate", "--input", keywords, "--output", output, "--overwrite", "--temperature", 0)
    assert (ended.code, output.read_bytes()) == (1, before)


def test_a_file_is_not_written_over_its_own_input(insnet, keywords):
    before = keywords.read_bytes()
    assert insnet("generate", "--input", keywords, "--output", keywords, "--overwrite").code == 2
    assert keywords.read_bytes() == before
