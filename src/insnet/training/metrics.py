"""metrics.jsonl, one object per line, and the same numbers for TensorBoard where it is installed."""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from insnet.files import write_atomically

METRICS_FILE = "metrics.jsonl"


class Metrics:
    """The numbers of a run, by update; on resuming, what came after the checkpoint is forgotten."""

    def __init__(self, folder: Path, *, after_update: int) -> None:
        path = folder / METRICS_FILE
        _forget_after(path, after_update)
        self._file = path.open("a", encoding="utf-8")
        self._board = _board(folder / "tensorboard", after_update)

    def write(self, update: int, values: dict[str, float]) -> None:
        """Add one line."""
        self._file.write(json.dumps({"update": update, **values}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name.replace("valid_", "valid/"), value, update)

    def flush(self) -> None:
        """Put all lines on disk: no checkpoint may be newer than its metrics."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Put all lines on disk and let go of the files."""
        self.flush()
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """All whole lines of a run folder's metrics."""
    path = folder / METRICS_FILE
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if _is_whole(line)]


def _forget_after(path: Path, update: int) -> None:
    """Drop lines of later updates, and a line that a killed writer left half."""
    if not path.is_file():
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if _is_whole(line) and json.loads(line)["update"] <= update]
    if kept != lines:
        write_atomically(path, "".join(kept))


def _is_whole(line: str) -> bool:
    return line.endswith("}\n")


def _board(folder: Path, after_update: int) -> Any:
    """TensorBoard's writer, or None where it is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=after_update + 1)
