"""How the program ends: one line for a user's mistake, silence for Ctrl-C and closed pipes."""

import signal
import time

import pytest


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["generate", "a", "--model", "no-such-model"], "no-such-model"),
        (["generate", "a", "--temperature", "-1"], "temperature is -1.0"),
        (["generate", "a", "--mode", "parallel", "--parallel-mass", "2"], "parallel_mass is 2.0"),
        (["generate", ""], "keyword 1 is empty"),
        (["generate", "a\nb\x07"], "control character"),
        (["generate", "ship", "--ban", "ship"], "both required and banned"),
        (["generate", "ran", "--ban", "run*"], "'ran' is both required and banned"),
        (["generate", "x" * 10_000], "tokens"),
        (["generate", *["word"] * 300], "300 words are required"),
        (["generate", "--input", "no-such-file.txt"], "no-such-file.txt does not exist"),
        (["infill", "no blank here"], "no blank"),
        (["infill", "a ___{5,2}"], "fewest words 5 above most words 2"),
        (["score", ""], "empty"),
        (["evaluate", "no-such-model", "--data", "no-such-folder"], "no-such-folder"),
        (["train", "no-such-recipe.toml"], "no-such-recipe.toml"),
        (["prepare", "no-such-recipe.toml"], "no-such-recipe.toml"),
        (["finetune", "no-such-text.txt", "--output", "no-such-output"], "no-such-text.txt"),
        (["benchmark", "train-speed", "--precision", "half"], "precision is 'half'"),
    ],
)
def test_a_mistake_is_told_in_one_line(insnet, arguments, told):
    ended = insnet(*arguments)
    assert ended.code == 1
    assert ended.out == ""
    [line] = ended.err.splitlines()
    assert line.startswith("error: ")
    assert told in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "--no-such-option"],
        ["no-such-command"],
        ["generate", "a", "-n", "0"],
        ["generate", "a", "--device", "tpu"],
        ["generate", "a", "--input", "b.txt"],
        ["generate", "a", "--output", "b.txt"],
        ["generate", "--input", "b.txt", "--overwrite"],
        ["generate", "a", "--watch", "--json"],
        ["generate", "a", "--trace"],
        ["infill"],
        ["infill", "The ___", "--trace"],
        ["infill", "The ___", "--watch", "--json"],
        ["score"],
        ["evaluate", "tiny"],
        ["benchmark", "train-speed", "-n", "many"],
    ],
)
def test_wrong_usage_ends_with_2_and_says_nothing_on_stdout(insnet, arguments):
    ended = insnet(*arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err


def test_a_mistake_of_ours_shows_its_traceback(insnet, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise AssertionError("ours")

    monkeypatch.setattr("insnet.shelf.load_ready", broken)
    with pytest.raises(AssertionError, match="ours"):
        insnet("generate", "a")


def test_a_missing_extra_is_named(insnet, monkeypatch):
    def lacking(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'transformers'", name="transformers")

    monkeypatch.setattr("insnet.shelf.load_ready", lacking)
    assert insnet("generate", "a").err == "error: this needs the package transformers: pip install 'insnet[hf]'\n"


def test_version(insnet):
    ended = insnet("--version")
    assert ended.code == 0
    assert ended.out.startswith("insnet")


def test_a_reader_that_leaves_is_no_error_message(start_insnet, model_folder):
    process = start_insnet("generate", "ship", "-n", 3, "--model", model_folder)
    process.stdout.close()
    process.wait(timeout=60)
    assert process.stderr.read() == ""


def test_ctrl_c_is_quiet(start_insnet, model_folder, tmp_path):
    keywords, output = tmp_path / "keywords.txt", tmp_path / "out.jsonl"
    keywords.write_text("captain ship\n" * 100_000)
    process = start_insnet(
        "generate", "--input", keywords, "--output", output, "--batch-size", 2, "--model", model_folder
    )
    deadline = time.monotonic() + 60
    while not (output.exists() and output.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines() == [f"interrupted: the same command goes on with what is in {output}"]
