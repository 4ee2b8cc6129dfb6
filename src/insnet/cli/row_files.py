"""Files of rows: plain lines, CSV with a header, JSON lines; which of them it is, the name says."""

import csv
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from insnet.cli.rows import EXAMPLE, Row, has_given, row_of_columns, row_of_line, shown
from insnet.text.corpus import STANDARD_INPUT, decoded_lines, name_of

_JSON_LINES = (".jsonl", ".ndjson", ".json")
_SEPARATORS = ",;\t"
csv.field_size_limit(2**31 - 1)  # characters of a cell: unasked, a reader takes but 128 Ki


def read_rows(path: Path, *, fills_blanks: bool) -> Iterator[Row]:
    """The rows of a file, one at a time, with keywords or with texts with blanks. Of standard input the first line that
    is not blank says what it is: an object, or a plain line."""
    lines: Iterable[str] = decoded_lines(path)
    kind = path.with_suffix("").suffix if path.suffix in (".gz", ".xz") else path.suffix
    if path == STANDARD_INPUT:
        kind, lines = _recognised(iter(lines))
    if kind.lower() == ".csv":
        yield from _csv_rows(lines, name_of(path), fills_blanks=fills_blanks)
    else:
        read = _row_of_object if kind.lower() in _JSON_LINES else row_of_line
        for number, line in enumerate(lines, start=1):
            yield read(number, line, fills_blanks=fills_blanks)


def _recognised(lines: Iterator[str]) -> tuple[str, Iterator[str]]:
    """What kind of lines these are, and all of them."""
    seen: list[str] = []
    for line in lines:
        seen.append(line)
        if line.strip():
            break
    is_json = bool(seen) and seen[-1].lstrip().startswith("{")
    return ".jsonl" if is_json else ".txt", itertools.chain(seen, lines)


def _row_of_object(number: int, line: str, *, fills_blanks: bool) -> Row:
    """A row of a file of JSON lines."""
    if not line.strip():
        return Row(number)
    expected = f"expected one object per line, like {EXAMPLE[fills_blanks]}"
    try:
        columns = json.loads(line)
    except json.JSONDecodeError as error:
        why = f"{error.msg} at character {error.colno}"
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets in brackets in brackets
        why = str(error).partition(";")[0]
    else:
        if isinstance(columns, dict):
            return row_of_columns(number, columns, fills_blanks=fills_blanks)
        return Row(number, error=f"{shown(columns)} is no object; {expected}")
    return Row(number, error=f"{shown(line.strip())} is not JSON ({why}); {expected}")


def _csv_rows(lines: Iterable[str], name: str, *, fills_blanks: bool) -> Iterator[Row]:
    header, records = _records(iter(lines), name)
    _check_header(header, name, fills_blanks=fills_blanks)
    for number, cells in records:
        if not cells:
            yield Row(number)
        elif len(cells) > len(header):
            came = dict(zip(header, cells, strict=False))
            why = f"{len(cells)} cells came, expected {len(header)} as in the header; quote a cell that holds a comma"
            yield Row(number, came=came, error=why)
        else:
            filled = itertools.zip_longest(header, cells, fillvalue="")
            yield row_of_columns(number, dict(filled), fills_blanks=fills_blanks)


def _records(lines: Iterator[str], name: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header's cells, and each further record with the number of the line that it begins in. What parts the cells
    is what stands most often in the header."""
    first = next(lines, "")
    separator = max(_SEPARATORS, key=first.count)
    records = _numbered(csv.reader(itertools.chain([first], lines), delimiter=separator, strict=True), name)
    return next(records)[1], records


def _numbered(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Each record of a csv reader with its first line's number; what is no CSV is told in one line."""
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            unclosed = "a quotation mark is opened here and never closed" if "end of data" in str(error) else str(error)
            raise ValueError(f"{name}, line {number}, is not CSV: {unclosed}") from None
        yield number, cells


def _check_header(header: list[str], name: str, *, fills_blanks: bool) -> None:
    """Refuses a header that does not name what is needed, or one thing twice."""
    if not has_given(header, fills_blanks=fills_blanks):
        needed = "a column text or template" if fills_blanks else "a column keywords, or keyword1, keyword2, ..."
        found = ", ".join(map(shown, header[:20])) or "nothing"
        raise ValueError(f"{name} begins with the columns {found}; expected a header with {needed}")
    plain = [column.strip().casefold() for column in header]
    if twice := [column for column in plain if plain.count(column) > 1]:
        raise ValueError(f"{name} has two columns {twice[0]!r}; each needs a name of its own")
