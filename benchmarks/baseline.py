"""A left-to-right baseline for a results file of `quality` that was measured without one."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import command
from benchmarks.decodings import SCORES, Decoding, draw
from benchmarks.drawing import Drawing
from benchmarks.judge import texts_of
from benchmarks.quality import BASELINE
from insnet.cli import options, terminal
from insnet.evaluation.files import json_text
from insnet.evaluation.results import provenance, without_machine_paths
from insnet.evaluation.task import Task
from insnet.files import read_json_object, write_atomically
from insnet.shelf import load


def add_baseline(path: Path, baseline: Decoding, task: Task, drawing: Drawing, *, made_by: str) -> dict[str, float]:
    """The baseline's figures (ar_bleu2, ...) that are now in the file's headline, its texts beside the file.

    The file's own texts must be of this task, and `drawing` must have its seeds; how the baseline was measured stands
    in the file, too.
    """
    baseline.all_settings()  # refused before anything is written
    result = read_json_object(path)
    texts_of(path, result, task)  # refused if they are of other data
    drawn = draw(baseline, task, drawing)
    found = drawn.scores(SCORES, f"{BASELINE}_{{}}")
    kept = {name: value for name, value in result["headline"].items() if not name.startswith(f"{BASELINE}_")}
    result["headline"] = kept | found
    result[BASELINE] = drawn.detail() | provenance(made_by)
    command.write_texts({BASELINE: drawn.texts}, path)
    write_atomically(path, json_text(without_machine_paths(result)))
    return found


def main(
    result: Annotated[Path, typer.Argument(metavar="FILE.json", help="What quality has written.")],
    model: Annotated[str, typer.Argument(metavar="RUN", help="A left-to-right model (Plan-and-Write).")],
    data: command.DataOption,
    settings: command.SettingsOption = "",
    keywords_per_line: command.KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: command.KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
) -> None:
    """Adds a left-to-right model to a results file of `quality` that lacks one, on the same texts and seeds.

    python -m benchmarks.baseline benchmarks/results/quality_yelp.json runs/yelp_plan_and_write --data data/yelp
    """
    way = Decoding(load(model, device=device), command.one_setting(settings))
    written = read_json_object(result)
    task = command.task_of(written, data, keywords_per_line)
    with command.with_bar(Drawing(written.get("seeds", []), batch_size, keep), [way], task) as drawing:
        found = add_baseline(result, way, task, drawing, made_by=shlex.join(command.command_line()))
    terminal.note(f"written: {result}")
    terminal.print_json({"headline": found})


if __name__ == "__main__":
    command.run(main)
