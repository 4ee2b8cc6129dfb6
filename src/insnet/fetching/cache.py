"""Where fetched things are kept. Each appears there whole or not at all, and may be removed at any time."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from insnet.fetching.unavailable import Unavailable

_LOCK_FILE, _TEMPORARY = ".lock", "partial-"


def cache_folder() -> Path:
    """INSNET_CACHE, else insnet in XDG_CACHE_HOME, else ~/.cache/insnet."""
    if own := os.environ.get("INSNET_CACHE"):
        return Path(own).expanduser().absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "insnet"


@contextmanager
def workplace(say: Callable[[str], None]) -> Iterator[Path]:
    """An empty folder in the cache, for one process at a time; the others wait. It goes in the end, and so does what a
    killed process has left. A write that fails is told as `Unavailable`."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache, say):
            _remove_left_overs(cache)
            folder = Path(tempfile.mkdtemp(dir=cache, prefix=_TEMPORARY))
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise Unavailable(
            f"cannot write to the cache {cache} ({error.strerror or error}): "
            "make room, or set INSNET_CACHE to another folder"
        ) from None


def put_in_place(finished: Path, place: Path, workplace: Path) -> None:
    """Moves a finished file or folder of the workplace to where it is read; what was there goes."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        place.rename(workplace / "replaced")
    finished.rename(place)


@contextmanager
def _locked(cache: Path, say: Callable[[str], None]) -> Iterator[None]:
    lock = FileLock(cache / _LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"another process is fetching into {cache}: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _remove_left_overs(cache: Path) -> None:
    for folder in cache.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(folder, ignore_errors=True)
