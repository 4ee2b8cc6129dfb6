"""Perplexities for a results file whose texts were written where there is no judge: it reads the texts beside it."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import command
from insnet.cli import options, terminal
from insnet.devices import find_device
from insnet.evaluation.bleu import bleu
from insnet.evaluation.files import json_text, outputs_path
from insnet.evaluation.judge import Judge, load_judge
from insnet.evaluation.results import provenance, without_machine_paths
from insnet.evaluation.task import Task
from insnet.files import read_json_object, write_atomically
from insnet.text.corpus import read_lines

_TOLERANCE = 1e-6  # of a BLEU that is counted again


def add_perplexities(path: Path, task: Task, judge: Judge, *, made_by: str) -> dict[str, float]:
    """The perplexities (judge_ppl, ar_judge_ppl, ..., judge_ppl_reference) that are now in the file's headline.

    Only the first seed's texts lie beside the file, so they are judged alone; the file says so, and by which command.
    """
    result = read_json_object(path)
    texts = texts_of(path, result, task)
    found = {_figure(name): judge.perplexity(lines).perplexity for name, lines in texts.items()}
    found["judge_ppl_reference"] = judge.perplexity(task.references).perplexity
    result["headline"] |= found
    result["judged"] = {"judge": judge.name, "seeds": result["seeds"][:1], **provenance(made_by)}
    write_atomically(path, json_text(without_machine_paths(result)))
    return found


def texts_of(path: Path, result: Mapping[str, Any], task: Task) -> dict[str, list[str]]:
    """The texts beside a file, by what their figures begin with; refused if they are not those of its figures."""
    if "per_seed" not in result:
        raise ValueError(f"{path} has no texts to judge; give what benchmarks.quality or benchmarks.dinic has written")
    ways = {"": result} | {name: each for name, each in result.items() if isinstance(each, dict) and "per_seed" in each}
    return {name: _checked(_texts_path(path, name), way["per_seed"][0]["bleu2"], task) for name, way in ways.items()}


def _checked(path: Path, bleu2: float, task: Task) -> list[str]:
    """The texts of a file, which must have the BLEU-2 that was measured against the references of the task."""
    lines = list(read_lines(path))
    if len(lines) != len(task.references):
        raise ValueError(f"{path} has {len(lines)} texts for {len(task.references)} references; give its own data")
    again = bleu(lines, task.references, order=2).score
    if abs(again - bleu2) > _TOLERANCE:
        raise ValueError(
            f"{path} has a BLEU-2 of {again:.4f}, but {bleu2:.4f} was measured; give its own texts and data"
        )
    return lines


def _texts_path(path: Path, name: str) -> Path:
    return outputs_path(path.with_name(f"{path.stem}.{name}.json") if name else path)


def _figure(name: str) -> str:
    return f"{name}_judge_ppl" if name else "judge_ppl"


def main(
    result: Annotated[Path, typer.Argument(metavar="FILE.json", help="What quality or dinic has written.")],
    data: command.DataOption,
    judge_folder: command.JudgeFolderOption = None,
    device: options.DeviceOption = options.Device.auto,
) -> None:
    """Adds the perplexity of a results file's texts, where they were written without a judge.

    python -m benchmarks.judge benchmarks/results/quality_yelp.json --data data/yelp
    """
    task = command.task_of(read_json_object(result), data)
    judging = load_judge(judge_folder, device=find_device(device))
    found = add_perplexities(result, task, judging, made_by=shlex.join(command.command_line()))
    terminal.note(f"written: {result}")
    terminal.print_json({"headline": found})


if __name__ == "__main__":
    command.run(main)
