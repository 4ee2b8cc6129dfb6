"""`python -m benchmarks.losses` measures what the training loop measured, and what rounding changes."""

import math

import pytest

from benchmarks.losses import measure
from insnet.families.storage import load_model, save_model
from insnet.training.metrics import read_metrics
from insnet.training.prepare import prepare
from insnet.training.recipe import load_recipe
from insnet.training.trainer import train


def test_the_losses_are_those_of_the_best_evaluation(recipe, tmp_path):
    summary = train(recipe, output=tmp_path / "run", on_event=lambda event: None)
    headline, detail = measure(tmp_path / "run")
    logged = next(
        line
        for line in read_metrics(tmp_path / "run")
        if "valid_loss" in line and line["update"] == summary.best_update
    )
    assert headline == pytest.approx(
        {name: value for name, value in logged.items() if name.startswith("valid_")}, rel=1e-5
    )
    assert set(detail["losses"]) == {"as_stored"}


def test_eight_bits_cost_what_a_model_stored_in_eight_bits_has_lost(recipe_path, tmp_path):
    train(load_recipe(recipe_path, ["model.width=64"]), output=tmp_path / "run", on_event=lambda event: None)
    headline, detail = measure(tmp_path / "run", rounded=True)
    save_model(tmp_path / "run", load_model(tmp_path / "run", "cpu"), eight_bits=True)
    stored, _ = measure(tmp_path / "run")
    assert stored["valid_loss"] == detail["losses"]["int8"]["loss"] == headline["int8_loss"]
    assert headline["int8_loss"] != headline["valid_loss"] != headline["bf16_loss"]
    assert headline["int8_minus_bf16"] == pytest.approx(headline["int8_loss"] - headline["bf16_loss"])


def test_layers_of_other_tolerances_are_measured_with_the_same_weights(recipe, tmp_path):
    train(recipe, output=tmp_path / "run", on_event=lambda event: None)
    headline, detail = measure(tmp_path / "run", taus=(-math.inf, 0.0, math.inf))
    assert detail["losses"]["tau_-inf"]["loss"] == headline["valid_loss"]  # one by one, as the recipe trains
    assert "layers_per_insertion_tau_-inf" not in headline
    assert headline["layers_per_insertion_tau_inf"] < headline["layers_per_insertion_tau_0"] < 1
    assert headline["layered_loss_tau_inf"] == pytest.approx(detail["losses"]["tau_inf"]["loss"], rel=1e-6)
    assert headline["layered_loss_tau_inf"] != pytest.approx(headline["valid_loss"], rel=1e-3)


def test_fewer_sentences_can_be_measured(recipe, tmp_path):
    train(recipe, output=tmp_path / "run", on_event=lambda event: None)
    assert measure(tmp_path / "run", limit=3)[0]["valid_loss"] != measure(tmp_path / "run")[0]["valid_loss"]


def test_models_that_were_given_different_words_are_compared_on_the_same(recipe_path, tmp_path):
    plain, bare = load_recipe(recipe_path), load_recipe(recipe_path, ["given.none=1.0", "given.fraction=0.0"])
    assert plain.given != bare.given
    train(bare, output=tmp_path / "run", on_event=lambda event: None)
    own, other = measure(tmp_path / "run")[0], measure(tmp_path / "run", plain)[0]
    assert own == measure(tmp_path / "run", bare)[0]
    assert own["valid_loss"] != other["valid_loss"]


def test_a_text_prepared_for_another_tokenizer_is_refused(recipe_path, tmp_path):
    train(load_recipe(recipe_path), output=tmp_path / "run", on_event=lambda event: None)
    (tmp_path / "corpus" / "train.txt").write_text("the cat sees another animal .\n" * 40)
    prepare(load_recipe(recipe_path))
    with pytest.raises(ValueError, match="was prepared with another tokenizer"):
        measure(tmp_path / "run")
