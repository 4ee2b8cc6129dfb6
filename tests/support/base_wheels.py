"""Wheels that hold a base, as pip takes them."""

import zipfile
from pathlib import Path

PACKAGE, VERSION, WHEEL = "tiny-base", "1.0", "tiny_base-1.0-py3-none-any.whl"
_INFO = "tiny_base-1.0.dist-info"


def write_wheel(path: Path, files: dict[str, bytes]) -> Path:
    """A wheel that holds some files."""
    named = {
        f"{_INFO}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n",
        f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{_INFO}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, **named}.items():
            archive.writestr(name, content)
    return path
