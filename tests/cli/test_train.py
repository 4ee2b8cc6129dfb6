"""`insnet prepare`, `train` and `finetune`: from text files to a model that generates, by commands alone."""

import json
import signal
import time

import pytest

from insnet.text.tokenizer import load_tokenizer
from insnet.tour import domain_sentences, write_corpus

RECIPE = """
[data]
folder = "{data}"
prepared = "{prepared}"
keyword_method = "tfidf"

[tokenizer]
kind = "word"
vocabulary_size = 800
lower_case = false

[model]
family = "insnet"
width = 16
layers = 1
heads = 2

[train]
updates = 4
token_budget = 512
warmup_updates = 1
evaluate_every = 2
checkpoint_every = 2
log_every = 1
device = "cpu"

[generation]
rehearsals = 2
max_tokens = 30
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    write_corpus(folder / "data", train=60, valid=8, test=4)
    path = folder / "small.toml"
    path.write_text(RECIPE.format(data=folder / "data", prepared=folder / "prepared"))
    return path


def test_a_model_goes_on_with_another_objective(insnet, recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    insnet("train", recipe, "--output", "one_by_one", "--json")
    options = ("--from", "one_by_one", "--set", "objective.tau=[3.0, -inf]", "--set", "train.epochs=0.5")
    [summary] = insnet("train", recipe, "--output", "both", "--json", *options).json_lines()
    assert summary["status"] == "finished" and 0 < summary["update"] < 4
    lines = [json.loads(line) for line in (tmp_path / "both" / "metrics.jsonl").read_text().splitlines()]
    assert 0.2 < lines[0]["layers_per_insertion"] < 1
    [alone] = insnet("train", recipe, "--output", "other", "--json", "--set", "train.updates=1").json_lines()
    first, other = (
        json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[0]) for name in ("both", "other")
    )
    assert alone["update"] == 1 and first["token"] < other["token"]  # it had learned something already
    refused = insnet("train", recipe, "--output", "x", "--set", "objective.tau=[]")
    assert refused.code == 1 and "[objective] tau is []; expected one or more numbers" in refused.err


def test_prepare_train_generate_and_finetune_follow_each_other(insnet, recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "tokenizer" in insnet("prepare", recipe).out
    [prepared] = insnet("prepare", recipe, "--json").json_lines()
    assert prepared["train"]["sentences"] == 60
    [summary] = insnet("train", recipe, "--json", "--set", "train.updates=3").json_lines()
    assert summary["update"] == 3
    assert (summary["status"], summary["output"]) == ("finished", "runs/small")
    written = insnet("generate", "captain", "--model", "runs/small", "--seed", 1)
    assert "captain" in written.out.lower().split()
    sentences = tmp_path / "mine.txt"
    sentences.write_text("".join(f"{line}\n" for line in domain_sentences(30, 0)))
    [tuned] = insnet(
        "finetune", sentences, "--output", "mine", "--model", "runs/small", "--updates", 2, "--json", "--device", "cpu"
    ).json_lines()
    assert (tuned["status"], tuned["update"]) == ("finished", 2)
    brief = ["finetune", sentences, "--output", "brief", "--model", "runs/small", "--minutes", 0.0001, "--json"]
    assert insnet(*brief).json_lines()[0]["update"] == 1
    assert insnet("generate", "captain", "--model", "mine").code == 0


def test_a_run_is_resumed_or_left_alone(insnet, recipe, tmp_path):
    output = tmp_path / "run"
    insnet("train", recipe, "--output", output, "--set", "train.updates=2", "--set", "train.keep_optimizer=true")
    taken = insnet("train", recipe, "--output", output)
    assert taken.code == 1
    assert "--resume" in taken.err
    [summary] = insnet("train", recipe, "--output", output, "--resume", "--json").json_lines()
    assert (summary["status"], summary["update"]) == ("finished", 4)


def test_shorthands_set_the_recipe(insnet, recipe, tmp_path):
    insnet("train", recipe, "--output", tmp_path, "--seed", 9, "--device", "cpu", "--set", "train.updates=1")
    written = (tmp_path / "recipe.toml").read_text()
    assert "seed = 9" in written
    assert 'device = "cpu"' in written


@pytest.mark.parametrize(("setting", "told"), [("train.updats=3", "updates"), ("updates=3", "TABLE.KEY=VALUE")])
def test_a_wrong_setting_is_told_in_one_line(insnet, recipe, setting, told):
    ended = insnet("train", recipe, "--set", setting)
    [line] = ended.err.splitlines()
    assert ended.code == 1
    assert told in line


def test_an_interrupted_run_ends_quietly_and_can_go_on(start_insnet, insnet, recipe, tmp_path):
    output = tmp_path / "run"
    command = ["train", recipe, "--output", output]
    process = start_insnet(*command, "--set", "train.updates=100000", "--set", "train.patience=0")
    metrics = output / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    done = max(json.loads(line)["update"] for line in metrics.read_text().splitlines())
    ended = insnet(*command, "--resume", "--json", "--set", f"train.updates={done + 1}")
    assert ended.json_lines()[0]["update"] == done + 1


def test_text_can_be_prepared_for_a_model_that_has_a_tokenizer_already(insnet, recipe, model_folder, tmp_path):
    there = ("--set", f"data.prepared={tmp_path}")
    told = insnet("prepare", recipe, *there, "--from", "tiny").out
    assert load_tokenizer(tmp_path).fingerprint == load_tokenizer(model_folder).fingerprint
    assert "tokenizer: unchanged" in insnet("prepare", recipe, *there, "--from", "tiny").out and "unchanged" not in told
    assert "unchanged" not in insnet("prepare", recipe, *there).out, "the recipe's own tokenizer is another"


def test_text_can_be_prepared_for_a_model_that_is_yet_to_be_trained(insnet, recipe, tmp_path):
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    insnet("prepare", recipe, "--set", f"data.prepared={there}", "--set", "tokenizer.vocabulary_size=40")
    insnet("prepare", recipe, "--set", f"data.prepared={elsewhere}", "--from", there)
    assert load_tokenizer(elsewhere).fingerprint == load_tokenizer(there).fingerprint
    insnet("prepare", recipe, "--set", f"data.prepared={elsewhere}")
    assert load_tokenizer(elsewhere).fingerprint != load_tokenizer(there).fingerprint, "of another size"


def test_shapes_that_hold_no_text_are_refused_in_one_line(insnet, recipe, tmp_path):
    told = insnet("train", recipe, "--output", tmp_path / "run", "--set", "train.padded_lengths=[4]")
    assert told.code != 0 and "padded_lengths end at 4, but the longest sentence needs" in told.err
