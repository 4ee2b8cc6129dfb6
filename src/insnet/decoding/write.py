"""Requests in, finished texts out: batches, rehearsal, the decode loop and the check that nothing required is lost."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from insnet.decoding.choose import Chooser
from insnet.decoding.config import GenerationConfig
from insnet.decoding.lengths import counted, rehearsed, with_length
from insnet.decoding.loop import decode
from insnet.decoding.request import Request, prompt_of_requests
from insnet.decoding.trace import Recorder, Replay, TraceStep
from insnet.families.generator import Generator, Prompt, State
from insnet.insertion.constraints import Lexicon
from insnet.randomness import mix
from insnet.text.tokenizer import Tokenizer

_REQUEST_NOISE = 501
_MOST_CHARACTERS = 1 << 16  # of required text in a batch: attention over it takes the square of a row's share


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

    def end(self) -> Replay:
        """The text after the last step."""
        return self.start.after(self.steps)

    def texts(self, tokenizer: Tokenizer) -> Iterator[str]:
        """The text after each step."""
        replay = self.start.after(())
        for step in self.steps:
            replay.apply(step)
            yield replay.text(tokenizer)


@dataclass(frozen=True)
class Scribe:
    """Writes texts with one family's weights."""

    family: Generator
    tokenizer: Tokenizer
    lexicon: Lexicon

    def write(
        self,
        requests: Sequence[Request],
        seeds: Sequence[int],
        config: GenerationConfig,
        *,
        batch_size: int = 64,
        on_written: Callable[[int], None] | None = None,
    ) -> list[Written]:
        """One text for each request; long requests share batches with long ones, which saves padding."""
        written: dict[int, Written] = {}
        for rows in _batches([_size(request) for request in requests], batch_size):
            texts = self._write_batch([requests[row] for row in rows], [seeds[row] for row in rows], config)
            written.update(zip(rows, texts, strict=True))
            if on_written:
                on_written(len(rows))
        return [written[index] for index in range(len(requests))]

    def rehearse(
        self, requests: Sequence[Request], seeds: Sequence[int], config: GenerationConfig, *, batch_size: int = 64
    ) -> list[Request]:
        """The requests with their lengths, if these are to be rehearsed and were not yet: all texts that are written
        for a request can so share its rehearsals."""
        told = list(requests)
        if config.stopping != "rehearsed" or self.family.is_told_its_length:
            return told
        untold = [index for index, request in enumerate(requests) if request.insertions is None]
        for places in _batches([_size(requests[index]) for index in untold], max(batch_size // config.rehearsals, 1)):
            rows = [untold[place] for place in places]
            prompt = self._seeded_prompt([requests[row] for row in rows], [seeds[row] for row in rows], config)
            for row, count in zip(rows, rehearsed(self.family, prompt, self._chooser(config)).tolist(), strict=True):
                told[row] = replace(requests[row], insertions=count)
        return told

    def stream(self, request: Request, seed: int, config: GenerationConfig) -> Iterator[tuple[TraceStep, str]]:
        """Each step of one text as it is made, with the text after it."""
        start, recorder = self._prompt([request], [seed], config)
        replay = self._start(start, 0, request)
        for step in decode(self.family, start, self._chooser(config)):
            recorder.add(step)
            newest = recorder.steps_of_row[0][-1]
            replay.apply(newest)
            yield newest, replay.text(self.tokenizer)

    def finish(self, request: Request, start: Replay, steps: Sequence[TraceStep]) -> Written:
        """The text that some steps make of a start, checked to hold everything required."""
        replay = start.after(steps)
        text = replay.text(self.tokenizer)
        if self.family.traits.keeps_keywords and not request.is_kept_in(text):
            raise RuntimeError(f"a required word was lost; please report this: {request.phrases()!r} gave {text!r}")
        return Written(request, text, len(replay.tokens), tuple(steps), start)

    def prompt(self, requests: Sequence[Request], seeds: Sequence[int], config: GenerationConfig) -> Prompt:
        """The prompt of a batch of requests, with the very seeds given."""
        device = next(self.family.parameters()).device
        prompt = prompt_of_requests(requests, seeds, self.tokenizer, self.lexicon, device)
        return replace(prompt, order=_order(self.family.orders, config))

    def _write_batch(
        self, requests: Sequence[Request], seeds: Sequence[int], config: GenerationConfig
    ) -> list[Written]:
        start, recorder = self._prompt(requests, seeds, config)
        for step in decode(self.family, start, self._chooser(config)):
            recorder.add(step)
        rows = zip(requests, recorder.steps_of_row, strict=True)
        return [
            self.finish(request, self._start(start, row, request), steps) for row, (request, steps) in enumerate(rows)
        ]

    def _prompt(
        self, requests: Sequence[Request], seeds: Sequence[int], config: GenerationConfig
    ) -> tuple[Prompt | State, Recorder]:
        """Where to start from: a state if the length was asked of one, which saves encoding the prompt twice."""
        requests = self.rehearse(requests, seeds, config, batch_size=len(requests) * config.rehearsals)
        prompt = self._seeded_prompt(requests, seeds, config)
        start: Prompt | State = prompt
        if config.stopping == "counted" or self.family.is_told_its_length:
            start = counted(self.family, prompt, self._chooser(config))
        elif config.stopping == "rehearsed":
            start = with_length(prompt, prompt.constraints.insertions, self._chooser(config))
        return start, Recorder.of(prompt)

    def _seeded_prompt(self, requests: Sequence[Request], seeds: Sequence[int], config: GenerationConfig) -> Prompt:
        own_seeds = [seed_of_request(*pair) for pair in zip(requests, seeds, strict=True)]
        return self.prompt(requests, own_seeds, config)

    def _chooser(self, config: GenerationConfig) -> Chooser:
        return Chooser(config, self.lexicon)

    def _start(self, given: Prompt | State, row: int, request: Request) -> Replay:
        """The text before the first step: what was given, or nothing if the family plans instead of keeping."""
        if not self.family.traits.keeps_keywords:
            return Replay(required=(), tokens=[])
        inner = slice(1, int(given.canvas.length[row]) - 1)
        tokens, origins = given.canvas.tokens[row, inner].tolist(), given.canvas.origin[row, inner].tolist()
        return Replay(request.required, list(zip(tokens, origins, strict=True)))


def _order(orders: Sequence[str], config: GenerationConfig) -> int:
    """The number of the order that a config asks for."""
    if config.order and config.order not in orders:
        raise ValueError(f"order is {config.order!r}, but this model has learned {', '.join(orders)}; use one of them")
    own = orders[-1 if config.mode == "parallel" else 0]
    return orders.index(config.order or own)


def seed_of_request(request: Request, seed: int) -> int:
    """The seed of a row: noise shared by all texts of a call would make them alike, word by word."""
    phrases = "\n".join(request.phrases()).encode("utf-8", "surrogatepass")
    return int(mix(_REQUEST_NOISE, seed, zlib.crc32(phrases)))


def _size(request: Request) -> int:
    """How many characters are required."""
    return sum(map(len, request.phrases()))


def _batches(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """All indices in batches of like size; fewer to a batch where requests are so long that memory would run out."""
    batch: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and (len(batch) == most or (len(batch) + 1) * sizes[index] > _MOST_CHARACTERS):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
