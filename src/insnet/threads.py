"""How many threads a command computes with: as many as there are cores free, and none that spins for long.

With its own defaults torch takes every core and lets idle threads spin: one call took 44 s on two cores that others
kept busy, against 10 s with one thread. Threads that sleep at once lose by waking: half as much again on idle cores. So
they spin for some ten microseconds, and then sleep. Only commands set threads, never the import of the library.
"""

import math
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

_CHOSEN_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_POLICY = "OMP_WAIT_POLICY"
_SPINS_BRIEFLY = {_POLICY: "passive", "GOMP_SPINCOUNT": "10000", "KMP_BLOCKTIME": "0"}
_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


def set_threads(environment: MutableMapping[str, str] = os.environ) -> None:
    """Sets the number of threads, and how they wait, for a torch that is imported later or was already; leaves alone
    what the user has set."""
    spin_briefly(environment)
    if any(name in environment for name in _CHOSEN_BY_USER):
        return
    count = free_cores(available_cores(), _load())
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)
    else:
        environment["OMP_NUM_THREADS"] = str(count)


def spin_briefly(environment: MutableMapping[str, str] = os.environ) -> None:
    """Says how threads wait, before torch is imported, which reads it once; a policy that the user has set stays."""
    if _POLICY not in environment:
        for name, value in _SPINS_BRIEFLY.items():
            environment.setdefault(name, value)


def free_cores(cores: int, load: float) -> int:
    """How many of our cores others leave free, a part of one counting as one, and at least 1; `load` is their share of
    all the machine's cores. A thread too many costs little, one too few half of two cores.

    >>> free_cores(2, 0.1), free_cores(2, 0.5), free_cores(8, 0.5), free_cores(2, 3.0)
    (2, 1, 4, 1)
    """
    return max(1, math.ceil(cores * (1 - load)))


def available_cores() -> int:
    """How many cores this process may use: those it is bound to, or fewer where a container's quota says so."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, _quota()))


def _quota() -> int:
    """The whole cores of a container's quota; more than any machine has where there is none."""
    try:
        quota, period = _QUOTA_FILE.read_text().split()
        return round(int(quota) / int(period))
    except (OSError, ValueError):  # no such file, or "max"
        return sys.maxsize


def _load() -> float:
    """The share of the machine's cores that was busy during the last minute."""
    if not hasattr(os, "getloadavg"):
        return 0.0
    return os.getloadavg()[0] / (os.cpu_count() or 1)
