"""Killed at any moment and resumed, a run gives the same numbers as one that was left alone."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from insnet import training
from insnet.training.metrics import read_metrics
from insnet.training.prepare import prepare

# The package as this test imports it, installed or not.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(training.__file__).parents[2])}
RUN = """
import sys
from insnet.training.recipe import load_recipe
from insnet.training.trainer import train
train(load_recipe(sys.argv[1], sys.argv[3:]), output=sys.argv[2], resume=True)
"""
SETTINGS = ["train.updates=240", "train.checkpoint_every=7", "train.evaluate_every=40", "train.log_every=5"]


def start(recipe_path, output):
    command = [sys.executable, "-c", RUN, str(recipe_path), str(output), *SETTINGS]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


@pytest.mark.slow
def test_a_run_killed_at_random_moments_repeats_the_uninterrupted_one(recipe, recipe_path, tmp_path):
    prepare(recipe, say=lambda text: None)
    straight, killed = (tmp_path / name / "run" for name in ("straight", "killed"))
    meanwhile = start(recipe_path, straight)
    dice, kills = random.Random(), 0
    for _ in range(3):
        process = start(recipe_path, killed)
        wait_for_growth(killed / "metrics.jsonl", process)
        time.sleep(dice.uniform(0, 0.25))
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills >= 2, "the run ended before it could be killed"
    process = start(recipe_path, killed)
    for each in (process, meanwhile):
        assert each.wait(120) == 0, each.stderr.read()
    assert read_metrics(killed) == read_metrics(straight)
    for name in ("model.safetensors", "config.json", "README.md", "tokenizer.json", "recipe.toml"):
        assert (killed / name).read_bytes() == (straight / name).read_bytes()


def wait_for_growth(path, process):
    """Until the run writes: most of a short process's life goes by before that."""
    size = path.stat().st_size if path.exists() else 0
    while process.poll() is None and (not path.exists() or path.stat().st_size == size):
        time.sleep(0.01)
