"""How well a model knows when to stop: the sum of the stop terms of a sentence, averaged over sentences.

Its keywords are given. Shapes: B rows, a sentence along one order each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from insnet.evaluation.task import Task
from insnet.families.insnet import InsNet
from insnet.model import Model
from insnet.randomness import mix
from insnet.text.batching import TokenBatch
from insnet.text.words import MARK, split

_ORDER_NOISE = 701
_ROWS = 16  # at a time: their token logits take 180 MB with 143 tokens and a vocabulary of 20,000


@dataclass(frozen=True)
class Nats:
    """What a sentence costs on average, its keywords given, summed over the steps of an order."""

    stop: float
    """Of stopping or not: minus log q at the end, minus log(1 - q) before every insertion."""
    token: float
    slot: float


def sentence_nats(model: Model, task: Task, *, orders: int = 4, seed: int = 0) -> Nats:
    """Means over the sentences of a task and several orders each; every model is shown the same orders."""
    family = model.family
    if not isinstance(family, InsNet):
        raise ValueError(f"a model of the family {type(family).__name__} has no stop terms; give an InsNet")
    sums = dict.fromkeys(("stop", "token", "slot"), 0.0)
    rows = 0
    for batch in _batches(model, task, orders, seed):
        with torch.no_grad():
            batch = batch.to(model.device)
            plan = family.one_pass.sequential_plan(batch, torch.zeros_like(batch.lengths))
            nats = family.one_pass.rows(batch, plan).nats
        sums = {name: total + float(nats[name].double().sum()) for name, total in sums.items()}
        rows += len(batch.lengths)
    return Nats(**{name: total / rows for name, total in sums.items()})


def _batches(model: Model, task: Task, orders: int, seed: int) -> Iterator[TokenBatch]:
    """Every sentence `orders` times, sentences of like length together."""
    starts_word = model.scribe.lexicon.starts_word.cpu()
    sentences = model.tokenizer.encode_batch(task.references)
    given = [
        given_tokens(model, tokens, line, keywords)
        for tokens, line, keywords in zip(sentences, task.references, task.keywords, strict=True)
    ]
    rows = [(number, order) for number in range(len(sentences)) for order in range(orders)]
    rows.sort(key=lambda row: len(sentences[row[0]]))
    for first in range(0, len(rows), _ROWS):
        chunk = rows[first : first + _ROWS]
        yield TokenBatch.of(
            [sentences[number] for number, _ in chunk],
            starts_word=starts_word,
            given=[given[number] for number, _ in chunk],
            seeds=[int(mix(_ORDER_NOISE, seed, number, order)) for number, order in chunk],
        )


def given_tokens(model: Model, tokens: Sequence[int], line: str, keywords: Sequence[str]) -> list[bool]:
    """Which tokens of a line are its keywords, all pieces of a word alike."""
    flags = given_words(line, keywords)
    groups = model.tokenizer.words(tokens)
    assert len(groups) == len(flags), f"{len(groups)} groups of tokens for {len(flags)} words: {line!r}"
    return [flag for flag, group in zip(flags, groups, strict=True) for _ in group]


def given_words(line: str, keywords: Sequence[str]) -> list[bool]:
    """Which words of a line are its keywords: each the first occurrence after the one before.

    >>> given_words("the cat and the old cat.", ["the", "Cat", "cat"])
    [True, True, False, False, False, True, False]
    """
    words = [part.strip(MARK) for part in split(line, lower_case=True)]
    flags, start = [False] * len(words), 0
    for keyword in keywords:
        parts = [part.strip(MARK) for part in split(keyword, lower_case=True)]
        places = [at for at in range(start, len(words)) if words[at : at + len(parts)] == parts]
        if not places:
            raise ValueError(
                f"the keyword {keyword!r} does not stand in {line!r} after those before it; "
                "stop terms need keywords of the sentence itself, in its order"
            )
        start = places[0] + len(parts)
        flags[places[0] : start] = [True] * len(parts)
    return flags
