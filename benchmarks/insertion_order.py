"""Which words a model inserts first: the paper remarks that function words and punctuation precede content words.

Training inserts in a uniformly random order, so the data prefers nothing; what the decoder prefers is the question.
Two yardsticks stand beside it: the same texts with their inserted words in a random order, and texts of the same model
drawn without truncation, which shows what cutting off unlikely slots and tokens has to do with it.
"""

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import command
from insnet.cli import options, terminal
from insnet.cli.benchmark import ResultOption
from insnet.decoding.config import GenerationConfig
from insnet.decoding.job import Job
from insnet.decoding.request import Request, required_words
from insnet.decoding.write import Written
from insnet.evaluation.task import UNFILTERED, Task, read_task
from insnet.model import Model
from insnet.shelf import load
from insnet.text.corpus import find_split, read_lines
from insnet.text.specials import EOS
from insnet.text.stop_words import is_stop_word
from insnet.text.tokenizer import Tokenizer
from insnet.text.words import MARK, split

_TENTHS = 10
_FIRST_STEPS = 10
_SHUFFLES = 10  # random orders of each text: their noise should not show beside the decoder's

Trajectory = list[tuple[int, str]]
"""For each insertion, which word of the text it belongs to (a number), and that word as it reads in the end."""


@dataclass(frozen=True)
class WordRanks:
    """How common words are in a text: 1 for the commonest; upper and lower case are one."""

    rank_of_word: dict[str, int]
    words: int
    """Words counted."""

    @classmethod
    def count(cls, lines: Iterable[str]) -> "WordRanks":
        """The ranks of a text's words and symbols; equally frequent ones in the order of the alphabet."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(part.strip(MARK) for part in split(line, lower_case=True))
        if not counts:
            raise ValueError("the text to count words in is empty")
        by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
        return cls({word: rank for rank, word in enumerate(by_frequency, start=1)}, counts.total())

    def rank(self, word: str) -> int:
        """The rank of a word; one that never occurs comes after all that do."""
        return self.rank_of_word.get(word.lower(), len(self.rank_of_word) + 1)


def measure(
    model: Model,
    task: Task,
    ranks: WordRanks,
    *,
    order: str = "",
    seed: int = 0,
    batch_size: int = 64,
    on_written: Callable[[int], None] | None = None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (rank_first_tenth, random_rank_first_tenth, untruncated_..., ...) and the detail behind it.

    `order` is one of those that the model has learned; left empty, its first.
    """
    job = model.job(seed=seed, batch_size=batch_size, on_written=on_written, order=order, **UNFILTERED)
    headline: dict[str, float] = {}
    detail: dict[str, Any] = {}
    for prefix, config in (("", job.config), ("untruncated_", job.config.untruncated())):
        trajectories = _trajectories(model, task, config, job)
        shuffled = _shuffled(trajectories, seed)
        name = prefix.rstrip("_") or "decoded"
        detail[name] = describe(trajectories, ranks)
        detail[f"{name}_in_random_order"] = describe(shuffled, ranks)
        headline |= _ends(detail[name], prefix)
        headline |= _ends(detail[f"{name}_in_random_order"], f"{prefix}random_")
    settings = {
        "model": model.folder.resolve().name if model.folder else type(model.family).__name__,
        "generation": job.config.flat(),
        "texts": len(task.keywords),
        "shuffles": _SHUFFLES,
    }
    counted = {"words": ranks.words, "different": len(ranks.rank_of_word)}
    return headline, {"settings": settings, "ranked_by": counted, **detail}


def trajectory_of(written: Written, tokenizer: Tokenizer) -> Trajectory:
    """What was inserted, in the order in which it was, left to right within a step; a piece counts as the word it ends
    up in."""
    canvas: list[tuple[int, int | None]] = [(token, None) for token, _ in written.start.tokens]
    before = 0
    for step in written.steps:
        for shift, (slot, token, _) in enumerate(sorted(step.inserts)):
            canvas.insert(slot + shift, (token, before + shift))
        before += len(step.inserts)
    entries: dict[int, tuple[int, str]] = {}
    for number, word in enumerate(_inserted_words(canvas, tokenizer)):
        text = tokenizer.decode([token for token, _ in word])
        entries |= {insertion: (number, text) for _, insertion in word}
    return [entries[insertion] for insertion in sorted(entries)]


def _inserted_words(canvas: Sequence[tuple[int, int | None]], tokenizer: Tokenizer) -> Iterable[list[tuple[int, int]]]:
    """Each inserted word in reading order, as pairs of a token and when it was inserted (None: required from the
    start); required text ends the word before it."""
    stretch: list[tuple[int, int]] = []
    for token, insertion in [*canvas, (EOS, None)]:
        if insertion is not None:
            stretch.append((token, insertion))
            continue
        pairs = iter(stretch)
        for group in tokenizer.words([token for token, _ in stretch]):
            yield [next(pairs) for _ in group]
        stretch = []


def in_random_order(trajectory: Trajectory, rng: random.Random) -> Trajectory:
    """The same words in another order; the pieces of a word stay together."""
    pieces, word_of_number = Counter(number for number, _ in trajectory), dict(trajectory)
    numbers = sorted(pieces)
    rng.shuffle(numbers)
    return [(number, word_of_number[number]) for number in numbers for _ in range(pieces[number])]


def describe(trajectories: Iterable[Trajectory], ranks: WordRanks) -> dict[str, list[dict[str, float]]]:
    """What is inserted when: by tenth of the trajectory, and for the first steps of all.

    The first insertion of a text lies in the first tenth and the last in the last, however short the text.
    """
    tenths: list[list[str]] = [[] for _ in range(_TENTHS)]
    steps: list[list[str]] = [[] for _ in range(_FIRST_STEPS)]
    for trajectory in trajectories:
        for step, (_, word) in enumerate(trajectory):
            tenth = _TENTHS * step // max(len(trajectory) - 1, 1)
            tenths[min(tenth, _TENTHS - 1)].append(word)
            if step < _FIRST_STEPS:
                steps[step].append(word)
    return {
        "by_tenth": [_summary(words, ranks) for words in tenths],
        "by_step": [_summary(words, ranks) for words in steps],
    }


def is_punctuation(word: str) -> bool:
    """Whether a word of a text is no word but a symbol, or several."""
    return not any(character.isalnum() for character in word)


def _summary(words: Sequence[str], ranks: WordRanks) -> dict[str, float]:
    """Mean rank, typical (geometric mean) rank and the shares of two kinds among inserted words; only a count of 0
    where there are none."""
    if not words:
        return {"insertions": 0}
    ranked = [ranks.rank(word) for word in words]
    return {
        "insertions": len(words),
        "rank": statistics.fmean(ranked),
        "typical_rank": math.exp(statistics.fmean(map(math.log, ranked))),
        "function_share": sum(is_stop_word(word.lower()) for word in words) / len(words),
        "punctuation_share": sum(map(is_punctuation, words)) / len(words),
    }


def _trajectories(model: Model, task: Task, config: GenerationConfig, job: Job) -> list[Trajectory]:
    requests = [job.bounded(Request(required_words(keywords))) for keywords in task.keywords]
    written = model.scribe.write(
        requests, [job.seed] * len(requests), config, batch_size=job.batch_size, on_written=job.on_written
    )
    found = [trajectory_of(text, model.tokenizer) for text in written]
    if not any(found):
        raise ValueError("the model inserted nothing: there is no order to describe")
    return found


def _shuffled(trajectories: Sequence[Trajectory], seed: int) -> list[Trajectory]:
    rng = random.Random(seed)
    return [in_random_order(trajectory, rng) for trajectory in trajectories for _ in range(_SHUFFLES)]


def _ends(description: dict[str, list[dict[str, float]]], prefix: str) -> dict[str, float]:
    """The first and the last tenth as headline entries."""
    ends = {"first": description["by_tenth"][0], "last": description["by_tenth"][-1]}
    return {
        f"{prefix}{name}_{end}_tenth": summary[name]
        for name in ("rank", "typical_rank", "function_share", "punctuation_share")
        for end, summary in ends.items()
        if name in summary
    }


def main(
    model: command.ModelArgument,
    data: Annotated[Path, typer.Option(metavar="DIR", help="A folder with the split, and train.txt.")],
    split: command.SplitOption = "valid",
    limit: command.LimitOption = None,
    keywords_per_line: command.KeywordsOption = 4,
    text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What to count word frequencies in; left out, the train split."),
    ] = None,
    order: Annotated[str, typer.Option(help="Of several that the model has learned; left out, its first.")] = "",
    seed: command.SeedOption = 0,
    batch_size: options.BatchSizeOption = 64,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Which words a model inserts first: by corpus frequency, function words, punctuation."""
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    ranks = WordRanks.count(read_lines(find_split(data, "train") if text is None else text))
    writer = load(model, device=device)
    with terminal.progress_bar("generating", total=2 * len(task.keywords)) as bar:
        found = measure(writer, task, ranks, order=order, seed=seed, batch_size=batch_size, on_written=bar.advance)
    command.report_on(task, seed, output, *found)


if __name__ == "__main__":
    command.run(main)
