"""Writes docs/finetune.md: python -m scripts.write_finetune [--model NAME] [--output FILE.md] [--result FILE.json].

A model before and after `insnet finetune` on 600 notices from a harbour wall, a corpus of our own; a few minutes on two
cores. Nothing is chosen: default settings, seed 0, the first draw of each text.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import insnet
from insnet.evaluation.results import hardware, write_result
from insnet.files import write_atomically
from insnet.shelf import SMALL, find
from insnet.tour import domain_sentences
from insnet.training.events import Evaluated, Event, Updated, text_of_event
from insnet.training.finetune import finetune
from insnet.training.trainer import TrainingSummary
from scripts.write_samples import DOCS, escaped, with_bold_keywords, wrapped

RESULT = DOCS.parent / "benchmarks" / "results" / "finetune_domain.json"
SENTENCES, HELD_OUT, SEED = 600, 100, 0
TERMS = ("loss", "token", "slot", "stop", "count")  # of all figures on the lines set aside, those that are shown
ORDERS = 8  # insertion orders behind the score of a sentence
KEYWORDS = (
    ("bridge", "closed"), ("sailors", "barrels", "noon"), ("umbrella", "lighthouse"), ("boat", "harbour", "fog"),
    ("children", "swim", "rocks"),
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """One model, on texts it was not tuned on."""

    nats_per_token: float
    """A bound for the held-out notices, averaged over tokens."""
    texts: list[str]
    """What it writes for KEYWORDS."""


@dataclass(frozen=True)
class Tuning:
    """What happened."""

    before: Judged
    after: Judged
    losses_before: dict[str, float]
    """On the lines that fine-tuning set aside."""
    losses_after: dict[str, float]
    summary: TrainingSummary
    seconds: float
    """Of fine-tuning, from the command to its end."""
    processor_seconds: float
    """The same on all cores together: what it takes when others use the machine, too."""
    printed: list[str]
    """What the command prints."""


# --- the measurement ---


def tune(model: str, folder: Path, *, sentences: int = SENTENCES, held_out: int = HELD_OUT) -> Tuning:
    """A model before and after fine-tuning into a folder."""
    lines = domain_sentences(sentences + held_out, seed=SEED)
    own, unseen = folder / "harbour.txt", lines[sentences:]
    write_atomically(own, "".join(f"{line}\n" for line in lines[:sentences]))
    before = judged(insnet.load(model, device="cpu"), unseen)
    events: list[Event] = []
    start, started = time.perf_counter(), time.process_time()
    output = folder / "harbour"
    summary = finetune(own, model_folder=find(model), output=output, seed=SEED, device="cpu", on_event=_telling(events))
    seconds, processor_seconds = time.perf_counter() - start, time.process_time() - started
    if summary.status == "interrupted":
        raise ValueError("fine-tuning was interrupted: there is nothing to show")
    after = judged(insnet.load(output, device="cpu"), unseen)
    first, *later = [event for event in events if isinstance(event, Evaluated)]
    best = next(event for event in later if event.update == summary.best_update)
    printed = [text for event in events if not isinstance(event, Updated) and (text := text_of_event(event))]
    return Tuning(before, after, first.losses, best.losses, summary, seconds, processor_seconds, printed)


def judged(model: insnet.Model, unseen: Sequence[str]) -> Judged:
    """How a model does on notices it has never seen, and what it writes."""
    scores = [model.score(line, orders=ORDERS, seed=SEED) for line in unseen]
    nats = -sum(score.log_prob for score in scores) / sum(score.tokens for score in scores)
    return Judged(nats, [result.text for result in model.generate_batch(KEYWORDS, seed=SEED)])


def headline(tuning: Tuning) -> dict[str, float]:
    """The figures of the page."""
    return {
        "valid_loss_before": tuning.losses_before["loss"],
        "valid_loss_after": tuning.losses_after["loss"],
        "held_out_nats_per_token_before": tuning.before.nats_per_token,
        "held_out_nats_per_token_after": tuning.after.nats_per_token,
        "updates": tuning.summary.update,
        "seconds": tuning.seconds,
        "processor_seconds": tuning.processor_seconds,
    }


def _telling(events: list[Event]) -> Callable[[Event], None]:
    """A listener that keeps what happens and shows it, for this takes minutes."""

    def listen(event: Event) -> None:
        events.append(event)
        if (text := text_of_event(event)) is not None:
            print(text, file=sys.stderr, flush=True)

    return listen


# --- the page ---


def page(tuning: Tuning, name: str, link: str) -> str:
    """All of docs/finetune.md."""
    printed = "\n".join(_without_folders(line) for line in tuning.printed)
    option = "" if name == SMALL else f" --model {name}"
    introduction = (
        "`insnet finetune FILE --output DIR` trains a model further on sentences of yours, one per line. "
        f"Here the model is `{name}`, and the sentences are {SENTENCES} notices from a harbour wall, "
        "which the package makes itself; "
        f"{HELD_OUT} more stay hidden to judge by."
    )
    time_taken = (
        f"That took {tuning.seconds / 60:.1f} minutes on {cores()} ({hardware().split(',')[0]}), "
        f"{tuning.processor_seconds / 60:.1f} minutes of processor time; lines of progress are left out. "
        "One line in twenty is set aside: on these the loss is measured before the first update and ten times on the "
        "way, and the best update is kept."
    )
    return f"""# A model for your own sentences

{wrapped(introduction)}

```python
from pathlib import Path

from insnet.tour import domain_sentences

lines = domain_sentences({SENTENCES + HELD_OUT}, seed={SEED})
Path("harbour.txt").write_text("".join(f"{{line}}\\n" for line in lines[:{SENTENCES}]))
```

```
$ insnet finetune harbour.txt --output harbour{option}
{printed}
```

{wrapped(time_taken)}

| | before | after | |
|---|---|---|---|
{figures_table(tuning, link)}

The same keywords, seed {SEED}, the first draw of each:

{texts_table(tuning)}

Without further options the text is gone through three times, a small one more often (until there are 200 updates, but
20 times at most), at a fifth of the learning rate the model was trained with. `--epochs`, `--updates` and
`--learning-rate` change that; `--minutes 2` is done by then, whatever the machine; `--resume` goes on with a run that
was stopped; `--device cuda` takes a GPU. The folder `harbour` is a model like any other: `insnet generate --model
harbour bridge closed`. Weights that were stored in eight bits are tuned, and written, in full precision.

`python -m scripts.write_finetune --model {name}` makes this page again.
"""


def figures_table(tuning: Tuning, link: str) -> str:
    """Losses before and after."""
    file = f"[{Path(link).name}]({link})"
    rows = [
        f"| {HELD_OUT} hidden notices, nats per token (a bound) | {tuning.before.nats_per_token:.2f} | "
        f"{tuning.after.nats_per_token:.2f} | {file} |"
    ]
    for name in (name for name in TERMS if name in tuning.losses_before):
        what = "lines set aside, loss: nats per insertion" if name == "loss" else f"of which {name}, nats per decision"
        rows.append(f"| {what} | {tuning.losses_before[name]:.2f} | {tuning.losses_after[name]:.2f} | |")
    return "\n".join(rows)


def texts_table(tuning: Tuning) -> str:
    """One row per keyword list."""
    rows = [
        f"| {escaped(', '.join(words))} | {with_bold_keywords(before, words)} | {with_bold_keywords(after, words)} |"
        for words, before, after in zip(KEYWORDS, tuning.before.texts, tuning.after.texts, strict=True)
    ]
    return "\n".join(["| keywords | before | after |", "|---|---|---|", *rows])


def cores() -> str:
    """How many processor cores there are, in words."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return "one core" if count == 1 else f"{count} cores"


def _without_folders(line: str) -> str:
    """A printed line without the folder it happened to be made in."""
    return " ".join(Path(word).name if word.startswith(os.sep) else word for word in line.split(" "))


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(description="Write docs/finetune.md; takes a few minutes.")
    parser.add_argument("--model", default=SMALL, help="a model by name or folder (%(default)s)")
    parser.add_argument("--output", type=Path, default=DOCS / "finetune.md")
    parser.add_argument("--result", type=Path, default=RESULT, help="the results file")
    options = parser.parse_args(arguments)
    name = Path(options.model).name
    try:
        with tempfile.TemporaryDirectory() as folder:
            tuning = tune(options.model, Path(folder))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write_result(
        options.result,
        command=["python", "-m", "scripts.write_finetune", "--model", name],
        headline=headline(tuning),
        seeds=[SEED],
        data=f"{SENTENCES} harbour notices (insnet.tour.domain_sentences, seed {SEED}), {HELD_OUT} more held out",
        detail={
            "model": name,
            "losses_before": tuning.losses_before,
            "losses_after": tuning.losses_after,
            "best_update": tuning.summary.best_update,
            "keywords": KEYWORDS,
            "before": asdict(tuning.before),
            "after": asdict(tuning.after),
        },
    )
    link = Path("..", "benchmarks", "results", options.result.name).as_posix()
    write_atomically(options.output, page(tuning, name, link))
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
