"""Fine-tuning: somebody's own lines, split, learned from, and reported where the vocabulary lacks their words."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import insnet
from insnet.families.quantize import SCALE_SUFFIX
from insnet.families.storage import load_model, read_generation, read_weights, write_generation
from insnet.shelf import pack
from insnet.text.tokenizer import load_tokenizer
from insnet.training.events import Evaluated, Notice, Started
from insnet.training.finetune import _updates, finetune
from insnet.training.metrics import read_metrics
from insnet.training.recipe import load_recipe
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
    assert load_tokenizer(tmp_path / "tuned").fingerprint == load_tokenizer(model_folder).fingerprint
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

    def interrupt(event):
        if isinstance(event, Evaluated) and event.update == 3:
            os.kill(os.getpid(), signal.SIGINT)

    assert finetune(own_text, updates=12, **{**options, "on_event": interrupt}).status == "interrupted"
    with pytest.raises(ValueError, match="already holds a run that stands at update"):
        finetune(own_text, updates=12, **options)
    assert finetune(own_text, updates=12, resume=True, **options).update == 12
    assert not (tmp_path / "tuned" / "checkpoints").exists()
    for resume in (False, True):
        with pytest.raises(ValueError, match="finished at update 12, whose checkpoints are gone: choose another"):
            finetune(own_text, updates=14, resume=resume, **options)


def test_a_tuned_model_writes_as_the_model_does_whatever_its_recipe_said(model_folder, own_text, tmp_path):
    settings = {"top_k": 7, "temperature": 0.5}
    write_generation(model_folder, settings)  # chosen after training, so that the recipe does not know
    assert load_recipe(model_folder / "recipe.toml").generation == {}
    finetune(own_text, model_folder=model_folder, output=tmp_path / "tuned", updates=1, on_event=lambda event: None)
    assert read_generation(tmp_path / "tuned") == load_recipe(tmp_path / "tuned" / "recipe.toml").generation == settings


def test_one_line_is_too_little(model_folder, tmp_path):
    (tmp_path / "one.txt").write_text("the cat .\n")
    with pytest.raises(ValueError, match="has 1 sentences: give at least 2"):
        finetune(tmp_path / "one.txt", model_folder=model_folder, output=tmp_path / "tuned")
    (tmp_path / "two.txt").write_text("the cat .\nthe dog .\n")
    summary = finetune(
        tmp_path / "two.txt", model_folder=model_folder, output=tmp_path / "tuned", on_event=lambda event: None
    )
    assert summary.best_loss is not None


def test_it_tells_the_loss_before_and_after(model_folder, own_text, tmp_path):
    told = []
    summary = finetune(own_text, model_folder=model_folder, output=tmp_path / "tuned", epochs=8, on_event=told.append)
    first, *later = [event for event in told if isinstance(event, Evaluated)]
    assert first.update == 0
    assert summary.best_loss == min(event.losses["loss"] for event in later) < first.losses["loss"]
    [last] = [event.text for event in told[-1:]]
    assert last.startswith(f"valid loss {first.losses['loss']:.3f} before, {summary.best_loss:.3f} after update")
    assert "did not help" not in last


def test_the_loss_before_is_what_an_update_that_learns_nothing_leaves(model_folder, own_text, tmp_path):
    told = []
    options = {"model_folder": model_folder, "updates": 1, "on_event": told.append}
    finetune(own_text, output=tmp_path / "still", learning_rate=1e-12, **options)
    before, after = [event.losses for event in told if isinstance(event, Evaluated)]
    assert after == pytest.approx(before, rel=1e-5)


def test_a_run_that_made_it_worse_says_so(model_folder, own_text, tmp_path):
    told = []
    options = {"model_folder": model_folder, "updates": 2, "on_event": told.append}
    finetune(own_text, output=tmp_path / "spoilt", learning_rate=3.0, **options)
    assert "it did not help" in told[-1].text


@pytest.mark.parametrize(("an_epoch", "updates"), [(1, 20), (10, 200), (23, 200), (66, 200), (67, 201), (1000, 3000)])
def test_a_small_file_is_gone_through_more_often(an_epoch, updates):
    assert _updates(SimpleNamespace(updates_per_epoch=an_epoch), None) == updates
    assert _updates(SimpleNamespace(updates_per_epoch=an_epoch), 0.5) == max(round(an_epoch / 2), 1)


def test_time_can_be_limited_and_the_device_chosen(model_folder, own_text, tmp_path):
    options = {"model_folder": model_folder, "updates": 100_000, "device": "cpu"}
    told = []
    summary = finetune(own_text, output=tmp_path / "brief", minutes=0.02, on_event=told.append, **options)
    assert (summary.status, summary.seconds < 20) == ("finished", True)
    assert 0 < summary.update < 100_000
    [started] = [event for event in told if isinstance(event, Started)]
    assert started.device == "cpu"
    with pytest.raises(ValueError, match="device"):
        finetune(own_text, output=tmp_path / "other", on_event=told.append, **{**options, "device": "tpu"})


@pytest.fixture
def shipped(recipe_path, tmp_path) -> Path:
    """A model like the one that ships: pieces, told its length, in eight bits, its recipe written for a GPU."""
    settings = {
        "tokenizer.kind": "bpe", "tokenizer.vocabulary_size": 300, "tokenizer.lower_case": "false",
        "data.max_tokens": 40, "model.count_head": 40, "model.length_conditioned": "true", "model.width": 32,
        "model.order": "random_words", "model.dropout": 0.0, "given.unknown": 0.0, "generation.stopping": "counted",
    }  # fmt: skip
    recipe = load_recipe(recipe_path, [f"{name}={value}" for name, value in settings.items()])
    train(recipe, output=tmp_path / "run", on_event=lambda event: None)
    pack(tmp_path / "run", tmp_path / "shipped", data="d", licence="l", scores={}, limits=[], eight_bits=True)
    path = tmp_path / "shipped" / "recipe.toml"
    text = path.read_text().replace("compile = false", "compile = true").replace('"auto"', '"bf16"', 1)
    assert "compile = true" in text
    assert 'precision = "bf16"' in text
    path.write_text(text)
    return tmp_path / "shipped"


def test_a_shipped_model_in_eight_bits_is_tuned_in_full_precision_on_a_cpu(shipped, own_text, tmp_path):
    assert any(name.endswith(SCALE_SUFFIX) for name in read_weights(shipped)[0])
    told, output = [], tmp_path / "tuned"
    options = {"model_folder": shipped, "output": output, "device": "cpu", "on_event": told.append}
    summary = finetune(own_text, learning_rate=5e-3, epochs=20, **options)
    before = next(event.losses for event in told if isinstance(event, Evaluated))
    assert list(before) == ["loss", "token", "slot", "stop"]
    assert summary.best_loss < before["loss"]
    weights = read_weights(output)[0]
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    tuned = load_recipe(output / "recipe.toml").train
    assert (tuned.compile, tuned.precision, tuned.device) == (False, "auto", "cpu")
    model = insnet.load(output, device="cpu")
    assert model.family.config == load_model(shipped, "cpu").config
    assert model.generation == insnet.load(shipped, device="cpu").generation
    assert "fox" in model.generate(["fox"], seed=0).text


def test_tuning_starts_from_the_weights_as_they_were_stored(shipped, own_text, tmp_path):
    """One update at a learning rate of nearly nothing leaves them where loading put them."""
    options = {"model_folder": shipped, "output": tmp_path / "still", "device": "cpu", "on_event": lambda event: None}
    finetune(own_text, updates=1, learning_rate=1e-12, **options)
    stored, tuned = load_model(shipped, "cpu").state_dict(), load_model(tmp_path / "still", "cpu").state_dict()
    for name, tensor in stored.items():
        torch.testing.assert_close(tuned[name], tensor, rtol=0, atol=1e-9)
