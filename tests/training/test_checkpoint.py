"""Checkpoints: model and optimizers come back exactly, and a damaged one is refused in so many words."""

import json

import pytest
import torch
from torch import nn

from insnet.training.checkpoint import Progress, load_checkpoint, newest_checkpoint, read_progress, save_checkpoint
from insnet.training.optimizer import make_optimizers


def progress(update):
    return Progress(update, update, 0, None, 0, 1.5, 10, "recipe", "data", False)


def trained(steps, seed=0, name="adamw"):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    optimizers = make_optimizers(model, learning_rate=0.1, weight_decay=0.02, name=name)
    take_steps(model, optimizers, range(steps))
    return model, optimizers


def take_steps(model, optimizers, steps):
    for step in steps:
        model.zero_grad()
        model(torch.full((2, 3), float(step))).square().sum().backward()
        for optimizer in optimizers:
            optimizer.step()


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_training_goes_on_from_a_checkpoint_as_if_it_had_never_stopped(tmp_path, name):
    straight, _ = trained(5, name=name)
    saved = save_checkpoint(tmp_path, *trained(3, name=name), progress(3))
    model, optimizers = trained(1, seed=9, name=name)
    load_checkpoint(saved, model, optimizers)
    take_steps(model, optimizers, range(3, 5))
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), model.parameters(), strict=True))
    assert read_progress(saved) == progress(3)


def test_the_newest_whole_checkpoint_is_found_and_the_oldest_removed(tmp_path):
    assert newest_checkpoint(tmp_path / "none") is None
    for update in (2, 10, 9):
        (tmp_path / ".partial-step-00000099").mkdir(exist_ok=True)  # what a killed save leaves
        save_checkpoint(tmp_path, *trained(1), progress(update))
    assert newest_checkpoint(tmp_path).name == "step-00000010"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000009", "step-00000010"]


def harm_state(**changes):
    def change(checkpoint):
        state = json.loads((checkpoint / "state.json").read_text())
        (checkpoint / "state.json").write_text(json.dumps({**state, **changes}))

    return change


def truncate(name):
    def change(checkpoint):
        data = (checkpoint / name).read_bytes()
        (checkpoint / name).write_bytes(data[:-7])

    return change


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (truncate("model.safetensors"), "model.safetensors is truncated"),
        (truncate("optimizer.safetensors"), "optimizer.safetensors is truncated"),
        (truncate("state.json"), "state.json cannot be read"),
        (lambda checkpoint: (checkpoint / "optimizer.safetensors").unlink(), "optimizer.safetensors does not exist"),
        (harm_state(format="another"), "not written by this program"),
        (harm_state(mood="good"), "other fields"),
        (harm_state(update=5), "is of update 5"),
    ],
)
def test_a_damaged_checkpoint_is_refused_with_a_way_to_go_on(tmp_path, harm, told):
    checkpoint = save_checkpoint(tmp_path, *trained(2), progress(2))
    harm(checkpoint)
    with pytest.raises(ValueError, match="Remove that folder to go on") as caught:
        read_progress(checkpoint)
        load_checkpoint(checkpoint, *trained(0))
    assert told in str(caught.value)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    checkpoint = save_checkpoint(tmp_path, *trained(2), progress(2))
    other = nn.Sequential(nn.Linear(3, 5))
    with pytest.raises(ValueError, match="other weights"):
        load_checkpoint(checkpoint, other, make_optimizers(other, learning_rate=0.1, weight_decay=0))


@pytest.mark.parametrize(("saved", "loaded"), [("adamw", "muon"), ("muon", "adamw")])
def test_the_state_of_another_optimizer_is_refused(tmp_path, saved, loaded):
    checkpoint = save_checkpoint(tmp_path, *trained(2, name=saved), progress(2))
    with pytest.raises(ValueError, match="holds other weights"):
        load_checkpoint(checkpoint, *trained(0, name=loaded))
