"""Models on disk in the ecosystem's own formats: config.json and safetensors, in shards too if others wrote them."""

import dataclasses
import importlib.metadata
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.overrides import TorchFunctionMode

from insnet.families import FAMILIES
from insnet.families.generator import Generator
from insnet.families.quantize import quantized, restored
from insnet.files import CONFIG_FILE, GENERATION_FILE, WEIGHTS_FILE, read_json_object, write_atomically
from insnet.layers.low_rank import merged_state

INDEX_FILE = "model.safetensors.index.json"
MODEL_TYPE = "insnet"


def save_model(
    folder: str | Path, model: Generator, *, dtype: torch.dtype | None = None, eight_bits: bool = False
) -> None:
    """Write config.json and the weights, as another type or in eight bits if so wished.

    Low-rank terms are merged in the file, not in the model. A killed save leaves the old files whole.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / CONFIG_FILE, json.dumps(config_of_model(model), indent=2, ensure_ascii=False) + "\n")
    weights = {
        name: (tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor).detach()
        for name, tensor in merged_state(model).items()
    }
    write_tensors(folder / WEIGHTS_FILE, quantized(weights) if eight_bits else weights)
    # Shards that were here before; the index first, since it decides what is read.
    for path in [folder / INDEX_FILE, *folder.glob("model-*-of-*.safetensors")]:
        path.unlink(missing_ok=True)


def load_model(folder: str | Path, device: torch.device | str, dtype: torch.dtype = torch.float32) -> Generator:
    """The model that `save_model` wrote, in eval mode; a fault of the folder is a ValueError that names the file."""
    folder = Path(folder)
    with _NothingDrawn():
        model = empty_model(folder)
    load_weights(model, folder)
    return model.to(device=device, dtype=dtype).eval()


class _NothingDrawn(TorchFunctionMode):
    """Within it, fresh weights are whatever is in memory: to draw many takes longer than to read them."""

    _DRAWS = (
        torch.Tensor.normal_,
        torch.Tensor.uniform_,
        torch.nn.init.normal_,
        torch.nn.init.uniform_,
        torch.nn.init.kaiming_uniform_,
    )

    def __torch_function__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        if function in self._DRAWS:
            return arguments[0] if arguments else (named or {})["tensor"]
        return function(*arguments, **(named or {}))


def empty_model(folder: Path) -> Generator:
    """A model of the family and size that config.json describes, with fresh weights."""
    path = folder / CONFIG_FILE
    if not folder.is_dir():
        raise ValueError(f"there is no model folder {folder}")
    content = read_json_object(path)
    if content.get("model_type") != MODEL_TYPE:
        raise ValueError(f"{path} is not ours: 'model_type' is {content.get('model_type')!r}, not {MODEL_TYPE!r}")
    family = content.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(f"{path} names the family {family!r}; this version knows {', '.join(FAMILIES)}")
    kind = FAMILIES[family]
    known = {field.name for field in dataclasses.fields(kind.Config)}
    try:
        return kind(kind.Config(**{name: value for name, value in content.items() if name in known}))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} does not describe a model of the family {family!r}: {error}") from None


def read_generation(folder: Path) -> dict[str, Any]:
    """How the model of a folder is to write; nothing where its folder does not say."""
    path = folder / GENERATION_FILE
    return read_json_object(path) if path.is_file() else {}


def write_generation(folder: Path, settings: Mapping[str, Any]) -> None:
    """What `read_generation` reads."""
    write_atomically(folder / GENERATION_FILE, json.dumps(dict(settings), indent=2, ensure_ascii=False) + "\n")


def load_weights(model: torch.nn.Module, folder: Path) -> None:
    """Fill a model with the weights of a folder; names and shapes must be the model's own, all of them."""
    stored, source = read_weights(folder)
    weights, expected = restored(stored), model.state_dict()
    check_tensors(weights, {name: tuple(tensor.shape) for name, tensor in expected.items()}, source)
    model.load_state_dict(weights)


def load_shared_weights(model: Generator, folder: Path, fresh: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Fill a model with what it shares with a folder's; the parts that are new to it, and those that it leaves behind.

    Only whole parts, such as the slot queries, may be on one side alone: what both have must be the same in all names
    and shapes, but for `fresh` parts, which the model does not take over.
    """
    family, own = read_json_object(folder / CONFIG_FILE).get("family"), config_of_model(model)["family"]
    if family != own:
        raise ValueError(f"{folder} is of the family {family!r}, the recipe of {own!r}: start from one of these")
    stored, source = read_weights(folder)
    weights, expected = restored(stored), model.state_dict()
    there, here = {_part(name) for name in weights} - {*fresh}, {_part(name) for name in expected}
    if unknown := sorted({*fresh} - here):
        known = ", ".join(sorted(here))
        raise ValueError(f"train.fresh names {unknown[0]!r}, which the model does not have; its parts are {known}")
    weights = {name: tensor for name, tensor in weights.items() if _part(name) in here & there}
    shapes = {name: tuple(tensor.shape) for name, tensor in expected.items() if _part(name) in there}
    check_tensors(
        weights,
        shapes,
        source,
        advice="a model starts from one of its own family and size; train.fresh names parts that it does not take over",
    )
    model.load_state_dict(weights, strict=False)
    return sorted(here - there), sorted(there - here)


def _part(name: str) -> str:
    return name.split(".")[0]


def read_weights(folder: Path) -> tuple[dict[str, Tensor], Path]:
    """All tensors of a model folder, and the file that names them."""
    if not (folder / INDEX_FILE).is_file():
        return read_tensors(folder / WEIGHTS_FILE), folder / WEIGHTS_FILE
    path = folder / INDEX_FILE
    file_of_name = read_json_object(path).get("weight_map")
    if not isinstance(file_of_name, dict) or not all(_is_plain_name(name) for name in file_of_name.values()):
        raise ValueError(f"{path} has no 'weight_map' from names of tensors to files beside it: copy the folder again")
    weights: dict[str, Tensor] = {}
    for name in sorted(set(file_of_name.values())):
        weights.update(read_tensors(folder / name))
    if missing := sorted(file_of_name.keys() - weights.keys()):
        raise ValueError(
            f"{path} announces {missing[0]!r}, which {file_of_name[missing[0]]} lacks: copy the folder again"
        )
    return weights, path


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of one safetensors file, on the CPU; a missing, truncated or other file is a ValueError."""
    if not path.is_file():
        raise ValueError(f"{path} does not exist: the folder is incomplete, copy or write it again")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (the file is no mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is truncated or no safetensors file ({error}): copy or write it again") from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write one safetensors file such that a killed writer leaves the old one, or none."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        save_file({name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}, temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except SafetensorError as error:  # how a full disk is reported
        raise OSError(f"{path}: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def check_tensors(
    tensors: Mapping[str, Tensor],
    shapes: Mapping[str, tuple[int, ...]],
    source: Path | str,
    advice: str = "weights and config.json do not belong together, copy the folder again",
) -> None:
    """Refuse tensors whose names or shapes are not the expected ones."""
    missing, unexpected = sorted(shapes.keys() - tensors.keys()), sorted(tensors.keys() - shapes.keys())
    if missing or unexpected:
        parts = [
            f"{len(names)} {what} (first: {names[0]})"
            for what, names in (("missing", missing), ("unexpected", unexpected))
            if names
        ]
        raise ValueError(f"{source} holds other weights than its model has: {', '.join(parts)}; {advice}")
    for name, shape in shapes.items():
        if tuple(tensors[name].shape) != shape:
            raise ValueError(f"{source} holds {name} of shape {tuple(tensors[name].shape)}, not {shape}: {advice}")


def config_of_model(model: Generator) -> dict[str, Any]:
    """What config.json says of a model."""
    family = next((name for name, kind in FAMILIES.items() if type(model) is kind), None)
    assert family is not None, f"{type(model).__name__} is not listed in FAMILIES"
    return {
        "model_type": MODEL_TYPE,
        "architectures": [type(model).__name__],
        "family": family,
        **dataclasses.asdict(model.config),
        "insnet_version": installed_version(),
    }


def installed_version() -> str:
    """The package's version, or "unknown" where it runs from its source tree."""
    try:
        return importlib.metadata.version("insnet")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _is_plain_name(name: Any) -> bool:
    return isinstance(name, str) and name == Path(name).name and name.endswith(".safetensors")
