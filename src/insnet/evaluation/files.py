"""Files that are there whole or not at all."""

import json
import os
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that a reader, or a crash half way, finds the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # the same folder: a rename cannot cross disks
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def json_text(values: object) -> str:
    """Values as indented JSON; not-a-number and infinity, which JSON does not have, are a ValueError."""
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def one_a_line(texts: Iterable[str]) -> str:
    """The texts, one a line; a line break inside one becomes a space, which changes no score here."""
    return "".join(" ".join(text.splitlines()) + "\n" for text in texts)


def outputs_path(json_path: Path) -> Path:
    """Where the scored texts of a JSON file lie: NAME.outputs.txt beside NAME.json."""
    return json_path.with_name(json_path.name.removesuffix(".json") + ".outputs.txt")
