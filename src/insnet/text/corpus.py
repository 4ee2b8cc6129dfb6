"""Text files: lines, splits of a data folder, keyword lists and translation pairs."""

import gzip
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, cast

STANDARD_INPUT = Path("-")
"""The path of no file: what comes in is read as a file would be."""
_ENDINGS = (".txt", ".txt.xz", ".txt.gz")


def read_lines(path: str | Path, *, skip_empty: bool = False) -> Iterator[str]:
    """The lines of a text file (plain, .gz or .xz), stripped, one at a time."""
    for line in decoded_lines(Path(path)):
        text = line.strip()
        if text or not skip_empty:
            yield text


def find_split(folder: str | Path, split: str) -> Path:
    """The file of a split ("train", "valid", ...) in a data folder, compressed or not."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"the data folder {folder} does not exist")
    for ending in _ENDINGS:
        if (folder / (split + ending)).is_file():
            return folder / (split + ending)
    present = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    raise ValueError(f"{folder} has no {split}.txt, {split}.txt.xz or {split}.txt.gz; there is: {present}")


def read_keyword_lists(path: str | Path) -> list[list[str]]:
    """One keyword list per line: parted by tabs if the line has one (a tab at its end will do), else by spaces."""
    return [parse_keywords(line) for line in decoded_lines(Path(path))]


def parse_keywords(line: str) -> list[str]:
    """The keywords of one line.

    >>> parse_keywords("new york\\tpizza"), parse_keywords("new york pizza")
    (['new york', 'pizza'], ['new', 'york', 'pizza'])
    """
    if "\t" not in line:
        return line.split()
    return [keyword.strip() for keyword in line.split("\t") if keyword.strip()]


def read_pairs(source_path: str | Path, target_path: str | Path) -> Iterator[tuple[str, str]]:
    """Sentence pairs of two parallel files; an error if one of them ends first."""
    both = zip_longest(read_lines(source_path), read_lines(target_path))
    for line, (source, target) in enumerate(both):
        if source is None or target is None:
            shorter, longer = (source_path, target_path) if source is None else (target_path, source_path)
            raise ValueError(
                f"{shorter} and {longer} are not parallel: {shorter} ends after line {line}, before the other"
            )
        yield source, target


def decoded_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file (plain, .gz or .xz) or of standard input with their ends, one at a time."""
    number, name = 0, name_of(path)
    try:
        with _open_bytes(path) as file:
            for number, line in enumerate(file, start=1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}, line {number}, is not UTF-8: {error.reason} (convert the file to UTF-8)") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{name} cannot be read after line {number}: {error}") from None


def name_of(path: Path) -> str:
    """What an input is called in what we say of it."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def _open_bytes(path: Path) -> AbstractContextManager[BinaryIO]:
    if path == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")
