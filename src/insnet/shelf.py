"""The models that ship with the package, and how to find any other."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insnet.model import Model

SHELF = Path(__file__).parent / "models"
DEFAULT = "tour"


@dataclass(frozen=True)
class ModelCard:
    """What `insnet models` tells about a model on the shelf."""

    name: str
    family: str
    parameters: int
    size_bytes: int
    data: str
    licence: str
    scores: dict[str, float]
    is_default: bool


def models() -> list[ModelCard]:
    """The models installed with the package."""
    return [_card(folder) for folder in sorted(SHELF.iterdir()) if (folder / "config.json").is_file()]


def load(name_or_folder: str | Path | None = None, *, device: str = "auto") -> "Model":
    """A model by its name on the shelf or by its folder; without one, the model that ships."""
    from insnet.model import load_folder

    return load_folder(find(name_or_folder), device)


def find(name_or_folder: str | Path | None) -> Path:
    """The folder of a model."""
    wanted = DEFAULT if name_or_folder is None else name_or_folder
    for folder in (SHELF / str(wanted), Path(wanted)):
        if (folder / "config.json").is_file():
            return folder
    names = ", ".join(card.name for card in models())
    raise ValueError(f"no model {str(wanted)!r}: it is neither a folder with a config.json nor one of {names}")


def _card(folder: Path) -> ModelCard:
    facts: dict[str, Any] = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    family = json.loads((folder / "config.json").read_text(encoding="utf-8"))["family"]
    return ModelCard(name=folder.name, family=family, size_bytes=size, is_default=folder.name == DEFAULT, **facts)
