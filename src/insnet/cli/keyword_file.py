"""`insnet generate --input`: a file of keyword lists, written in chunks that survive being killed."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insnet.cli.resumable import resumable_file
from insnet.cli.terminal import json_line, note, progress_bar
from insnet.model import Model, Result
from insnet.text.corpus import read_keyword_lists
from insnet.text.refused_words import RefusedWords

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
    refused: RefusedWords | None
    """What no text may hold."""
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


def write_file(job: FileJob, load: Callable[[], Model], *, overwrite: bool) -> None:
    """Writes the texts of every line; lines that could not be taken are counted in a ValueError at the end."""
    keyword_lists = read_keyword_lists(job.input_file)
    model = load()
    model.job(**job.settings)  # settings that no line could be written with are refused before all else
    seed = secrets.randbits(31) if job.seed is None else job.seed
    if job.output_file is None:
        refused = _write(job, model, keyword_lists, seed, append=_print)
    else:
        assert model.folder is not None, "a model that a command loads comes from a folder"
        settings = _provenance(job, model.folder, keyword_lists)
        _write_to_file(job, job.output_file, model, keyword_lists, settings, seed, overwrite=overwrite)
        refused = _count_refused(job.output_file, job, keyword_lists)
    if refused:
        raise ValueError(f"{refused} of {len(keyword_lists)} lines could not be taken{_where_to_look(job)}")


def _write_to_file(
    job: FileJob,
    path: Path,
    model: Model,
    keyword_lists: Sequence[list[str]],
    settings: dict[str, Any],
    seed: int,
    *,
    overwrite: bool,
) -> None:
    """Writes what the output lacks."""
    chunk, total = job.batch_size * job.samples, len(keyword_lists)
    with resumable_file(
        path, settings, drawn={"seed": seed}, lines=total * job.samples, lines_a_chunk=chunk, overwrite=overwrite
    ) as output:
        done = output.done // job.samples
        if done > 0:
            note(f"{done} of {total} lines are in {path} already")
        try:
            _write(job, model, keyword_lists, output.settings["seed"], done=done, append=output.append)
        except KeyboardInterrupt:
            note(f"interrupted: the same command goes on with what is in {path}")
            raise


def _write(
    job: FileJob,
    model: Model,
    keyword_lists: Sequence[list[str]],
    seed: int,
    *,
    append: Callable[[str], None],
    done: int = 0,
) -> int:
    """How many lines were refused; all lines after the first `done` are written, chunk by chunk."""
    refused = 0
    with progress_bar("generating", total=len(keyword_lists), done=done) as bar:
        for start in range(done, len(keyword_lists), job.batch_size):
            chunk = keyword_lists[start : start + job.batch_size]
            written = _outcomes(model, [keywords for keywords in chunk if keywords], job, seed)
            outcomes = [next(written) if keywords else [_blank(seed)] * job.samples for keywords in chunk]
            for number, outcome in enumerate(outcomes, start=start + 1):
                if isinstance(outcome, Refusal):
                    refused += 1
                    note(f"{job.input_file}, line {number}: {outcome.error}")
            append("".join(line + "\n" for outcome in outcomes for line in _lines(outcome, job)))
            bar.advance(len(chunk))
    return refused


def _outcomes(
    model: Model, keyword_lists: Sequence[list[str]], job: FileJob, seed: int
) -> Iterator[list[Result] | Refusal]:
    """For each list its texts, or why it was refused; one bad list spoils no other."""
    if not keyword_lists:
        return
    options = {**job.settings, "seed": seed, "batch_size": job.batch_size, "accept": job.refused}
    try:
        if job.refused is not None:
            job.refused.check_required(keyword for keywords in keyword_lists for keyword in keywords)
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


def _blank(seed: int) -> Result:
    """What a blank line becomes: nothing."""
    return Result([], "", tokens=0, steps=0, log_prob=0.0, finished=True, seed=seed, model=None, replay=list)


def _lines(outcome: list[Result] | Refusal, job: FileJob) -> list[str]:
    """As many lines as there are samples, so that a line of the output tells which line of the input it belongs to."""
    if isinstance(outcome, Refusal):
        return [json_line(vars(outcome)) if job.writes_json else ""] * job.samples
    if job.writes_json:
        return [json_line(result.as_dict(trace=job.trace)) for result in outcome]
    return [result.text for result in outcome]


def _print(text: str) -> None:
    print(text, end="", flush=True)


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
        **({} if job.refused is None else {"reject": list(job.refused.words)}),
        **json.loads(json.dumps(job.settings)),  # tuples become lists, as in a file
    }


def _count_refused(path: Path, job: FileJob, keyword_lists: Sequence[list[str]]) -> int:
    """Lines of the input that could not be taken, those of earlier runs included; a blank line is none."""
    with path.open(encoding="utf-8", newline="\n") as file:
        marks = ["error" in json.loads(line) if job.writes_json else line == "\n" for line in file]
    pairs = zip(marks[:: job.samples], keyword_lists, strict=True)
    return sum(is_marked and bool(keywords) for is_marked, keywords in pairs)


def _where_to_look(job: FileJob) -> str:
    if job.output_file is None:
        return ""
    return f'; see "error" in {job.output_file}' if job.writes_json else f"; their lines in {job.output_file} are empty"


def _fingerprint_of_folder(folder: Path) -> str:
    """The same for the same model, wherever it lies."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*config.json"), *folder.glob("tokenizer.json")]):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]
