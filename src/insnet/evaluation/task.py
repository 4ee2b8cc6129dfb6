"""A model judged on one split of one data folder: keywords in, texts out, scored against the originals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from insnet.evaluation.judge import Judge
from insnet.evaluation.report import Report, score_texts
from insnet.model import Model
from insnet.text.corpus import find_split, read_keyword_lists, read_lines
from insnet.text.keywords import draw_keyword_lists

UNFILTERED: Mapping[str, Any] = {"decent": False}
"""How texts to be scored are drawn, unless something else is asked for: the originals and published figures that they
are compared with went through no filter."""


@dataclass(frozen=True)
class Task:
    """What a model is judged on."""

    data: str
    """The data folder's name."""
    split: str
    references: list[str]
    """The original sentences."""
    keywords: list[list[str]]
    """The words each output must hold, parallel to the references."""


def evaluate_task(
    model: Model,
    task: Task,
    *,
    seed: int = 0,
    batch_size: int = 64,
    judge: Judge | None = None,
    parse: bool = False,
    **options: Any,
) -> tuple[Report, list[str]]:
    """The scores of a model on a task, and the texts they were made from.

    To compare settings, read the task and load the judge once: references that it knows cost it nothing.
    """
    results = model.generate_batch(task.keywords, seed=seed, batch_size=batch_size, **{**UNFILTERED, **options})
    report = score_results(model, task, results, seed=seed, judge=judge, parse=parse)
    return report, [result.text for result in results]


class WrittenText(Protocol):
    """What there is to score: a `Result`, or what was kept of one."""

    @property
    def text(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def finished(self) -> bool: ...


def score_results(
    model: Model,
    task: Task,
    results: Sequence[WrittenText],
    *,
    seed: int = 0,
    judge: Judge | None = None,
    parse: bool = False,
) -> Report:
    """The scores of what a model wrote for a task."""
    return score_texts(
        [result.text for result in results],
        task.references,
        task.keywords,
        steps=[result.steps for result in results],
        finished=[result.finished for result in results],
        model=model_name(model),
        data=task.data,
        split=task.split,
        seed=seed,
        judge=judge,
        parse=parse,
    )


def model_name(model: Model) -> str:
    """What a model is called in reports: its folder's name, or its kind."""
    return model.folder.resolve().name if model.folder else type(model.family).__name__


def decoding_settings(model: Model, **options: Any) -> dict[str, Any]:
    """Everything a model decodes by when it is scored with these options, its own settings included."""
    return {**options, **model.job(**{**UNFILTERED, **options}).config.flat()}


def read_task(data: str | Path, split: str, *, limit: int | None = None, keywords_per_line: int = 7) -> Task:
    """The first `limit` sentences of a split, with the lists of SPLIT.keywords.txt or else keywords drawn from them.

    The draw depends on the sentence's line alone, so that every model and seed is given the same words.
    """
    folder = Path(data)
    references = list(read_lines(find_split(folder, split)))
    if not references:
        raise ValueError(f"the split {split!r} of {folder} is empty; there is nothing to judge on")
    if not any(folder.glob(f"{split}.keywords.txt*")):
        references = references[:limit]
        return Task(folder.resolve().name, split, references, _drawn_keywords(folder, references, keywords_per_line))
    keywords = read_keyword_lists(find_split(folder, f"{split}.keywords"))
    if len(keywords) != len(references):
        raise ValueError(
            f"{folder}: {split}.keywords has {len(keywords)} lines and {split} has {len(references)}; "
            "both need one line per sentence"
        )
    return Task(folder.resolve().name, split, references[:limit], keywords[:limit])


def _drawn_keywords(folder: Path, references: list[str], count: int) -> list[list[str]]:
    """Keywords as the public test lists were drawn; tf-idf, if it is used, counts the training text."""
    has_training_text = any(folder.glob("train.txt*"))
    counted = read_lines(find_split(folder, "train")) if has_training_text else None
    return draw_keyword_lists(references, k=count, lines_for_df=counted)
