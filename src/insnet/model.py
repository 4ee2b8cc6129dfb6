"""A model as its user sees it: keywords in, text out."""

import itertools
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

import torch

from insnet.decoding.config import GenerationConfig
from insnet.decoding.request import Request, blanks, required_words
from insnet.decoding.trace import TraceStep, log_prob_of_steps
from insnet.decoding.write import Scribe, Written
from insnet.families.generator import Generator
from insnet.families.storage import load_model
from insnet.files import read_json_object
from insnet.insertion.constraints import Lexicon
from insnet.randomness import mix, uniform
from insnet.text.batching import TokenBatch
from insnet.text.spellings import same_letters
from insnet.text.tokenizer import UNK, Tokenizer

GENERATION_FILE = "generation_config.json"
_PERMUTATION_NOISE, _SAMPLE_NOISE, _SCORE_NOISE, _ATTEMPT_NOISE = 401, 402, 403, 404
_ORDERS_TRIED = 8  # keyword orders tried when any order will do
_ROUNDS_FOR_DIFFERENT = 4  # rounds of fresh samples in search of texts that differ


@dataclass(frozen=True)
class Result:
    """One generated text."""

    keywords: list[str]
    """The required words and phrases, in the order in which they appear."""
    text: str
    tokens: int
    """Tokens of the text."""
    steps: int
    """Rounds of insertion."""
    log_prob: float
    """Of the whole trajectory under the untruncated model."""
    finished: bool
    """False if the text was cut off at the token limit."""
    seed: int
    replay: Callable[[], list[dict[str, Any]]] = field(repr=False, compare=False)
    """Makes the trace."""

    @cached_property
    def trace(self) -> list[dict[str, Any]]:
        """One entry a step: {"step", "insert": [[slot, piece, log_prob], ...], "delete": [], "text"}."""
        return self.replay()

    def as_dict(self, *, trace: bool = False) -> dict[str, Any]:
        """The result as `insnet generate --json` prints it."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "replay"}
        return {**values, "trace": self.trace} if trace else values


@dataclass(frozen=True)
class Score:
    """How likely a text is."""

    text: str
    log_prob: float
    """A lower bound of the log-likelihood in nats; exact for left-to-right models."""
    tokens: int
    nats_per_token: float
    is_exact: bool
    unknown_tokens: int
    """Words the vocabulary does not hold; with any, the score says little."""


class Model:
    """A family's weights, its tokenizer and its way of decoding."""

    def __init__(
        self, family: Generator, tokenizer: Tokenizer, generation: GenerationConfig, folder: Path | None = None
    ) -> None:
        self.family = family.eval()
        self.tokenizer = tokenizer
        self.generation = generation
        self.folder = folder
        lexicon = Lexicon(**tokenizer.lexicon(), same_letters=same_letters(tokenizer))
        self.scribe = Scribe(family, tokenizer, lexicon.to(self.device))

    @property
    def device(self) -> torch.device:
        return next(self.family.parameters()).device

    @overload
    def generate(self, keywords: Sequence[str], *, num_samples: None = None, **options: Any) -> Result: ...
    @overload
    def generate(self, keywords: Sequence[str], *, num_samples: int, **options: Any) -> list[Result]: ...
    def generate(
        self, keywords: Sequence[str], *, num_samples: int | None = None, **options: Any
    ) -> Result | list[Result]:
        """A text that holds the keywords in their order; with `num_samples`, a list of different ones.

        Options are those of `generate_batch`.
        """
        return self._one(Request(required_words(keywords)), num_samples, options)

    @overload
    def infill(self, text: str, *, num_samples: None = None, **options: Any) -> Result: ...
    @overload
    def infill(self, text: str, *, num_samples: int, **options: Any) -> list[Result]: ...
    def infill(self, text: str, *, num_samples: int | None = None, **options: Any) -> Result | list[Result]:
        """The text with its blanks (___) filled and all else kept word for word; options as in `generate_batch`."""
        if not self.family.traits.fills_blanks:
            raise ValueError(
                f"a model of the family {type(self.family).__name__} writes left to right; it fills no blanks"
            )
        if options.get("any_order"):
            raise ValueError("any_order is for keywords: the text around blanks keeps its order")
        return self._one(blanks(text), num_samples, options)

    def generate_batch(self, keyword_lists: Sequence[Sequence[str]], **options: Any) -> list[Result]:
        """One result for each list of keywords; a list's text depends on the seed, not on what else is in the batch.

        Options: `seed`; `length=(least, most)` in words; `banned` words; `any_order=True` to let the keywords come in
        whatever order reads best; `accept`, a function that says of a finished text whether it will do: what it refuses
        is drawn anew, `attempts` times in all, and never returned; `mode="parallel"` to insert several words a step;
        `batch_size`; `on_written`, called with the number of texts done; and every field of GenerationConfig by its
        name.
        """
        job = self.job(**options)
        return self._answer([Request(required_words(keywords)) for keywords in keyword_lists], [job.seed], job)

    def stream(self, keywords: Sequence[str], **options: Any) -> Iterator[dict[str, Any]]:
        """One trace entry a step, as the text grows; options of `generate_batch` but `any_order` and `accept`."""
        for name in ("any_order", "accept"):
            if options.get(name):
                raise ValueError(f"{name} chooses among finished texts: it cannot be streamed; use generate")
        job = self.job(**options)
        request = job.bounded(Request(required_words(keywords)))
        for step, text in self.scribe.stream(request, job.seed, job.config):
            if not step.is_last:
                yield self._trace_entry(step, text)

    def score(self, text: str, *, orders: int = 16, seed: int = 0) -> Score:
        """How likely the text is: a bound averaged over sampled insertion orders, exact for left-to-right models."""
        ids = self.tokenizer.encode(text)
        if not ids:
            raise ValueError("the text to score is empty; give at least one word")
        is_exact = self.family.traits.exact_likelihood
        copies = 1 if is_exact else orders
        seeds = [int(mix(_SCORE_NOISE, seed, number)) for number in range(copies)]
        starts_word = self.scribe.lexicon.starts_word.cpu()
        batch = TokenBatch.of([ids] * copies, starts_word=starts_word, seeds=seeds).to(self.device)
        with torch.no_grad():
            log_prob = float(self.family.log_likelihood(batch).double().mean())
        unknown = sum(token == UNK for token in ids)
        return Score(text, log_prob, len(ids), -log_prob / len(ids), is_exact, unknown)

    def job(self, **options: Any) -> "Job":
        """What a call with these options asks of this model, checked."""
        job = Job.of(self.generation, **options)
        if job.config.mode == "parallel" and not self.family.traits.inserts_in_layers:
            raise ValueError(
                f"mode is 'parallel', but a model of the family {type(self.family).__name__} inserts one by one; "
                "use 'sequential'"
            )
        return job

    def _one(self, request: Request, num_samples: int | None, options: dict[str, Any]) -> Result | list[Result]:
        job = self.job(**options)
        if num_samples is None:
            return self._answer([request], [job.seed], job)[0]
        if num_samples < 1:
            raise ValueError(f"num_samples is {num_samples}; expected 1 or more")
        different: dict[str, Result] = {}
        for round_number in range(_ROUNDS_FOR_DIFFERENT):
            first = round_number * num_samples
            seeds = [job.sample_seed(number) for number in range(first, first + num_samples)]
            results = self._answer([request], seeds, job)
            for result in results:
                different.setdefault(result.text, result)
            if len(different) >= num_samples:
                break
        return [*different.values(), *results][:num_samples]  # equal texts only where the model has no others to offer

    def _answer(self, requests: Sequence[Request], seeds: Sequence[int], job: "Job") -> list[Result]:
        """One result for each pair of request and seed; pairs whose text is refused are tried with another seed."""
        missing = dict(enumerate((job.bounded(request), seed) for request in requests for seed in seeds))
        found: dict[int, Result] = {}
        for attempt in range(1 if job.accept is None else job.attempts):
            fresh = [(request, job.attempt_seed(seed, attempt)) for request, seed in missing.values()]
            drawn = self._draw(fresh, job if attempt == 0 else replace(job, on_written=None))
            found |= {number: result for number, result in zip(missing, drawn, strict=True) if result is not None}
            missing = {number: pair for number, pair in missing.items() if number not in found}
            if not missing:
                return [found[number] for number in sorted(found)]
        raise ValueError(_told_refusal([request for request, _ in missing.values()], job.attempts, len(found)))

    def _draw(self, pairs: Sequence[tuple[Request, int]], job: "Job") -> list[Result | None]:
        """The best text of each pair, among those of several orders if any will do; None if none was accepted."""
        choices = [_orders(request, seed) if job.any_order else [request] for request, seed in pairs]
        written = iter(
            self.scribe.write(
                [order for orders in choices for order in orders],
                [seed for orders, (_, seed) in zip(choices, pairs, strict=True) for _ in orders],
                job.config,
                batch_size=job.batch_size,
                on_written=job.on_written,
            )
        )
        results: list[Result | None] = []
        for orders, (_, seed) in zip(choices, pairs, strict=True):
            texts = itertools.islice(written, len(orders))
            accepted = [each for each in texts if job.accept is None or job.accept(each.text)]
            results.append(self._result(max(accepted, key=_log_prob_per_step), seed) if accepted else None)
        return results

    def _result(self, written: Written, seed: int) -> Result:
        inserted = sum(len(step.inserts) for step in written.steps)
        return Result(
            keywords=written.request.phrases(),
            text=written.text,
            tokens=written.tokens,
            steps=len(written.steps) - 1,  # the last one only stops
            log_prob=log_prob_of_steps(written.steps),
            finished=inserted < written.request.max_tokens,
            seed=seed,
            replay=partial(self._trace, written),
        )

    def _trace(self, written: Written) -> list[dict[str, Any]]:
        grown = zip(written.steps, written.texts(self.tokenizer), strict=True)
        return [self._trace_entry(step, text) for step, text in grown if not step.is_last]

    def _trace_entry(self, step: TraceStep, text: str) -> dict[str, Any]:
        inserts = [[slot, self.tokenizer.piece(token), log_prob] for slot, token, log_prob in step.inserts]
        return {"step": step.number, "insert": inserts, "delete": [], "text": text}


@dataclass(frozen=True)
class Job:
    """One call's options, checked."""

    config: GenerationConfig
    seed: int
    banned: tuple[str, ...]
    any_order: bool
    accept: Callable[[str], bool] | None
    attempts: int
    batch_size: int
    on_written: Callable[[int], None] | None

    @classmethod
    def of(
        cls,
        generation: GenerationConfig,
        *,
        seed: int | None = None,
        length: tuple[int | None, int | None] | None = None,
        banned: Sequence[str] = (),
        any_order: bool = False,
        accept: Callable[[str], bool] | None = None,
        attempts: int = 20,
        batch_size: int = 64,
        on_written: Callable[[int], None] | None = None,
        **settings: Any,
    ) -> "Job":
        for name, number in (("batch_size", batch_size), ("attempts", attempts)):
            if number < 1:
                raise ValueError(f"{name} is {number}; expected 1 or more")
        if accept is not None and not callable(accept):
            raise ValueError(f"accept is {accept!r}; expected a function from a text to True or False")
        if isinstance(banned, str):
            raise ValueError(f"banned came as one string {banned!r}; expected a list of words, like [{banned!r}]")
        if seed is not None and not -(2**63) <= seed < 2**63:
            raise ValueError(f"seed is {seed}; expected a whole number of at most 64 bits")
        if length is not None:
            if not isinstance(length, tuple | list) or len(length) != 2:
                raise ValueError(f"length is {length!r}; expected the fewest and the most words, like (8, 40)")
            least, most = length
            settings = {**settings, **({} if least is None else {"min_words": least})}
            settings = {**settings, **({} if most is None else {"max_words": most})}
        config = GenerationConfig.of({**vars(generation), **settings})
        seed = secrets.randbits(31) if seed is None else seed
        if not 0 <= seed < 2**63:
            raise ValueError(f"seed is {seed}; expected a whole number from 0 to {2**63 - 1}")
        return cls(config, seed, tuple(banned), any_order, accept, attempts, batch_size, on_written)

    def bounded(self, request: Request) -> Request:
        """The request within this call's bounds."""
        limits = self.config
        return replace(
            request,
            min_words=limits.min_words,
            max_words=limits.max_words,
            max_tokens=limits.max_tokens,
            banned=self.banned,
        )

    def sample_seed(self, number: int) -> int:
        """The seed of a sample; the first is the call's own, so that one sample equals a call without samples."""
        return self.seed if number == 0 else int(mix(_SAMPLE_NOISE, self.seed, number))

    @staticmethod
    def attempt_seed(seed: int, attempt: int) -> int:
        """The seed of an attempt; the first is the text's own, so that a filter changes only what it refuses."""
        return seed if attempt == 0 else int(mix(_ATTEMPT_NOISE, seed, attempt)) & (2**63 - 1)


def _orders(request: Request, seed: int) -> list[Request]:
    """The request with its stretches in some orders, the given one first; all of them if they are few."""
    required = request.required
    if len(required) <= 3:
        orders = list(itertools.permutations(required))
    else:
        keys = [
            uniform(_PERMUTATION_NOISE, seed, number, torch.arange(len(required))) for number in range(_ORDERS_TRIED)
        ]
        orders = [required, *(tuple(required[place] for place in key.argsort().tolist()) for key in keys[1:])]
    return [replace(request, required=order) for order in dict.fromkeys(orders)]


def _told_refusal(refused: Sequence[Request], attempts: int, accepted: int) -> str:
    """Why there is no answer, though some texts of the call may have been accepted."""
    words = " ".join(refused[0].phrases())
    whose = f"for {words!r}" if words else "without keywords"
    total = len(refused) + accepted
    several = f", and so it went for {len(refused)} of the {total} texts asked for" if total > 1 else ""
    return (
        f"accept refused all {attempts} texts drawn {whose}{several}; "
        "loosen it, raise attempts or change the required words, which it sees too"
    )


def _log_prob_per_step(written: Written) -> float:
    return log_prob_of_steps(written.steps) / len(written.steps)


def load_folder(folder: Path, device: str = "auto") -> Model:
    """The model in a folder."""
    place = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    if place not in ("cpu", "cuda"):
        raise ValueError(f"device is {device!r}; expected auto, cpu or cuda")
    if place == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', but this machine has no usable GPU; use cpu or auto")
    path = folder / GENERATION_FILE
    generation = GenerationConfig.of(read_json_object(path) if path.is_file() else {})
    return Model(load_model(folder, place), Tokenizer.load(folder), generation, folder)
