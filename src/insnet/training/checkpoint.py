"""Checkpoints: folders that appear whole or not at all, without pickle.

checkpoints/step-00000120/ holds model.safetensors, optimizer.safetensors (the optimizers' moments by parameter name)
and state.json. Randomness needs no state: all of it is a function of the update.
"""

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from insnet.families.storage import check_tensors, read_tensors, write_tensors
from insnet.files import WEIGHTS_FILE, read_json_object, write_atomically
from insnet.layers.low_rank import is_low_rank
from insnet.training.muon import Muon

_FORMAT = "insnet-checkpoint-1"
_OPTIMIZER_FILE, _STATE_FILE = "optimizer.safetensors", "state.json"
_MOMENTS: Mapping[type[torch.optim.Optimizer], tuple[str, ...]] = {
    torch.optim.AdamW: ("exp_avg", "exp_avg_sq", "step"),
    Muon: ("momentum_buffer",),
}
_NUMBERS = ("step",)  # moments that are one number, not of their parameter's shape
_PREFIX, _PARTIAL = "step-", ".partial-"
_KEPT = 2  # one to resume from, and one before it should the disk have spoilt the newest


@dataclass(frozen=True)
class Progress:
    """Where a run stands."""

    update: int
    """Updates done."""
    batches: int
    """Batches seen, over all processes: the next one's global index."""
    best_update: int
    """The update of the best evaluation, 0 if there was none."""
    best_loss: float | None
    """The best valid loss."""
    evaluations_without_gain: int
    """Evaluations since the best one."""
    seconds: float
    """Time spent training, over all restarts."""
    tokens: int
    """Insertions learned from."""
    recipe: str
    """The recipe's fingerprint."""
    data: str
    """The prepared data's fingerprint."""
    finished: bool
    """Whether training has come to its end."""


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    progress: Progress,
) -> Path:
    """The checkpoint written under `folder`; older ones are removed once it is safely on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{_PREFIX}{progress.update:08d}"
    if not target.exists():  # an update's checkpoint is always the same
        for leftover in folder.glob(f"{_PARTIAL}*"):
            shutil.rmtree(leftover)
        partial = folder / f"{_PARTIAL}{target.name}"
        partial.mkdir()
        write_tensors(partial / WEIGHTS_FILE, _learned(model))
        write_tensors(partial / _OPTIMIZER_FILE, optimizer_tensors(model, optimizers))
        state = {"format": _FORMAT, **dataclasses.asdict(progress)}
        write_atomically(partial / _STATE_FILE, json.dumps(state, indent=2) + "\n")
        _sync_folder(partial)
        os.rename(partial, target)
        _sync_folder(folder)
    _prune(folder)
    return target


def forget_optimizer(checkpoint: Path) -> None:
    """Leaves of all checkpoints this one, of a run that has finished, and of it what cannot go on learning."""
    (checkpoint / _OPTIMIZER_FILE).unlink(missing_ok=True)
    _prune(checkpoint.parent, kept=1)


def has_optimizer(checkpoint: Path) -> bool:
    """Whether a run can go on from here."""
    return (checkpoint / _OPTIMIZER_FILE).is_file()


def newest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint with the most updates, or None; half-written ones have another name and don't count."""
    return max(_checkpoints(folder), default=None)


def read_progress(checkpoint: Path) -> Progress:
    """Where the run stood; a damaged or foreign checkpoint is a ValueError."""
    with _with_advice(checkpoint):
        state = read_json_object(checkpoint / _STATE_FILE)
        if state.pop("format", None) != _FORMAT:
            raise ValueError(f"{checkpoint / _STATE_FILE} was not written by this program")
        if state.keys() != {field.name for field in dataclasses.fields(Progress)}:
            raise ValueError(f"{checkpoint / _STATE_FILE} has other fields than a checkpoint's")
        progress = Progress(**state)
        if checkpoint.name != f"{_PREFIX}{progress.update:08d}":
            raise ValueError(f"{checkpoint / _STATE_FILE} is of update {progress.update}, its folder is not")
        return progress


def load_checkpoint(
    checkpoint: Path,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
) -> None:
    """Fill model and optimizers from a checkpoint; a damaged or foreign one is a ValueError."""
    with _with_advice(checkpoint):
        _fill_model(model, checkpoint / WEIGHTS_FILE)
        _fill_optimizers(model, optimizers, checkpoint / _OPTIMIZER_FILE)


def optimizer_tensors(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """The optimizers' state as one flat table: "NAME.exp_avg" and so on. What never had a gradient has none."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}.{moment}": state[moment]
        for optimizer in optimizers
        for parameter, state in optimizer.state.items()
        for moment in _MOMENTS[type(optimizer)]
    }


def _learned(model: nn.Module) -> dict[str, Tensor]:
    """What a run has to keep: all of a model, or of one with an adapter what is not frozen."""
    state: dict[str, Tensor] = model.state_dict()
    if not is_low_rank(model):
        return state
    return {name: state[name] for name, parameter in model.named_parameters() if parameter.requires_grad}


def _fill_model(model: nn.Module, path: Path) -> None:
    tensors = read_tensors(path)
    check_tensors(tensors, {name: tuple(tensor.shape) for name, tensor in _learned(model).items()}, path)
    model.load_state_dict(tensors, strict=False)


def _fill_optimizers(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], path: Path) -> None:
    tensors = read_tensors(path)
    names = {parameter: name for name, parameter in model.named_parameters()}
    shapes: dict[str, tuple[int, ...]] = {}
    states: list[dict[int, dict[str, str]]] = []  # what each optimizer's parameters find their moments under
    for optimizer in optimizers:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        state = {}
        for number, parameter in enumerate(parameters):
            keys = {moment: f"{names[parameter]}.{moment}" for moment in _MOMENTS[type(optimizer)]}
            if any(key in tensors for key in keys.values()):
                state[number] = keys
                shape = tuple(parameter.shape)
                shapes.update((key, () if moment in _NUMBERS else shape) for moment, key in keys.items())
        states.append(state)
    check_tensors(tensors, shapes, path)
    for optimizer, state in zip(optimizers, states, strict=True):
        content = optimizer.state_dict()
        content["state"] = {
            number: {moment: tensors[key] for moment, key in keys.items()} for number, keys in state.items()
        }
        optimizer.load_state_dict(content)


@contextmanager
def _with_advice(checkpoint: Path) -> Iterator[None]:
    """Adds to a ValueError which folder to remove: going on from an older checkpoint must be a person's choice."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"the newest checkpoint {checkpoint} is damaged or of another run: {error}. Remove that folder to go on "
            "from the one before it, or from the beginning if there is none"
        ) from None


def _prune(folder: Path, kept: int = _KEPT) -> None:
    """Leave the newest checkpoints only; a killed removal leaves nothing that looks like a checkpoint."""
    for path in sorted(_checkpoints(folder))[:-kept]:
        leftover = folder / f"{_PARTIAL}{path.name}"
        os.rename(path, leftover)
        shutil.rmtree(leftover)


def _checkpoints(folder: Path) -> list[Path]:
    return [path for path in folder.glob(f"{_PREFIX}*") if path.is_dir()]


def _sync_folder(folder: Path) -> None:
    """Makes names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
