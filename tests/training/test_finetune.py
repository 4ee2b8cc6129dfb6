"""Fine-tuning: somebody's own lines, split, learned from, and reported where the vocabulary lacks their words."""

import pytest

from insnet.families.storage import load_model
from insnet.text.tokenizer import Tokenizer
from insnet.training.events import Notice
from insnet.training.finetune import finetune
from insnet.training.metrics import read_metrics
from insnet.training.trainer import train


@pytest.fixture
def model_folder(recipe, tmp_path):
    train(recipe, output=tmp_path / "model", on_event=lambda event: None)
    return tmp_path / "model"


@pytest.fixture
def own_text(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("".join(f"the fox hears the {animal} .\n" for animal in ["dog", "bird", "zebra"] * 14 + [""]))
    return path


def test_a_model_is_tuned_to_ones_own_text(model_folder, own_text, tmp_path):
    told = []
    summary = finetune(own_text, model_folder=model_folder, output=tmp_path / "tuned", epochs=20, on_event=told.append)
    valid = [line["valid_loss"] for line in read_metrics(tmp_path / "tuned") if "valid_loss" in line]
    assert summary.best_loss == min(valid) < valid[0]
    assert load_model(tmp_path / "tuned", "cpu").config == load_model(model_folder, "cpu").config
    assert Tokenizer.load(tmp_path / "tuned").fingerprint == Tokenizer.load(model_folder).fingerprint
    words = (tmp_path / "tuned" / ".text" / "train.txt").read_text().split()
    share = f"{words.count('zebra') / len(words):.1%} of the words are unknown"
    assert sum(event.text.startswith(share) for event in told if isinstance(event, Notice)) == 1


def test_lines_set_aside_are_few_and_never_learned_from(model_folder, own_text, tmp_path):
    finetune(own_text, model_folder=model_folder, output=tmp_path / "tuned", updates=2, on_event=lambda event: None)
    folder = tmp_path / "tuned" / ".text"
    train_lines = (folder / "train.txt").read_text().splitlines()
    valid_lines = (folder / "valid.txt").read_text().splitlines()
    assert (len(train_lines), len(valid_lines)) == (40, 3)
    assert sorted(train_lines + valid_lines) == sorted(own_text.read_text().splitlines())


def test_it_can_be_resumed_and_refuses_a_folder_that_is_taken(model_folder, own_text, tmp_path):
    options = {"model_folder": model_folder, "output": tmp_path / "tuned", "on_event": lambda event: None}
    finetune(own_text, updates=2, **options)
    with pytest.raises(ValueError, match="already holds a run that finished at update 2"):
        finetune(own_text, updates=4, **options)
    assert finetune(own_text, updates=4, resume=True, **options).update == 4


def test_one_line_is_too_little(model_folder, tmp_path):
    (tmp_path / "one.txt").write_text("the cat .\n")
    with pytest.raises(ValueError, match="has 1 sentences: give at least 2"):
        finetune(tmp_path / "one.txt", model_folder=model_folder, output=tmp_path / "tuned")
    (tmp_path / "two.txt").write_text("the cat .\nthe dog .\n")
    summary = finetune(
        tmp_path / "two.txt", model_folder=model_folder, output=tmp_path / "tuned", on_event=lambda event: None
    )
    assert summary.best_loss is not None
