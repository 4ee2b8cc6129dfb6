"""Several processes learn what one process learns from the same batches."""

import ast
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
SETTINGS = ["train.label_smoothing=0.1", "train.length_shares=[3, 1]"]


# One rank's clock runs at half speed: what each made of the weights goes into a file of its own.
TIMED_RUN = """
import os, sys, time
from pathlib import Path
from types import SimpleNamespace
from insnet.training import clock, trainer
from insnet.training.recipe import load_recipe
rank = int(os.environ["RANK"])
clock.time = SimpleNamespace(perf_counter=lambda: time.perf_counter() / (1 + rank))
class Watched(trainer._Trainer):
    def run(self):
        summary = super().run()
        weights = [parameter.detach().double().flatten() for parameter in self.model.parameters()]
        (Path(sys.argv[2]) / f"rank{rank}").write_text(repr((summary.update, [each.sum().item() for each in weights])))
        return summary
trainer._Trainer = Watched
trainer.train(load_recipe(sys.argv[1], sys.argv[3:]), output=sys.argv[2])
"""


def in_two_processes(code, recipe_path, output, settings):
    """How a script ended that ran twice at a time, as torchrun starts it."""
    script = output.with_suffix(".py")
    script.write_text(code)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    command = [*launch, str(recipe_path), str(output), *settings]
    ended = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.mark.slow
def test_with_a_budget_of_minutes_all_processes_go_by_one_clock_and_keep_the_same_weights(recipe_path, tmp_path):
    settings = ["train.minutes=0.03", "train.updates=100000", "train.evaluate_every=100000", "train.patience=0"]
    prepare(load_recipe(recipe_path, settings), say=lambda text: None)
    in_two_processes(TIMED_RUN, recipe_path, tmp_path / "run", settings)
    first, second = (ast.literal_eval((tmp_path / "run" / f"rank{rank}").read_text()) for rank in (0, 1))
    assert first == second and first[0] > 3


@pytest.mark.slow
def test_two_processes_equal_one_that_accumulates_two_batches(recipe_path, tmp_path):
    recipe = load_recipe(recipe_path, SETTINGS)
    prepare(recipe, say=lambda text: None)
    two = in_two_processes(RUN, recipe_path, tmp_path / "two", SETTINGS)
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
