"""Files that are either whole or not there, and JSON whose faults are told in one sentence."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

CONFIG_FILE, GENERATION_FILE, RECIPE_FILE = "config.json", "generation_config.json", "recipe.toml"
WEIGHTS_FILE = "model.safetensors"
ADAPTER_FILE, ADAPTER_WEIGHTS_FILE = "adapter.json", "adapter.safetensors"
"""What a model's folder, or an adapter's, is made of."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file such that a killed writer leaves the old one, or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # mkstemp gives 0600, which a service under another user could not read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; a missing, truncated or other file is a ValueError that names it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} cannot be read as JSON (truncated?): {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object")
    return content
