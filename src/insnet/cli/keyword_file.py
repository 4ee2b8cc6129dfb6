"""`insnet generate --input`: a file of keyword lists, written in chunks that survive being killed."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insnet.cli.terminal import json_line, note, progress_bar
from insnet.files import read_json_object, write_atomically
from insnet.model import Job, Model, Result
from insnet.shelf import find, load
from insnet.text.corpus import read_keyword_lists

_FORMAT = "insnet-generated-1"


@dataclass(frozen=True)
class FileJob:
    """What is asked for."""

    input_file: Path
    output_file: Path | None
    """Left out, results are printed."""
    samples: int
    """Texts for each line; each makes a line of the output."""
    seed: int | None
    batch_size: int
    """Lines written at a time: what a killed run loses at most."""
    settings: dict[str, Any]
    """Options of Model.generate."""
    as_json: bool
    trace: bool

    @property
    def writes_json(self) -> bool:
        return self.as_json if self.output_file is None else self.output_file.suffix != ".txt"


@dataclass(frozen=True)
class Refusal:
    """A line that could not be taken, and why."""

    keywords: list[str]
    error: str


def write_file(job: FileJob, model_name: str | None, device: str, *, overwrite: bool) -> None:
    """Writes the texts of every line; lines that could not be taken are counted in a ValueError at the end."""
    keyword_lists = read_keyword_lists(job.input_file)
    seed, done = secrets.randbits(31) if job.seed is None else job.seed, 0
    if job.output_file is not None:
        wanted = _provenance(job, find(model_name), keyword_lists)
        seed = _begin_or_go_on(job.output_file, wanted, seed, overwrite=overwrite)
        done = _keep_whole_chunks(job, len(keyword_lists)) // job.samples
        if done > 0:
            note(f"{done} of {len(keyword_lists)} lines are in {job.output_file} already")
    if done < len(keyword_lists):
        model = load(model_name, device=device)
        Job.of(model.generation, **job.settings)  # settings that no line could be written with are refused here
        try:
            _write_rest(job, model, keyword_lists, seed, done)
        except KeyboardInterrupt:
            if job.output_file is not None:
                note(f"interrupted: the same command goes on with what is in {job.output_file}")
            raise
    refused = _count_refused(job) if job.output_file is not None else 0
    if refused:
        raise ValueError(f"{refused} of {len(keyword_lists)} lines could not be taken{_where_to_look(job)}")


def _write_rest(job: FileJob, model: Model, keyword_lists: Sequence[list[str]], seed: int, done: int) -> None:
    refused = 0
    with progress_bar("generating", total=len(keyword_lists), done=done) as bar:
        for start in range(done, len(keyword_lists), job.batch_size):
            chunk = keyword_lists[start : start + job.batch_size]
            outcomes = list(_outcomes(model, chunk, job, seed))
            for number, outcome in enumerate(outcomes, start=start + 1):
                if isinstance(outcome, Refusal):
                    refused += 1
                    note(f"{job.input_file}, line {number}: {outcome.error}")
            _append(job.output_file, "".join(line + "\n" for outcome in outcomes for line in _lines(outcome, job)))
            bar.advance(len(chunk))
    if refused and job.output_file is None:
        raise ValueError(f"{refused} of {len(keyword_lists)} lines could not be taken")


def _outcomes(
    model: Model, keyword_lists: Sequence[list[str]], job: FileJob, seed: int
) -> Iterator[list[Result] | Refusal]:
    """For each list its texts, or why it was refused; one bad list spoils no other."""
    options = {**job.settings, "seed": seed, "batch_size": job.batch_size}
    try:
        if job.samples == 1:
            yield from [[result] for result in model.generate_batch(keyword_lists, **options)]
        else:
            yield from [model.generate(keywords, num_samples=job.samples, **options) for keywords in keyword_lists]
    except ValueError as error:
        if len(keyword_lists) == 1:
            yield Refusal(keyword_lists[0], str(error))
            return
        middle = len(keyword_lists) // 2
        yield from _outcomes(model, keyword_lists[:middle], job, seed)
        yield from _outcomes(model, keyword_lists[middle:], job, seed)


def _lines(outcome: list[Result] | Refusal, job: FileJob) -> list[str]:
    """As many lines as there are samples, so that a line of the output tells which line of the input it belongs to."""
    if isinstance(outcome, Refusal):
        return [json_line(vars(outcome)) if job.writes_json else ""] * job.samples
    if job.writes_json:
        return [json_line(result.as_dict(trace=job.trace)) for result in outcome]
    return [result.text for result in outcome]


def _append(path: Path | None, text: str) -> None:
    if path is None:
        print(text, end="", flush=True)
        return
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


# ---- going on where an earlier run was stopped ----


def _provenance(job: FileJob, folder: Path, keyword_lists: Sequence[list[str]]) -> dict[str, Any]:
    """What two runs must have in common to write one file together."""
    return {
        "format": _FORMAT,
        "model": _fingerprint_of_folder(folder),
        "input": hashlib.sha256(json.dumps(keyword_lists).encode()).hexdigest()[:32],
        "lines": len(keyword_lists),
        "samples": job.samples,
        "trace": job.trace,
        "seed": job.seed,
        **json.loads(json.dumps(job.settings)),  # tuples become lists, as in a file
    }


def _begin_or_go_on(path: Path, wanted: dict[str, Any], fresh_seed: int, *, overwrite: bool) -> int:
    """The seed to write with; a file begun otherwise is refused. Settings lie beside it as NAME.settings.json."""
    beside = path.with_name(f"{path.name}.settings.json")
    is_begun = path.is_file() and path.stat().st_size > 0
    if overwrite or not is_begun:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        write_atomically(beside, json.dumps({**wanted, "seed": fresh_seed}, indent=2, ensure_ascii=False) + "\n")
        path.touch()
        return fresh_seed
    if not beside.is_file():
        raise ValueError(
            f"{path} is there already, and not from this command: name another --output, or add --overwrite"
        )
    begun = read_json_object(beside)
    seed = int(begun.get("seed", fresh_seed))
    wanted = {**wanted, "seed": seed if wanted["seed"] is None else wanted["seed"]}
    different = sorted(name for name in wanted.keys() | begun.keys() if begun.get(name) != wanted.get(name))
    if different:
        raise ValueError(
            f"{path} was begun with another {' and '.join(different)}; repeat the command as it was to go on, "
            "name another --output, or add --overwrite to start anew"
        )
    return seed


def _keep_whole_chunks(job: FileJob, keyword_lists: int) -> int:
    """How many lines the output holds, once a chunk that a killed run left in part is cut off.

    Going on at a chunk's border also makes the rest the same as without the interruption, to the last digit.
    """
    assert job.output_file is not None
    path, ends = job.output_file, [0]
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            ends.append(ends[-1] + len(line))
    kept, lines_a_chunk = len(ends) - 1, job.samples * job.batch_size
    if kept < keyword_lists * job.samples:
        kept = kept // lines_a_chunk * lines_a_chunk
    os.truncate(path, ends[kept])
    return kept


def _count_refused(job: FileJob) -> int:
    """Lines of the input that could not be taken, those of earlier runs included."""
    assert job.output_file is not None
    with job.output_file.open(encoding="utf-8") as file:
        marks = ["error" in json.loads(line) if job.writes_json else line == "\n" for line in file]
    return sum(marks[:: job.samples])


def _where_to_look(job: FileJob) -> str:
    return f'; see "error" in {job.output_file}' if job.writes_json else f"; their lines in {job.output_file} are empty"


def _fingerprint_of_folder(folder: Path) -> str:
    """The same for the same model, wherever it lies."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*config.json"), *folder.glob("tokenizer.json")]):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]
