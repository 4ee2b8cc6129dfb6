"""Files of published figures: what was measured, by which command, on which code and hardware."""

import math
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from insnet.evaluation.files import json_text, one_per_line, outputs_path, write_compressed
from insnet.files import write_atomically

# A path begins with a slash that touches nothing that could be a word, a relative path or an address.
_ABSOLUTE_PATH = re.compile(r"(?<![\w./~])/[\w.+@-]+(?:/[\w.+@-]+)*/?")


def write_result(
    path: str | Path,
    *,
    command: str | Sequence[str],
    headline: Mapping[str, float],
    seeds: Sequence[int],
    data: object,
    detail: Mapping[str, object] | None = None,
    outputs: Sequence[str] | None = None,
) -> Path:
    """The JSON file of a measurement; `outputs` (of the first seed) go beside it as NAME.outputs.txt.xz.

    Commit, hardware and date are found here; the entries of `detail` stand below the headline.
    Absolute paths of this machine are shortened wherever they occur: a result says nothing about where it was made.
    """
    path = Path(path)
    if path.suffix != ".json":
        raise ValueError(f"a result file is a JSON file, but {path.name!r} does not end in .json")
    _check_headline(headline)
    result: dict[str, object] = {
        **provenance(command if isinstance(command, str) else shlex.join(command)),
        "seeds": list(seeds),
        "data": data,
        "headline": dict(headline),
    }
    taken = sorted(result.keys() & (detail or {}).keys())
    if taken:
        raise ValueError(f"detail has the name {taken[0]!r}, which every result file has already: choose another")
    text = json_text(without_machine_paths({**result, **(detail or {})}))
    if outputs is not None:
        write_compressed(outputs_path(path), one_per_line(outputs))
    write_atomically(path, text)
    return path


def provenance(command: str = "") -> dict[str, str]:
    """By which command, if there is one, commit and hardware something is measured, and when: now."""
    given = {"command": command} if command else {}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return given | {"commit": commit(), "hardware": hardware(), "date": date}


def commit() -> str:
    """The commit of the running code, with "-dirty" if the checkout has changes; "unknown" outside a checkout.

    Result files and figures do not count as changes: a series of measurements writes one after another.
    The environment variable INSNET_COMMIT goes before: a copy on another machine may have no history, or an older one.
    """
    if given := os.environ.get("INSNET_COMMIT"):
        return given
    here = Path(__file__).resolve()
    # A package installed inside another project's folder must not report that project's commit.
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return "unknown"
    found = _git(here.parent, "rev-parse", "HEAD")
    written = [f":(top,exclude){folder}" for folder in ("benchmarks/results", "docs/figures")]
    changes = _git(here.parent, "status", "--porcelain", "--", ":/", *written)
    return f"{found}-dirty" if changes else found or "unknown"


def hardware() -> str:
    """The processor with the number of its cores that this process may use, and the GPU if there is one."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = [f"{_processor()}, {cores} cores"]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def without_machine_paths(value: object) -> object:
    """The value with every absolute path of this machine made relative to the working folder, or else its last part.

    A path counts only if its first folder exists here, so that "tokens /s" and addresses stay as they are.
    """
    if isinstance(value, str):
        return _ABSOLUTE_PATH.sub(_shortened, value)
    if isinstance(value, Path):
        return without_machine_paths(str(value))
    if isinstance(value, Mapping):
        return {without_machine_paths(key): without_machine_paths(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_machine_paths(entry) for entry in value]
    return value


def _shortened(match: re.Match[str]) -> str:
    path = PurePosixPath(match.group())
    if not Path("/", path.parts[1]).is_dir():
        return match.group()
    folder = PurePosixPath(Path.cwd().as_posix())
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name


def _check_headline(headline: Mapping[str, float]) -> None:
    if not headline:
        raise ValueError("the headline is empty: give at least one number")
    for name, number in headline.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise ValueError(f"headline {name!r} is {number!r}: a headline is flat and holds finite numbers only")


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, or None where it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    try:
        listing = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        listing = ""
    named = re.search(r"^model name\s*:\s*(.+)$", listing, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or platform.machine()
