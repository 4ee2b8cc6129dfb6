"""The script for a borrowed GPU, played through on this machine's CPU: packed, run, collected, used."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import insnet
from insnet.tour.corpus import write_corpus

ROOT = Path(__file__).parents[2]


def test_a_recipe_goes_there_and_its_model_comes_back(tmp_path: Path) -> None:
    (tmp_path / "src").symlink_to(ROOT / "src")
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    write_corpus(tmp_path / "data" / "tour", train=300, valid=20, test=5)

    def command(*words: str, **variables: str) -> None:
        environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": "src", **variables}
        ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    command(sys.executable, "-m", "insnet", "prepare", "recipes/tour.toml")
    command("recipes/gpu.sh", "pack", "tour")
    shutil.rmtree(tmp_path / "data")  # the other machine has the parcel only
    command("recipes/gpu.sh", "run", "out", "0.05", "recipes/tour.toml", SENTENCES="5")
    came_back = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert came_back == ["tour.log", "tour.model.safetensors", "tour.tar.xz"]
    command("recipes/gpu.sh", "collect", "out", "tour", "model")
    assert json.loads((tmp_path / "model" / "report.json").read_text())["coverage"] == 1.0
    assert (tmp_path / "model" / "metrics.jsonl").stat().st_size > 0
    assert "baker" in insnet.load(tmp_path / "model", device="cpu").generate(["baker"], seed=0).text
