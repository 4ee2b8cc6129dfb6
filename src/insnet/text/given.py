"""Which words stand on the canvas from the start, drawn anew for each sentence and epoch.

Shapes: B sentences, L positions, W words of the longest sentence.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from insnet import randomness
from insnet.randomness import SeededPurpose
from insnet.text.specials import UNK


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
    keyword_shares: tuple[float, ...] = ()
    """How often one, two, three words and so on are given in those examples, to the same sum whatever it is; none
    named: each number from `keywords_min` to `keywords_max` is as likely."""
    important_first: float = 0.0
    """Share of those examples in which the most important candidates come before the others."""
    phrases: float = 0.0
    """Share of those examples in which some given words bring along one or two words to their left."""
    unknown: float = 0.0
    """Probability that a given token is shown as <unk>, so that a word-level model meets unknown keywords."""

    def __post_init__(self) -> None:
        for name in ("none", "fraction", "unknown", "important_first", "phrases"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} {getattr(self, name)} is not a share between 0 and 1")
        if self.none + self.fraction > 1:
            raise ValueError(f"none {self.none} and fraction {self.fraction} are more than all examples together")
        if self.keywords_max < 0:
            raise ValueError(f"keywords_max {self.keywords_max} is negative")
        if self.keyword_shares and not (min(self.keyword_shares) >= 0 < sum(self.keyword_shares) < math.inf):
            raise ValueError(f"keyword_shares is {list(self.keyword_shares)}; expected shares of 0 or more, not all 0")
        if not 0 <= self.keywords_min <= self.keywords_max:
            raise ValueError(f"keywords_min {self.keywords_min} is not between 0 and keywords_max {self.keywords_max}")

    def choose(self, starts_word: Tensor, importance: Tensor, inside: Tensor, seeds: Tensor) -> Tensor:
        """(B, L) bool: the positions given in each row, always whole words.

        `inside` (B, L) marks the sentence's own tokens (no <bos>, <eos>, <pad>), `importance` (B, L) is above 0 in its
        keyword candidates. A row's choice depends on its own seed and words alone, never on the batch.
        """
        word_at = _word_at_position(starts_word, inside)  # (B, L)
        number_of_words = torch.where(inside, word_at + 1, 0).amax(dim=1)  # (B,)
        width = max(1, int(number_of_words.max()))
        is_word = torch.arange(width) < number_of_words[:, None]  # (B, W)
        of_word = torch.zeros(len(seeds), width).scatter_reduce_(1, word_at, importance * inside.float(), "amax")

        wanted = self._how_many(seeds, number_of_words)  # (B,)
        noise = randomness.uniform(seeds[:, None], SeededPurpose.GIVEN_WHICH, torch.arange(width))  # (B, W)
        key = (noise + self._turn(seeds, of_word)).masked_fill(~is_word, math.inf)
        rank = key.argsort(dim=1, stable=True).argsort(dim=1)
        given_words = self._with_phrases(is_word & (rank < wanted[:, None]), seeds)
        return given_words.gather(1, word_at) & inside

    def _turn(self, seeds: Tensor, importance: Tensor) -> Tensor:
        """(B, W) When words of some importance (B, W) are drawn: at 0 before those at 1 and so on."""
        ranks_them = randomness.uniform(seeds, SeededPurpose.GIVEN_IMPORTANT) < self.important_first
        most = importance.amax(dim=1, keepdim=True) if importance.numel() else importance
        turn = torch.where(ranks_them[:, None], most - importance, 0.0)
        turn = torch.where(importance > 0, turn, most + 1)
        return turn.masked_fill(self._draws_fraction(seeds)[:, None], 0.0)

    def _with_phrases(self, given: Tensor, seeds: Tensor) -> Tensor:
        """(B, W) The given words and, in some examples, what half of them bring along."""
        if self.phrases == 0:
            return given
        grows = randomness.uniform(seeds, SeededPurpose.GIVEN_GROWS) < self.phrases
        noise = randomness.uniform(seeds[:, None], SeededPurpose.GIVEN_PHRASE, torch.arange(given.shape[1]))
        grows = given & grows[:, None] & ~self._draws_fraction(seeds)[:, None]
        one_more, two_more = grows & (noise < 0.5), grows & (noise < 0.15)
        return given | F.pad(one_more, (0, 1))[:, 1:] | F.pad(two_more, (0, 2))[:, 2:]

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
        noise = randomness.uniform(seeds, SeededPurpose.GIVEN_NUMBER)
        wanted = least + (noise * (most - least + 1)).long()
        if self.keyword_shares:
            bounds = torch.tensor(self.keyword_shares, dtype=noise.dtype).cumsum(dim=0)
            wanted = torch.where(draws_fraction, wanted, 1 + torch.bucketize(noise * bounds[-1], bounds, right=True))
        return wanted.masked_fill(randomness.uniform(seeds, SeededPurpose.GIVEN_MODE) < self.none, 0)


def _word_at_position(starts_word: Tensor, inside: Tensor) -> Tensor:
    """(B, L) Which word each position belongs to, counted from 0; a text's first token always begins one."""
    begins_text = inside & ~inside.roll(1, dims=1)
    begins_text[:, 0] = inside[:, 0]
    return ((inside & starts_word) | begins_text).cumsum(dim=1).sub(1).clamp(min=0)
