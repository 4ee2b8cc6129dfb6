"""Optimizers: who moves which parameter, what decays, and that Muon's steps are those of its definition."""

import pytest
import torch
from small_models import small_model
from torch import nn

from insnet.families import FAMILIES
from insnet.training.muon import Muon
from insnet.training.optimizer import make_optimizers


def groups_of(model, **options):
    """The optimizer and the decay of every parameter, by name; each parameter stands in one group alone."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    found = [
        (names[parameter], (type(optimizer).__name__, group["weight_decay"]))
        for optimizer in make_optimizers(model, learning_rate=0.1, weight_decay=0.5, **options)
        for group in optimizer.param_groups
        for parameter in group["params"]
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.mark.parametrize("name", ["adamw", "muon"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_is_moved_and_no_bias_or_single_vector_decays(family, name):
    model = small_model(family, "word").family
    groups = groups_of(model, name=name)
    assert groups.keys() == {name for name, _ in model.named_parameters()}
    assert {name for name, (_, decay) in groups.items() if decay == 0} == {
        name for name, parameter in model.named_parameters() if parameter.dim() < 2 or name.endswith("bias")
    }


def test_muon_moves_the_matrices_inside_a_model_and_nothing_else():
    told = {"count_head": 6, "length_conditioned": True, "slot_layers": 1}
    model = small_model("insnet", "word", **told).family
    by_muon = {name for name, (optimizer, _) in groups_of(model, name="muon").items() if optimizer == "Muon"}
    linear = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    assert by_muon == linear - {"slot_head.weight", "stop_head.weight"}
    assert not any(optimizer == "Muon" for optimizer, _ in groups_of(model).values())


def test_what_does_not_learn_is_left_to_no_optimizer():
    model = small_model("insnet", "word").family
    model.requires_grad_(False)
    model.stop_head.requires_grad_(True)
    assert groups_of(model, name="muon").keys() == {"stop_head.weight", "stop_head.bias"}


def test_a_step_of_muon_is_as_long_in_every_direction_and_as_large_as_one_of_adamw():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(48, 32, bias=False))
    weight = model[0].weight
    (muon,) = make_optimizers(model, learning_rate=0.01, weight_decay=0.0, name="muon")
    before = weight.detach().clone()
    weight.grad = torch.randn(32, 48) @ torch.diag(torch.logspace(0, -2, 48))  # directions of very different size
    muon.step()
    step = (before - weight.detach()) / 0.01
    lengths = torch.linalg.svdvals(step) / (0.2 * 48**0.5)
    assert lengths.min() > 0.6 and lengths.max() < 1.3  # Newton-Schulz stops short of exactly 1
    assert float(step.square().mean().sqrt()) == pytest.approx(0.2, rel=0.2)  # of its entries; AdamW's are 0.2 to 0.4


def test_matrices_that_are_moved_together_go_where_torch_moves_them_one_by_one():
    """Wide, tall and square ones, several of a shape, one without a gradient: only rounding to bfloat16 differs."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(24, 48), (48, 24), (24, 24), (24, 48), (24, 48), (24, 24), (7, 5)]
    start = [torch.randn(shape, generator=generator) for shape in shapes]
    ours, theirs = ([nn.Parameter(matrix.clone()) for matrix in start] for _ in range(2))
    options = {"lr": 0.05, "weight_decay": 0.1}
    optimizers = [Muon(ours, **options), torch.optim.Muon(theirs, adjust_lr_fn="match_rms_adamw", **options)]
    for _ in range(4):
        for number, (mine, twin) in enumerate(zip(ours, theirs, strict=True)):
            gradient = torch.randn(mine.shape, generator=generator)
            mine.grad, twin.grad = (None, None) if number == 4 else (gradient, gradient.clone())
        for optimizer in optimizers:
            optimizer.step()
    for before, mine, twin in zip(start, ours, theirs, strict=True):
        assert (mine - twin).norm() <= 0.02 * (twin - before).norm()
    assert torch.equal(ours[4], start[4])
    states = [optimizer.state_dict()["state"] for optimizer in optimizers]
    assert states[0].keys() == states[1].keys()
    for number, state in states[0].items():
        torch.testing.assert_close(state, states[1][number])
