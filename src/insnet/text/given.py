"""Which words stand on the canvas from the start, drawn anew for each sentence and epoch.

Shapes: B sentences, L positions, W words of the longest sentence.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from insnet import randomness
from insnet.randomness import SeededPurpose
from insnet.text.specials import UNK

# What a row's noise is drawn for: each purpose has its own stream.


@dataclass(frozen=True)
class GivenPolicy:
    """What a training example starts from; it should look like what is given in use.

    A share of the examples starts from nothing, a share from a random part of the text (infilling, editing), and
    the rest from a few keywords.
    """

    none: float = 0.1
    """Share of examples with nothing given; without any, scoring a text would not be a likelihood."""
    fraction: float = 0.3
    """Share of examples where a uniformly random number of all words is given."""
    keywords_max: int = 9
    """In the other examples up to this many words are given, each number as likely: keyword candidates first, other
    words where a text has too few of them. A number cut down to a text's candidates would make four words a sign
    that the text is short."""
    keywords_min: int = 0
    """The least number of words given in those examples."""
    unknown: float = 0.0
    """Probability that a given token is shown as <unk>, so that a word-level model meets unknown keywords."""

    def __post_init__(self) -> None:
        for name in ("none", "fraction", "unknown"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} {getattr(self, name)} is not a share between 0 and 1")
        if self.none + self.fraction > 1:
            raise ValueError(f"none {self.none} and fraction {self.fraction} are more than all examples together")
        if self.keywords_max < 0:
            raise ValueError(f"keywords_max {self.keywords_max} is negative")
        if not 0 <= self.keywords_min <= self.keywords_max:
            raise ValueError(f"keywords_min {self.keywords_min} is not between 0 and keywords_max {self.keywords_max}")

    def choose(self, starts_word: Tensor, is_candidate: Tensor, inside: Tensor, seeds: Tensor) -> Tensor:
        """(B, L) bool: the positions given in each row, always whole words.

        `inside` (B, L) marks the sentence's own tokens (no <bos>, <eos>, <pad>), `is_candidate` (B, L) its keyword
        candidates. A row's choice depends on its own seed and words alone, never on the batch.
        """
        word_at = _word_at_position(starts_word, inside)  # (B, L)
        number_of_words = torch.where(inside, word_at + 1, 0).amax(dim=1)  # (B,)
        width = max(1, int(number_of_words.max()))
        is_word = torch.arange(width) < number_of_words[:, None]  # (B, W)
        is_keyword = torch.zeros(len(seeds), width).scatter_add_(1, word_at, (is_candidate & inside).float()) > 0

        comes_first = is_keyword | self._draws_fraction(seeds)[:, None]  # (B, W)
        wanted = self._how_many(seeds, number_of_words)  # (B,)
        noise = randomness.uniform(seeds[:, None], SeededPurpose.GIVEN_WHICH, torch.arange(width))  # (B, W)
        key = torch.where(comes_first, noise, noise + 1).masked_fill(~is_word, 3.0)
        rank = key.argsort(dim=1, stable=True).argsort(dim=1)
        given_words = is_word & (rank < wanted[:, None])
        return given_words.gather(1, word_at) & inside

    def hide(self, tokens: Tensor, given: Tensor, seeds: Tensor, unk: int = UNK) -> Tensor:
        """(B, L) The tokens, some given ones shown as `unk`; `given` must leave out <bos> and <eos>."""
        if self.unknown == 0:
            return tokens
        noise = randomness.uniform(seeds[:, None], SeededPurpose.UNKNOWN, torch.arange(tokens.shape[1]))
        return tokens.masked_fill(given & (noise < self.unknown), unk)

    def _draws_fraction(self, seeds: Tensor) -> Tensor:
        mode = randomness.uniform(seeds, SeededPurpose.GIVEN_MODE)
        return (mode >= self.none) & (mode < self.none + self.fraction)

    def _how_many(self, seeds: Tensor, number_of_words: Tensor) -> Tensor:
        """(B,) How many words to give, as far as there are so many."""
        draws_fraction = self._draws_fraction(seeds)
        least = torch.where(draws_fraction, 0, self.keywords_min)
        most = torch.where(draws_fraction, number_of_words, self.keywords_max)
        wanted = least + (randomness.uniform(seeds, SeededPurpose.GIVEN_NUMBER) * (most - least + 1)).long()
        return wanted.masked_fill(randomness.uniform(seeds, SeededPurpose.GIVEN_MODE) < self.none, 0)


def _word_at_position(starts_word: Tensor, inside: Tensor) -> Tensor:
    """(B, L) Which word each position belongs to, counted from 0; a text's first token always begins one."""
    begins_text = inside & ~inside.roll(1, dims=1)
    begins_text[:, 0] = inside[:, 0]
    return ((inside & starts_word) | begins_text).cumsum(dim=1).sub(1).clamp(min=0)
