"""`insnet generate --input` and `insnet infill --input`: files of rows, written in chunks that survive being killed."""

import hashlib
import itertools
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from insnet.cli.outcomes import Layout, Outcome, columns_of
from insnet.cli.resumable import resumable_file
from insnet.cli.row_files import read_rows
from insnet.cli.rows import Row
from insnet.cli.terminal import note, progress_bar
from insnet.decoding.request import Request
from insnet.model import Model, Result
from insnet.text.corpus import STANDARD_INPUT, name_of
from insnet.text.refused_words import RefusedWords

_FORMAT = "insnet-generated-2"


@dataclass(frozen=True)
class FileJob:
    """What is asked for."""

    input_file: Path
    output_file: Path | None
    """Left out, results are printed."""
    samples: int
    """Texts for each row; each makes a line of the output."""
    seed: int | None
    batch_size: int
    """Rows written at a time: what a killed run loses at most."""
    settings: dict[str, Any]
    """Options of Model.generate."""
    refused: RefusedWords | None
    """What no text may hold."""
    as_json: bool
    trace: bool
    fills_blanks: bool
    """Whether the rows are texts with blanks; else they are keywords."""

    @property
    def layout(self) -> Layout:
        return Layout.of(self.output_file, as_json=self.as_json, trace=self.trace)

    def rows(self) -> Iterator[Row]:
        """The rows of the input, one at a time."""
        for row in read_rows(self.input_file, fills_blanks=self.fills_blanks):
            self.layout.check_names(row, name_of(self.input_file), fills_blanks=self.fills_blanks)
            yield row


def write_file(job: FileJob, load: Callable[[], Model], *, overwrite: bool) -> None:
    """Writes the texts of every row; rows that could not be taken are counted in a ValueError at the end.

    Standard input is answered as it comes, unless there is an output file to go on with."""
    is_stream = job.input_file == STANDARD_INPUT and job.output_file is None
    rows = job.rows() if is_stream else list(job.rows())
    model = load()
    model.job(**job.settings)  # settings that no row could be written with are refused before all else
    if job.fills_blanks:
        model.check_fills_blanks()
    seed = secrets.randbits(31) if job.seed is None else job.seed
    if job.output_file is None:
        total = len(rows) if isinstance(rows, list) else None
        refused, total = _write(job, model, rows, seed, job.layout, append=_print, total=total)
    else:
        assert isinstance(rows, list)
        refused, total = _write_to_file(job, job.output_file, model, rows, seed, overwrite=overwrite), len(rows)
    if refused:
        raise ValueError(f"{refused} of {total} lines could not be taken{_where_to_look(job)}")


def _write_to_file(job: FileJob, path: Path, model: Model, rows: Sequence[Row], seed: int, *, overwrite: bool) -> int:
    """How many rows were refused, by this run or an earlier one; what the output lacks is written."""
    assert model.folder is not None, "a model that a command loads comes from a folder"
    settings, total = _provenance(job, model.folder, rows), len(rows)
    layout = replace(job.layout, columns=columns_of(rows, fills_blanks=job.fills_blanks))
    with resumable_file(
        path,
        settings,
        drawn={"seed": seed},
        lines=total * job.samples,
        lines_a_chunk=job.batch_size * job.samples,
        overwrite=overwrite,
        header=layout.header(),
    ) as output:
        done = output.done // job.samples
        if done > 0:
            note(f"{done} of {total} lines are in {path} already")
        try:
            seed = output.settings["seed"]
            _write(job, model, rows[done:], seed, layout, append=output.append, total=total, done=done)
        except KeyboardInterrupt:
            note(f"interrupted: the same command goes on with what is in {path}")
            raise
    first_of_row = itertools.islice(layout.has_text(path), 0, None, job.samples)
    return sum(not has_text and not row.is_blank for has_text, row in zip(first_of_row, rows, strict=True))


def _write(
    job: FileJob,
    model: Model,
    rows: Iterable[Row],
    seed: int,
    layout: Layout,
    *,
    append: Callable[[str], None],
    total: int | None,
    done: int = 0,
) -> tuple[int, int]:
    """How many rows were refused, of how many; all are written, chunk by chunk."""
    refused = count = 0
    waiting = iter(rows)
    with progress_bar("writing", total=total, done=done) as bar:
        while chunk := list(itertools.islice(waiting, job.batch_size)):
            outcomes = _outcomes(job, model, chunk, seed)
            for row, outcome in zip(chunk, outcomes, strict=True):
                if isinstance(outcome, str):
                    refused += 1
                    note(f"{name_of(job.input_file)}, line {row.line}: {outcome}")
            records = [layout.records(*pair, job.samples) for pair in zip(chunk, outcomes, strict=True)]
            append("".join(records))
            bar.advance(len(chunk))
            count += len(chunk)
    return refused, count


def _outcomes(job: FileJob, model: Model, rows: Sequence[Row], seed: int) -> list[Outcome]:
    """For each row its texts, or why there are none; one bad row spoils no other."""
    outcomes: dict[int, Outcome] = {}
    requests: dict[int, tuple[Request, int]] = {}
    for place, row in enumerate(rows):
        if row.is_blank:
            outcomes[place] = [_blank(seed)] * job.samples
            continue
        try:
            requests[place] = _request(job, row), seed if row.seed is None else row.seed
        except ValueError as error:
            outcomes[place] = str(error)
    options = {**job.settings, "batch_size": job.batch_size, "accept": job.refused}
    asked, seeds = [request for request, _ in requests.values()], [own for _, own in requests.values()]
    written = model.outcomes(asked, seeds, num_samples=job.samples, **options)
    for place, outcome in zip(requests, written, strict=True):
        outcomes[place] = str(outcome) if isinstance(outcome, ValueError) else outcome
    return [outcomes[place] for place in range(len(rows))]


def _request(job: FileJob, row: Row) -> Request:
    """What a row asks for; a ValueError if no text could hold it."""
    request = row.request()
    if job.refused is not None:
        job.refused.check_required([row.given] if isinstance(row.given, str) else row.given)
    return request


def _blank(seed: int) -> Result:
    """What a blank row becomes: nothing."""
    return Result([], "", tokens=0, steps=0, log_prob=0.0, finished=True, seed=seed, model=None, replay=list)


def _print(text: str) -> None:
    print(text, end="", flush=True)


def _provenance(job: FileJob, folder: Path, rows: Sequence[Row]) -> dict[str, Any]:
    """What two runs must have in common to write one file together."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(list(vars(row).values())).encode())
    return {
        "format": _FORMAT,
        "model": _fingerprint_of_folder(folder),
        "input": digest.hexdigest()[:32],
        "lines": len(rows),
        "samples": job.samples,
        "trace": job.trace,
        "seed": job.seed,
        **({} if job.refused is None else {"reject": list(job.refused.words)}),
        **json.loads(json.dumps(job.settings)),  # tuples become lists, as in a file
    }


def _where_to_look(job: FileJob) -> str:
    if job.output_file is None:
        return ""
    if job.layout.kind == "json":
        return f'; see "error" in {job.output_file}'
    return (
        f"; their lines in {job.output_file} are empty"
        if job.layout.kind == "text"
        else f"; they have no text in {job.output_file}"
    )


def _fingerprint_of_folder(folder: Path) -> str:
    """The same for the same model, wherever it lies."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*config.json"), *folder.glob("tokenizer.json")]):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]
