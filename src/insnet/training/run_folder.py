"""A run folder: who may write into it, and the model folder that grows in it."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from insnet.cards import write_card
from insnet.families.adapters import facts_of_base, save_adapter
from insnet.families.generator import Generator
from insnet.families.storage import save_model, write_generation
from insnet.files import RECIPE_FILE, read_json_object, write_atomically
from insnet.layers.low_rank import is_low_rank
from insnet.training.checkpoint import newest_checkpoint, read_progress
from insnet.training.prepare import Prepared
from insnet.training.recipe import Recipe, load_recipe

ADAPTER_FOLDER = "adapter"
_FINISHED_FILE = "finished.json"  # where the run stood, once its checkpoints are gone
_LOCK_FILE = ".lock"


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path
    start: Path | None = None
    """The folder of the model that the run starts from."""

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    def newest(self) -> Path | None:
        """The newest checkpoint."""
        return newest_checkpoint(self.checkpoints)

    def is_untouched(self) -> bool:
        """Whether nobody has written here yet; dot files are what a killed writer may have left."""
        return not self.path.exists() or (
            self.path.is_dir() and all(path.name.startswith(".") for path in self.path.iterdir())
        )

    def refuse_if_taken(self, recipe: Recipe, *, resume: bool) -> None:
        """A ValueError if the folder holds something else than the run to be started or resumed."""
        if self.is_untouched():
            return
        if not (self.path / RECIPE_FILE).is_file():
            raise ValueError(f"{self.path} holds something else than a training run: choose another output folder")
        if (self.path / _FINISHED_FILE).is_file():
            update = read_json_object(self.path / _FINISHED_FILE)["update"]
            raise ValueError(
                f"{self.path} holds a run that finished at update {update}, whose checkpoints are gone: choose another "
                "output folder; to go on learning, start from its model"
            )
        if not resume:
            raise ValueError(
                f"{self.path} already holds a run {self._standing()}: go on with --resume, choose another output "
                "folder, or remove this one"
            )
        self._refuse_another_recipe(recipe)

    def drop_checkpoints(self) -> None:
        """Leaves the model of a run that has ended, and no more than a note of where it stood."""
        newest = self.newest()
        if newest is not None:
            write_atomically(self.path / _FINISHED_FILE, json.dumps(asdict(read_progress(newest)), indent=2) + "\n")
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from training here; what a killed one held is free again."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / _LOCK_FILE)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ValueError(
                f"another process is training in {self.path}: wait until it ends, or choose another output folder"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _standing(self) -> str:
        newest = self.newest()
        if newest is None:
            return "without a checkpoint"
        progress = read_progress(newest)
        return f"that {'finished' if progress.finished else 'stands'} at update {progress.update}"

    def _refuse_another_recipe(self, recipe: Recipe) -> None:
        before, now = load_recipe(self.path / RECIPE_FILE).binding_tables(), recipe.binding_tables()
        for table, values in now.items():
            for key in sorted({*values, *before[table]}):
                was, is_now = before[table].get(key), values.get(key)
                if was != is_now:
                    raise ValueError(
                        f"{self.path} cannot be resumed: {table}.{key} was {was!r} and is {is_now!r} now; "
                        "set it back, or start a new run in another folder"
                    )

    def write_settings(self, recipe: Recipe, prepared: Prepared) -> None:
        """The recipe first: it marks the folder as this run's."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path / RECIPE_FILE, recipe.to_toml())
        prepared.tokenizer.save(self.path)
        write_generation(self.path, recipe.generation)

    def write_model(
        self, model: Generator, recipe: Recipe, prepared: Prepared, update: int, losses: Mapping[str, float]
    ) -> None:
        """The model as it is now, with its card; an adapter is merged into it, and kept apart, too."""
        save_model(self.path, model)
        if is_low_rank(model) and self.start is not None:
            save_adapter(self.path / ADAPTER_FOLDER, model, facts_of_base(self.start))
        train, valid, family = prepared.train.summary, prepared.valid.summary, recipe.model.family
        parameters = sum(parameter.numel() for parameter in model.parameters())
        tokens = f"{prepared.tokenizer.size:,} {recipe.tokenizer.kind if recipe.tokenizer else 'pretrained'} tokens"
        learned = f"{train.sentences:,} sentences ({train.tokens:,} tokens)"
        write_card(
            self.path,
            name=self.path.resolve().name,
            family=family,
            facts={
                "Family": f"{family}, {parameters:,} parameters, {tokens}",
                "Data": f"{Path(recipe.data.folder).name}, {learned} and {valid.sentences:,} to choose the best by",
                "Licence": "not stated; fill in before publishing, and what the model is for",
                "Training": f"best after update {update} of {recipe.train.updates}; every setting is in `recipe.toml`",
            },
            scores={f"valid_{name}": value for name, value in losses.items()},
        )
