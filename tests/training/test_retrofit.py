"""A pretrained model becomes an insertion model: an adapter is learned, saved alone, and merged into what is run."""

import signal
from dataclasses import replace
from os import getpid, kill

import pytest
import torch
from gguf_files import random_llama, write_folder

import insnet
from insnet.families.adapters import merge_adapter, read_adapter_facts
from insnet.families.storage import load_model, read_tensors
from insnet.pretrained.base import read_base
from insnet.text.tokenizer import load_tokenizer
from insnet.training.checkpoint import newest_checkpoint
from insnet.training.events import Started, Updated
from insnet.training.finetune import finetune
from insnet.training.metrics import read_metrics
from insnet.training.recipe import load_recipe
from insnet.training.retrofit import retrofit
from insnet.training.trainer import train

RECIPE = """
[data]
folder = "{folder}"
prepared = "{folder}/prepared"
max_tokens = 60
keyword_method = "content"
[model]
family = "gaps"
longest_told = 8
[given]
keyword_shares = [1, 2]
important_first = 0.5
phrases = 0.2
[train]
updates = 8
token_budget = 512
learning_rate = 5e-3
warmup_updates = 1
evaluate_every = 4
checkpoint_every = 2
log_every = 2
rank = 4
device = "cpu"
"""


@pytest.fixture
def source(tmp_path):
    return write_folder(tmp_path / "llama", random_llama(std=0.1))


@pytest.fixture
def base(source, tmp_path):
    return retrofit(source, tmp_path / "base")


@pytest.fixture
def recipe(recipe_path, tmp_path):
    """For a corpus beside it; `recipe_path` writes that."""
    path = tmp_path / "gaps.toml"
    path.write_text(RECIPE.format(folder=recipe_path.parent / "corpus"), encoding="utf-8")
    return load_recipe(path)


def quiet(event):
    pass


def tensors_of(folder):
    return read_tensors(folder / "model.safetensors")


def test_a_retrofitted_folder_is_a_model_with_the_bases_weights(source, base):
    made, pretrained = load_model(base, "cpu"), read_base(source)
    assert made.config == pretrained.config and load_tokenizer(base).fingerprint == pretrained.tokenizer.fingerprint
    assert all(torch.equal(made.state_dict()[name], tensor) for name, tensor in pretrained.weights.items())
    assert insnet.load(base).score("the cat .").is_exact
    assert load_recipe(base / "recipe.toml").with_size_of(base).train.rank == 64


def test_it_is_not_written_over_something_else(source, base):
    with pytest.raises(ValueError, match="holds something already"):
        retrofit(source, base)


def test_a_recipe_without_sizes_takes_those_of_the_model_it_starts_from(recipe, base, tmp_path):
    train(recipe, output=tmp_path / "run", start_from=base, on_event=quiet)
    there, here = load_model(base, "cpu").config, load_model(tmp_path / "run", "cpu").config
    assert here == replace(there, longest_told=8)
    with pytest.raises(ValueError, match=r"no \[tokenizer\] table: name the model"):
        elsewhere = replace(recipe, data=replace(recipe.data, prepared=str(tmp_path / "elsewhere")))
        train(elsewhere, output=tmp_path / "other", on_event=quiet)


def test_only_the_adapter_learns_and_is_the_run_once_merged(recipe, base, tmp_path):
    train(recipe, output=tmp_path / "run", start_from=base, on_event=quiet)
    before, after = tensors_of(base), tensors_of(tmp_path / "run")
    assert torch.equal(before["embedding.weight"], after["embedding.weight"])
    assert not torch.equal(before["close_head.weight"], after["close_head.weight"])
    losses = [line["valid_loss"] for line in read_metrics(tmp_path / "run") if "valid_loss" in line]
    assert losses[-1] < losses[0]
    facts = read_adapter_facts(tmp_path / "run" / "adapter")
    assert facts.rank == 4 and facts.base["path"] == "llama" and len(facts.base["sha256"]) == 64
    merged = load_model(base, "cpu")
    merged = type(merged)(replace(merged.config, longest_told=8))
    merged.load_state_dict({**merged.state_dict(), **before})
    merge_adapter(merged, tmp_path / "run" / "adapter")
    for name, tensor in merged.state_dict().items():
        assert torch.allclose(tensor, after[name], atol=2e-3), name  # the adapter has eight bits


def test_a_checkpoint_holds_the_adapter_alone_and_a_run_goes_on_from_it(recipe, base, tmp_path):
    def interrupt(event):
        if isinstance(event, Updated) and event.update == 4:
            kill(getpid(), signal.SIGINT)

    train(recipe, output=tmp_path / "whole", start_from=base, on_event=quiet)
    assert train(recipe, output=tmp_path / "cut", start_from=base, on_event=interrupt).status == "interrupted"
    names = read_tensors(newest_checkpoint(tmp_path / "cut" / "checkpoints") / "model.safetensors").keys()
    assert any(name.endswith(".up") for name in names) and not any("original" in name for name in names)
    train(recipe, output=tmp_path / "cut", start_from=base, resume=True, on_event=quiet)
    whole, cut = tensors_of(tmp_path / "whole"), tensors_of(tmp_path / "cut")
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_all_weights_can_learn_instead(recipe, base, tmp_path):
    recipe = replace(recipe, train=replace(recipe.train, rank=0, updates=2))
    train(recipe, output=tmp_path / "run", start_from=base, on_event=quiet)
    assert not torch.equal(tensors_of(base)["embedding.weight"], tensors_of(tmp_path / "run")["embedding.weight"])
    assert not (tmp_path / "run" / "adapter").exists()


def test_a_retrofitted_model_is_fine_tuned_by_an_adapter(base, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("".join(f"The fox hears the {animal}.\n" for animal in ["dog", "bird", "zebra"] * 14))
    events = []
    summary = finetune(path, model_folder=base, output=tmp_path / "tuned", updates=6, on_event=events.append)
    adapter = read_tensors(tmp_path / "tuned" / "adapter" / "adapter.safetensors")
    learned = sum(tensor.numel() for name, tensor in adapter.items() if not name.endswith("_scale"))
    assert summary.status == "finished"
    assert [event.parameters for event in events if isinstance(event, Started)] == [learned]
    assert torch.equal(tensors_of(base)["embedding.weight"], tensors_of(tmp_path / "tuned")["embedding.weight"])


def test_rank_and_only_exclude_each_other(recipe):
    with pytest.raises(ValueError, match="rank and only exclude each other"):
        replace(recipe.train, only=("close_head",))
