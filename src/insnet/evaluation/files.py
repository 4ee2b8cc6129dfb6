"""Scores and texts as files."""

import json
from collections.abc import Iterable
from pathlib import Path


def json_text(values: object) -> str:
    """Values as indented JSON; not-a-number and infinity, which JSON does not have, are a ValueError."""
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def one_a_line(texts: Iterable[str]) -> str:
    """The texts, one a line; a line break inside one becomes a space, which changes no score here."""
    return "".join(" ".join(text.splitlines()) + "\n" for text in texts)


def outputs_path(json_path: Path) -> Path:
    """Where the scored texts of a JSON file lie: NAME.outputs.txt beside NAME.json."""
    return json_path.with_name(json_path.name.removesuffix(".json") + ".outputs.txt")
