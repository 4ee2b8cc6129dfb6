"""Adapters: what a model has learned beyond the one it started from, small enough to be shipped alone.

An adapter has a low-rank term for each targeted matrix of the blocks, and whole values for everything else that is no
matrix of theirs and no embedding of the vocabulary: norms, biases, heads, and whatever the base lacked. As a folder:
adapter.json (of which base, which rank, which matrices), adapter.safetensors and the model's config.json.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from insnet.families.generator import Generator
from insnet.families.quantize import quantized, restored
from insnet.families.storage import (
    check_tensors,
    config_of_model,
    read_tensors,
    write_tensors,
)
from insnet.files import (
    ADAPTER_FILE,
    ADAPTER_WEIGHTS_FILE,
    CONFIG_FILE,
    WEIGHTS_FILE,
    read_json_object,
    write_atomically,
)
from insnet.layers.low_rank import add_low_rank, is_low_rank, low_rank_terms, plain_name
from insnet.layers.transformer import Block

BASE_FILE = "base.json"
_FORMAT = "insnet-adapter-1"
_DOWN, _UP = ".down", ".up"
_OF_THE_VOCABULARY = ("embedding.weight", "output.weight")
_FREE = "dropout"  # the one setting in which a model may differ from its adapter's


@dataclass(frozen=True)
class AdapterFacts:
    """What adapter.json says."""

    base: Mapping[str, Any]
    """What the model without the adapter is: of a package {"package", "version", "wheel", "sha256", "bytes",
    "licence"}, of a file or folder {"path", "sha256"}."""
    rank: int
    targets: tuple[str, ...]


def adapt(model: Generator, rank: int, targets: Sequence[str] = ()) -> None:
    """Lets only an adapter learn: low-rank terms on the targeted matrices, and all that is small.

    `targets` are the last parts of names, such as "expand"; without any, all matrices of the blocks are targeted.
    """
    assert not is_low_rank(model), "merge the adapter that is there before adding another"
    for name in _targeted(model, targets, "targets"):
        add_low_rank(_linear(model, name), rank)
    of_base = _of_base(model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(plain_name(name) not in of_base)


def adapter_of(model: Generator) -> dict[str, Tensor]:
    """The adapter's tensors by name: "NAME.weight.down" and "NAME.weight.up" of each term, and the rest whole."""
    of_base = _of_base(model)
    named = {plain_name(name): parameter.detach() for name, parameter in model.named_parameters()}
    return {name: tensor for name, tensor in named.items() if name not in of_base}


@torch.no_grad()
def fill_adapter(model: Generator, tensors: Mapping[str, Tensor], source: Path) -> None:
    """Puts the tensors of an adapter into a model that has one of the same kind."""
    own = adapter_of(model)
    check_tensors(tensors, _shapes(own), source, "this adapter is of another rank or model")
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


def save_adapter(folder: str | Path, model: Generator, base: Mapping[str, Any], *, eight_bits: bool = True) -> None:
    """The adapter of an adapted model as a folder; matrices take eight bits unless told otherwise."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = adapter_of(model)
    terms = [(name, linear.low_rank) for name, linear in low_rank_terms(model)]
    assert terms, "a model without an adapter has none to save"
    targets = sorted({_last_part(name) for name, _ in terms})
    facts = {"format": _FORMAT, "base": dict(base), "rank": len(terms[0][1].down), "targets": targets}
    write_tensors(folder / ADAPTER_WEIGHTS_FILE, quantized(tensors) if eight_bits else tensors)
    write_atomically(folder / CONFIG_FILE, _json(config_of_model(model)))
    write_atomically(folder / ADAPTER_FILE, _json(facts))


def facts_of_base(folder: Path) -> dict[str, Any]:
    """What an adapter is to say of the model in a folder, which it starts from."""
    if (folder / BASE_FILE).is_file():
        return read_json_object(folder / BASE_FILE)
    with (folder / WEIGHTS_FILE).open("rb") as file:
        return {"path": folder.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def read_adapter_facts(folder: str | Path) -> AdapterFacts:
    """What a folder's adapter.json says; a missing or other file is a ValueError."""
    path = Path(folder) / ADAPTER_FILE
    content = read_json_object(path)
    if content.get("format") != _FORMAT:
        raise ValueError(f"{path} has the format {content.get('format')!r}; this version reads {_FORMAT!r}")
    base, rank, targets = (content.get(name) for name in ("base", "rank", "targets"))
    is_list = isinstance(targets, list) and targets and all(isinstance(target, str) for target in targets)
    if not (isinstance(base, dict) and type(rank) is int and rank > 0 and is_list):
        raise ValueError(f"{path} does not say base, rank and targets: copy the folder again")
    return AdapterFacts(base, rank, tuple(targets or ()))


@torch.no_grad()
def merge_adapter(model: Generator, folder: str | Path) -> None:
    """Makes a model, which must be the adapter's base, the one that the adapter was saved of.

    Weights are replaced and never written to: a base that shares their memory stays what it was.
    """
    folder = Path(folder)
    assert not is_low_rank(model), "merge the adapter that is there before adding another"
    facts, source = read_adapter_facts(folder), folder / ADAPTER_WEIGHTS_FILE
    _check_config(model, folder / CONFIG_FILE)
    targeted = _targeted(model, facts.targets, f"targets of {folder / ADAPTER_FILE}")
    tensors = restored(read_tensors(source))
    own = dict(model.named_parameters())
    shapes = _shapes({name: tensor for name, tensor in own.items() if name not in _of_base(model)})
    for name in targeted:
        outputs, inputs = own[f"{name}.weight"].shape
        shapes[f"{name}.weight{_DOWN}"] = (facts.rank, inputs)
        shapes[f"{name}.weight{_UP}"] = (outputs, facts.rank)
    check_tensors(tensors, shapes, source, "this adapter is of another model, or damaged: get the folder again")
    for name, parameter in own.items():
        if name in shapes:
            parameter.data = tensors[name].to(parameter)
        elif f"{name}{_UP}" in shapes:
            term = tensors[f"{name}{_UP}"].float() @ tensors[f"{name}{_DOWN}"].float()
            parameter.data = (parameter.float() + term.to(parameter.device)).to(parameter.dtype)


def _of_base(model: Generator) -> set[str]:
    """Plain names of the parameters that an adapter leaves alone."""
    return {f"{name}.weight" for name in _matrices(model)} | {*_OF_THE_VOCABULARY}


def _matrices(model: Generator) -> list[str]:
    """Names of all linear maps inside blocks."""
    return [
        f"{block}.{name}"
        for block, module in model.named_modules()
        if isinstance(module, Block)
        for name, part in module.named_modules()
        if isinstance(part, nn.Linear)
    ]


def _targeted(model: Generator, targets: Sequence[str], what: str) -> list[str]:
    matrices = _matrices(model)
    known = list(dict.fromkeys(map(_last_part, matrices)))
    if unknown := [target for target in targets if target not in known]:
        raise ValueError(f"{what}: the model has no matrix {unknown[0]!r}; choose among {', '.join(known)}")
    return [name for name in matrices if not targets or _last_part(name) in targets]


def _linear(model: nn.Module, name: str) -> nn.Linear:
    module = model.get_submodule(name)
    assert isinstance(module, nn.Linear)
    return module


def _check_config(model: Generator, path: Path) -> None:
    """Refuses an adapter of a model of another size, whose tensors may fit all the same."""
    saved, own = read_json_object(path), json.loads(_json(config_of_model(model)))
    for name in ("family", *(field.name for field in dataclasses.fields(model.config))):
        if name != _FREE and saved.get(name) != own.get(name):
            raise ValueError(
                f"{path} is of a model whose {name} is {saved.get(name)!r}, not {own.get(name)!r}: "
                "an adapter fits the base that it was trained on, and no other"
            )


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
