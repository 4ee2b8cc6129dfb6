"""A second pass over finished texts: the words that fit least are taken out, and as many tokens written anew.

Deleting a token invalidates what later ones have seen of it, so writing starts again from the remaining canvas. What
stays was written before, or is required: by construction nothing required is ever removed.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import torch

from insnet.decoding.choose import Chooser
from insnet.decoding.config import GenerationConfig
from insnet.decoding.job import Job
from insnet.decoding.loop import decode
from insnet.decoding.rerank import Given, likelihoods, token_log_probs
from insnet.decoding.trace import Recorder, TraceStep
from insnet.decoding.write import Scribe, Written, seed_of_request
from insnet.families.generator import Prompt
from insnet.insertion.canvas import INSERTED, Canvas
from insnet.insertion.constraints import ABSENT, Lexicon
from insnet.randomness import mix
from insnet.text.specials import BOS, EOS

_REVISION_NOISE = 701
_READINGS = 4  # of a text to judge its words, each without every fourth of them

Tokens = list[tuple[int, int]]
"""(token, origin) pairs in reading order, <bos> and <eos> left out."""


def revised(scribe: Scribe, texts: Sequence[Written], seeds: Sequence[int], job: Job) -> list[Written]:
    """The texts after so many rounds of revision as the config says, each kept only where it is likelier."""
    current = list(texts)
    for number in range(job.config.revise):
        for first in range(0, len(current), job.batch_size):
            batch = slice(first, first + job.batch_size)
            current[batch] = _one_round(scribe, current[batch], seeds[batch], number, job)
    return current


def _one_round(
    scribe: Scribe, texts: Sequence[Written], seeds: Sequence[int], number: int, job: Job
) -> Sequence[Written]:
    own_seeds = [
        int(mix(_REVISION_NOISE, seed_of_request(text.request, seed), number))
        for text, seed in zip(texts, seeds, strict=True)
    ]
    prompt = scribe.prompt([text.request for text in texts], own_seeds, job.config)
    removed = _least_likely(scribe, texts, prompt, job.config)
    rows = [row for row, places in enumerate(removed) if places]
    if not rows:
        return texts
    old, gone = [texts[row] for row in rows], [removed[row] for row in rows]
    new = _refilled(scribe, old, gone, [own_seeds[row] for row in rows], job.config)
    orders, own = job.config.candidate_orders, [seeds[row] for row in rows]
    scores = likelihoods(scribe, [*old, *new], [*own, *own], orders)
    better = {
        row: text
        for row, text, before, after in zip(rows, new, scores[: len(old)], scores[len(old) :], strict=True)
        if after > before and job.accepts(text.text)
    }
    return [better.get(row, text) for row, text in enumerate(texts)]


# ---- which words go ----


def _least_likely(
    scribe: Scribe, texts: Sequence[Written], prompt: Prompt, config: GenerationConfig
) -> list[list[int]]:
    """The places of the tokens that each text loses: a share of its inserted words, the least likely first, leaving
    out those without which it would break a rule."""
    starts_word = scribe.tokenizer.starts_word
    ends = [text.end().tokens for text in texts]
    words = [inserted_words(tokens, starts_word) for tokens in ends]
    removed = []
    for row, (tokens, own, fitness) in enumerate(zip(ends, words, fitness_of_words(scribe, ends, words), strict=True)):
        rules = Rules.of(scribe.lexicon, config, prompt, row)
        removed.append(_chosen(tokens, sorted(own, key=fitness.__getitem__), rules, config.revise_share))
    return removed


def inserted_words(tokens: Tokens, starts_word: Sequence[bool]) -> list[range]:
    """The places of each whole word that was inserted; what is required is no part of any."""
    words: list[range] = []
    for place, (token, origin) in enumerate(tokens):
        if origin != INSERTED:
            continue
        if place == 0 or starts_word[token] or tokens[place - 1][1] != INSERTED:
            words.append(range(place, place))
        words[-1] = range(words[-1].start, place + 1)
    return words


def fitness_of_words(
    scribe: Scribe, texts: Sequence[Tokens], words: Sequence[Sequence[range]]
) -> list[dict[range, float]]:
    """How likely the model is to put each word back, a token on average, once every fourth word of its text is gone.

    A pass over the rest of the text judges all words that are gone, which go in again along some order: with each alone
    there would be as many passes as words, for much the same choice."""
    readings = [
        (number, own[first::_READINGS]) for number, own in enumerate(words) for first in range(min(_READINGS, len(own)))
    ]
    scores = token_log_probs(scribe, [lacking(texts[number], gone) for number, gone in readings])
    fitness: list[dict[range, float]] = [{} for _ in texts]
    for (number, gone), own in zip(readings, scores, strict=True):
        fitness[number].update({word: fmean(own[place] for place in word) for word in gone})
    return fitness


def lacking(tokens: Tokens, words: Sequence[range]) -> Given:
    """A text of which all but some words is given."""
    gone = {place for word in words for place in word}
    return Given([token for token, _ in tokens], [place not in gone for place in range(len(tokens))], 0)


def _chosen(tokens: Tokens, words: Sequence[range], rules: "Rules", share: float) -> list[int]:
    """The places of the first words, a share of all, that can go together without breaking a rule."""
    gone: set[int] = set()
    wanted = math.ceil(len(words) * share)
    faults = rules.faults(tokens)
    for word in words:
        if wanted == 0:
            break
        without = [pair for place, pair in enumerate(tokens) if place not in gone and place not in word]
        if not rules.faults(without) - faults:
            gone |= set(word)
            wanted -= 1
    return sorted(gone)


@dataclass(frozen=True)
class Rules:
    """What must not come to stand together when the words between are gone."""

    lexicon: Lexicon
    config: GenerationConfig
    forbidden: tuple[tuple[int, ...], ...]
    """Banned sequences, of tokens of the same letters."""

    @classmethod
    def of(cls, lexicon: Lexicon, config: GenerationConfig, prompt: Prompt, row: int) -> "Rules":
        sequences = prompt.constraints.forbidden[row].tolist()
        whole = (tuple(token for token in sequence if token != ABSENT) for sequence in sequences)
        return cls(lexicon, config, tuple(sequence for sequence in whole if sequence))

    def faults(self, tokens: Tokens) -> Counter[tuple[str, tuple[int, ...]]]:
        """Everything in a text that breaks a rule, and how often."""
        found: Counter[tuple[str, tuple[int, ...]]] = Counter()
        ids = [token for token, _ in tokens]
        found.update(("glued", pair) for pair in self._glued(tokens))
        same = self.lexicon.same_letters
        folded = same[ids].tolist() if len(same) and ids else ids
        for sequence in self.forbidden:
            found.update(("banned", run) for run in _runs(folded, len(sequence)) if run == sequence)
        if self.config.no_adjacent_repeats:
            found.update(("repeated", run) for run in _runs(ids, 2) if run[0] == run[1])
        if self.config.no_repeat_ngram:
            counts = Counter(_runs(ids, self.config.no_repeat_ngram))
            found.update({("repeated", run): times for run, times in counts.items() if times > 1})
        return found

    def _glued(self, tokens: Tokens) -> Iterator[tuple[int, int]]:
        """Pairs of a required word and an inserted token that would become part of it."""
        follows, precedes = self.lexicon.may_follow_required, self.lexicon.may_precede_required
        for (left, left_origin), (right, right_origin) in itertools.pairwise(tokens):
            if left_origin != INSERTED and right_origin == INSERTED and not follows[right]:
                yield left, right
            if left_origin == INSERTED and right_origin != INSERTED and not precedes[left]:
                yield left, right


def _runs(ids: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    return zip(*(ids[first:] for first in range(size)), strict=False)


# ---- what is written in their stead ----


def _refilled(
    scribe: Scribe, texts: Sequence[Written], gone: Sequence[list[int]], seeds: Sequence[int], config: GenerationConfig
) -> list[Written]:
    """The texts without the tokens at some places, and as many written anew."""
    prompt = remaining(scribe.prompt([text.request for text in texts], seeds, config), texts, gone)
    recorder = Recorder.of(prompt)
    for step in decode(scribe.family, prompt, Chooser(config, scribe.lexicon)):
        recorder.add(step)
    return [
        scribe.finish(text.request, text.start, _numbered([*text.steps[:-1], _removal(places), *steps]))
        for text, places, steps in zip(texts, gone, recorder.steps_of_row, strict=True)
    ]


def remaining(prompt: Prompt, texts: Sequence[Written], gone: Sequence[list[int]]) -> Prompt:
    """The prompt of what is left of each text, which asks for as many insertions as were taken out."""
    kept = [
        [pair for place, pair in enumerate(text.end().tokens) if place not in places]
        for text, places in zip(texts, gone, strict=True)
    ]
    inserted = torch.tensor([sum(origin == INSERTED for _, origin in tokens) for tokens in kept])
    limits = prompt.constraints
    constraints = replace(
        limits,
        max_tokens=limits.max_tokens - inserted.to(limits.max_tokens.device),
        insertions=torch.tensor([len(places) for places in gone]).to(limits.insertions.device),
    )
    return replace(prompt, canvas=_canvas_of(prompt.canvas, kept), constraints=constraints)


def _canvas_of(given: Canvas, texts: Sequence[Tokens]) -> Canvas:
    """The canvas of texts that grew from a given one; its closed slots stay closed."""
    tokens, origin, closed = given.tokens.clone(), given.origin.clone(), given.closed_after.clone()
    lengths = given.length.tolist()
    for row, text in enumerate(texts):
        is_closed = iter(given.closed_after[row, 1 : lengths[row] - 1].tolist())
        flags = [own != INSERTED and next(is_closed) for _, own in text]
        used = slice(0, len(text) + 2)
        tokens[row, used] = tokens.new_tensor([BOS, *(token for token, _ in text), EOS])
        origin[row, used] = origin.new_tensor([INSERTED, *(own for _, own in text), INSERTED])
        closed[row, 1 : len(text) + 2] = closed.new_tensor([*flags, False])
    return Canvas(tokens, origin, closed, given.length.new_tensor([len(text) + 2 for text in texts]))


def _removal(places: Sequence[int]) -> TraceStep:
    return TraceStep(0, (), 0.0, is_last=False, deletes=tuple(places))


def _numbered(steps: Sequence[TraceStep]) -> list[TraceStep]:
    return [replace(step, number=number) for number, step in enumerate(steps, start=1)]
