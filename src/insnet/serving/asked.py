"""Requests against a service's limits: what is too much is said in one line."""

from collections.abc import Sequence

from insnet.serving.schemas import Asked, AskedForBlanks, AskedForKeywords, AskedForScore
from insnet.serving.settings import ServiceConfig


def check(asked: Asked | AskedForScore, config: ServiceConfig) -> None:
    """Refuses what is more than the service allows."""
    if isinstance(asked, AskedForKeywords):
        _at_most("keywords", len(asked.keywords), config.most_keywords)
        _at_most("characters", sum(map(len, asked.keywords)), config.most_characters)
    if isinstance(asked, AskedForBlanks | AskedForScore):
        _at_most("characters", len(asked.text), config.most_characters)
    if isinstance(asked, Asked):
        _at_most("samples", asked.samples, config.most_samples)
        _at_most("candidates", asked.candidates or 0, config.most_candidates)
        _at_most("characters of banned words", sum(map(len, asked.banned)), config.most_characters)
        bounds = asked.length if isinstance(asked.length, Sequence) else [asked.length]
        _at_most("words", max((words or 0 for words in bounds), default=0), config.most_words)


def _at_most(what: str, count: int, most: int) -> None:
    if count > most:
        raise ValueError(f"{count} {what}; this service takes at most {most}")
