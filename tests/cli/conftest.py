"""A small untrained model in a folder, and the command line called as a user calls it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from insnet.families import FAMILIES
from insnet.families.storage import save_model
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.tour import sentences

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Ended:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    def json_lines(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    """An InsNet with random weights: what it writes is nonsense, what it promises holds all the same."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = MarkedTokenizer.learn(sentences(300, 0), TokenizerConfig("bpe", 500, lower_case=False))
    torch.manual_seed(0)
    kind = FAMILIES["insnet"]
    save_model(folder, kind(kind.Config(vocabulary_size=tokenizer.size, width=16, layers=1, heads=2)))
    tokenizer.save(folder)
    (folder / "generation_config.json").write_text(json.dumps({"min_words": 6, "max_tokens": 60, "rehearsals": 2}))
    card = {"parameters": 10_000, "data": "tour", "licence": "Apache-2.0", "scores": {"bleu4": 1.5}}
    (folder / "card.json").write_text(json.dumps(card))
    return folder


@pytest.fixture
def shelf(model_folder, monkeypatch) -> Path:
    """The small model as the one that ships."""
    monkeypatch.setattr("insnet.shelf.SHELF", model_folder.parent)
    monkeypatch.setattr("insnet.shelf.DEFAULT", model_folder.name)
    return model_folder


@pytest.fixture
def insnet(shelf, monkeypatch, capsys):
    """Runs the program in this process."""
    from insnet.cli import main

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["insnet", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return Ended(int(end.value.code or 0), out, err)

    return run


@pytest.fixture
def start_insnet(model_folder):
    """Starts the program in a process of its own."""
    started = []

    def start(*arguments: object, **options) -> subprocess.Popen:
        command = [sys.executable, "-m", "insnet", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
