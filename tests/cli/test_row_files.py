"""`--input` of `generate` and `infill`: CSV, JSON lines and standard input; what comes back, and what is told."""

import csv
import io
import json
import subprocess
import sys

import pytest

from insnet.text.words import contains_in_order

TABLE = 'id,Keywords,length,note\n1,captain ship,12:14,"a, ""b""\nc"\n2,new york\tpizza,,\n3,,,empty\n4,rope,9,d\n'


def table(path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def objects(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def write(insnet, tmp_path):
    """Writes an input file, works through it, and gives how that ended and where the output is."""

    def run(name, content, output="out.jsonl", command="generate", options=()):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        asked = [command, "--input", path, "--output", tmp_path / output, "--seed", 1, *options]
        return insnet(*asked), tmp_path / output

    return run


@pytest.fixture
def feed(insnet, monkeypatch):
    """Runs the program with something on standard input."""

    def run(content, *arguments):
        text = content if isinstance(content, bytes) else content.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return insnet(*arguments)

    return run


def test_a_table_comes_back_with_its_columns_and_a_text(write):
    ended, output = write("in.csv", TABLE, "out.csv")
    rows = table(output)
    assert (ended.code, ended.err) == (0, "")
    assert list(rows[0]) == ["id", "Keywords", "length", "note", "text"]
    assert [row["note"] for row in rows] == ['a, "b"\nc', "", "empty", "d"]
    assert contains_in_order(rows[0]["text"], ["captain", "ship"]) and 12 <= len(rows[0]["text"].split()) <= 14
    assert contains_in_order(rows[1]["text"], ["new york", "pizza"])
    assert rows[2]["text"] == "" and len(rows[3]["text"].split()) == 9


def test_keywords_may_have_a_column_each(write):
    ended, output = write("in.csv", "keyword1;name;Keyword 2\nnew york;x;pizza\n;y;rope\n", "out.csv")
    first, second = table(output)
    assert ended.code == 0
    assert list(first) == ["keyword1", "name", "Keyword 2", "text"] and first["name"] == "x"
    assert contains_in_order(first["text"], ["new york", "pizza"]) and contains_in_order(second["text"], ["rope"])


def test_objects_come_back_with_all_they_held(write):
    asked = [
        {"id": 7, "keywords": ["new york", "pizza"], "length": [12, 14], "tags": {"a": [1]}},
        {"keywords": "captain ship", "length": 9.0},
        {"keywords": ["rope"], "length": "8:"},
        {"keywords": [], "id": 8},
    ]
    ended, output = write("in.jsonl", "".join(json.dumps(row) + "\n" for row in asked) + "\n")
    results = objects(output)
    assert ended.code == 0 and len(results) == 5
    assert {name: results[0][name] for name in asked[0]} == asked[0]
    assert list(results[0])[:5] == ["id", "keywords", "length", "tags", "text"]
    assert [result["keywords"] for result in results] == [["new york", "pizza"], ["captain", "ship"], ["rope"], [], []]
    words = [len(result["text"].split()) for result in results]
    assert 12 <= words[0] <= 14 and words[1] == 9 and words[2] >= 8 and words[3:] == [0, 0]


@pytest.mark.parametrize("samples", [1, 2])
def test_a_row_gets_the_text_that_its_options_would_give_it_alone(write, insnet, samples):
    rows = [
        {"keywords": ["ship"], "length": "12:", "seed": 5},
        {"keywords": ["ship"], "seed": 6},
        {"keywords": ["rope"], "banned": ["the", "a"], "length": 7},
    ]
    _, output = write("in.jsonl", "\n".join(map(json.dumps, rows)), options=["-n", samples])
    alone = [
        insnet("generate", "ship", "--length", "12:", "--seed", 5, "-n", samples),
        insnet("generate", "ship", "--seed", 6, "-n", samples),
        insnet("generate", "rope", "--ban", "the", "--ban", "a", "--length", 7, "--seed", 1, "-n", samples),
    ]
    assert [result["text"] for result in objects(output)] == [text for one in alone for text in one.out.splitlines()]


def test_several_samples_of_a_row_are_rows_that_share_its_columns(write):
    _, output = write("in.csv", TABLE, "out.csv", options=["-n", 2])
    rows = table(output)
    assert [row["id"] for row in rows] == ["1", "1", "2", "2", "3", "3", "4", "4"]
    assert rows[0]["text"] != rows[1]["text"]


@pytest.mark.parametrize("name", ["in.txt", "in.jsonl"])
def test_any_input_can_become_a_table_that_can_be_read_again(write, name):
    lists = [["new york"], ["captain", "ship"], ["new york", "pizza"]]
    lines = ["new york\t", "captain ship", "new york\tpizza"]
    content = lines if name == "in.txt" else [json.dumps({"keywords": own}) for own in lists]
    _, first = write(name, "\n".join(content), "first.csv")
    assert [row["keywords"] for row in table(first)] == lines
    _, again = write("again.csv", first.read_text().replace(",text\n", ",before\n"), "again.jsonl")
    assert [result["keywords"] for result in objects(again)] == lists
    assert [result["before"] for result in objects(again)] == [result["text"] for result in objects(again)]


def test_blank_lines_stay_blank_in_every_kind_of_file(write):
    _, output = write("in.csv", "keywords\n\nrope\n\n", "out.csv")
    assert [bool(line) for line in output.read_text().splitlines()] == [True, False, True, False]
    _, output = write("in.jsonl", '\n{"keywords": ["rope"]}\n\n', "out.txt")
    assert [bool(line) for line in output.read_text().splitlines()] == [False, True, False]


@pytest.mark.parametrize("kept", [0, 5, 30, 60, 150, 10_000])
def test_a_table_cut_anywhere_is_completed_to_the_same_table(write, insnet, tmp_path, kept):
    ended, output = write("in.csv", TABLE + "\nx,bad\x01word,,\n", "out.csv", options=["--batch-size", 2])
    whole = output.read_bytes()
    output.write_bytes(whole[:kept])
    again, _ = write("in.csv", TABLE + "\nx,bad\x01word,,\n", "out.csv", options=["--batch-size", 2])
    assert output.read_bytes() == whole
    assert ended.code == again.code == 1
    assert again.err.splitlines()[-1] == ended.err.splitlines()[-1]
    assert ended.err.splitlines()[-1].startswith("error: 1 of 6 lines could not be taken")


def test_a_row_that_only_changed_in_a_kept_column_is_another_input(write):
    write("in.csv", TABLE, "out.csv")
    ended, _ = write("in.csv", TABLE.replace("empty", "full"), "out.csv")
    assert ended.code == 1 and "another input;" in ended.err


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('{"keywords": ["a"}', "is not JSON (Expecting ',' delimiter at character 18); expected one object"),
        ("[" * 100_000, "is not JSON ("),
        ('{"n": ' + "9" * 5000 + "}", "is not JSON ("),
        ('["a", "b"]', "['a', 'b'] is no object; expected one object per line"),
        ('{"words": ["a"]}', 'keywords is missing; expected an object like {"keywords"'),
        ('{"keywords": 7}', "keywords is 7; expected words"),
        ('{"keywords": ["a", 7]}', "keywords is ['a', 7]; expected words"),
        ('{"keywords": ["a", ""]}', "keyword 2 is empty"),
        ('{"keywords": ["a\\u0000"]}', "control character"),
        ('{"keywords": ["\\ud800"], "id": "\\ud800"}', "control character"),
        ('{"keywords": "a", "length": "many"}', "cannot read the length 'many'; expected 12:24"),
        ('{"keywords": "a", "length": true}', "length is True; expected words, like 15"),
        ('{"keywords": "a", "length": 9.5}', "length is 9.5; expected words, like 15"),
        ('{"keywords": "a", "length": [9, 5]}', "length is (9, 5); the fewest words are more than the most"),
        ('{"keywords": "a b c", "length": 2}', "3 words are required, but at most 2 allowed"),
        ('{"keywords": "a", "banned": {"b": 1}}', "banned is {'b': 1}; expected words"),
        ('{"keywords": "a", "ban": "a"}', "'a' is both required and banned"),
        ('{"keywords": "a", "seed": -1}', "seed is -1; expected a whole number"),
        ('{"keywords": "' + "word " * 20_000 + '"}', "tokens, more than 1024"),
    ],
    ids=lambda value: value[:40],
)
def test_a_row_that_cannot_be_taken_is_told_in_one_line_and_costs_no_other(write, row, told):
    good = '{"keywords": ["rope"], "id": 1}\n'
    ended, output = write("in.jsonl", f"{good}{row}\n{good}")
    first, refused, last = objects(output)
    [line, summary] = ended.err.splitlines()
    assert ended.code == 1 and first["text"] == last["text"] != ""
    assert line.startswith(f"{output.with_name('in.jsonl')}, line 2: ") and told in line
    assert told in refused["error"] and len(line) < 400
    assert summary.startswith("error: 1 of 3 lines could not be taken")


def test_half_a_character_comes_back_as_it_came(write, feed):
    row = '{"keywords": ["rope"], "id": "\\ud800"}\n'
    _, output = write("in.jsonl", row)
    assert objects(output)[0]["id"] == feed(row, "generate", "--input", "-", "--json").json_lines()[0]["id"] == "\ud800"


def test_a_row_with_too_many_cells_costs_no_other(write):
    ended, output = write("in.csv", "keywords,id\nrope,1\ncaptain, ship,2\nrope\n", "out.csv")
    assert [bool(row["text"]) for row in table(output)] == [True, False, True]
    assert "in.csv, line 3: 3 cells came, expected 2 as in the header" in ended.err


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("in.csv", b"", "begins with the columns nothing; expected a header with a column keywords"),
        ("in.csv", b"id,words\n1,a\n", "begins with the columns 'id', 'words'; expected a header"),
        ("in.csv", b"keywords,id, ID\na,1,2\n", "has two columns 'id'"),
        ("in.csv", b'keywords,id\na,1\nb,"2\nc,3\n', "line 3, is not CSV: a quotation mark is opened here"),
        ("in.csv", b"keywords\ra\rb\r", "line 1, is not CSV"),
        ("in.csv", "keywords\nrope\ncafé\n".encode("latin-1"), "line 3, is not UTF-8"),
        ("in.csv", "keywords\nrope\n".encode("utf-16"), "line 1, is not UTF-8"),
        ("in.csv", b"keywords,text\nrope,mine\n", "line 2: 'text' is where the result goes; rename that column"),
        ("in.jsonl", b'{"keywords": "a"}\n{"keywords": "b", "text": "mine"}\n', "line 2: 'text' is where the result"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_one_line_before_anything_is_written(write, name, content, told):
    ended, output = write(name, content, "out.csv")
    [line] = ended.err.splitlines()
    assert ended.code == 1 and not output.exists()
    assert line.startswith("error: ") and name in line and told in line


def test_marks_and_line_ends_of_other_systems_change_nothing(write):
    _, plain = write("in.csv", TABLE.replace("\nc", " c"), "plain.csv")
    _, other = write("in.csv", b"\xef\xbb\xbf" + TABLE.replace("\nc", " c").replace("\n", "\r\n").encode(), "other.csv")
    assert other.read_bytes() == plain.read_bytes()


def test_an_empty_file_has_an_empty_output(write):
    for name, output, content in (
        ("in.txt", "a.txt", ""),
        ("in.jsonl", "a.jsonl", ""),
        ("in.txt", "a.csv", "keywords,text\n"),
    ):
        ended, path = write(name, "", output)
        assert ended.code == 0 and path.read_text() == content


def test_a_cell_longer_than_a_reader_takes_unasked_is_kept(write):
    ended, output = write("in.csv", f"keywords,note\nrope,{'x' * 200_000}\n", "out.csv")
    csv.field_size_limit(300_000)
    [row] = table(output)
    assert ended.code == 0 and len(row["note"]) == 200_000 and "rope" in row["text"]


@pytest.mark.parametrize(
    "rows", ["captain ship\n\nnew york\tpizza\n", '{"keywords": ["captain"]}\n\n{"keywords": "rope"}\n']
)
def test_standard_input_gives_what_a_file_gives(feed, write, tmp_path, rows):
    _, output = write("in.jsonl" if rows[0] == "{" else "in.txt", rows, "out.txt")
    assert feed(rows, "generate", "--input", "-", "--seed", 1).out == output.read_text()
    assert feed(rows, "generate", "--input", "-", "--output", "-", "--seed", 1).out == output.read_text()
    command = ["generate", "--input", "-", "--output", tmp_path / "again.txt", "--seed", 1]
    assert feed(rows, *command).code == feed(rows, *command).code == 0
    assert (tmp_path / "again.txt").read_text() == output.read_text()
    assert "was begun with another input" in feed(rows + "rope\n", *command).err


def test_a_bad_line_of_standard_input_is_named_and_what_came_before_it_is_printed(feed):
    ended = feed(b"rope\nca\xff\n", "generate", "--input", "-", "--batch-size", 1)
    assert ended.code == 1 and "rope" in ended.out.lower()
    assert ended.err.startswith("error: standard input, line 2, is not UTF-8")
    ended = feed("rope\nbad\x01word\nrope\n", "generate", "--input", "-")
    assert [bool(line) for line in ended.out.splitlines()] == [True, False, True]
    assert "standard input, line 2: keyword 1" in ended.err and "error: 1 of 3 lines" in ended.err


def test_standard_input_is_answered_before_it_ends(start_insnet, model_folder):
    process = start_insnet(
        "generate", "--input", "-", "--batch-size", 1, "--model", model_folder, stdin=subprocess.PIPE
    )
    for word in ("captain", "ship"):
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
        assert contains_in_order(process.stdout.readline(), [word])


def test_texts_with_blanks_come_back_filled(write, insnet):
    texts = "The ___ sat on ___.\n\nA ship ___ .\n"
    ended, output = write("in.txt", texts, "out.txt", command="infill")
    first, blank, last = output.read_text().splitlines()
    assert (ended.code, blank) == (0, "")
    assert [first + "\n", last + "\n"] == [
        insnet("infill", text, "--seed", 1).out for text in ("The ___ sat on ___.", "A ship ___ .")
    ]


@pytest.mark.parametrize("name", ["text", "template"])
def test_a_table_of_texts_with_blanks_keeps_its_columns(write, name):
    ended, output = write("in.csv", f"id,{name},length\n1,The ___ sat.,8\n2,,\n", "out.csv", command="infill")
    first, second = table(output)
    assert ended.code == 0 and list(first) == ["id", "template", "length", "text"]
    assert first["template"] == "The ___ sat." and first["text"].startswith("The ") and first["text"].endswith(" sat.")
    assert len(first["text"].split()) == 8 and second["text"] == ""


def test_objects_with_blanks_are_filled_and_those_without_are_told(write):
    rows = '{"text": "The ___ sat.", "id": 1}\n{"text": "no blank"}\n{"text": 7}\n{"id": 2}\n'
    ended, output = write("in.jsonl", rows, command="infill", options=["--batch-size", 2])
    filled, *refused = objects(output)
    assert list(filled)[:2] == ["template", "id"] and filled["template"] == "The ___ sat." != filled["text"]
    for row, why in zip(refused, ["no blank in 'no blank'", "text is 7", "text is missing"], strict=True):
        assert why in row["error"]
    assert ended.code == 1 and "error: 3 of 4 lines could not be taken" in ended.err
    again, _ = write("in.jsonl", rows, command="infill", options=["--batch-size", 2])
    assert again.err.splitlines()[-1] == ended.err.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["infill", "The ___", "--input", "a.txt"],
        ["infill", "The ___", "--output", "a.txt"],
        ["infill", "--input", "a.txt", "--watch"],
        ["infill", "--input", "a.txt", "--output", "b.csv", "--trace"],
        ["generate", "--input", "a.txt", "--output", "b.csv", "--trace"],
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(insnet, arguments):
    assert insnet(*arguments).code == 2
