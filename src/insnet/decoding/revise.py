"""A second pass over finished texts: the words that fit least are taken out, and as many tokens written anew.

What stays was written before, or is required: by construction nothing required is ever removed.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from torch import Tensor

from insnet.decoding.config import GenerationConfig
from insnet.decoding.decide import Decider
from insnet.decoding.job import Job
from insnet.decoding.prompt import prompt_of_texts
from insnet.decoding.rerank import Given, likelihoods, token_log_probs
from insnet.decoding.trace import TraceStep
from insnet.decoding.write import Scribe, Written, seed_of_request
from insnet.families.generator import Generator, State
from insnet.families.offers import Offer
from insnet.insertion.canvas import INSERTED, NOTHING, Edits
from insnet.insertion.constraints import ABSENT, Lexicon
from insnet.randomness import Purpose, mix

_READINGS = 4  # of a text to judge its words, each without every fourth of them

Tokens = list[tuple[int, int]]
"""(token, origin) pairs in reading order, <bos> and <eos> left out."""


def revised(scribe: Scribe, texts: Sequence[Written], seeds: Sequence[int], job: Job) -> list[Written]:
    """The texts after so many rounds of revision as the config says, each kept only where it is likelier."""
    current = list(texts)
    for number in range(job.config.selection.revise):
        for first in range(0, len(current), job.batch_size):
            batch = slice(first, first + job.batch_size)
            current[batch] = _one_round(scribe, current[batch], seeds[batch], number, job)
    return current


def _one_round(
    scribe: Scribe, texts: Sequence[Written], seeds: Sequence[int], number: int, job: Job
) -> Sequence[Written]:
    own_seeds = [
        int(mix(Purpose.REVISION, seed_of_request(text.request, seed), number))
        for text, seed in zip(texts, seeds, strict=True)
    ]
    removed = _least_likely(scribe, texts, job.config)
    rows = [row for row, places in enumerate(removed) if places]
    if not rows:
        return texts
    old, gone = [texts[row] for row in rows], [removed[row] for row in rows]
    new = _rewritten(scribe, old, gone, [own_seeds[row] for row in rows], job.config)
    orders, own = job.config.selection.candidate_orders, [seeds[row] for row in rows]
    scores = likelihoods(scribe, [*old, *new], [*own, *own], orders)
    better = {
        row: text
        for row, text, before, after in zip(rows, new, scores[: len(old)], scores[len(old) :], strict=True)
        if after > before
        and job.accepts(text)
        and text.request.is_decent(text.text)
        and text.finished >= texts[row].finished
    }
    return [better.get(row, text) for row, text in enumerate(texts)]


# ---- which words go ----


def _least_likely(scribe: Scribe, texts: Sequence[Written], config: GenerationConfig) -> list[list[int]]:
    """The places of the tokens that each text loses: a share of its inserted words, the least likely first, leaving
    out those without which it would break a rule."""
    starts_word = scribe.tokenizer.starts_word
    ends = [text.end().tokens for text in texts]
    words = [inserted_words(tokens, starts_word) for tokens in ends]
    fitness = fitness_of_words(scribe, ends, words)
    forbidden = scribe.prompt([text.request for text in texts], [0] * len(texts), config).limits.forbidden.tolist()
    lexicon = scribe.lexicon.to(torch.device("cpu"))
    removed = []
    for tokens, own, fits, sequences in zip(ends, words, fitness, forbidden, strict=True):
        rules = Rules.of(lexicon, config, sequences)
        removed.append(_chosen(tokens, sorted(own, key=fits.__getitem__), rules, config.selection.revise_share))
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
    """What must not come to stand together when the words between are gone; all of it on the host."""

    follows: list[bool]
    """Of each token, whether it may stand behind a required word."""
    precedes: list[bool]
    """Whether it may stand in front of one."""
    same: list[int]
    """The token that stands for all with its letters; empty if each stands for itself."""
    repeat_size: int
    forbidden: frozenset[tuple[int, ...]]
    """Banned sequences, of tokens of the same letters."""

    @classmethod
    def of(cls, lexicon: Lexicon, config: GenerationConfig, forbidden: Sequence[Sequence[int]]) -> "Rules":
        whole = (tuple(token for token in sequence if token != ABSENT) for sequence in forbidden)
        tables = lexicon.may_follow_required, lexicon.may_precede_required, lexicon.same_letters
        follows, precedes, same = (table.tolist() for table in tables)
        return cls(follows, precedes, same, config.bounds.no_repeat_ngram, frozenset(filter(None, whole)))

    def faults(self, tokens: Tokens) -> Counter[tuple[str, tuple[int, ...]]]:
        """Everything in a text that breaks a rule, and how often."""
        found: Counter[tuple[str, tuple[int, ...]]] = Counter()
        ids = [token for token, _ in tokens]
        found.update(("glued", pair) for pair in self._glued(tokens))
        folded = [self.same[token] for token in ids] if self.same else ids
        for size in set(map(len, self.forbidden)):
            found.update(("banned", run) for run in _runs(folded, size) if run in self.forbidden)
        if self.repeat_size:
            found.update(("repeated", run) for run in _runs(ids, 2) if run[0] == run[1])
            counts = Counter(_runs(ids, self.repeat_size))
            found.update({("repeated", run): times for run, times in counts.items() if times > 1})
        return found

    def _glued(self, tokens: Tokens) -> Iterator[tuple[int, int]]:
        """Pairs of a required word and an inserted token that would become part of it."""
        for (left, left_origin), (right, right_origin) in itertools.pairwise(tokens):
            if left_origin != INSERTED and right_origin == INSERTED and not self.follows[right]:
                yield left, right
            if left_origin == INSERTED and right_origin != INSERTED and not self.precedes[left]:
                yield left, right


def _runs(ids: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    return zip(*(ids[first:] for first in range(size)), strict=False)


# ---- what is written in their stead ----


@dataclass(frozen=True)
class Rewriting:
    """Decides to take some places (B, L) out, then as somebody else."""

    gone: Tensor
    others: Decider

    def begin(self, family: Generator, state: State) -> State:
        return self.others.begin(family, state)

    def __call__(self, offer: Offer, state: State) -> Edits:
        own = self.gone[state.row]
        is_first = state.step == 0
        if not bool(is_first.all()):
            return self.others(offer, state)
        slot = torch.zeros_like(state.seeds)[:, None]
        zeros = slot.double()
        return Edits(slot, slot + NOTHING, zeros, zeros[:, 0], ~is_first, deleted=own)


def _rewritten(
    scribe: Scribe, texts: Sequence[Written], gone: Sequence[list[int]], seeds: Sequence[int], config: GenerationConfig
) -> list[Written]:
    """The texts without the tokens at some places, and as many written anew."""
    prompt = scribe.prompt([text.request for text in texts], seeds, config)
    prompt = prompt_of_texts(prompt, [text.end().tokens for text in texts], scribe.tokenizer.specials)
    inserted = prompt.limits.max_tokens.new_tensor([text.inserted for text in texts])
    none = torch.zeros_like(inserted)  # what is removed counts as -1 insertion each: the text is complete again at 0
    limits = replace(prompt.limits, insertions=none, slack=none, max_tokens=prompt.limits.max_tokens - inserted)
    removed = [[place - 1 in places for place in range(prompt.canvas.capacity)] for places in map(set, gone)]
    flags = torch.tensor(removed, device=prompt.canvas.tokens.device)  # <bos> stands first
    decide = Rewriting(flags, scribe.decider(config))
    new = scribe.carry_out(replace(prompt, limits=limits), [text.request for text in texts], decide)
    return [
        replace(again, steps=(*text.steps[:-1], *again.steps[:-1], _end_of(text, again)), start=text.start)
        for text, again in zip(texts, new, strict=True)
    ]


def _end_of(text: Written, again: Written) -> TraceStep:
    """The last step of a text that was written anew: one that was cut off stays so."""
    return replace(again.steps[-1], is_cut=again.steps[-1].is_cut or text.steps[-1].is_cut)
