"""Threads fit the cores that are free, and what the user has set stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from insnet import threads
from insnet.cli import app
from insnet.threads import available_cores, free_cores, set_threads

SOURCE = Path(__file__).parents[2] / "src"
BRIEFLY = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "10000", "KMP_BLOCKTIME": "0"}


def machine(monkeypatch, *, cores, load, bound=None, quota=None):
    """Pretends to run on another machine, before torch was imported."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(bound or cores)), raising=False)
    monkeypatch.setattr(threads, "_quota", lambda: quota or sys.maxsize)
    monkeypatch.delitem(sys.modules, "torch")


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"cores": 2, "load": 0.1}, 2),
        ({"cores": 2, "load": 1.1}, 1),
        ({"cores": 2, "load": 7.0}, 1),
        ({"cores": 16, "load": 4.0}, 12),
        ({"cores": 16, "load": 0.0, "bound": 4}, 4),
        ({"cores": 64, "load": 32.0, "bound": 4}, 2),  # others keep half of all cores busy
        ({"cores": 16, "load": 0.0, "quota": 2}, 2),
        ({"cores": 1, "load": 0.0}, 1),
    ],
)
def test_as_many_threads_as_cores_are_free_and_none_spins_for_long(monkeypatch, given, count):
    machine(monkeypatch, **given)
    set_threads(environment := {})
    assert environment == {**BRIEFLY, "OMP_NUM_THREADS": str(count)}


@pytest.mark.parametrize("chosen", [{"OMP_NUM_THREADS": "3"}, {"MKL_NUM_THREADS": "3"}])
def test_what_the_user_has_set_stays(monkeypatch, chosen):
    machine(monkeypatch, cores=2, load=0.0)
    set_threads(environment := {**chosen, "OMP_WAIT_POLICY": "active"})
    assert environment == {**chosen, "OMP_WAIT_POLICY": "active"}


def test_a_torch_that_is_there_already_is_told_directly(monkeypatch):
    heard = []
    machine(monkeypatch, cores=2, load=7.0)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(torch, "set_num_threads", heard.append)
    set_threads(environment := {})
    assert heard == [1] and "OMP_NUM_THREADS" not in environment


def test_a_machine_that_does_not_tell_its_load_counts_as_idle(monkeypatch):
    machine(monkeypatch, cores=2, load=7.0)
    monkeypatch.delattr(os, "getloadavg")
    set_threads(environment := {})
    assert environment["OMP_NUM_THREADS"] == "2"


@pytest.mark.parametrize(
    ("text", "cores"), [("150000 100000\n", 2), ("50000 100000\n", 1), ("max 100000\n", 64), (None, 64)]
)
def test_a_containers_quota_is_kept(monkeypatch, tmp_path, text, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)), raising=False)
    monkeypatch.setattr(threads, "_QUOTA_FILE", tmp_path / "cpu.max")
    if text is not None:
        (tmp_path / "cpu.max").write_text(text)
    assert available_cores() == cores
    assert free_cores(cores, 0.0) == cores


def test_commands_that_write_texts_set_threads_and_the_import_does_not(insnet, monkeypatch):
    heard = []
    monkeypatch.setattr(app, "set_threads", lambda: heard.append(True))
    insnet("models")
    assert heard == []
    for arguments in (["generate", "ship", "--seed", 1], ["infill", "A ___ ship.", "--seed", 1], ["score", "A ship."]):
        insnet(*arguments)
    assert len(heard) == 3
    code = "import os, insnet, insnet.threads, insnet.cli; print(sorted(os.environ))"
    clean = {name: value for name, value in os.environ.items() if name not in (*BRIEFLY, "OMP_NUM_THREADS")}
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert not any(name in printed for name in ("OMP_", "KMP_", "GOMP_"))
