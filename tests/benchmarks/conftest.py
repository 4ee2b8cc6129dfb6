"""The commands of `benchmarks`, called as a user calls them."""

import importlib
from pathlib import Path

import pytest
from programs import Ended, ended, save_tiny_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def benchmark(monkeypatch, capsys):
    """Runs `python -m benchmarks.NAME` in this process."""

    def run(name: str, *arguments: object) -> Ended:
        module = importlib.import_module(f"benchmarks.{name}")
        argv = [f"benchmarks/{name}.py", *arguments]
        return ended(lambda: module.command.run(module.main), argv, monkeypatch, capsys)

    return run
