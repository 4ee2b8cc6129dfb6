"""A run may be given minutes instead of updates."""

from dataclasses import replace

import pytest

from insnet.training.metrics import read_metrics
from insnet.training.recipe import load_recipe
from insnet.training.schedule import learning_rate_share
from insnet.training.trainer import train


def test_the_learning_rate_falls_in_the_last_two_thirds_of_the_time():
    spent = (0.0, 1 / 3, 0.5, 2 / 3, 1.0, 1.2)
    shares = [learning_rate_share(500, warmup=10, total=10**9, spent=each) for each in spent]
    assert shares == pytest.approx([1.0, 1.0, 0.75, 0.5, 0.0, 0.0], abs=1e-6)
    assert learning_rate_share(4, warmup=10, total=10**9, spent=0.4) == 0.5, "and rises first"


def test_a_run_ends_when_its_minutes_are_used_up(recipe_path, tmp_path):
    recipe = load_recipe(recipe_path, ["train.updates=1000000", "train.minutes=0.03", "train.evaluate_every=1000000"])
    summary = train(recipe, output=tmp_path / "run", on_event=lambda event: None)
    assert summary.status == "finished" and 0 < summary.update < 1_000_000
    assert 1.8 <= summary.seconds < 20
    lines = read_metrics(tmp_path / "run")
    rates = [line["learning_rate"] for line in lines if "learning_rate" in line]
    assert rates[-1] < 0.1 * max(rates) and "valid_loss" in lines[-1]
    again = train(replace(recipe), output=tmp_path / "run", resume=True, on_event=lambda event: None)
    assert again.status == "finished" and again.update == summary.update
