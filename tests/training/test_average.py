"""The average of the weights: what it is, that it is what is kept, and that a resumed run has the same one."""

import os
import signal
from dataclasses import replace

import pytest
import torch
from torch import nn

from insnet.families.storage import load_model, read_tensors
from insnet.training.average import WeightAverage, decay_at
from insnet.training.checkpoint import newest_checkpoint
from insnet.training.events import Updated
from insnet.training.metrics import read_metrics
from insnet.training.trainer import train


def with_average(recipe, **changes):
    return replace(recipe, train=replace(recipe.train, average=0.8, **changes))


def run(recipe, output, **options):
    return train(recipe, output=output, **{"on_event": lambda event: None, **options})


def test_it_is_the_sum_of_all_weights_so_far_each_faded_by_what_came_after():
    torch.manual_seed(0)
    model = nn.Linear(3, 2).double()
    average = WeightAverage(model, 0.7)
    history = [model.weight.detach().clone()]
    for update in range(30):
        with torch.no_grad():
            model.weight.add_(torch.randn_like(model.weight))
        average.follow(update)
        history.append(model.weight.detach().clone())
    decays = [1.0, *(decay_at(update, 0.7) for update in range(30))]
    expected = torch.zeros_like(history[0])
    for number, weights in enumerate(history):
        share = 1.0 if number == 0 else 1 - decays[number]
        for later in decays[number + 1 :]:
            share *= later
        expected += share * weights
    assert torch.allclose(average.tensors()["weight"], expected, atol=1e-12)
    assert decays[1] == 0.1 and decays[-1] == 0.7


def test_the_learning_weights_come_back_to_the_last_bit_even_after_an_error():
    model = nn.Linear(5, 5)
    average = WeightAverage(model, 0.9)
    with torch.no_grad():
        model.weight.mul_(1.2345)
    before = model.weight.detach().clone()
    with pytest.raises(KeyError), average.in_place():
        assert torch.equal(model.weight, average.tensors()["weight"]) and not torch.equal(model.weight, before)
        raise KeyError
    assert torch.equal(model.weight, before)


def test_the_average_is_evaluated_and_kept_and_the_learning_weights_are_in_the_checkpoint(recipe, tmp_path):
    plain = replace(recipe, train=replace(recipe.train, patience=0, evaluate_every=12))
    run(plain, tmp_path / "plain")
    run(with_average(plain), tmp_path / "averaged")
    checkpoint = newest_checkpoint(tmp_path / "averaged" / "checkpoints")
    learning, average = (read_tensors(checkpoint / f"{name}.safetensors") for name in ("model", "average"))
    kept = load_model(tmp_path / "averaged", "cpu").state_dict()
    assert all(torch.equal(kept[name], average[name]) for name in average)
    unaveraged = load_model(tmp_path / "plain", "cpu").state_dict()
    assert all(torch.equal(learning[name], unaveraged[name]) for name in learning), "averaging changes no learning"
    assert not torch.equal(kept["embedding.weight"], learning["embedding.weight"])
    curves = [read_metrics(tmp_path / name) for name in ("plain", "averaged")]
    assert curves[0][:-1] == curves[1][:-1] and curves[0][-1]["valid_loss"] != curves[1][-1]["valid_loss"]


def test_a_resumed_run_has_the_same_average(recipe, tmp_path):
    recipe = with_average(recipe, checkpoint_every=100)

    def interrupt(event):
        if isinstance(event, Updated) and event.update == 6:
            os.kill(os.getpid(), signal.SIGINT)

    assert run(recipe, tmp_path / "halved", on_event=interrupt).status == "interrupted"
    run(recipe, tmp_path / "halved", resume=True)
    run(recipe, tmp_path / "straight")
    assert read_metrics(tmp_path / "halved") == read_metrics(tmp_path / "straight")
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("halved", "straight"))
    assert one == two


def test_a_checkpoint_without_its_average_is_refused(recipe, tmp_path):
    run(with_average(recipe), tmp_path / "run")
    (newest_checkpoint(tmp_path / "run" / "checkpoints") / "average.safetensors").unlink()
    with pytest.raises(ValueError, match=r"average\.safetensors does not exist"):
        run(with_average(recipe, updates=15), tmp_path / "run", resume=True)
