"""How well a finished text reads: how likely it is by itself, with nothing given, and what that does not see.

The sum of log-probabilities says more than their mean, which likes loops and length; what a sum lacks was fitted to a
reader's verdicts (docs/lab-notebook.md, "Choosing among candidates").
"""

import re
from collections import Counter

from insnet.decoding.config import Fluency
from insnet.text.stop_words import is_stop_word
from insnet.text.words import split

_OPENERS, _CLOSERS, _STOPS = "\"“‘'(", "\"”’')", ".!?…。！？"
_STOP_INSIDE = re.compile(r"""[.!?…]["”’')]? """)
_USUALLY_GIVEN = 3  # words, for which a usual length is meant
_WORDS_PER_GIVEN_WORD = 2  # how much longer a usual text may be for each further one


def fluency(log_prob: float, pieces: int, text: str, weights: Fluency) -> float:
    """The score of a text of so many pieces, `log_prob` being that of the whole text with nothing given."""
    short = max(weights.short_words - len(text.split()), 0)
    bonus = weights.piece_bonus * pieces
    return log_prob + bonus - weights.repeat_penalty * repetitions(text) - weights.short_penalty * short


def repetitions(text: str) -> int:
    """How often the text says a content word again.

    >>> repetitions("The dog and the Dog saw a dog's dog, and the sea."), repetitions("A day is a day.")
    (2, 1)
    """
    words = [part.lower() for part in split(text) if any(character.isalnum() for character in part)]
    times = Counter(word for word in words if not is_stop_word(word))
    return sum(count - 1 for count in times.values())


def is_sentence(text: str) -> bool:
    """Whether a text is one sentence, begun and ended as they are. An abbreviation inside is taken for an end.

    >>> [is_sentence(text) for text in ("It rains.", '"It is 3.5!"', "It rains", "It rains. Rain", "it rains.")]
    [True, True, False, False, False]
    """
    return is_whole(text) and not _STOP_INSIDE.search(text)


def is_whole(text: str) -> bool:
    """Whether a text begins with no small letter and ends with a stop.

    >>> [is_whole(text) for text in ("“Été!”", "3 apples.", "an apple.", "Apples")]
    [True, True, False, False]
    """
    first, last = text.lstrip(_OPENERS)[:1], text.rstrip(_CLOSERS)[-1:]
    return first.isalnum() and not first.islower() and last in _STOPS


def is_usual(text: str, given_words: int, weights: Fluency) -> bool:
    """Whether a text has a usual length for so many given words."""
    most = weights.usual_most + _WORDS_PER_GIVEN_WORD * max(given_words - _USUALLY_GIVEN, 0)
    return not weights.usual_most or weights.usual_least <= len(text.split()) <= most
