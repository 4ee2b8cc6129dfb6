"""Low-rank terms: they begin as nothing, they alone learn, and merged they are plain weights."""

import torch
from torch import nn

from insnet.layers.low_rank import (
    add_low_rank,
    is_low_rank,
    low_rank_terms,
    merge_low_rank,
    merged_state,
    part_of_linear,
    plain_name,
)


def with_term(rank=3):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 4, bias=False)).double()
    plain = {name: value.clone() for name, value in model.state_dict().items()}
    add_low_rank(model[0], rank)
    return model, plain


def learn(model):
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 5, dtype=torch.float64)).square().sum().backward()
        optimizer.step()


def test_a_new_term_changes_nothing():
    model, plain = with_term()
    assert is_low_rank(model)
    assert torch.equal(merged_state(model)["0.weight"], plain["0.weight"])
    [(name, linear)] = low_rank_terms(model)
    assert name == "0" and linear.low_rank.down.shape == (3, 5) and linear.low_rank.up.shape == (7, 3)


def test_the_term_learns_and_the_weight_under_it_does_not():
    model, plain = with_term()
    learn(model)
    state, merged = model.state_dict(), merged_state(model)["0.weight"]
    assert torch.equal(state["0.weight"], plain["0.weight"])
    up, down = (state[f"0.low_rank.{part}"] for part in ("up", "down"))
    assert up.abs().max() > 0
    torch.testing.assert_close(merged, plain["0.weight"] + up @ down)
    assert torch.linalg.matrix_rank(merged - plain["0.weight"]) <= 3
    assert not torch.equal(state["2.weight"], plain["2.weight"])


def test_merged_it_is_a_plain_model_of_the_same_outputs_and_names():
    model, plain = with_term()
    learn(model)
    inputs = torch.randn(3, 5, dtype=torch.float64)
    expected, state = model(inputs), merged_state(model)
    assert is_low_rank(model)  # asking for the merged state leaves it alone
    merge_low_rank(model)
    assert not is_low_rank(model)
    assert model.state_dict().keys() == plain.keys()
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())
    torch.testing.assert_close(model(inputs), expected)


def test_some_outputs_of_a_map_are_those_of_the_whole_map():
    model, _ = with_term()
    learn(model)
    inputs = torch.randn(3, 5, dtype=torch.float64)
    for linear in (model[0], nn.Linear(5, 7).double()):
        torch.testing.assert_close(part_of_linear(linear, inputs, slice(2, 6)), linear(inputs)[:, 2:6])


def test_the_merged_state_of_a_plain_model_is_its_own():
    model = nn.Linear(2, 3)
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in merged_state(model).items())
    assert plain_name("weight") == "weight"
