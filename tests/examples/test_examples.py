"""Every example runs as it stands, on a small model in place of the shipped one."""

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

from insnet.families import FAMILIES
from insnet.families.storage import save_model
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.tour import sentences

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = MarkedTokenizer.learn(sentences(300, 0), TokenizerConfig("bpe", 500, lower_case=False))
    torch.manual_seed(0)
    kind = FAMILIES["insnet"]
    save_model(folder, kind(kind.Config(vocabulary_size=tokenizer.size, width=16, layers=1, heads=2)))
    tokenizer.save(folder)
    (folder / "generation_config.json").write_text(json.dumps({"min_words": 6, "max_tokens": 20, "rehearsals": 2}))
    return folder


@pytest.fixture
def run_example(model_folder, monkeypatch, capsys, tmp_path):
    """What an example prints, started in an empty folder."""

    def run(name: str, *arguments: str) -> list[str]:
        monkeypatch.setattr("insnet.shelf.SHELF", model_folder.parent)
        monkeypatch.setattr("insnet.shelf.DEFAULT", model_folder.name)
        monkeypatch.chdir(tmp_path)
        path = next(path for path in EXAMPLES if path.stem == name)
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run


@pytest.mark.parametrize("name", [path.stem for path in EXAMPLES])
def test_an_example_runs_without_arguments(run_example, name):
    assert run_example(name)


def test_keywords_are_in_every_sentence(run_example):
    lines = run_example("keywords_to_sentence", "captain", "rope")
    assert len(lines) == 3
    assert all("captain" in line and "rope" in line for line in lines)


def test_the_sentence_grows_a_line_a_step(run_example):
    lines = run_example("watch_it_grow", "captain", "rope")
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    lengths = [len(line) for line in lines]
    assert lengths == sorted(lengths)


def test_infilling_keeps_the_text(run_example):
    lines = run_example("infill", "The ___ sat.")
    assert len(lines) == 3
    assert all(line.startswith("The") and line.endswith("sat.") for line in lines)


def test_an_edited_text_keeps_what_is_locked(run_example):
    first, second = run_example("edit_and_continue", "The dog sat.")
    assert first.startswith("The dog ") and first.endswith(".") and " dog" in second and second != first
