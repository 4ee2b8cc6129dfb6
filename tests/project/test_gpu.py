"""The script for a borrowed GPU, played through on this machine's CPU: packed, run, brought, collected, used."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import insnet
from insnet.tour.corpus import write_corpus
from insnet.training.metrics import read_metrics
from insnet.training.recipe import load_recipe

ROOT = Path(__file__).parents[2]
TWO_LAYERS = "model.layers=2 model.dropout=0.0 objective.tau=[-inf,inf]"


class Machine:
    """A copy of the repository with commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "src").symlink_to(ROOT / "src")
        for name in ("recipes", "scripts"):
            shutil.copytree(ROOT / name, folder / name)

    def __call__(self, *words: str, **variables: str) -> str:
        environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": "src", **variables}
        ran = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def gpu(self, *words: str, **variables: str) -> str:
        return self("scripts/gpu.sh", *words, **variables)

    def out(self, name: str) -> list[str]:
        return sorted(path.name for path in (self.folder / name).iterdir())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine that has the tour's parcel only."""
    machine = Machine(tmp_path)
    write_corpus(tmp_path / "data" / "tour", train=300, valid=20, test=5)
    machine(sys.executable, "-m", "insnet", "prepare", "recipes/tour.toml")
    machine.gpu("pack", "tour")
    with tarfile.open(tmp_path / "parcels" / "tour.tar.xz") as parcel:
        packed = parcel.getnames()
    assert "data/tour/valid.txt" in packed and not any("test" in name or "train.txt" in name for name in packed)
    (tmp_path / "data/other/prepared").mkdir(parents=True)
    (tmp_path / "data/other/prepared/prepared.json").write_text("{}")
    machine.gpu("pack", "other")  # which has no test texts
    assert [path.name for path in (tmp_path / "parcels").glob("other*")] == ["other.tar.xz"]
    with tarfile.open(tmp_path / "parcels" / "tour.test.tar.xz") as parcel:
        assert "data/tour/test.txt" in parcel.getnames()
    shutil.rmtree(tmp_path / "data")
    return machine


def test_recipes_go_there_and_what_was_asked_for_comes_back(machine: Machine) -> None:
    jobs = ["recipes/tour.toml", f"more=recipes/tour_layered.toml@tour:0.02 {TWO_LAYERS}"]
    how = {"EVALUATE": "--limit 5 --seeds 0,1", "WEIGHTS": "more"}
    machine.gpu("run", "out", "0.05", *jobs, **how)
    assert machine.out("out") == ["more.model.tar.00", "reports.tar.xz"]
    machine.gpu("bring", "later", "tour", BITS="16")
    assert machine.out("later") == ["tour.model.tar.00"]
    curves = [read_metrics(machine.folder / "runs" / name) for name in ("tour", "more")]
    assert curves[1][0]["loss"] < curves[0][0]["loss"], "the second run starts from the first"
    shutil.move(machine.folder / "later" / "tour.model.tar.00", machine.folder / "out")
    shutil.rmtree(machine.folder / "runs")  # here again: there is only what came back
    for name in ("tour", "more"):
        machine.gpu("collect", "out", name, f"back/{name}")
        folder = machine.folder / "back" / name
        reports = [json.loads((folder / f"evaluation/seed_{seed}/report.json").read_text()) for seed in (0, 1)]
        assert [report["sentences"] for report in reports] == [5, 5] and reports[0]["coverage"] == 1.0
        assert read_metrics(folder) and "finished after" in (folder / f"{name}.log").read_text()
        assert "baker" in insnet.load(folder, device="cpu").generate(["baker"], seed=0).text.lower()
    assert load_recipe(machine.folder / "back/tour/recipe.toml").train.minutes == 0.05
    recipe = load_recipe(machine.folder / "back/more/recipe.toml")
    assert recipe.train.minutes == 0.02 and recipe.objective.merges_rounds and recipe.train.patience == 0


@pytest.mark.slow
def test_a_finished_job_is_left_alone_and_a_packed_model_can_be_started_from(machine: Machine) -> None:
    how = {"EVALUATE": "none", "WEIGHTS": "none"}
    assert "== recipes/tour.toml" in machine.gpu("run", "out", "0.03", "recipes/tour.toml", **how)
    before = read_metrics(machine.folder / "runs" / "tour")
    assert "==" not in machine.gpu("run", "out", "0.03", "recipes/tour.toml", **how)
    assert read_metrics(machine.folder / "runs" / "tour") == before and machine.out("out") == ["reports.tar.xz"]
    with (machine.folder / "out" / "more").open("wb") as large:
        large.truncate(64 * 2**20)  # takes no space, and is all that comes back
    with pytest.raises(AssertionError, match="holds more than comes back"):
        machine.gpu("run", "out", "0.03", "recipes/tour.toml", **how)
    (machine.folder / "out" / "more").unlink()
    machine.gpu("pack", "runs/tour")
    shutil.rmtree(machine.folder / "runs")
    machine.gpu("run", "out", "1", f"recipes/tour_layered.toml@tour:0.01 {TWO_LAYERS} train.updates=2", **how)
    first = read_metrics(machine.folder / "runs" / "tour_layered")[0]
    assert first["loss"] < before[0]["loss"]


@pytest.mark.slow
def test_what_a_model_writes_there_another_learns_there_and_both_come_back(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    write_corpus(tmp_path / "data/everyday", train=300, valid=1, test=1)
    draw = ["lists", "data/everyday/train.txt", "--output", "data/distilled/lists.txt", "--count", "80"]
    machine(sys.executable, "-m", "scripts.make_distilled", *draw)
    machine.gpu("pack", "distilled")
    shutil.rmtree(tmp_path / "data")
    machine.gpu("write", "out", "5", "tour", "--lines", "40", "--batch-size", "40", "--device", "cpu", WRITERS="2")
    assert machine.out("out") == ["distilled.tar.xz.00", "gathered.txt"]
    with tarfile.open(tmp_path / "out/distilled.tar.xz.00") as texts:
        assert {"data/distilled/train.txt", "data/distilled/valid.keywords.txt"} <= {*texts.getnames()}
    assert "80 texts" in (tmp_path / "out/gathered.txt").read_text()
    tiny = "model.layers=1 model.width=24 model.heads=2 train.compile=false train.token_budget=512"
    machine.gpu("run", "out", "0.03", f"recipes/small.toml {tiny}", EVALUATE="--limit 3")
    assert machine.out("out") == ["distilled.tar.xz.00", "gathered.txt", "reports.tar.xz", "small.model.tar.00"]
    machine.gpu("collect", "out", "small", "back")
    model = insnet.load(tmp_path / "back", device="cpu")
    for mode in ("sequential", "parallel"):
        assert "baker" in model.generate(["baker"], seed=0, mode=mode).text.lower()


@pytest.mark.slow
def test_a_job_that_fails_is_told_at_the_end_and_stops_no_other(machine: Machine) -> None:
    jobs = ["wrong=recipes/tour.toml train.updates=many", "right=recipes/tour.toml train.updates=2"]
    with pytest.raises(AssertionError, match=r"these jobs failed, see out/log\.txt: 'wrong=recipes"):
        machine.gpu("run", "out", "1", *jobs, EVALUATE="--limit 0", WEIGHTS="right")
    assert machine.out("out") == ["log.txt", "reports.tar.xz", "right.model.tar.00"], "safe before it is evaluated"
    log = (machine.folder / "out" / "log.txt").read_text()
    assert "train.updates is 'many'" in log and "finished after 2 updates" in log and "--limit" in log


@pytest.mark.parametrize("job", ["recipes/tour.toml@", "recipes/tour.toml:soon", "a=b=recipes/tour.toml", "tour"])
def test_a_job_that_cannot_be_read_is_told_before_anything_runs(tmp_path: Path, job: str) -> None:
    machine = Machine(tmp_path)
    with pytest.raises(AssertionError, match="cannot read the job"):
        machine.gpu("run", "out", "1", "recipes/tour.toml", job)
    assert not (tmp_path / "runs" / "tour").exists()
