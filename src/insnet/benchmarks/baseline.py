"""A left-to-right baseline for a results file of `insnet benchmark quality` that was measured without one."""

from pathlib import Path

from insnet.benchmarks.decodings import SCORES, Decoding, draw
from insnet.benchmarks.drawing import Drawing
from insnet.benchmarks.judged import texts_of
from insnet.benchmarks.quality import BASELINE
from insnet.benchmarks.spectrum import write_texts
from insnet.evaluate import Task
from insnet.evaluation.files import json_text
from insnet.evaluation.results import provenance, without_machine_paths
from insnet.files import read_json_object, write_atomically


def add_baseline(path: Path, baseline: Decoding, task: Task, drawing: Drawing, *, command: str) -> dict[str, float]:
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
    result[BASELINE] = drawn.detail() | provenance(command)
    write_texts({BASELINE: drawn.texts}, path)
    write_atomically(path, json_text(without_machine_paths(result)))
    return found
