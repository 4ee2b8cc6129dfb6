"""The best of several texts for one request: what most of the others agree with, the likeliest, or what reads best."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import torch
from torch import Tensor

from insnet.decoding.config import GenerationConfig
from insnet.decoding.fluency import fluency, is_sentence, is_usual, is_whole
from insnet.decoding.trace import log_prob_of_steps
from insnet.decoding.write import Scribe, Written, seed_of_request
from insnet.insertion.canvas import INSERTED
from insnet.randomness import Purpose, mix
from insnet.text.batching import TokenBatch
from insnet.text.words import count_found

_MOST_NUMBERS = 1 << 25  # a chunk may need at a time: 128 MiB in float32
_NUMBERS_PER_PAIR = 40  # of tokens: attention of some heads over all offsets, and all slots of all steps
_NEVER_MADE_UP = 1e6  # nats: more than texts differ by
_LONGEST_RUN = 4  # words of the runs that texts are compared by, as in BLEU-4


def best_of_orders(
    scribe: Scribe, groups: Sequence[Sequence[Sequence[Written]]], seeds: Sequence[int], config: GenerationConfig
) -> list[Written | None]:
    """The best text for each request, from the candidates of every order of its words; None where there is none.

    Texts of one order are compared as the config says; those of several, which have little in common and were given
    different things, by the probability of a step on the way to them. What reads best, does so in any order.
    """
    if config.selection.candidate_choice == "fluency":
        return best_of(scribe, [list(itertools.chain.from_iterable(orders)) for orders in groups], seeds, config)
    sizes = [len(orders) for orders in groups]
    seeds_of_orders = [seed for seed, size in zip(seeds, sizes, strict=True) for _ in range(size)]
    best = iter(best_of(scribe, list(itertools.chain.from_iterable(groups)), seeds_of_orders, config))
    of_orders = [[text for text in itertools.islice(best, size) if text is not None] for size in sizes]
    return [max(texts, key=_log_prob_per_step) if texts else None for texts in of_orders]


def _log_prob_per_step(written: Written) -> float:
    return log_prob_of_steps(written.steps) / len(written.steps)


def best_of(
    scribe: Scribe, groups: Sequence[Sequence[Written]], seeds: Sequence[int], config: GenerationConfig
) -> list[Written | None]:
    """The best text of each group of candidates, the first of equals; None where there is none."""
    return [texts[0] if texts else None for texts in ranked(scribe, groups, seeds, config)]


def ranked(
    scribe: Scribe, groups: Sequence[Sequence[Written]], seeds: Sequence[int], config: GenerationConfig
) -> list[list[Written]]:
    """The candidates of each group, best first, equals as they came.

    With a family that may lose required words, those that hold most of them come first.
    """
    scores = _scores_of_groups(scribe, groups, seeds, config)
    return [_ranked(group, own, scribe) for group, own in zip(groups, scores, strict=True)]


def _scores_of_groups(
    scribe: Scribe, groups: Sequence[Sequence[Written]], seeds: Sequence[int], config: GenerationConfig
) -> list[list[float]]:
    """How good each text is by the config's rule."""
    selection = config.selection
    if selection.candidate_choice == "fluency":
        return [_fluencies_of_group(scribe, *pair, config) for pair in zip(groups, seeds, strict=True)]
    measures: list[list[list[float]]] = []
    if selection.candidate_choice in ("consensus", "both"):
        measures.append([agreement([written.text for written in group]) for group in groups])
    if selection.candidate_choice in ("likelihood", "both"):

        def weigh(texts: Sequence[Written], own_seeds: Sequence[int]) -> list[float]:
            return likelihoods(scribe, texts, own_seeds, selection.candidate_orders)

        measures.append(_in_groups(weigh, groups, seeds))
    return [_summed(own) for own in zip(*measures, strict=True)]


def _fluencies_of_group(scribe: Scribe, group: Sequence[Written], seed: int, config: GenerationConfig) -> list[float]:
    """How well each text of a group reads; a group of one is not read, and the same text only once. Each group is read
    by itself: what texts are padded with changes the last bits of their scores, and so which of two like ones is kept.
    """
    if len(group) < 2:
        return [0.0] * len(group)
    different = list({(written.text, written.finished): written for written in group}.values())
    scores = fluencies(scribe, different, [seed] * len(different), config)
    of_text = {(written.text, written.finished): score for written, score in zip(different, scores, strict=True)}
    return [of_text[written.text, written.finished] for written in group]


def _ranked(group: Sequence[Written], scores: Sequence[float], scribe: Scribe) -> list[Written]:
    held = [0] * len(group)  # required words, where some may be missing
    if not scribe.family.traits.keeps_given:
        held = [count_found(written.text, written.request.phrases(), ignore_case=True) for written in group]
    places = sorted(range(len(group)), key=lambda place: (held[place], scores[place]), reverse=True)
    return [group[place] for place in places]


def _summed(measures: Sequence[Sequence[float]]) -> list[float]:
    """The sum of some measures of the same texts, each in its own standard deviations; a single one as it is.

    >>> _summed([[1.0, 3.0], [20.0, 10.0]])
    [0.0, 0.0]
    """
    if len(measures) == 1:
        return list(measures[0])
    return [sum(values) for values in zip(*map(_in_deviations, measures), strict=True)]


def _in_deviations(values: Sequence[float]) -> list[float]:
    mean, deviation = (fmean(values), pstdev(values)) if values else (0.0, 0.0)
    return [(value - mean) / deviation if deviation else 0.0 for value in values]


def agreement(texts: Sequence[str]) -> list[float]:
    """How much of each text the others have, too, on average: the share of its runs of one, of two, three and four
    words, less what it is too short. Minimum-Bayes-risk choice for a BLEU that takes the mean of the four shares, not
    their product, which for a single text says little but whether it has four words in common with another.

    >>> [round(score, 2) for score in agreement(["a cat sat", "a cat sat down", "the dog ran"])]
    [0.27, 0.24, 0.0]
    """
    if len(texts) < 2:
        return [0.0] * len(texts)
    words = [text.lower().split() for text in texts]
    length = torch.tensor([len(own) for own in words], dtype=torch.float64)
    brevity = (1 - length[None, :] / length[:, None].clamp_min(1)).clamp_max(0).exp()  # (N, N): of [own, other]
    shares = torch.zeros_like(brevity)
    for size in range(1, _LONGEST_RUN + 1):
        runs = _runs_as_sets(words, size)
        shares += runs @ runs.T / runs.sum(dim=1, keepdim=True).clamp_min(1)
    score = brevity * shares / _LONGEST_RUN
    return ((score.sum(dim=1) - score.diagonal()) / (len(texts) - 1)).tolist()


def _runs_as_sets(texts: Sequence[Sequence[str]], size: int) -> Tensor:
    """Which runs of so many words each of N texts has, 1 or 0 (N, R). The second time that a run occurs it counts as
    another one: what two texts have in common is then the size of an intersection, a product."""
    number: dict[tuple[tuple[str, ...], int], int] = {}
    places: list[tuple[int, int]] = []
    for row, words in enumerate(texts):
        times: Counter[tuple[str, ...]] = Counter()
        for run in zip(*(words[first:] for first in range(size)), strict=False):
            times[run] += 1
            places.append((row, number.setdefault((run, times[run]), len(number))))
    sets = torch.zeros(len(texts), max(len(number), 1), dtype=torch.float64)
    if places:
        sets[tuple(torch.tensor(places).T)] = 1
    return sets


def _in_groups(
    score: Callable[[Sequence[Written], Sequence[int]], list[float]],
    groups: Sequence[Sequence[Written]],
    seeds: Sequence[int],
) -> list[list[float]]:
    """The score of every text of every group, all scored together; a group of one needs none."""
    counts = [len(group) if len(group) > 1 else 0 for group in groups]
    texts = [written for group, count in zip(groups, counts, strict=True) for written in group[:count]]
    own_seeds = [seed for seed, count in zip(seeds, counts, strict=True) for _ in range(count)]
    scores = iter(score(texts, own_seeds))
    return [
        [next(scores) for _ in range(count)] or [0.0] * len(group) for group, count in zip(groups, counts, strict=True)
    ]


def likelihoods(scribe: Scribe, texts: Sequence[Written], seeds: Sequence[int], orders: int) -> list[float]:
    """The log-likelihood of each text per insertion, given its required words: exact, or a bound averaged over orders.

    The orders are a function of the seed, not of the text, so that candidates meet the same luck. A model that was
    told its length answers for that number too.
    """
    if scribe.family.traits.likelihood == "exact":
        return [_log_prob_per_step(written) for written in texts]  # one insertion per step, and the end
    rows = [
        Given.of(written, own)
        for written, seed in zip(texts, seeds, strict=True)
        for own in _seeds_of_orders(written, seed, orders)
    ]
    means = _means(log_likelihoods(scribe, rows), orders)
    return [mean / max(written.inserted, 1) for mean, written in zip(means, texts, strict=True)]


def fluencies(scribe: Scribe, texts: Sequence[Written], seeds: Sequence[int], config: GenerationConfig) -> list[float]:
    """How well each text reads as it is printed, in its usual tokens (see `fluency`); behind all others, if it was cut
    off or is not of a usual length."""
    orders = 1 if scribe.family.traits.likelihood == "exact" else config.selection.candidate_orders
    encoded = scribe.tokenizer.encode_batch([written.text for written in texts])
    rows = [
        Given(tokens, [False] * len(tokens), own)
        for tokens, written, seed in zip(encoded, texts, seeds, strict=True)
        for own in _seeds_of_orders(written, seed, orders)
    ]
    log_probs = _means(log_likelihoods(scribe, rows), orders)
    return [
        fluency(log_prob, len(tokens), written.text, config.fluency) - _penalty(written, config)
        for log_prob, tokens, written in zip(log_probs, encoded, texts, strict=True)
    ]


def _penalty(written: Written, config: GenerationConfig) -> float:
    """What is taken off a text that was cut off, is no whole sentence or not of a usual length, the first before all
    else. Of a text with blanks, sentences and length are its author's, unless some may stay empty; if a length was
    asked for, there may be several sentences."""
    text, request, weights = written.text, written.request, config.fluency
    if request.fills_blanks:
        return _NEVER_MADE_UP * (2 * (not written.finished) + bool(request.optional and not is_whole(text)))
    has_usual_length = bool(weights.usual_most) and not request.has_length
    is_plain = is_sentence(text) if has_usual_length else is_whole(text)
    is_usual_length = not has_usual_length or is_usual(text, request.printed_words(), weights)
    return _NEVER_MADE_UP * (4 * (not written.finished) + 2 * (not is_plain) + (not is_usual_length))


def _seeds_of_orders(written: Written, seed: int, orders: int) -> list[int]:
    """What the orders that a text is scored along follow from."""
    own = seed_of_request(written.request, seed)
    return [int(mix(Purpose.CANDIDATE_ORDER, own, number)) for number in range(orders)]


def _means(scores: Sequence[float], orders: int) -> list[float]:
    """The mean of each text's scores, which stand together."""
    return [fmean(scores[first : first + orders]) for first in range(0, len(scores), orders)]


@dataclass(frozen=True)
class Given:
    """A text, of which some is given, to be scored along one order."""

    tokens: list[int]
    is_given: list[bool]
    seed: int

    @classmethod
    def of(cls, written: Written, seed: int) -> "Given":
        """A finished text with its required words given."""
        tokens = written.end().tokens
        return cls([token for token, _ in tokens], [origin != INSERTED for _, origin in tokens], seed)


def log_likelihoods(scribe: Scribe, rows: Sequence[Given]) -> list[float]:
    """The log-likelihood bound of each row given what is given."""
    return [score.item() for score in _scores(scribe, rows, lambda batch: scribe.family.log_likelihood(batch).total)]


def token_log_probs(scribe: Scribe, rows: Sequence[Given]) -> list[list[float]]:
    """The log-probability of each row's tokens when they go in; 0 for what is given."""
    scores = _scores(scribe, rows, lambda batch: scribe.family.log_likelihood(batch).tokens)
    return [own[1 : len(row.tokens) + 1].tolist() for row, own in zip(rows, scores, strict=True)]  # <bos> stands first


@torch.no_grad()
def _scores(scribe: Scribe, rows: Sequence[Given], score: Callable[[TokenBatch], Tensor]) -> list[Tensor]:
    """What is said of each row, in chunks of like length that fit into memory."""
    starts_word = scribe.lexicon.starts_word.cpu()
    device = next(scribe.family.parameters()).device
    scores: dict[int, Tensor] = {}
    for chunk in _chunks([len(row.tokens) + 2 for row in rows], len(starts_word)):
        batch = TokenBatch.of(
            [rows[index].tokens for index in chunk],
            starts_word=starts_word,
            given=[rows[index].is_given for index in chunk],
            seeds=[rows[index].seed for index in chunk],
            specials=scribe.tokenizer.specials,
        )
        with scribe.desk.turn():
            scores.update(zip(chunk, score(batch.to(device)).cpu(), strict=True))
    return [scores[index] for index in range(len(rows))]


def _chunks(lengths: Sequence[int], vocabulary: int) -> Iterator[list[int]]:
    """All indices in chunks of like length, none needing too many numbers once padded, but for rows that do alone."""
    chunk: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        own = lengths[index] * (vocabulary + _NUMBERS_PER_PAIR * lengths[index])
        if chunk and (len(chunk) + 1) * own > _MOST_NUMBERS:
            yield chunk
            chunk = []
        chunk.append(index)
    if chunk:
        yield chunk
