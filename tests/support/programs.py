"""Programs called as a user calls them, and a small untrained model in a folder for them to use."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from insnet.families import FAMILIES
from insnet.families.storage import save_model
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.tour import sentences


@dataclass(frozen=True)
class Ended:
    """How a run of a program ended."""

    code: int
    out: str
    err: str

    def json_lines(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]


def ended(program: Callable[[], object], argv: list[object], monkeypatch, capsys) -> Ended:
    """Runs a program in this process."""
    monkeypatch.setattr(sys, "argv", [str(word) for word in argv])
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        program()
    out, err = capsys.readouterr()
    return Ended(int(end.value.code or 0), out, err)


def save_tiny_model(folder: Path) -> Path:
    """An InsNet with random weights: what it writes is nonsense, what it promises holds all the same."""
    tokenizer = MarkedTokenizer.learn(sentences(300, 0), TokenizerConfig("bpe", 500, lower_case=False))
    torch.manual_seed(0)
    kind = FAMILIES["insnet"]
    save_model(folder, kind(kind.Config(vocabulary_size=tokenizer.size, width=16, layers=1, heads=2)))
    tokenizer.save(folder)
    (folder / "generation_config.json").write_text(json.dumps({"min_words": 6, "max_tokens": 60, "rehearsals": 2}))
    card = {"parameters": 10_000, "data": "tour", "licence": "Apache-2.0", "scores": {"bleu4": 1.5}}
    (folder / "card.json").write_text(json.dumps(card))
    return folder
