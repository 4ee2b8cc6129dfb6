"""A run may be given minutes instead of updates."""

from dataclasses import replace

from insnet.training.metrics import read_metrics
from insnet.training.recipe import load_recipe
from insnet.training.schedule import learning_rate_share
from insnet.training.trainer import train


def test_the_learning_rate_falls_with_the_time_spent():
    shares = [learning_rate_share(500, warmup=10, total=10**9, spent=spent) for spent in (0.0, 0.25, 0.5, 1.0, 1.2)]
    assert shares[1:] == [0.75, 0.5, 0.0, 0.0] and shares[0] > 0.99


def test_a_run_ends_when_its_minutes_are_used_up(recipe_path, tmp_path):
    recipe = load_recipe(recipe_path, ["train.updates=1000000", "train.minutes=0.05", "train.evaluate_every=1000000"])
    summary = train(recipe, output=tmp_path / "run", on_event=lambda event: None)
    assert summary.status == "finished" and 0 < summary.update < 1_000_000
    assert 3.0 <= summary.seconds < 20
    lines = read_metrics(tmp_path / "run")
    rates = [line["learning_rate"] for line in lines if "learning_rate" in line]
    assert rates[-1] < 0.1 * max(rates) and "valid_loss" in lines[-1]
    again = train(replace(recipe), output=tmp_path / "run", resume=True, on_event=lambda event: None)
    assert again.status == "finished" and again.update == summary.update
