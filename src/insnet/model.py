"""A model as its user sees it: keywords in, text out."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

import torch

from insnet.decoding.config import GenerationConfig
from insnet.decoding.job import Job
from insnet.decoding.request import Request, blanks, required_words
from insnet.decoding.rerank import best_of_orders
from insnet.decoding.revise import revised
from insnet.decoding.samples import ROUNDS_FOR_DIFFERENT, best_samples, candidates_of, essence
from insnet.decoding.trace import Replay, TraceStep, log_prob_of_steps
from insnet.decoding.write import Scribe, Written
from insnet.devices import computes_in_half, find_device
from insnet.families.generator import Generator
from insnet.families.storage import load_model, read_generation
from insnet.insertion.constraints import Lexicon
from insnet.randomness import Purpose, mix
from insnet.text.batching import TokenBatch
from insnet.text.spellings import same_letters
from insnet.text.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class Result:
    """One generated text."""

    keywords: list[str]
    """The required words and phrases, in the order in which they appear."""
    text: str
    tokens: int
    """Tokens of the text."""
    steps: int
    """Rounds of insertion, and of removal if the text was revised."""
    log_prob: float
    """Of the whole trajectory under the untruncated model; of a revised text, of all insertions, removed ones too."""
    finished: bool
    """False if the text was cut off at the token limit."""
    seed: int
    model: str | None = field(compare=False)
    """The name or folder of the model that wrote it."""
    replay: Callable[[], list[dict[str, Any]]] = field(repr=False, compare=False)
    """Makes the trace."""

    @cached_property
    def trace(self) -> list[dict[str, Any]]:
        """One entry per step: {"step", "insert": [[slot, piece, log_prob], ...], "delete": [[place, piece], ...],
        "text"}; what is deleted goes first, so slots are those of the text without it."""
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
        self,
        family: Generator,
        tokenizer: Tokenizer,
        generation: GenerationConfig,
        folder: Path | None = None,
        name: str | None = None,
    ) -> None:
        self.family = family.eval()
        self.tokenizer = tokenizer
        self.generation = generation
        self.folder = folder
        self.name = name if name is not None or folder is None else str(folder)
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

        A keyword like `run*` stands for any form of the English word, given in its dictionary form: run, runs, ran or
        running. Each candidate draws one, so that the best of several shows which suits.
        Options are those of `generate_batch`.
        """
        return self._one(Request(required_words(keywords)), num_samples, options)

    @overload
    def infill(self, text: str, *, num_samples: None = None, **options: Any) -> Result: ...
    @overload
    def infill(self, text: str, *, num_samples: int, **options: Any) -> list[Result]: ...
    def infill(self, text: str, *, num_samples: int | None = None, **options: Any) -> Result | list[Result]:
        """The text with its blanks filled and all else kept word for word; options as in `generate_batch`.

        A blank ___ gets a word or more, ___{2,5} two to five, ___{3,} three or more, ___{,4} up to four and ___{1}
        exactly one, as spaces part them; a brace that is meant behind a blank is written ___\\{.
        """
        if not self.family.traits.fills_blanks:
            raise ValueError(f"a model of the family {self._family_name} writes left to right; it fills no blanks")
        if options.get("any_order"):
            raise ValueError("any_order is for keywords: the text around blanks keeps its order")
        return self._one(blanks(text), num_samples, options)

    def generate_batch(self, keyword_lists: Sequence[Sequence[str]], **options: Any) -> list[Result]:
        """One result for each list of keywords; a list's text depends on the seed, not on what else is in the batch.

        Options: `seed`; `length=(least, most)` in words; `banned` words and phrases, `run*` for every form of the
        word; `any_order=True` to let the keywords come in whatever order reads best; `accept`, a function that says of
        a finished text whether it will do: what it refuses is drawn anew, `attempts` times in all, and never returned;
        `mode="parallel"` to insert several words per step; `batch_size`; `on_written`, called with the number of texts
        done; `decent=False` to let slurs and sexual words in that were not given; and every other setting of
        insnet.decoding.config by its name.
        """
        job = self.job(**options)
        return self._answer([Request(required_words(keywords)) for keywords in keyword_lists], [job.seed], job)

    def stream(self, keywords: Sequence[str], **options: Any) -> Iterator[dict[str, Any]]:
        """One trace entry per step, as the text grows.

        Options are those of `generate_batch`, but for what chooses among finished texts: `any_order`, `accept`,
        `candidates`, `revise`. Where the model itself would choose or revise, it shows its first draft. A slur or a
        sexual word that was not given stands in no entry, not even as the beginning of another word.
        """
        job = self.job(**{"candidates": 1, "revise": 0, **options})
        for name in job.choices():
            raise ValueError(f"{name} chooses among finished texts: it cannot be streamed; use generate")
        request = job.bounded(Request(required_words(keywords)))
        [request] = self.scribe.rehearse([request], [job.seed], job.config)  # before forms are drawn, as in `generate`
        [[(request, _)]] = job.drafts(request, job.seed)
        for number, (step, before) in enumerate(self.scribe.stream(request, job.seed, job.config), start=1):
            if not step.is_last:
                yield self._trace_entry(number, step, before)

    def score(self, text: str, *, orders: int = 16, seed: int = 0) -> Score:
        """How likely the text is: a bound averaged over sampled insertion orders, exact for left-to-right models."""
        ids = self.tokenizer.encode(text)
        if not ids:
            raise ValueError("the text to score is empty; give at least one word")
        if self.family.traits.likelihood == "none":
            raise ValueError(f"a model of the family {self._family_name} cannot say how likely a text is")
        is_exact = self.family.traits.likelihood == "exact"
        copies = 1 if is_exact else orders
        seeds = [int(mix(Purpose.SCORE, seed, number)) for number in range(copies)]
        starts_word = self.scribe.lexicon.starts_word.cpu()
        specials = self.tokenizer.specials
        batch = TokenBatch.of([ids] * copies, starts_word=starts_word, seeds=seeds, specials=specials)
        with torch.no_grad():
            log_prob = float(self.family.log_likelihood(batch.to(self.device)).total.double().mean())
        unknown = sum(token == specials.unk for token in ids)
        return Score(text, log_prob, len(ids), -log_prob / len(ids), is_exact, unknown)

    def job(self, **options: Any) -> Job:
        """What a call with these options asks of this model, checked."""
        job = Job.of(self.generation, **options)
        if job.config.is_parallel and not self.family.traits.several_per_step:
            raise ValueError(
                f"mode is 'parallel', but a model of the family {self._family_name} inserts one by one; "
                "use 'sequential'"
            )
        selection, traits = job.config.selection, self.family.traits
        if selection.revise and not traits.fills_blanks:
            raise ValueError(
                f"revise is {selection.revise}, but a model of the family {self._family_name} only appends; use 0"
            )
        if traits.likelihood == "none":
            why = f"a model of the family {self._family_name} cannot say how likely a text is"
            if selection.revise:
                raise ValueError(f"revise is {selection.revise}, but {why}; use 0")
            if selection.candidates > 1 and selection.candidate_choice != "consensus":
                raise ValueError(f"candidate_choice is {selection.candidate_choice!r}, but {why}; use 'consensus'")
        return job

    @property
    def _family_name(self) -> str:
        return type(self.family).__name__

    def _one(self, request: Request, num_samples: int | None, options: dict[str, Any]) -> Result | list[Result]:
        job = replace(self.job(**options), has_bounded_blanks=request.is_bounded)
        if num_samples is None:
            return self._answer([request], [job.seed], job)[0]
        if num_samples < 1:
            raise ValueError(f"num_samples is {num_samples}; expected 1 or more")
        if job.ranks_samples:
            return self._best_samples(request, num_samples, job)
        different: dict[str, Result] = {}
        for round_number in range(ROUNDS_FOR_DIFFERENT):
            first = round_number * num_samples
            seeds = [job.sample_seed(number) for number in range(first, first + num_samples)]
            results = self._answer([request], seeds, job)
            for result in results:
                different.setdefault(essence(result.text), result)
            if len(different) >= num_samples:
                break
        return [*different.values(), *results][:num_samples]  # equal texts only where the model has no others to offer

    def _best_samples(self, request: Request, count: int, job: Job) -> list[Result]:
        """So many of the best texts, best first; the last ones come twice if there are not so many."""
        request = job.bounded(request)
        best = best_samples(self.scribe, request, count, job)
        if not best:
            raise ValueError(_refusal([request], job, 0))
        texts, seeds = [text for text, _ in best], [seed for _, seed in best]
        written = zip(revised(self.scribe, texts, seeds, job), seeds, strict=True)
        results = [self._result(text, seed) for text, seed in written]
        return list(itertools.islice(itertools.cycle(results), count))

    def _answer(self, requests: Sequence[Request], seeds: Sequence[int], job: Job) -> list[Result]:
        """One result for each pair of request and seed; pairs whose text is refused are tried with another seed."""
        missing = dict(enumerate((job.bounded(request), seed) for request in requests for seed in seeds))
        found: dict[int, Result] = {}
        for attempt in range(job.attempts if job.may_refuse else 1):
            fresh = [(request, job.attempt_seed(seed, attempt)) for request, seed in missing.values()]
            drawn = self._draw(fresh, job if attempt == 0 else replace(job, on_written=None))
            found |= {number: result for number, result in zip(missing, drawn, strict=True) if result is not None}
            missing = {number: pair for number, pair in missing.items() if number not in found}
            if not missing:
                return [found[number] for number in sorted(found)]
        raise ValueError(_refusal([request for request, _ in missing.values()], job, len(found)))

    def _draw(self, pairs: Sequence[tuple[Request, int]], job: Job) -> list[Result | None]:
        """The best text of each pair, among those of several orders and seeds, then revised; None if none was
        accepted."""
        seeds = [seed for _, seed in pairs]
        groups = candidates_of(self.scribe, pairs, job)
        best = best_of_orders(self.scribe, groups, seeds, job.config)
        found = {place: text for place, text in enumerate(best) if text is not None}
        own_seeds = [seeds[place] for place in found]
        final = dict(zip(found, revised(self.scribe, list(found.values()), own_seeds, job), strict=True))
        return [self._result(final[place], seed) if place in final else None for place, seed in enumerate(seeds)]

    def _result(self, written: Written, seed: int) -> Result:
        return Result(
            keywords=written.request.phrases(),
            text=written.text,
            tokens=written.tokens,
            steps=written.rounds,
            log_prob=log_prob_of_steps(written.steps),
            finished=written.finished,
            seed=seed,
            model=self.name,
            replay=partial(self._trace, written),
        )

    def _trace(self, written: Written) -> list[dict[str, Any]]:
        entries, replay = [], written.start.after(())
        for number, step in enumerate((step for step in written.steps if not step.is_last), start=1):
            entries.append(self._trace_entry(number, step, replay))
            replay.apply(step)
        return entries

    def _trace_entry(self, number: int, step: TraceStep, before: Replay) -> dict[str, Any]:
        """What a step inserts and removes, and the text after it; a removed token is looked up in the text before."""
        inserts = [[slot, self.tokenizer.piece(token), log_prob] for slot, token, log_prob in step.inserts]
        removed = [[place, self.tokenizer.piece(before.tokens[place][0])] for place in step.deletes]
        return {"step": number, "insert": inserts, "delete": removed, "text": before.after([step]).text(self.tokenizer)}


def _refusal(refused: Sequence[Request], job: Job, accepted: int) -> str:
    """Why there is no answer, though some texts of the call may have been accepted."""
    words, bounds = " ".join(refused[0].phrases()), job.config.bounds
    whose = f"for {words!r}" if words else "without keywords"
    total = len(refused) + accepted
    several = f", and so it went for {len(refused)} of the {total} texts asked for" if total > 1 else ""
    if job.accept is None:
        asked = f"{bounds.min_words} to {bounds.max_words} words" if job.has_length else ""
        asked += " and " * (job.has_length and job.has_bounded_blanks)
        asked += "as many words in each blank as were asked for" * job.has_bounded_blanks
        return (
            f"none of {job.attempts} texts drawn {whose} had {asked}{several}; allow other lengths, or ban fewer words"
        )
    return (
        f"accept refused all {job.attempts} texts drawn {whose}{several}; "
        "loosen it, raise attempts or change the required words, which it sees too"
    )


def load_folder(folder: Path, device: str = "auto", precision: str = "auto", *, name: str | None = None) -> Model:
    """The model in a folder, in a precision that `insnet.devices` knows; its texts carry the folder, or a name."""
    generation = GenerationConfig.of(read_generation(folder))
    family = load_model(folder, find_device(device))
    if computes_in_half(next(family.parameters()).device, precision):
        family.halve()
    return Model(family, load_tokenizer(folder), generation, folder, name)
