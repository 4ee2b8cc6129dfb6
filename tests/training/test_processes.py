"""Several processes learn what one process learns from the same batches."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from insnet import training
from insnet.training.metrics import read_metrics
from insnet.training.prepare import prepare
from insnet.training.recipe import load_recipe
from insnet.training.trainer import train

# The package as this test imports it, installed or not.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(training.__file__).parents[2])}
RUN = """
import sys
from insnet.training.recipe import load_recipe
from insnet.training.trainer import train
train(load_recipe(sys.argv[1], sys.argv[3:]), output=sys.argv[2])
"""
SETTINGS = ["train.average=0.8", "train.label_smoothing=0.1", "train.length_shares=[3, 1]"]


@pytest.mark.slow
def test_two_processes_equal_one_that_accumulates_two_batches(recipe_path, tmp_path):
    recipe = load_recipe(recipe_path, SETTINGS)
    prepare(recipe, say=lambda text: None)
    script = tmp_path / "run.py"
    script.write_text(RUN)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    two = subprocess.run(
        [*launch, str(recipe_path), str(tmp_path / "two"), *SETTINGS], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert two.returncode == 0, two.stderr
    assert two.stderr.count("finished after 12 updates") == 1  # the first process alone speaks
    train(
        replace(recipe, train=replace(recipe.train, accumulate=2)),
        output=tmp_path / "one",
        on_event=lambda event: None,
    )
    lines = list(zip(read_metrics(tmp_path / "two"), read_metrics(tmp_path / "one"), strict=True))
    assert len(lines) == 15
    for of_two, of_one in lines:
        assert of_two == pytest.approx(of_one, rel=1e-4)
