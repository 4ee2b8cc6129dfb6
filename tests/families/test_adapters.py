"""Adapters: saved alone, put back onto their base, and the same model again; to the last digit or in eight bits."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from gguf_files import SIZES, random_llama, write_folder
from small_models import LINES, small_family
from torch import nn

from insnet.families import FAMILIES
from insnet.families.adapters import (
    adapt,
    adapter_of,
    fill_adapter,
    merge_adapter,
    read_adapter_facts,
    save_adapter,
)
from insnet.families.losses import LossContext, learned_nats
from insnet.families.storage import load_model, read_tensors, save_model
from insnet.files import ADAPTER_FILE, ADAPTER_WEIGHTS_FILE
from insnet.layers.low_rank import merge_low_rank, plain_name
from insnet.pretrained.base import read_base
from insnet.text.batching import TokenBatch

BASE = {"path": "base", "sha256": "0" * 64}
RANK = 64  # large enough that the small Llama's terms take eight bits


@pytest.fixture
def base(tmp_path):
    return read_base(write_folder(tmp_path / "base", random_llama(std=0.1)))


def batch_of_lines(tokenizer, lines=LINES[:24]):
    """Texts of which every third word is given."""
    token_lists = [tokenizer.encode(line)[:24] for line in lines]
    given = [[place % 3 == 0 for place in range(len(tokens))] for tokens in token_lists]
    starts_word = torch.tensor(tokenizer.starts_word)
    return TokenBatch.of(token_lists, starts_word=starts_word, given=given, specials=tokenizer.specials)


def learn(model, batch, updates=12, rate=0.01):
    """A few steps on one batch; the loss before and after, in nats per token."""
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=rate)
    losses = []
    for _ in range(updates):
        terms = model.losses(batch, model.Objective(), LossContext())
        optimizer.zero_grad()
        loss = learned_nats(terms) / terms["token"].count
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def nats_per_token(model, batch):
    terms = model.losses(batch, model.Objective(), LossContext())
    return (learned_nats(terms) / terms["token"].count).item()


def fresh(base):
    """A model of a base in memory of its own: one that learns would change the base's."""
    return deepcopy(base.gaps(longest_told=9))


@pytest.fixture
def adapted(base):
    model = fresh(base)
    adapt(model, RANK)
    losses = learn(model, batch_of_lines(base.tokenizer))
    assert losses[-1] < losses[0] - 0.3
    return model.eval()


def test_a_fresh_adapter_changes_nothing(base):
    plain, model, batch = base.gaps(), base.gaps(), batch_of_lines(base.tokenizer)
    model.load_state_dict(plain.state_dict())
    adapt(model, RANK)
    assert nats_per_token(model, batch) == pytest.approx(nats_per_token(plain, batch), abs=1e-6)


def test_only_the_adapter_learns(base, adapted):
    """Norms, heads and what the base lacked are in it, matrices of the base are not, nor its embedding."""
    names = set(adapter_of(adapted))
    assert {"ahead", "passed", "told.weight", "close_head.weight", "close_head.bias"} <= names
    assert {"decoder.norm.weight", "decoder.blocks.1.attention_norm.weight"} <= names
    assert {"decoder.blocks.0.expand.weight.up", "decoder.blocks.0.expand.weight.down"} <= names
    assert not {"embedding.weight", "decoder.blocks.0.expand.weight"} & names
    stored = {plain_name(name): value for name, value in adapted.state_dict().items()}
    for name, value in base.weights.items():
        assert torch.equal(stored[name], value) == (name not in names), name


def test_terms_have_the_rank_and_stand_on_the_targets_alone(base):
    model, width = base.gaps(), SIZES["hidden_size"]
    adapt(model, 3, ["query_key_value", "contract"])
    shapes = {name: tuple(value.shape) for name, value in adapter_of(model).items()}
    terms = {name for name in shapes if name.endswith((".up", ".down"))}
    blocks = [f"decoder.blocks.{layer}" for layer in range(SIZES["num_hidden_layers"])]
    matrices = [f"{block}.{name}" for block in blocks for name in ("attention.projections.query_key_value", "contract")]
    assert terms == {f"{name}.weight.{part}" for name in matrices for part in ("up", "down")}
    assert shapes["decoder.blocks.0.contract.weight.down"] == (3, SIZES["intermediate_size"])
    assert shapes["decoder.blocks.0.contract.weight.up"] == (width, 3)
    learning = {plain_name(name) for name, each in model.named_parameters() if each.requires_grad}
    assert learning == set(shapes)


def test_an_unknown_target_is_refused(base):
    with pytest.raises(ValueError, match=r"no matrix 'gate'; choose among query_key_value, output, expand, contract"):
        adapt(base.gaps(), 2, ["contract", "gate"])


@pytest.mark.parametrize("tied", [True, False])
def test_merged_onto_the_base_it_has_the_logits_of_the_adapted_model(tmp_path, tied):
    base = read_base(write_folder(tmp_path / "llama", random_llama(std=0.1, tied=tied)))
    adapted = fresh(base)
    adapt(adapted, RANK)
    batch = batch_of_lines(base.tokenizer)
    learn(adapted, batch)
    save_adapter(tmp_path / "adapter", adapted, BASE, eight_bits=False)
    merged, before = base.gaps(longest_told=9), {name: value.clone() for name, value in base.weights.items()}
    merge_adapter(merged, tmp_path / "adapter")
    assert all(torch.equal(value, before[name]) for name, value in base.weights.items())
    hidden = [logits_of(model, batch) for model in (adapted, merged)]
    torch.testing.assert_close(hidden[1], hidden[0], rtol=0, atol=1e-4)
    assert (hidden[1] - logits_of(base.gaps(), batch)).abs().max() > 0.1


@torch.no_grad()
def logits_of(model, batch):
    """What the model says behind every token, and whether it closes there."""
    seen = []
    handle = model.decoder.register_forward_hook(lambda module, inputs, output: seen.append(output))
    model.losses(batch, model.Objective(told_share=1.0), LossContext())
    handle.remove()
    return torch.cat([model.logits(seen[0]), model.close_head(seen[0])], dim=-1)


def test_in_eight_bits_it_is_as_good_and_takes_a_fourth(base, adapted, tmp_path):
    batch = batch_of_lines(base.tokenizer)
    for name, eight_bits in (("small", True), ("whole", False)):
        save_adapter(tmp_path / name, adapted, BASE, eight_bits=eight_bits)
    merged = base.gaps(longest_told=9)
    merge_adapter(merged, tmp_path / "small")
    difference = abs(nats_per_token(merged, batch) - nats_per_token(adapted, batch))
    assert 0 < difference < 0.005
    small, whole = ((tmp_path / name / ADAPTER_WEIGHTS_FILE).stat().st_size for name in ("small", "whole"))
    assert small < 0.4 * whole
    types = {name: tensor.dtype for name, tensor in read_tensors(tmp_path / "small" / ADAPTER_WEIGHTS_FILE).items()}
    assert types["decoder.blocks.0.expand.weight.up"] == torch.int8
    assert types["decoder.norm.weight"] == types["ahead"] == torch.float32


def test_an_adapted_model_is_saved_merged(adapted, base, tmp_path):
    save_model(tmp_path / "model", adapted)
    loaded, batch = load_model(tmp_path / "model", "cpu"), batch_of_lines(base.tokenizer)
    assert loaded.state_dict().keys() == base.gaps(longest_told=9).state_dict().keys()
    assert nats_per_token(loaded, batch) == pytest.approx(nats_per_token(adapted, batch), abs=1e-5)
    merge_low_rank(adapted)
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in adapted.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_adapted(family, tmp_path):
    plain, model = (small_family(family, 40, dtype=torch.float32) for _ in range(2))
    adapt(model, 2)
    for name, parameter in model.named_parameters():
        if name.endswith(".up"):
            nn.init.normal_(parameter, std=0.1)
    save_adapter(tmp_path / "adapter", model, BASE, eight_bits=False)
    merge_adapter(plain, tmp_path / "adapter")
    merge_low_rank(model)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(plain.state_dict()[name], value, msg=name)


def test_what_was_learned_can_be_put_back_into_a_model_that_is_adapted_alike(base, adapted, tmp_path):
    other = base.gaps(longest_told=9)
    adapt(other, RANK)
    fill_adapter(other, adapter_of(adapted), tmp_path / "there")
    assert all(torch.equal(a, b) for a, b in zip(adapted.parameters(), other.parameters(), strict=True))
    third = base.gaps(longest_told=9)
    adapt(third, RANK // 2)
    with pytest.raises(ValueError, match=r"there holds .* of shape .* this adapter is of another rank or model"):
        fill_adapter(third, adapter_of(adapted), tmp_path / "there")


def test_facts_are_kept(adapted, tmp_path):
    save_adapter(tmp_path, adapted, BASE)
    facts = read_adapter_facts(tmp_path)
    assert (facts.base, facts.rank) == (BASE, RANK)
    assert facts.targets == ("contract", "expand", "output", "query_key_value")


def change(folder, **values):
    path = folder / ADAPTER_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda folder: change(folder, format="other"), "has the format 'other'; this version reads"),
        (lambda folder: change(folder, rank="many"), "does not say base, rank and targets"),
        (lambda folder: change(folder, rank=RANK + 1), r"of shape .* this adapter is of another model, or damaged"),
        (lambda folder: change(folder, targets=["gate"]), "targets of .* no matrix 'gate'; choose among"),
        (lambda folder: change(folder, targets=["expand"]), "unexpected"),
        (lambda folder: (folder / ADAPTER_FILE).unlink(), "does not exist"),
        (lambda folder: (folder / ADAPTER_WEIGHTS_FILE).write_bytes(b"half"), "is truncated or no safetensors file"),
    ],
)
def test_a_damaged_adapter_is_refused_in_one_line_and_the_model_left_alone(base, adapted, tmp_path, harm, message):
    save_adapter(tmp_path / "adapter", adapted, BASE)
    harm(tmp_path / "adapter")
    model = base.gaps(longest_told=9)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        merge_adapter(model, tmp_path / "adapter")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_an_adapter_of_another_model_is_refused_though_its_tensors_fit(base, adapted, tmp_path):
    save_adapter(tmp_path, adapted, BASE)
    with pytest.raises(ValueError, match=r"whose longest_told is 9, not 0: an adapter fits the base"):
        merge_adapter(base.gaps(), tmp_path)
    other = replace(base, config=replace(base.config, rotary_base=10_000.0))
    with pytest.raises(ValueError, match=r"whose rotary_base is 100000\.0, not 10000\.0"):
        merge_adapter(other.gaps(longest_told=9), tmp_path)
