"""Reads a pretrained base from whatever it comes in."""

import zipfile
import zlib
from pathlib import Path

from insnet.pretrained.gguf import GgufFile
from insnet.pretrained.llama import Base
from insnet.pretrained.llama_folder import base_of_folder
from insnet.pretrained.llama_gguf import base_of_gguf


def read_base(source: str | Path) -> Base:
    """The base in a Llama-like folder, a GGUF file, or a wheel that holds one of these files."""
    path = Path(source)
    if path.is_dir():
        return base_of_folder(path)
    if not path.is_file():
        raise ValueError(f"there is no base {path}: name a GGUF file, a wheel that holds one, or a model's folder")
    if zipfile.is_zipfile(path):
        name, content = gguf_of_wheel(path)
        return base_of_gguf(GgufFile(content, f"{name} in {path}"))
    return base_of_gguf(GgufFile.open(path))


def gguf_of_wheel(path: Path) -> tuple[str, bytes]:
    """Name and content of the one GGUF file in a wheel."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                raise ValueError(f"{path} holds {len(names)} GGUF files; expected a wheel with one")
            return names[0], archive.read(names[0])
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path} is damaged ({error}): get it again") from None
