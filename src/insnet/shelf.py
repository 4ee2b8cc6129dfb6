"""The models that ship with the package, how to find any other, and how one gets on the shelf."""

import json
import shutil
from collections.abc import Mapping, Sequence
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
    folders = sorted(SHELF.iterdir()) if SHELF.is_dir() else []
    return [_card(folder) for folder in folders if (folder / "config.json").is_file()]


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


def pack(
    run: str | Path,
    target: str | Path,
    *,
    data: str,
    licence: str,
    scores: Mapping[str, float],
    limits: Sequence[str],
    eight_bits: bool = False,
) -> ModelCard:
    """A run folder's model made ready for the shelf: weights, tokenizer, settings and a card, nothing else."""
    from insnet.families.storage import load_model, save_model
    from insnet.files import write_atomically

    run, target = Path(run), Path(target)
    model = load_model(run, "cpu")
    save_model(target, model, eight_bits=eight_bits)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "recipe.toml"):
        shutil.copyfile(run / name, target / name)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    facts = {"parameters": parameters, "data": data, "licence": licence, "scores": dict(scores)}
    write_atomically(target / "card.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    card = _card(target)
    write_atomically(target / "README.md", _card_text(card, limits))
    return card


def _card_text(card: ModelCard, limits: Sequence[str]) -> str:
    """The model card, as the hub shows it."""
    scores = "\n".join(f"| {name} | {value:.4g} |" for name, value in card.scores.items())
    return f"""---
library_name: insnet
pipeline_tag: text-generation
language: en
tags: [insnet, {card.family}, lexically-constrained-generation]
---
# {card.name}

Writes a text around the words it is given: `insnet generate --model {card.name} word word ...`.

- **Family**: {card.family}, {card.parameters:,} parameters, {card.size_bytes / 2**20:.1f} MiB of weights.
- **Data**: {card.data}.
- **Licence**: {card.licence}.
- **Training**: every setting is in `recipe.toml`.

| measured | |
|---|---|
{scores}

## Limits

{chr(10).join(f"- {limit}" for limit in limits)}
"""
