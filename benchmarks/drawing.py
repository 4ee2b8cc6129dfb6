"""Texts drawn for a measurement, seed by seed; kept in a folder if asked, so that what was cut off goes on there."""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from insnet.evaluation.results import provenance
from insnet.evaluation.task import UNFILTERED, Task, decoding_settings, model_name
from insnet.files import write_atomically
from insnet.model import Model, Result


@dataclass(frozen=True)
class DrawnText:
    """What scores look at."""

    text: str
    steps: int
    finished: bool
    insertions: int

    @classmethod
    def of(cls, result: Result) -> "DrawnText":
        insertions = sum(len(step["insert"]) for step in result.trace)
        return cls(result.text, result.steps, result.finished, insertions)


@dataclass(frozen=True)
class TextsOfSeed:
    """What a model made of a task with one seed."""

    texts: list[DrawnText]
    made: dict[str, str]
    """By which commit, on what hardware and when; empty if it was not kept."""


@dataclass(frozen=True)
class Drawing:
    """How texts are drawn."""

    seeds: Sequence[int] = (0,)
    batch_size: int = 64
    keep: Path | None = None
    """A folder for the texts of every model, task, settings and seed: what is there is not drawn again. It knows its
    models by their weights, but not the code: it is for the parts of one measurement."""
    on_written: Callable[[int], None] | None = None
    """Receives how many more texts are there."""

    def draw(self, model: Model, task: Task, settings: Mapping[str, Any]) -> list[TextsOfSeed]:
        """What a model makes of a task with every seed."""
        if self.keep is None:
            return [TextsOfSeed(self._write(model, task, settings, seed), {}) for seed in self.seeds]
        same = {
            "weights": fingerprint(model),
            "settings": decoding_settings(model, **settings),
            "keywords": task.keywords,
        }
        return [self._kept(self.keep, model, task, settings, seed, same) for seed in self.seeds]

    def _write(self, model: Model, task: Task, settings: Mapping[str, Any], seed: int) -> list[DrawnText]:
        common = {"batch_size": self.batch_size, "on_written": self.on_written}
        options: dict[str, Any] = {**UNFILTERED, **common, **settings}
        return [DrawnText.of(result) for result in model.generate_batch(task.keywords, seed=seed, **options)]

    def _kept(
        self, folder: Path, model: Model, task: Task, settings: Mapping[str, Any], seed: int, same: Mapping[str, Any]
    ) -> TextsOfSeed:
        key = _digest([json.dumps({**same, "seed": seed}, sort_keys=True).encode()])
        path = folder / f"{model_name(model)}-{task.data}-{task.split}-{seed}-{key[:12]}.jsonl"
        if path.is_file():
            found = _read(path)
            if self.on_written is not None:
                self.on_written(len(found.texts))
            return found
        drawn = TextsOfSeed(self._write(model, task, settings, seed), provenance())
        folder.mkdir(parents=True, exist_ok=True)
        rows = [drawn.made, *map(asdict, drawn.texts)]
        write_atomically(path, "".join(f"{json.dumps(row)}\n" for row in rows))
        return drawn


def fingerprint(model: Model) -> str:
    """Of a model's config, weights and tokens."""
    weights = model.family.state_dict()
    parts = (weights[name].detach().to("cpu", torch.float32).contiguous().numpy().tobytes() for name in sorted(weights))
    config = json.dumps([type(model.family).__name__, asdict(model.family.config)], sort_keys=True)
    return _digest(itertools.chain([config.encode(), model.tokenizer.fingerprint.encode()], parts))


def _read(path: Path) -> TextsOfSeed:
    try:
        made, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return TextsOfSeed([DrawnText(**row) for row in rows], made)
    except (ValueError, TypeError):
        raise ValueError(f"{path} is damaged: remove it, and its texts are drawn again") from None


def _digest(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()
