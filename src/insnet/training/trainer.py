"""The one training loop.

Everything random is a function of the seed and a batch's global index, so that a run that was killed and resumed, or
spread over another number of processes, sees the same batches, orders and dropout.
"""

import math
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from insnet.families import FAMILIES
from insnet.families.adapters import adapt
from insnet.families.generator import Generator
from insnet.families.storage import load_shared_weights
from insnet.randomness import SeededPurpose, mix
from insnet.text.batching import Batches, BatchingConfig, TokenBatch
from insnet.text.tokenizer import load_tokenizer
from insnet.training.checkpoint import (
    Progress,
    forget_optimizer,
    has_optimizer,
    load_checkpoint,
    read_progress,
    save_checkpoint,
)
from insnet.training.clock import Clock
from insnet.training.devices import make_accelerator, stop_requests
from insnet.training.events import Ended, Evaluated, Listener, Notice, Saved, Started, Updated, console
from insnet.training.metrics import Metrics
from insnet.training.optimizer import make_optimizers
from insnet.training.prefetch import prefetched
from insnet.training.prepare import Prepared, is_prepared, load_prepared, prepare
from insnet.training.recipe import Recipe, TrainConfig
from insnet.training.run_folder import RunFolder
from insnet.training.schedule import learning_rate_share
from insnet.training.updates import SummedLosses, clip_gradients, compute_gradients, evaluate, freeze_others

Status = Literal["finished", "stopped early", "interrupted"]


@dataclass(frozen=True)
class TrainingSummary:
    """How a run ended."""

    output: Path
    """The run folder, which is also the model folder."""
    status: Status
    """`stopped early` when the valid loss no longer fell; `interrupted` when it can be resumed."""
    update: int
    """Updates done."""
    best_update: int
    """The update whose model was kept."""
    best_loss: float | None
    """Its valid loss: nats over insertions."""
    tokens: int
    """Insertions learned from."""
    seconds: float
    """Time spent, over all restarts."""


def train(
    recipe: Recipe,
    *,
    output: str | Path,
    resume: bool = False,
    start_from: str | Path | None = None,
    on_event: Listener | None = None,
) -> TrainingSummary:
    """A model trained by a recipe into the run folder `output`; started by torchrun or accelerate, on all processes.

    `start_from` takes weights and tokenizer from another model folder. `on_event` receives what happens, instead of
    the terminal.
    """
    accelerator = make_accelerator(recipe.train)
    recipe = recipe if start_from is None else recipe.with_size_of(Path(start_from))
    folder = RunFolder(Path(output), None if start_from is None else Path(start_from))
    report: Listener = _report_nothing
    if accelerator.is_main_process:
        report = on_event or console()
        folder.refuse_if_taken(recipe, resume=resume)
    with folder.locked() if accelerator.is_main_process else nullcontext():
        prepared = _prepared(recipe, accelerator, start_from, report)
        if accelerator.is_main_process:
            folder.write_settings(recipe, prepared)
        accelerator.wait_for_everyone()
        return _Trainer(recipe, prepared, folder, accelerator, start_from, report).run()


class _Trainer:
    """A run in progress."""

    def __init__(
        self,
        recipe: Recipe,
        prepared: Prepared,
        folder: RunFolder,
        accelerator: Any,
        start_from: str | Path | None,
        report: Listener,
    ) -> None:
        self.config, self.recipe, self.prepared, self.folder = recipe.train, recipe, prepared, folder
        self.accelerator, self.report = accelerator, report
        rank, world = accelerator.process_index, accelerator.num_processes
        starts_word = prepared.tokenizer.lexicon()["starts_word"]
        batching = BatchingConfig(self.config.token_budget, self.config.max_shapes, self.config.seed)
        weighted = replace(batching, length_shares=self.config.length_shares, padded_lengths=self.config.padded_lengths)
        # Every process counts all batches and picks its own, so that their order does not depend on the processes.
        self.batches = Batches(prepared.train, weighted, recipe.given, starts_word)
        self.valid = Batches(prepared.valid, batching, recipe.given, starts_word, rank, world)
        self.batches_per_update = self.config.accumulate * int(world)
        self.updates = _updates_of(self.config, self.batches.updates_per_epoch / self.batches_per_update)
        self.model = _new_model(recipe, prepared, start_from, report).to(accelerator.device)
        freeze_others(self.model, self.config.only)
        if self.config.rank:
            adapt(self.model, self.config.rank, self.config.targets)
        self.optimizers = make_optimizers(
            self.model,
            learning_rate=self.config.learning_rate,
            weight_decay=self.config.weight_decay,
            name=self.config.optimizer,
        )
        self.newest = folder.newest()
        self.progress = self._progress_of(self.newest)
        self.losses = SummedLosses(
            self.model,
            objective=recipe.objective,
            label_smoothing=self.config.label_smoothing,
            compile_losses=self.config.compile,
            shapes=len(self.batches.shapes),
        )
        self.module = accelerator.prepare(self.losses)
        self.metrics: Metrics | None = None
        self.clock = Clock(accelerator, self.config.minutes, self.progress.seconds)
        self.pending: list[tuple[int, float, Tensor, Tensor]] = []
        """Update, learning rate, totals and gradient norm of updates not yet written: reading waits for the device."""

    def run(self) -> TrainingSummary:
        """Trains until the end, or until somebody wants it to stop."""
        self.clock.agree()
        status = self._end_reached(self._done() >= 1)
        if status is not None:
            self.report(Notice(f"nothing left to do: the run {status} at update {self.progress.update}"))
        else:
            status = self._train()
        done = self.progress
        return TrainingSummary(
            self.folder.path, status, done.update, done.best_update, done.best_loss, done.tokens, self.clock.seconds
        )

    def _train(self) -> Status:
        if self.newest is not None:
            self._load_checkpoint(self.newest)
        if self.accelerator.is_main_process:
            self.metrics = Metrics(self.folder.path, after_update=self.progress.update)
        self._report_start()
        status: str = "failed"
        try:
            status = ended = self._loop()
        finally:
            if self.metrics is not None:
                self.metrics.close()
            self.report(Ended(status, self.progress.update, self.clock.seconds))
        if ended == "interrupted":
            self.report(Notice(f"go on with --resume; everything so far is in {self.folder.path}"))
        self.accelerator.wait_for_everyone()
        return ended

    def _loop(self) -> Status:
        status: Status | None = None
        self.module.train()
        self.upcoming = prefetched(self._load, self._own_indices())
        with stop_requests() as stop_requested, closing(self.upcoming):
            while status is None:
                self._update()
                update, wants_stop = self.progress.update, self.clock.agree(stop_requested())
                is_over = self._done() >= 1  # before the valid split is measured, which takes time, too
                if update % self.config.evaluate_every == 0 or is_over:
                    self._evaluate()
                status = self._end_reached(is_over)
                if status is None and wants_stop:
                    status = "interrupted"
                if status is not None or update % self.config.checkpoint_every == 0:
                    self._checkpoint(finished=status in ("finished", "stopped early"))
                elif update % self.config.log_every == 0:
                    self._write_pending()
        return status

    def _update(self) -> None:
        """One step of the optimizers."""
        update, rate = self.progress.update, self._learning_rate()
        totals = compute_gradients(
            self.accelerator,
            self.module,
            list(islice(self.upcoming, self.config.accumulate)),
            mean_tokens=self.batches.mean_tokens * self.batches_per_update,
            seed=self.config.seed,
            progress=self._done(),
        )
        norm = clip_gradients(self.model, self.config.clip)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.pending.append((update, rate, totals, norm))
        self.progress = replace(self.progress, update=update + 1, batches=(update + 1) * self.batches_per_update)

    def _own_indices(self) -> Iterator[int]:
        """The global indices of this process's batches, without end, from where the run stands."""
        first = self.progress.update * self.batches_per_update + self.accelerator.process_index
        return count(first, self.accelerator.num_processes)

    def _load(self, index: int) -> TokenBatch:
        batch = self.batches.at(*divmod(index, self.batches.updates_per_epoch))
        return batch.pinned() if self.accelerator.device.type == "cuda" else batch

    def _evaluate(self) -> None:
        """Measures the valid split, and keeps the model if it is the best so far."""
        self._write_pending()
        update = self.progress.update
        losses = evaluate(self.accelerator, self.module, self.valid.in_order(), progress=self._done())
        is_best = self.progress.best_loss is None or losses["loss"] < self.progress.best_loss
        if is_best:
            self.progress = replace(
                self.progress, best_loss=losses["loss"], best_update=update, evaluations_without_gain=0
            )
        else:
            in_vain = self.progress.evaluations_without_gain + 1
            self.progress = replace(self.progress, evaluations_without_gain=in_vain)
        if self.metrics is not None:
            self.metrics.write(update, {f"valid_{name}": value for name, value in losses.items()})
            if is_best:
                self.folder.write_model(self.model, self.recipe, self.prepared, update, losses)
        self.clock.lap()
        self.clock.agree()
        self.report(Evaluated(update, losses, is_best))

    def _checkpoint(self, *, finished: bool) -> None:
        self._write_pending()
        self.progress = replace(self.progress, finished=finished, seconds=self.clock.seconds)
        if self.metrics is not None:
            self.metrics.flush()
            path = save_checkpoint(self.folder.checkpoints, self.model, self.optimizers, self.progress)
            if finished and not self.config.keep_optimizer:
                forget_optimizer(path)
            self.report(Saved(self.progress.update, path))
        self.clock.lap()

    def _write_pending(self) -> None:
        """Writes what the last updates measured; a loss that is not a number ends the run."""
        if not self.pending:
            return
        before = self.progress.tokens
        for update, rate, totals, norm in self.pending:
            losses = self.losses.means(totals)
            _refuse_divergence(update + 1, losses["loss"], norm.item())
            tokens = self.progress.tokens + int(self.losses.token_count(totals))
            self.progress = replace(self.progress, tokens=tokens)
            if self.metrics is not None:
                values = {"gradient_norm": norm.item(), "learning_rate": rate, "tokens": tokens}
                self.metrics.write(update + 1, {**losses, **values})
        self.pending = []
        pace = (self.progress.tokens - before) / self.clock.lap()
        done = self._done()
        updates = min(self.updates, round(self.progress.update / done)) if self.config.minutes else self.updates
        seconds_left = self.clock.seconds * (1 - done) / done
        self.report(Updated(self.progress.update, updates, losses, rate, pace, seconds_left))

    def _learning_rate(self) -> float:
        share = learning_rate_share(
            self.progress.update,
            warmup=self.config.warmup_updates,
            total=self.updates,
            spent=self.clock.spent,
        )
        return self.config.learning_rate * share

    def _done(self) -> float:
        """How far training has come, from 0 to 1."""
        return min(1.0, max(self.progress.update / self.updates, self.clock.spent))

    def _end_reached(self, is_over: bool) -> Status | None:
        if is_over:
            return "finished"
        if 0 < self.config.patience <= self.progress.evaluations_without_gain:
            return "stopped early"
        return None

    def _progress_of(self, newest: Path | None) -> Progress:
        """Where the run stands by its newest checkpoint."""
        recipe, data = self.recipe.fingerprint(), self.prepared.fingerprint
        if newest is None:
            return Progress(0, 0, 0, None, 0, 0.0, 0, recipe, data, False)
        progress = read_progress(newest)
        if progress.recipe != recipe or progress.data != data:
            what = "recipe" if progress.recipe != recipe else "text or tokenizer"
            raise ValueError(f"{newest} was made with another {what}: start a new run in another folder")
        if progress.batches != progress.update * self.batches_per_update:
            raise ValueError(
                f"{newest} saw {progress.batches // max(progress.update, 1)} batches per update; accumulate x "
                f"processes is {self.batches_per_update} now: set train.accumulate so that it is the same"
            )
        return progress

    def _load_checkpoint(self, newest: Path) -> None:
        """Fills model and optimizers."""
        if self.progress.finished and not has_optimizer(newest):
            raise ValueError(
                f"the run in {self.folder.path} has finished and kept no optimizer state to go on with: a run to be "
                f"prolonged needs train.keep_optimizer = true; or start a new one with --from {self.folder.path}"
            )
        load_checkpoint(newest, self.model, self.optimizers)

    def _report_start(self) -> None:
        parameters = sum(parameter.numel() for parameter in self.model.parameters() if parameter.requires_grad)
        device, processes = str(self.accelerator.device), int(self.accelerator.num_processes)
        self.report(Started(self.progress.update, self.updates, parameters, device, processes))


def _prepared(recipe: Recipe, accelerator: Any, start_from: str | Path | None, report: Listener) -> Prepared:
    """The data: made by the first process where the text is here, and read by all."""
    if accelerator.is_main_process and not is_prepared(recipe):
        tokenizer = load_tokenizer(start_from) if start_from is not None else None
        prepare(recipe, tokenizer=tokenizer, say=lambda text: report(Notice(text)))
    accelerator.wait_for_everyone()
    return load_prepared(recipe)


def _new_model(recipe: Recipe, prepared: Prepared, start_from: str | Path | None, report: Listener) -> Generator:
    """The model before the first update; parts that it does not share with the one it starts from are reported."""
    torch.manual_seed(int(mix(recipe.train.seed, SeededPurpose.WEIGHTS)))
    config = recipe.model.for_vocabulary(prepared.tokenizer.size)
    model: Generator = FAMILIES[recipe.model.family](config)
    if start_from is not None:
        if load_tokenizer(start_from).fingerprint != prepared.tokenizer.fingerprint:
            raise ValueError(f"the data was prepared with another tokenizer than {start_from} has: prepare it again")
        new, left_behind = load_shared_weights(model, Path(start_from), recipe.train.fresh)
        for what, parts in (("new", new), ("left behind", left_behind)):
            if parts:
                report(Notice(f"{what}: {', '.join(parts)}"))
    return model


def _updates_of(config: TrainConfig, updates_per_epoch: float) -> int:
    """How many updates the recipe allows, its budget of epochs included."""
    in_epochs = math.ceil(config.epochs * updates_per_epoch) if config.epochs else config.updates
    return min(config.updates, in_epochs)


def _refuse_divergence(update: int, loss: float, norm: float) -> None:
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise ValueError(
            f"training diverged: the loss of update {update} is {loss}, its gradient's norm {norm}; lower "
            'train.learning_rate, or set train.precision to "float32"'
        )


def _report_nothing(event: object) -> None:
    """For all processes but the first."""
