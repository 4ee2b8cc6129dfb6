"""The edits a decoder made, row by row; replaying them gives the text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from insnet.decoding.loop import Step
from insnet.families.generator import Prompt
from insnet.insertion.canvas import INSERTED, Edits
from insnet.text.tokenizer import Tokenizer
from insnet.text.words import Literal


@dataclass(frozen=True)
class TraceStep:
    """One step of one text."""

    number: int
    inserts: tuple[tuple[int, int, float], ...]
    """(slot, token, log-probability) each, left to right; slots as they were before the step."""
    stop_log_prob: float
    """Of going on, or of stopping in the last step."""
    is_last: bool
    deletes: tuple[int, ...] = ()
    """Places of removed tokens in the text as it was before the step, the first token's being 0; they go before
    anything is inserted."""


@dataclass
class Replay:
    """A text that grows by replaying steps: (token, origin) pairs in reading order, <bos> and <eos> left out."""

    required: tuple[Literal, ...]
    tokens: list[tuple[int, int]]

    def apply(self, step: TraceStep) -> None:
        """Carries out one step."""
        self.tokens = [pair for place, pair in enumerate(self.tokens) if place not in step.deletes]
        for shift, (slot, token, _) in enumerate(sorted(step.inserts, key=lambda insert: insert[0])):
            self.tokens.insert(slot + shift, (token, INSERTED))

    def after(self, steps: Sequence[TraceStep]) -> "Replay":
        """A copy of the text with some steps carried out."""
        replay = Replay(self.required, list(self.tokens))
        for step in steps:
            replay.apply(step)
        return replay

    def text(self, tokenizer: Tokenizer) -> str:
        """The text as printed: required stretches verbatim, the rest from its tokens."""
        return tokenizer.render(list(self._parts()))

    def _parts(self) -> Iterator[int | Literal]:
        previous = INSERTED
        for token, origin in self.tokens:
            if origin == INSERTED:
                yield token
            elif origin != previous:
                yield self.required[origin]
            previous = origin


@dataclass
class Recorder:
    """Collects the steps of all rows of a prompt."""

    steps_of_row: list[list[TraceStep]] = field(default_factory=list)

    @classmethod
    def of(cls, prompt: Prompt) -> "Recorder":
        return cls([[] for _ in range(len(prompt.seeds))])

    def add(self, step: Step) -> None:
        """Files one round under its rows."""
        edits = step.edits
        columns = (step.row, edits.slot, edits.token, edits.log_prob, edits.stop_log_prob, edits.finished)
        for row, slots, tokens, log_probs, stop, is_last in zip(*(c.tolist() for c in columns), strict=True):
            puts = [entry for entry in zip(slots, tokens, log_probs, strict=True) if entry[1] != Edits.NOTHING]
            steps = self.steps_of_row[row]
            steps.append(TraceStep(len(steps) + 1, tuple(puts), stop, is_last))


def log_prob_of_steps(steps: Sequence[TraceStep]) -> float:
    """The log-probability of all insertions, and of stopping, under the untruncated model; removals have none."""
    return sum(step.stop_log_prob + sum(log_prob for _, _, log_prob in step.inserts) for step in steps)
