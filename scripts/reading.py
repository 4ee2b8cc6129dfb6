"""Blind readings.

    python -m scripts.reading sheet FOLDER --lists FILE SYSTEM=TEXTS ... [--scored FILE]
    python -m scripts.reading score FOLDER READER.tsv ... --output RESULT.json [--any NAME=SYSTEM,SYSTEM,...]

A sheet mixes the texts of several systems (one line per keyword list, an empty one where there is none) with some that
were scored before, so that readers can be compared. Readers see the sheet alone; key.json says what is whose. A reader
returns one line per text, tab-separated: its number, grammar 1 to 5, sense 1 to 5, complete y/n, usable y/n. `--any`
says for how many lists at least one of some systems' texts is usable: of the five answers of one model, say.
"""

import argparse
import csv
import json
import random
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from insnet.evaluation.results import write_result
from insnet.files import read_json_object, write_atomically
from insnet.text.corpus import read_keyword_lists, read_lines

_SHEET, _KEY = "sheet.tsv", "key.json"
_SEED = 0
_HEADLINE = ("usable", "grammar", "sense")
_ANCHORS = 24  # texts that were scored before
BEFORE = "scored before"


@dataclass(frozen=True)
class Entry:
    """One text of a sheet, and whose it is."""

    number: int
    system: str
    keywords: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """What a reader gave a text."""

    grammar: int
    sense: int
    complete: bool
    usable: bool


def mixed(texts: Iterable[tuple[str, str, str]]) -> list[Entry]:
    """Texts (system, keywords, text) in an order that says nothing, each under a number; the same text only once."""
    shuffled = list(dict.fromkeys(texts))
    random.Random(_SEED).shuffle(shuffled)
    return [Entry(number, *text) for number, text in enumerate(shuffled, start=1)]


def texts_of_systems(
    lists: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]
) -> list[tuple[str, str, str]]:
    """(system, keywords, text) of every text there is."""
    for system, texts in systems.items():
        if len(texts) != len(lists):
            raise ValueError(f"{system} has {len(texts)} texts for {len(lists)} keyword lists: one line per list")
    return [
        (system, ", ".join(keywords), text)
        for system, texts in systems.items()
        for keywords, text in zip(lists, texts, strict=True)
        if text.strip()
    ]


def scored_before(path: Path, count: int = _ANCHORS) -> list[tuple[str, str, str]]:
    """Some texts of an earlier reading, drawn evenly from usable and unusable ones."""
    rows = _table(path)
    chosen = []
    for usable in ("y", "n"):
        group = [row for row in rows if row["usable"] == usable]
        chosen += random.Random(_SEED).sample(group, min(count // 2, len(group)))
    return [(BEFORE, row["keywords"], row["text"]) for row in chosen]


def read_verdicts(path: Path, entries: Sequence[Entry]) -> dict[int, Verdict]:
    """A reader's verdicts by number; a text without one, or with one that is none, is a ValueError."""
    verdicts: dict[int, Verdict] = {}
    for place, line in enumerate(read_lines(path), start=1):
        cells = [cell.strip() for cell in line.split("\t")]
        if not cells[0].isdigit():
            continue  # a heading
        try:
            number, grammar, sense = (int(cell) for cell in cells[:3])
            complete, usable = ({"y": True, "n": False}[cell.lower()] for cell in cells[3:5])
            if not (1 <= grammar <= 5 and 1 <= sense <= 5):
                raise ValueError
        except (ValueError, KeyError):
            raise ValueError(f"{path}, line {place}: expected number, 1-5, 1-5, y/n, y/n, not {line!r}") from None
        verdicts[number] = Verdict(grammar, sense, complete, usable)
    if missing := {entry.number for entry in entries} - verdicts.keys():
        raise ValueError(f"{path} has no verdict on {len(missing)} texts, the first of them number {min(missing)}")
    return verdicts


def figures(entries: Sequence[Entry], readers: Sequence[Mapping[int, Verdict]]) -> dict[str, dict[str, float]]:
    """Per system: the means over all its texts and readers."""
    systems = dict.fromkeys(entry.system for entry in entries)
    result = {}
    for system in systems:
        own = [entry for entry in entries if entry.system == system]
        given = [asdict(reader[entry.number]) for reader in readers for entry in own]
        result[system] = {name: round(fmean(verdict[name] for verdict in given), 4) for name in given[0]}
        result[system]["texts"] = len(own)
    return result


def usable_of_any(entries: Sequence[Entry], readers: Sequence[Mapping[int, Verdict]], systems: Sequence[str]) -> float:
    """The share of lists for which a text of any of the systems is usable, the mean of all readers."""
    if unknown := [system for system in systems if system not in {entry.system for entry in entries}]:
        raise ValueError(f"the sheet has no system {unknown[0]!r}")
    numbers: dict[str, list[int]] = {}
    for entry in entries:
        if entry.system in systems:
            numbers.setdefault(entry.keywords, []).append(entry.number)
    return fmean(any(reader[number].usable for number in own) for reader in readers for own in numbers.values())


def agreement(entries: Sequence[Entry], readers: Sequence[Mapping[int, Verdict]]) -> float | None:
    """The share of texts on whose usability two readers agree, all pairs of readers; None for a single one."""
    pairs = list(combinations(readers, 2))
    same = [one[entry.number].usable == other[entry.number].usable for one, other in pairs for entry in entries]
    return fmean(same) if same else None


def make_sheet(folder: Path, lists: Path, systems: Mapping[str, Path], scored: Path | None) -> None:
    """Writes the sheet for readers and the key that they do not see."""
    texts = {system: [line.rstrip("\n") for line in path.open(encoding="utf-8")] for system, path in systems.items()}
    before = scored_before(scored) if scored else []
    entries = mixed([*texts_of_systems(read_keyword_lists(lists), texts), *before])
    lines = ["number\tkeywords\ttext", *(f"{entry.number}\t{entry.keywords}\t{entry.text}" for entry in entries)]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / _SHEET, "\n".join(lines) + "\n")
    key = {"lists": lists.name, "entries": [asdict(entry) for entry in entries]}
    write_atomically(folder / _KEY, json.dumps(key, indent=1, ensure_ascii=False) + "\n")


def score(
    folder: Path, readings: Sequence[Path], output: Path, together: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """Writes the results file: figures per system and of systems together, the readers' agreement, and every text with
    its verdicts."""
    key = read_json_object(folder / _KEY)
    entries = [Entry(**entry) for entry in key["entries"]]
    readers = [read_verdicts(path, entries) for path in readings]
    systems = figures(entries, readers)
    detail = {"systems": systems, "readers": len(readers), "agreement": agreement(entries, readers)}
    # Keyword lists and texts that were read before may be somebody else's: only what our systems wrote is kept.
    kept = [entry for entry in entries if entry.system != BEFORE]
    told = [
        {
            "number": entry.number,
            "system": entry.system,
            "text": entry.text,
            "verdicts": [list(asdict(reader[entry.number]).values()) for reader in readers],
        }
        for entry in kept
    ]
    headline = {
        f"{name}_{system}": values[name]
        for system, values in systems.items()
        for name in ("usable", "grammar", "sense")
    }
    headline |= {f"usable_of_{name}": usable_of_any(entries, readers, of) for name, of in (together or {}).items()}
    write_result(
        output,
        command=shlex.join(["python", "-m", "scripts.reading", *sys.argv[1:]]),
        headline=headline,
        seeds=[_SEED],
        data=key["lists"],
        detail={**detail, "verdicts": "grammar, sense, complete, usable, per reader", "texts": told},
    )
    return detail


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    sheet = commands.add_parser("sheet")
    sheet.add_argument("folder", type=Path)
    sheet.add_argument("systems", nargs="+", metavar="SYSTEM=TEXTS")
    sheet.add_argument("--lists", type=Path, required=True)
    sheet.add_argument("--scored", type=Path)
    scoring = commands.add_parser("score")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("readings", nargs="+", type=Path)
    scoring.add_argument("--output", type=Path, required=True)
    scoring.add_argument("--any", action="append", default=[], metavar="NAME=SYSTEM,SYSTEM,...")
    given = parser.parse_args()
    try:
        if given.command == "sheet":
            pairs = [system.partition("=") for system in given.systems]
            make_sheet(given.folder, given.lists, {name: Path(path) for name, _, path in pairs}, given.scored)
        else:
            parts = [text.partition("=") for text in given.any]
            together = {name: systems.split(",") for name, _, systems in parts}
            print(json.dumps(score(given.folder, given.readings, given.output, together), indent=2))
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
