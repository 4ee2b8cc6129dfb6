"""What becomes of the rows of a file: texts, or why there are none, as lines of text, of JSON or of CSV."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insnet.cli.rows import Row
from insnet.cli.terminal import json_line
from insnet.model import Result

_RESULT_NAMES = {"text", "tokens", "steps", "log_prob", "finished", "model", "error", "trace"}
_TEXT = "text"

Outcome = Sequence[Result] | str
"""The texts of a row, or why there are none."""


@dataclass(frozen=True)
class Layout:
    """How a file of results looks; each row of the input makes as many records as there are samples of it."""

    kind: str
    """text, json or csv."""
    trace: bool = False
    columns: tuple[str, ...] = ()
    """Of CSV, before the text: those that came."""

    @classmethod
    def of(cls, path: Path | None, *, as_json: bool, trace: bool) -> "Layout":
        """That of a file by its name, or of what is printed."""
        if path is None:
            return cls("json" if as_json else "text", trace)
        return cls({".txt": "text", ".csv": "csv"}.get(path.suffix, "json"), trace)

    def header(self) -> str:
        return _csv_line([*self.columns, _TEXT]) if self.kind == "csv" else ""

    def check_names(self, row: Row, source: str, *, fills_blanks: bool) -> None:
        """A ValueError if a column that came has the name of one that the result has."""
        own = {"text": set(), "csv": {_TEXT}, "json": _RESULT_NAMES | ({"keywords"} if fills_blanks else set())}
        if taken := sorted(own[self.kind] & row.came.keys()):
            raise ValueError(f"{source}, line {row.line}: {taken[0]!r} is where the result goes; rename that column")

    def records(self, row: Row, outcome: Outcome, samples: int) -> str:
        """What is written of a row, whole lines; what cannot be encoded is escaped."""
        if isinstance(outcome, str):
            lines = [self._refusal(row, outcome)] * samples
        else:
            lines = [self._record(row, result) for result in outcome]
        return "".join(lines).encode(errors="backslashreplace").decode()

    def _refusal(self, row: Row, error: str) -> str:
        if self.kind == "csv":
            return self._csv_record(row, "")
        return json_line({**row.came, "error": error}) + "\n" if self.kind == "json" else "\n"

    def _record(self, row: Row, result: Result) -> str:
        if self.kind == "csv":
            return self._csv_record(row, result.text)
        if self.kind == "json":
            return json_line({**row.came, **result.as_dict(trace=self.trace)}) + "\n"
        return result.text + "\n"

    def _csv_record(self, row: Row, text: str) -> str:
        if not row.came and not text:
            return "\n"
        return _csv_line([*(_cell(row.came.get(column)) for column in self.columns), text])

    def has_text(self, path: Path) -> Iterator[bool]:
        """Of each record of a file, in turn, whether it holds a text and not a refusal."""
        with path.open(encoding="utf-8", newline="" if self.kind == "csv" else "\n") as file:
            if self.kind == "csv":
                records = csv.reader(file)
                next(records, None)
                yield from (bool(cells and cells[-1]) for cells in records)
            elif self.kind == "json":
                yield from ("error" not in json.loads(line) for line in file)
            else:
                yield from (line != "\n" for line in file)


def columns_of(rows: Sequence[Row], *, fills_blanks: bool) -> tuple[str, ...]:
    """All columns that came, in the order in which they did."""
    return tuple(dict.fromkeys(name for row in rows for name in row.came)) or (
        "template" if fills_blanks else "keywords",
    )


def _csv_line(cells: Sequence[str]) -> str:
    """A record that ends as lines do here; the line end of the standard is what makes the writer quote both of its
    characters wherever they stand."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(cells)
    return written.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: Any) -> str:
    r"""A value as a cell: words are parted as in a plain file, all else that is no text is JSON.

    >>> [_cell(value) for value in ("a b", None, ["a", "b"], ["a b"], 12, {"id": 1})]
    ['a b', '', 'a b', 'a b\t', '12', '{"id": 1}']
    """
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, list) or not all(isinstance(word, str) and "\t" not in word for word in value):
        return json.dumps(value, ensure_ascii=False)
    return " ".join(value) if not any(" " in word for word in value) else "\t".join([*value, *[""] * (len(value) == 1)])
