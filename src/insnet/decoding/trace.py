"""The edits a decoder made, row by row; replaying them gives the text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from insnet.decoding.loop import Step
from insnet.insertion.canvas import INSERTED, Canvas
from insnet.text.marks import has_marks, unpaired_marks
from insnet.text.tokenizer import Tokenizer
from insnet.text.words import Literal


@dataclass(frozen=True)
class TraceStep:
    """One step of one text."""

    inserts: tuple[tuple[int, int, float], ...]
    """(slot, token, log-probability) each, left to right; slots as they were before the step."""
    stop_log_prob: float
    """Of going on, or of stopping in the last step."""
    is_last: bool
    deletes: tuple[int, ...] = ()
    """Places of removed tokens in the text as it was before the step, the first token's being 0; they go before
    anything is inserted."""
    is_cut: bool = False
    """The last step, and only because of the limit on tokens."""


@dataclass
class Replay:
    """A text that grows by replaying steps: (token, origin) pairs in reading order, <bos> and <eos> left out."""

    required: tuple[Literal, ...]
    tokens: list[tuple[int, int]]

    @classmethod
    def of_rows(cls, canvas: Canvas, required: Sequence[tuple[Literal, ...]]) -> "list[Replay]":
        """The texts on a canvas, each made of its own required stretches and of what was inserted. Asks the device."""
        rows = zip(required, canvas.tokens.tolist(), canvas.origin.tolist(), canvas.length.tolist(), strict=True)
        return [
            cls(own, list(zip(tokens[1 : length - 1], origins[1 : length - 1], strict=True)))
            for own, tokens, origins, length in rows
        ]

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

    def spans(self, tokenizer: Tokenizer) -> list[tuple[int, int]]:
        """Where each required stretch stands in that text: its start and its end."""
        parts = list(self._parts())
        spans = []
        for number, part in enumerate(parts, start=1):
            if isinstance(part, Literal):
                end = len(tokenizer.render(parts[:number]))  # what follows changes nothing of it
                spans.append((end - len(part.text), end))
        return spans

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
    """Collects the steps of all rows of a prompt: as tensors while decoding goes on, read when it is over."""

    rows: int
    steps: list[Step] = field(default_factory=list)

    def traces(self) -> list[list[TraceStep]]:
        """Every row's steps."""
        traces: list[list[TraceStep]] = [[] for _ in range(self.rows)]
        for step in self.steps:
            rows = step.row.tolist()
            if step.edits.parent is not None:
                earlier = [list(traces[rows[parent]]) for parent in step.edits.parent.tolist()]
                for row, own in zip(rows, earlier, strict=True):
                    traces[row] = own
            for row, made in zip(rows, steps_of(step), strict=True):
                if made is not None:
                    traces[row].append(made)
        return traces


def steps_of(step: Step) -> Iterator[TraceStep | None]:
    """What one round did to each of its rows; None for rows that were finished before. Asks the device."""
    edits = step.edits
    none = [None] * len(step.row)
    deleted = none if edits.deleted is None else edits.deleted.tolist()
    cut = none if edits.cut is None else edits.cut.tolist()
    columns = (edits.slot, edits.token, edits.log_prob, edits.stop_log_prob, edits.finished, step.is_active)
    values = zip(*(column.tolist() for column in columns), deleted, cut, strict=True)
    for slots, tokens, log_probs, stop, is_last, is_active, gone, is_cut in values:
        if not is_active:
            yield None
            continue
        puts = tuple([entry for entry in zip(slots, tokens, log_probs, strict=True) if entry[1] >= 0])
        places = tuple([place - 1 for place, flag in enumerate(gone) if flag]) if gone else ()  # <bos> is no place
        yield TraceStep(puts, stop, is_last, places, bool(is_cut))


def without_closings(steps: Iterable[TraceStep]) -> Iterator[TraceStep]:
    """The steps that change a text or end it: one that only closes a slot is no step of its own, and its probability
    is the next one's.

    >>> closing, last = TraceStep((), -0.5, is_last=False), TraceStep((), -1.0, is_last=True)
    >>> [step.stop_log_prob for step in without_closings([closing, closing, last])]
    [-2.0]
    """
    of_closings = 0.0
    for step in steps:
        if step.inserts or step.deletes or step.is_last:
            yield replace(step, stop_log_prob=step.stop_log_prob + of_closings) if of_closings else step
            of_closings = 0.0
        else:
            of_closings += step.stop_log_prob


def removal_of_marks(end: Replay, tokenizer: Tokenizer) -> TraceStep | None:
    """The step that takes inserted quotation marks and brackets without a partner out of a text; None if there are
    none. It is nobody's decision, so it has no probability."""
    if not has_marks(end.text(tokenizer)):
        return None
    marks = unpaired_marks(end.tokens, end.required, tokenizer)
    if not marks:
        return None
    removed = tuple(sorted(marks))
    spaces = [(place, token) for place, token in sorted(marks.items()) if token is not None]
    inserts = tuple((place - sum(gone < place for gone in removed), token, 0.0) for place, token in spaces)
    return TraceStep(inserts, 0.0, is_last=False, deletes=removed)


def log_prob_of_steps(steps: Sequence[TraceStep]) -> float:
    """The log-probability of all insertions, and of stopping, under the untruncated model; removals have none."""
    return sum(step.stop_log_prob + sum(log_prob for _, _, log_prob in step.inserts) for step in steps)
