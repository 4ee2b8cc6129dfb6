"""A file of results that grows chunk by chunk, outlives being killed, and is continued by the same command."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from insnet.files import read_json_object, write_atomically


@dataclass(frozen=True)
class ResumableFile:
    """Results on disk, and how far they go."""

    file: BinaryIO
    settings: Mapping[str, Any]
    """What the file was begun with."""
    done: int
    """Lines that were there already."""

    def append(self, text: str) -> None:
        """Adds lines; when this returns they are safe."""
        self.file.write(text.encode())
        self.file.flush()
        os.fsync(self.file.fileno())


@contextmanager
def resumable_file(
    path: Path,
    settings: Mapping[str, Any],
    *,
    drawn: Mapping[str, Any],
    lines: int,
    lines_a_chunk: int,
    overwrite: bool,
    header: str = "",
) -> Iterator[ResumableFile]:
    """The file at `path`, begun or continued; `lines` is how many it will have in the end, behind the header. With a
    header it is CSV: a line may go on inside quotation marks.

    Settings lie beside it as NAME.settings.json. A file begun with others is refused. A setting that is None takes the
    value the file was begun with, or for a new file the one in `drawn`. No two processes write the same file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        _lock(file, path)
        beside = path.with_name(f"{path.name}.settings.json")
        if overwrite or path.stat().st_size == 0:
            os.truncate(path, 0)  # first: settings never vouch for lines of another making
            begun = {name: drawn.get(name) if value is None else value for name, value in settings.items()}
            write_atomically(beside, json.dumps(begun, indent=2, ensure_ascii=False) + "\n")
            done = 0
        else:
            begun = _check(path, beside, settings)
            done = _keep_whole_chunks(path, lines, lines_a_chunk, header.encode())
        output = ResumableFile(file, begun, done)
        if path.stat().st_size == 0:
            output.append(header)
        yield output


def _check(path: Path, beside: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings the file was begun with, if they are those of today."""
    if not beside.is_file():
        raise ValueError(
            f"{path} is there already, and not from this command: name another --output, or add --overwrite"
        )
    begun = read_json_object(beside)
    today = {name: begun.get(name) if value is None else value for name, value in settings.items()}
    different = sorted(name for name in today.keys() | begun.keys() if begun.get(name) != today.get(name))
    if different:
        raise ValueError(
            f"{path} was begun with another {' and '.join(different)}; repeat the command as it was to go on, "
            "name another --output, or add --overwrite to start anew"
        )
    return begun


def _keep_whole_chunks(path: Path, lines: int, lines_a_chunk: int, header: bytes) -> int:
    """How many lines the file holds, once a chunk that a killed run left in part is cut off.

    Going on at a chunk's border also makes the rest the same as without the interruption, to the last digit. A header
    that is there in part goes, too.
    """
    with path.open("rb") as file:
        if file.read(len(header)) != header:
            os.truncate(path, 0)
            return 0
        ends = [len(header), *_ends_of_lines(file, may_be_quoted=bool(header))]
    kept = len(ends) - 1
    if kept < lines:
        kept = kept // lines_a_chunk * lines_a_chunk
    os.truncate(path, ends[kept])
    return kept


def _ends_of_lines(file: BinaryIO, *, may_be_quoted: bool) -> Iterator[int]:
    """Where each whole line of the rest of a file ends."""
    end, quotes = file.tell(), 0
    for line in file:
        end += len(line)
        quotes += line.count(b'"') if may_be_quoted else 0
        if line.endswith(b"\n") and quotes % 2 == 0:
            yield end


def _lock(file: BinaryIO, path: Path) -> None:
    """Keeps other processes out until the file is closed, which the system does for a killed one too."""
    try:
        import fcntl
    except ImportError:  # Windows has none
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ValueError(f"another process is writing {path}: wait for it, or name another --output") from None
