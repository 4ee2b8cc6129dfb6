"""A small untrained model in a folder, and the command line called as a user calls it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import Ended, ended, save_tiny_model

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def shelf(model_folder, monkeypatch) -> Path:
    """The small model as the only one that ships."""
    monkeypatch.setattr("insnet.shelf.SHELF", model_folder.parent)
    monkeypatch.setattr("insnet.shelf.DEFAULT", model_folder.name)
    monkeypatch.setattr("insnet.shelf.SMALL", model_folder.name)
    return model_folder


@pytest.fixture
def insnet(shelf, monkeypatch, capsys):
    """Runs the program in this process."""
    from insnet.cli import main

    def run(*arguments: object) -> Ended:
        return ended(main, ["insnet", *arguments], monkeypatch, capsys)

    return run


@pytest.fixture
def start_insnet(model_folder):
    """Starts the program in a process of its own."""
    started = []

    def start(*arguments: object, **options) -> subprocess.Popen:
        command = [sys.executable, "-m", "insnet", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
