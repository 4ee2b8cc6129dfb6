"""Which model a command works with: what the default one needs is fetched the first time; the small one stands in."""

from pathlib import Path
from typing import TYPE_CHECKING

from insnet.cli import options, terminal

if TYPE_CHECKING:
    from insnet.model import Model


def load_writer(
    model: str | None, device: options.Device, *, offline: bool = False, mode: options.Mode | None = None
) -> "Model":
    """The model that a command is to write with, ready to do so."""
    from insnet import shelf
    from insnet.fetching.unavailable import Unavailable

    if model is None and mode is options.Mode.parallel:
        return shelf.load(shelf.SMALL, device=device)  # several words per step are its alone
    folder = shelf.find(model)
    try:
        ready = ready_folder(folder, offline=offline)
    except Unavailable as error:
        if model is not None:
            raise
        terminal.note(f"the small model {shelf.SMALL!r} writes instead: {error}")
        return shelf.load(shelf.SMALL, device=device)
    return shelf.load_ready(ready, device=device, name=shelf.name_of(folder))


def ready_folder(folder: Path, *, offline: bool = False, source: Path | None = None) -> Path:
    """The folder of the whole model; of an adapter, what is missing is fetched, with a progress bar."""
    from insnet.fetching.model import fetch_model, fetched, is_adapter, is_fetched, pin_of

    if not is_adapter(folder):
        return folder
    if source is None and (offline or is_fetched(folder)):
        return fetched(folder)
    with terminal.progress_bar("fetching", total=pin_of(folder).bytes) as bar:
        return fetch_model(folder, source=source, say=terminal.note, on_bytes=bar.reach)
