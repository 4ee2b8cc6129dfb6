"""Model folders: the same weights come back, and every fault is one sentence that names the file."""

import json

import pytest
import torch
from safetensors import SafetensorError

from insnet.families import FAMILIES
from insnet.families.storage import load_model, save_model, write_tensors


def small(family="insnet", width=16):
    kind = FAMILIES[family]
    return kind(kind.Config(vocabulary_size=40, width=width, layers=1, heads=2))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_model_loads_as_itself(tmp_path, family):
    model = small(family)
    save_model(tmp_path, model)
    loaded = load_model(tmp_path, "cpu")
    assert type(loaded) is type(model) and loaded.config == model.config and not loaded.training
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_loading_draws_no_weights(tmp_path, family):
    save_model(tmp_path, small(family))
    before = torch.get_rng_state()
    load_model(tmp_path, "cpu")
    assert torch.equal(torch.get_rng_state(), before)
    small(family)
    assert not torch.equal(torch.get_rng_state(), before)


def test_a_full_disk_is_an_error_of_the_system_and_leaves_the_old_file(tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    save_model(tmp_path, model := small())
    monkeypatch.setattr("insnet.families.storage.save_file", full)
    with pytest.raises(OSError, match=r"model\.safetensors: .*No space left on device"):
        save_model(tmp_path, small())
    assert torch.equal(load_model(tmp_path, "cpu").embedding.weight, model.embedding.weight)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "model.safetensors"}


def test_shards_of_others_are_read_and_a_save_replaces_them(tmp_path):
    model = small()
    save_model(tmp_path, model)
    (tmp_path / "model.safetensors").unlink()
    weights = list(model.state_dict().items())
    shards = {"model-00001-of-00002.safetensors": weights[:9], "model-00002-of-00002.safetensors": weights[9:]}
    for name, shard in shards.items():
        write_tensors(tmp_path / name, dict(shard))
    index = {"weight_map": {key: name for name, shard in shards.items() for key, _ in shard}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert torch.equal(load_model(tmp_path, "cpu").embedding.weight, model.embedding.weight)
    save_model(tmp_path, small())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    load_model(tmp_path, "cpu")


def test_weights_are_stored_in_the_wanted_type_and_loaded_in_another(tmp_path):
    model = small()
    save_model(tmp_path, model, dtype=torch.bfloat16)
    weight = load_model(tmp_path, "cpu", torch.float64).embedding.weight
    assert weight.dtype == torch.float64
    assert torch.equal(weight.float(), model.embedding.weight.bfloat16().float())


def test_eight_bits_come_back_nearly_equal(tmp_path):
    model = small(width=128)
    save_model(tmp_path, model, eight_bits=True)
    assert (tmp_path / "model.safetensors").stat().st_size < 0.4 * sum(v.nbytes for v in model.state_dict().values())
    difference = load_model(tmp_path, "cpu").embedding.weight - model.embedding.weight
    assert 0 < difference.abs().max() < model.embedding.weight.abs().max() / 200


def break_config(**changes):
    def change(folder):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))

    return change


def truncate(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


FAULTS = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "config.json does not exist"),
    "half a config": (lambda folder: (folder / "config.json").write_text('{"model_type": "ins'), "config.json"),
    "another type": (break_config(model_type="gpt2"), "'model_type' is 'gpt2'"),
    "unknown family": (break_config(family="hopes"), "names the family 'hopes'; this version knows insnet"),
    "unhashable family": (break_config(family=["insnet"]), "config.json"),
    "impossible size": (break_config(heads=3), "config.json does not describe"),
    "text for a number": (break_config(width="wide"), "config.json does not describe"),
    "another size": (break_config(vocabulary_size=41), "of shape"),
    "missing keys": (break_config(layers=2), "missing"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors does not exist"),
    "half the weights": (truncate, "model.safetensors is truncated"),
    "a pickle": (
        lambda folder: torch.save({}, folder / "model.safetensors"),
        "model.safetensors is truncated or no safetensors file",
    ),
    "no folder": (lambda folder: [path.unlink() for path in folder.iterdir()] and folder.rmdir(), "no model folder"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_clear_sentence(tmp_path, fault):
    folder = tmp_path / "model"
    save_model(folder, small())
    harm, told = FAULTS[fault]
    harm(folder)
    with pytest.raises(ValueError) as caught:
        load_model(folder, "cpu")
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_an_index_cannot_lead_out_of_its_folder(tmp_path):
    folder = tmp_path / "model"
    save_model(folder, small())
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../other.safetensors"}}')
    with pytest.raises(ValueError, match="weight_map"):
        load_model(folder, "cpu")
