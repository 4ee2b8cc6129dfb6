"""Keyword lists as people give them, drawn from real sentences by the policy that a model is trained with."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from insnet.randomness import SeededPurpose, mix
from insnet.text.content_words import ContentWords
from insnet.text.given import GivenPolicy
from insnet.text.words import join, split

SHUFFLED = 0.25  # of the lists: people do not know which word will come first
_AT_A_TIME = 4096
_LEAST_NEW = 0.02  # share of a pass over the text that must be new lists


@dataclass(frozen=True)
class Drawing:
    """What lists are drawn by."""

    policy: GivenPolicy
    content: ContentWords
    inner: frozenset[str]
    """Words that are written in lower case inside a sentence: those that begin one are no names."""

    @classmethod
    def of(cls, lines: Iterable[str], policy: GivenPolicy) -> "Drawing":
        """From a corpus, read once, and a policy, of which only the share of keywords counts."""
        lines = list(lines)
        inner = frozenset(part for line in lines for part in split(line)[1:] if part == part.lower())
        return cls(replace(policy, none=0.0, fraction=0.0), ContentWords.learn(lines), inner)

    def lists(self, lines: Sequence[str], *, visit: int = 0) -> Iterator[list[str]]:
        """The keywords of each line that has any, in its order; another visit draws others."""
        for first in range(0, len(lines), _AT_A_TIME):
            some = lines[first : first + _AT_A_TIME]
            seeds = mix(0, SeededPurpose.SENTENCE, visit, torch.arange(first, first + len(some)))
            yield from filter(None, self._some(some, seeds))

    def _some(self, lines: Sequence[str], seeds: Tensor) -> Iterator[list[str]]:
        parts, importance = [split(line) for line in lines], self.content(list(lines))
        inside = torch.arange(max(map(len, parts))) < torch.tensor([[len(own)] for own in parts])  # (B, L)
        weights = torch.zeros(inside.shape)
        weights[inside] = torch.tensor([float(weight) for row in importance for weight in row])
        choices = [
            policy.choose(torch.ones_like(inside), weights, inside, seeds) & inside
            for policy in (self.policy, replace(self.policy, phrases=0.0))
        ]
        chosen = choices[1] & (weights > 0)
        for own, given, alone, worth in zip(parts, choices[0].tolist(), chosen.tolist(), importance, strict=True):
            yield self._keywords(own, given, alone, worth)

    def _keywords(
        self, parts: Sequence[str], given: Sequence[bool], chosen: Sequence[bool], importance: Sequence[int]
    ) -> list[str]:
        """The chosen parts, each with those that it brings along: given, but not chosen, they stand right before it. No
        phrase begins with a function word, as in "and the dog"."""
        keywords: list[str] = []
        brought: list[str] = []
        for place, part in enumerate(parts):
            word = part.lower() if place == 0 and part.lower() in self.inner else part
            if chosen[place]:
                keywords.append(join([*brought, word]))
            is_brought = given[place] and not chosen[place] and any(map(str.isalnum, part))
            brought = [*brought, word] if is_brought and (brought or importance[place]) else []
        return keywords


def different_lists(drawing: Drawing, lines: Sequence[str], count: int) -> list[list[str]]:
    """Up to so many lists, no two with the same words, a share of them in no order; fewer where the text holds no
    more."""
    dice = random.Random(0)
    drawn: dict[tuple[str, ...], list[str]] = {}
    visit, before = 0, -len(lines)
    while len(drawn) < count and len(drawn) - before >= _LEAST_NEW * len(lines):
        before = len(drawn)
        for keywords in drawing.lists(lines, visit=visit):
            if dice.random() < SHUFFLED:
                dice.shuffle(keywords)
            drawn.setdefault(tuple(sorted(map(str.lower, keywords))), keywords)
        visit += 1
    return list(drawn.values())[:count]
