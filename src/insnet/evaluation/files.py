"""Scores and texts as files."""

import json
import lzma
from collections.abc import Iterable
from pathlib import Path

from insnet.files import write_atomically


def json_text(values: object) -> str:
    """Values as indented JSON, each row of a table on one line; not-a-number and infinity, which JSON lacks, are a
    ValueError.

    >>> print(json_text({"rows": [{"update": 1, "loss": 2.5}, {"update": 2, "loss": 2.25}]}), end="")
    {
      "rows": [
        {"update": 1, "loss": 2.5},
        {"update": 2, "loss": 2.25}
      ]
    }
    """
    return _indented(values, "") + "\n"


def _indented(value: object, indent: str, *, is_row: bool = False) -> str:
    inner = indent + "  "
    nested = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(nested, list | tuple) or not nested or (is_row and not any(map(_has_entries, nested))):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, dict):
        entries = [f"{json.dumps(name, ensure_ascii=False)}: {_indented(each, inner)}" for name, each in value.items()]
    else:
        entries = [_indented(each, inner, is_row=True) for each in nested]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{inner}" + f",\n{inner}".join(entries) + f"\n{indent}{last}"


def _has_entries(value: object) -> bool:
    return isinstance(value, dict | list | tuple)


def one_per_line(texts: Iterable[str]) -> str:
    """The texts, one per line; a line break inside one becomes a space, which changes no score here."""
    return "".join(" ".join(text.splitlines()) + "\n" for text in texts)


def outputs_path(json_path: Path) -> Path:
    """Where the scored texts of a results file lie: NAME.outputs.txt.xz beside NAME.json."""
    return json_path.with_name(json_path.name.removesuffix(".json") + ".outputs.txt.xz")


def write_compressed(path: Path, text: str) -> None:
    """Writes a .txt.xz, whole or not at all; the same bytes for the same text."""
    write_atomically(path, lzma.compress(text.encode(), preset=9))
