"""A pretrained left-to-right model as the folder of a gaps model, from which training and fine-tuning start."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from insnet.families.adapters import BASE_FILE
from insnet.families.storage import save_model, write_generation
from insnet.fetching.pin import SMOLLM2, sha256_of
from insnet.files import RECIPE_FILE, write_atomically
from insnet.pretrained.base import read_base
from insnet.training.recipe import recipe_of_tables
from insnet.training.run_folder import RunFolder

# How the default model was trained, but for its text: what training from such a folder starts with.
_DATA = {"folder": "data/text", "prepared": "data/text/prepared", "max_tokens": 64, "keyword_method": "content"}
_GIVEN = {
    "none": 0.05,
    "fraction": 0.14,
    "keyword_shares": [0.1, 0.25, 0.37, 0.18, 0.1],
    "important_first": 0.75,
    "phrases": 0.14,
}
_TRAIN = {"updates": 2000, "token_budget": 8192, "learning_rate": 1.5e-3, "warmup_updates": 100, "rank": 64}
GENERATION: Mapping[str, Any] = {
    "stopping": "threshold",
    "temperature": 0.7,
    "top_k": 0,
    "min_p": 0.05,
    "candidates": 16,
    "candidate_choice": "fluency",
}


def retrofit(source: str | Path, output: str | Path, *, longest_told: int = 0, seed: int = 0) -> Path:
    """The folder of a gaps model made of a base: with nothing given its logits are the base's, and it has yet to learn
    when to close a gap. `longest_told` is the most words that it can be told are still to come.

    `source` is a GGUF file, a wheel that holds one, or a Llama-like folder.
    """
    import torch

    output = Path(output)
    if not RunFolder(output).is_untouched():
        raise ValueError(f"{output} holds something already: choose another output folder")
    base = read_base(source)
    torch.manual_seed(seed)
    model = base.gaps(longest_told=longest_told)
    size = {
        name: value for name, value in asdict(model.config).items() if name != "vocabulary_size" and value is not None
    }
    tables = {"data": _DATA, "model": {"family": "gaps", **size}, "given": _GIVEN, "train": _TRAIN}
    recipe = recipe_of_tables({**tables, "generation": GENERATION})
    save_model(output, model)
    base.tokenizer.save(output)
    write_generation(output, GENERATION)
    write_atomically(output / RECIPE_FILE, recipe.to_toml())
    write_atomically(output / BASE_FILE, json.dumps(_facts(Path(source)), indent=2) + "\n")
    return output


def _facts(source: Path) -> dict[str, Any]:
    """What adapters say of a base: the package that anybody can fetch it from, or a file's name and hash."""
    files = sorted(source.glob("*.safetensors")) if source.is_dir() else [source]
    found = [sha256_of(path) for path in files]
    if found[0] in (SMOLLM2.sha256, SMOLLM2.gguf_sha256):
        return {name: value for name, value in asdict(SMOLLM2).items() if name != "gguf_sha256"}
    return {"path": source.name, "sha256": found[0] if len(found) == 1 else found}
