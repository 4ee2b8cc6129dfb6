"""Requests in, finished texts out: batches, rehearsal, the decode loop and the check that nothing required is lost."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from insnet.decoding.abstain import Abstaining
from insnet.decoding.choose import Chooser
from insnet.decoding.config import GenerationConfig
from insnet.decoding.decide import Decider
from insnet.decoding.desk import Desk, OwnDesk
from insnet.decoding.loop import Decide
from insnet.decoding.prompt import prompt_of_requests
from insnet.decoding.rehearse import rehearsed
from insnet.decoding.request import Request
from insnet.decoding.trace import Recorder, Replay, TraceStep, removal_of_marks, steps_of, without_closings
from insnet.families.generator import Generator, Prompt
from insnet.insertion.constraints import Lexicon
from insnet.randomness import Purpose, mix
from insnet.text.tokenizer import Tokenizer
from insnet.text.words import whole_word_pattern

_MOST_BYTES = 1 << 16  # of required text in a batch: attention over it takes the square of a row's share,
_FEW_BYTES = 64  # of which so many are nothing to worry about, however many rows were asked for
_MOST_PADDED = 4  # times the bytes of a batch's rows that they may take once all are as long as the longest


@dataclass(frozen=True)
class Written:
    """One text and how it came about."""

    request: Request
    text: str
    tokens: int
    steps: tuple[TraceStep, ...]
    start: Replay
    """The text before the first step."""

    @property
    def inserted(self) -> int:
        """Tokens of the text that were not given."""
        return self.tokens - len(self.start.tokens)

    @property
    def finished(self) -> bool:
        """Whether the text ended by itself, not by the limit on tokens."""
        return not any(step.is_cut for step in self.steps)

    @property
    def rounds(self) -> int:
        """Steps that changed the text."""
        return sum(not step.is_last for step in self.steps)

    def end(self) -> Replay:
        """The text after the last step."""
        return self.start.after(self.steps)


@dataclass(frozen=True)
class Scribe:
    """Writes texts with one family's weights."""

    family: Generator
    tokenizer: Tokenizer
    lexicon: Lexicon
    desk: Desk = field(default_factory=OwnDesk)

    def write(
        self,
        requests: Sequence[Request],
        seeds: Sequence[int],
        config: GenerationConfig,
        *,
        batch_size: int = 64,
        on_written: Callable[[int], None] | None = None,
    ) -> list[Written]:
        """One text for each request; long requests share batches with long ones, which saves padding.

        Few texts hold an indecent word, so none is watched as it grows: those that do are written once more, the same
        but from that word on."""
        requests = self.rehearse(requests, seeds, config, batch_size=batch_size)
        decider = self.decider(config)
        texts = self._write(requests, seeds, config, lambda _: decider, batch_size, on_written)
        spoilt = [row for row, text in enumerate(texts) if not text.request.is_decent(text.text)]
        again = self._write(
            [requests[row] for row in spoilt],
            [seeds[row] for row in spoilt],
            config,
            lambda own: Abstaining(decider, own, self.tokenizer),
            batch_size,
        )
        decent = dict(zip(spoilt, again, strict=True))
        return [decent.get(row, text) for row, text in enumerate(texts)]

    def _write(
        self,
        requests: Sequence[Request],
        seeds: Sequence[int],
        config: GenerationConfig,
        decide_for: Callable[[Sequence[Request]], Decide],
        batch_size: int,
        on_written: Callable[[int], None] | None = None,
    ) -> list[Written]:
        """One text for each request, by what decides for those of a batch."""
        written: dict[int, Written] = {}
        for rows in _batches([_size(request) for request in requests], batch_size):
            own = [requests[row] for row in rows]
            prompt = self.prompt(own, [seed_of_request(requests[row], seeds[row]) for row in rows], config)
            written.update(zip(rows, self.carry_out(prompt, own, decide_for(own)), strict=True))
            if on_written:
                on_written(len(rows))
        return [written[index] for index in range(len(requests))]

    def rehearse(
        self, requests: Sequence[Request], seeds: Sequence[int], config: GenerationConfig, *, batch_size: int = 64
    ) -> list[Request]:
        """The requests with their lengths, if these are to be rehearsed and are not known: all texts that are written
        for a request can so share its rehearsals."""
        known = list(requests)
        if config.length.stopping != "rehearsed" or self.family.config.longest is not None:
            return known
        unknown = [index for index, request in enumerate(requests) if request.insertions is None]
        at_a_time = max(batch_size // config.length.rehearsals, 1)
        for places in _batches([_size(requests[index]) for index in unknown], at_a_time):
            rows = [unknown[place] for place in places]
            own_seeds = [seed_of_request(requests[row], seeds[row]) for row in rows]
            prompt = self.prompt([requests[row] for row in rows], own_seeds, config)
            counts = rehearsed(self.family, prompt, Chooser(config, self.lexicon), self.desk).tolist()
            for row, count in zip(rows, counts, strict=True):
                known[row] = replace(requests[row], insertions=count)
        return known

    def stream(self, request: Request, seed: int, config: GenerationConfig) -> Iterator[tuple[TraceStep, Replay]]:
        """Each step of one text as it is made, with the text before it, which holds no indecent word at any time."""
        prompt = self.prompt([request], [seed_of_request(request, seed)], config)
        [replay] = self._starts(prompt, [request])
        rounds = self.desk.rounds(self.family, prompt, Abstaining(self.decider(config), [request], self.tokenizer))
        made = (step for round_ in rounds for step in steps_of(round_) if step is not None)
        for newest in without_closings(made):
            for own in self._tidied(request, replay, [newest]):
                yield own, replay.after(())
                replay.apply(own)

    def prompt(self, requests: Sequence[Request], seeds: Sequence[int], config: GenerationConfig) -> Prompt:
        """The prompt of a batch of requests, with the very seeds given."""
        for request in requests:
            self._refuse_too_long(request)
        device = next(self.family.parameters()).device
        prompt = prompt_of_requests(requests, seeds, self.tokenizer, self.lexicon, device)
        order = _order(self.family.config.orders, config)
        return replace(prompt, order=torch.full_like(prompt.order, order))

    def decider(self, config: GenerationConfig) -> Decider:
        """What decides by a config."""
        return Decider(Chooser(config, self.lexicon))

    def carry_out(self, prompt: Prompt, requests: Sequence[Request], decide: Decide) -> list[Written]:
        """The texts that a prompt grows into."""
        recorder = Recorder(len(requests))
        for step in self.desk.rounds(self.family, prompt, decide):
            recorder.steps.append(step)
        traces = [list(without_closings(steps)) for steps in recorder.traces()]
        rows = zip(requests, self._starts(prompt, requests), traces, strict=True)
        return [self._finish(request, start, steps) for request, start, steps in rows]

    def _finish(self, request: Request, start: Replay, steps: Sequence[TraceStep]) -> Written:
        """The text that some steps make of a start, checked to hold everything required."""
        replay = start.after(steps)
        tidied = self._tidied(request, replay, steps)
        if len(tidied) > len(steps):
            steps, replay = tidied, start.after(tidied)
        text = replay.text(self.tokenizer)
        if self.family.traits.keeps_given and not request.is_kept_in(text):
            raise RuntimeError(f"a required word was lost; please report this: {request.phrases()!r} gave {text!r}")
        return Written(request, text, len(replay.tokens), tuple(steps), start)

    def _tidied(self, request: Request, end: Replay, steps: Sequence[TraceStep]) -> list[TraceStep]:
        """The steps that led to a text's end, with one before the last that removes inserted quotation marks and
        brackets without a partner, if there are any."""
        *others, last = steps
        tidying = removal_of_marks(end, self.tokenizer) if last.is_last and self.tokenizer.is_cased else None
        if tidying is None:
            return [*steps]
        before, after = (replay.text(self.tokenizer) for replay in (end, end.after([tidying])))
        bans = [whole_word_pattern(phrase, ignore_case=True) for phrase in request.banned]
        if any(ban.search(after) and not ban.search(before) for ban in bans) or not request.is_decent(after):
            return [*steps]
        return [*others, tidying, last]

    def _starts(self, prompt: Prompt, requests: Sequence[Request]) -> list[Replay]:
        """The texts before the first step: what was given, or nothing if the family plans instead of keeping."""
        if not self.family.traits.keeps_given:
            return [Replay(required=(), tokens=[]) for _ in requests]
        return Replay.of_rows(prompt.canvas, [request.required for request in requests])

    def _refuse_too_long(self, request: Request) -> None:
        """A model that is told how many insertions to make has learned only so many."""
        longest, least = self.family.config.longest, request.bounds.min_words - request.printed_words()
        if longest is not None and least > longest:
            raise ValueError(
                f"at least {request.bounds.min_words} words were asked for, but this model inserts at most {longest}: "
                f"ask for {longest + request.printed_words()} or fewer"
            )


def _order(orders: Sequence[str], config: GenerationConfig) -> int:
    """The number of the order that a config asks for."""
    wanted = config.rounds.order
    if wanted and wanted not in orders:
        raise ValueError(f"order is {wanted!r}, but this model has learned {', '.join(orders)}; use one of them")
    return orders.index(wanted or orders[-1 if config.is_parallel else 0])


def seed_of_request(request: Request, seed: int) -> int:
    """The seed of a row: noise shared by all texts of a call would make them alike, word by word."""
    phrases = "\n".join(request.phrases()).encode("utf-8", "surrogatepass")
    return int(mix(Purpose.REQUEST, seed, zlib.crc32(phrases)))


def _size(request: Request) -> int:
    """How many bytes are required: in a script that it does not know a tokenizer makes as many pieces."""
    return sum(len(phrase.encode("utf-8", "surrogatepass")) for phrase in request.phrases())


def _batches(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """All indices in batches of like size; fewer to a batch where requests are so long that memory would run out, or
    where one is so much longer than the others that these would wait for it.

    >>> [len(batch) for batch in _batches([2048] * 64, 64)], [len(batch) for batch in _batches([64] * 2048, 2048)]
    ([32, 32], [2048])
    >>> [len(batch) for batch in _batches([2000] + [20] * 10, 64)]
    [10, 1]
    """
    batch: list[int] = []
    most_bytes, whole = max(_MOST_BYTES, most * _FEW_BYTES), 0
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        padded, own = (len(batch) + 1) * sizes[index], max(sizes[index], _FEW_BYTES)
        if batch and (len(batch) == most or padded > most_bytes or padded > _MOST_PADDED * (whole + own)):
            yield batch
            batch, whole = [], 0
        batch.append(index)
        whole += own
    if batch:
        yield batch
