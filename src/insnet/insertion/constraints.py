"""What a decoder may and may not do: whole words, banned words, repetitions, length in words.

Shapes: B rows, L places in reading order, N (row, slot) pairs, V vocabulary, F token sequences of at most M tokens.
"""

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from insnet.insertion.canvas import INSERTED, Canvas

ABSENT = -1  # pads a sequence shorter than M
FREE = -1  # a number of insertions that nobody has fixed
_NO_BOUND = 1 << 30  # words that a gap without a bound may hold
_MANY_SEQUENCES = 256  # more are worth a look at which of them could matter, for which the device has to be asked


@dataclass(frozen=True)
class Lexicon:
    """What must be known of each token (V,) to keep words whole; the tokenizer makes it."""

    starts_word: Tensor
    """False for the further pieces of a word."""
    joins_left: Tensor
    """True for tokens printed without a space before them, like a comma."""
    joins_right: Tensor
    """True for tokens printed without a space after them, like an opening bracket."""
    may_follow_required: Tensor
    """True for tokens that leave a required word whole when they stand behind it."""
    may_precede_required: Tensor
    """True for tokens that leave a required word whole when they stand in front of it."""
    generatable: Tensor
    """True for tokens that a decoder may write at all."""
    is_word: Tensor
    """True for tokens that begin a word and hold a letter or a digit: what a blank must begin with."""
    same_letters: Tensor = field(default_factory=lambda: torch.arange(0))
    """The first token with the same letters in whatever case, as an id; bans speak of these. Empty: each its own."""

    def to(self, device: torch.device) -> "Lexicon":
        return Lexicon(**{each.name: getattr(self, each.name).to(device) for each in fields(self)})

    @property
    def size(self) -> int:
        return len(self.generatable)

    @cached_property
    def barred(self) -> Tensor:
        """What to add (3, 2, 2, 2, V + 1) to log-probabilities: -inf for tokens that may not go into a slot, else 0, by
        [no word may begin, nor without a space behind a symbol: 1 and 2; it is a blank without a word; a required word
        stands left of it; one stands right of it]; the last column is that of no token."""
        allowed = self.generatable.expand(3, 2, 2, 2, -1).clone()
        allowed[1:] &= ~self.is_parted[0]
        allowed[2] &= self.starts_word
        allowed[:, 1] &= self.is_word
        allowed[:, :, 1] &= self.may_follow_required
        allowed[:, :, :, 1] &= self.may_precede_required
        return F.pad(torch.zeros(allowed.shape, device=allowed.device).masked_fill(~allowed, -math.inf), (0, 1))

    @cached_property
    def is_symbol(self) -> Tensor:
        """True (V,) for marks like a comma or a bracket, behind which a further piece would be a word."""
        return self.joins_left | self.joins_right

    @cached_property
    def is_parted(self) -> Tensor:
        """True (2, V): a word begins with the token, if a space stands before it; a space follows the token."""
        return torch.stack([self.starts_word & ~self.joins_left, ~self.joins_right])

    def folded(self, canvas: Canvas) -> Canvas:
        """The canvas with letters of whatever case as one."""
        return replace(canvas, tokens=self.same_letters[canvas.tokens]) if len(self.same_letters) else canvas


@dataclass(frozen=True)
class Limits:
    """What each row must keep to."""

    min_words: Tensor
    """(B,) stop no earlier; whitespace words of the printed text."""
    max_words: Tensor
    """(B,) stop here at the latest."""
    max_tokens: Tensor
    """(B,) insertions after which a row is cut off."""
    insertions: Tensor
    """(B,) the planned number of insertions; FREE to let the stopping rule decide."""
    slack: Tensor
    """(B,) how many insertions before or after that a row may end, where the model finds a good place to."""
    word_correction: Tensor
    """(B,) printed words of the given text less the count of its tokens' words (unknown words print as they were)."""
    forbidden: Tensor
    """(B, F, M) sequences of the lexicon's `same_letters` that must not come to stand together, padded with ABSENT."""
    fills_blanks: Tensor
    """(B,) true where every open slot between two given stretches must get a word."""
    has_blanks: bool
    """Whether any row has such slots: known without asking the device."""
    least_in_gap: Tensor
    """(B, G) fewest words in each gap between given stretches, the one before the first included; no gaps if no row
    has blanks."""
    most_in_gap: Tensor
    """(B, G) most words in each gap; 0 for any number."""
    given_words: Tensor
    """(B,) words that the given text prints once its blanks are filled, those of the blanks left out."""


def count_words(canvas: Canvas, lexicon: Lexicon, word_correction: Tensor) -> Tensor:
    """How many whitespace words (B,) the canvas prints, <bos> and <eos> left aside."""
    begins, ends = lexicon.is_parted[:, canvas.tokens]  # (B, L) each
    begins_word = begins[:, 1:] & ends[:, :-1]
    begins_word[:, 0] = True  # what follows <bos>
    is_inner = torch.arange(1, canvas.capacity, device=begins.device) < canvas.length[:, None] - 1
    words: Tensor = (is_inner & begins_word).sum(dim=1) + word_correction
    return words


def neighbours_of_slot(canvas: Canvas, slot: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and origins (B, 2), left and right, of a slot (B,)."""
    places = torch.stack([slot, slot + 1], dim=1)
    return canvas.tokens.gather(1, places), canvas.origin.gather(1, places)


def empty_blanks(canvas: Canvas, limits: Limits) -> Tensor:
    """True (B, L) at open slots between two given stretches, in rows whose blanks must all be filled."""
    place = torch.arange(canvas.capacity, device=canvas.length.device)
    is_border = (place == 0) | (place == canvas.length[:, None] - 1)  # <bos> and <eos>
    is_given = is_border | (canvas.origin != INSERTED)
    follows = F.pad(is_given[:, 1:], (0, 1), value=False)
    return canvas.open_slots() & is_given & follows & limits.fills_blanks[:, None]


def within_reach(canvas: Canvas, sequences: Tensor, *, missing: int) -> Tensor:
    """Those of many sequences (B, F, M) of which a canvas lacks so many tokens at most: of all ways to write a long
    word, few. Some sequences are returned as they are."""
    rows, count, longest = sequences.shape
    if count <= _MANY_SEQUENCES:
        return sequences
    vocabulary = 1 + int(torch.maximum(canvas.tokens.max(), sequences.max()))
    is_there = torch.zeros(rows, vocabulary, dtype=torch.bool, device=sequences.device)
    is_there.scatter_(1, canvas.tokens, True)
    lacks = ~is_there.gather(1, sequences.clamp_min(0).flatten(1)).view(rows, count, longest)
    return sequences[:, ((lacks & (sequences >= 0)).sum(dim=2) <= missing).any(dim=0)]


def gap_of_slot(canvas: Canvas) -> Tensor:
    """The number (B, L) of the gap between given stretches that each slot lies in, 0 before the first."""
    return canvas.origin.cummax(dim=1).values - INSERTED


@dataclass(frozen=True)
class GapRoom:
    """How many words each gap (B, G) has, still lacks and may still get, where blanks are to be filled."""

    gap_of_slot: Tensor
    """(B, L)"""
    words: Tensor
    """(B, G)"""
    lacks: Tensor
    """(B, G)"""
    room: Tensor
    """(B, G) as good as infinite where a gap has no bound."""

    @classmethod
    def of(cls, canvas: Canvas, limits: Limits, lexicon: Lexicon) -> "GapRoom":
        """By the words that begin in each gap; a mark that touches what was given before it begins none."""
        gap = gap_of_slot(canvas)
        begins, ends = lexicon.is_parted[:, canvas.tokens]  # (B, L) each
        is_new = canvas.origin == INSERTED
        begins = begins & is_new & F.pad(ends[:, :-1] | ~is_new[:, :-1], (1, 0), value=False)
        begins[:, 1:2] = is_new[:, 1:2]  # what follows <bos>
        place = torch.arange(canvas.capacity, device=gap.device)
        begins = begins & (place > 0) & (place < canvas.length[:, None] - 1)
        count = torch.zeros_like(limits.least_in_gap)
        count = count.scatter_add(1, gap.clamp_max(count.shape[1] - 1), begins.long())
        most = limits.most_in_gap.masked_fill(limits.most_in_gap == 0, _NO_BOUND)
        return cls(gap, count, (limits.least_in_gap - count).clamp_min(0), (most - count).clamp_min(0))

    @property
    def is_full(self) -> Tensor:
        """True (B,) where no gap may get a further word."""
        return (self.room == 0).all(dim=1)

    def at_slots(self, values: Tensor) -> Tensor:
        """What holds of gaps (B, G), of their slots (B, L)."""
        return values.gather(1, self.gap_of_slot.clamp_max(values.shape[1] - 1))


def completing_tokens(canvas: Canvas, slot: Tensor, sequences: Tensor, vocabulary: int) -> Tensor:
    """True (B, V) for tokens that, put into `slot` (B,), complete one of the sequences (B, F, M).

    A hole of the sequence is where the token would stand; all holes are looked at together.
    """
    rows, _, longest = sequences.shape
    others, places = _holes(longest, slot.device)  # (M, M-1), (M * (M-1),)
    around = _tokens_at(canvas, slot[:, None] + places)
    wanted = sequences[:, :, others]  # (B, F, M, M-1)
    fits = (wanted == around.view(rows, 1, longest, longest - 1)) | (wanted == ABSENT)
    is_match = fits.all(dim=3) & (sequences >= 0)  # (B, F, M): of each hole
    token = torch.where(is_match, sequences, vocabulary).flatten(1)
    completes = torch.zeros(rows, vocabulary + 1, dtype=torch.bool, device=slot.device)
    return completes.scatter_(1, token, True)[:, :vocabulary]


def meets_across(canvas: Canvas, slot: Tensor, sequences: Tensor) -> Tensor:
    """True (B,) where one of the sequences (B, F, M) stands across `slot` (B,), nothing being put there."""
    longest = sequences.shape[2]
    index = torch.arange(longest, device=slot.device)
    found = torch.zeros_like(slot, dtype=torch.bool)
    for left in range(1, longest):  # so many of its tokens stand left of the slot
        around = _tokens_at(canvas, slot[:, None] + 1 - left + index)  # (B, M)
        fits = ((sequences == around[:, None]) | (sequences == ABSENT)).all(dim=2)
        found = found | (fits & (sequences[:, :, left] != ABSENT)).any(dim=1)
    return found


@lru_cache(maxsize=16)
def _holes(longest: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """For each hole of a sequence its other indices, and where these stand relative to the slot."""
    others = [[index for index in range(longest) if index != hole] for hole in range(longest)]
    places = [[index - hole + 1 - (index > hole) for index in row] for hole, row in enumerate(others)]
    both = torch.tensor([others, places], dtype=torch.int64, device=device).view(2, longest, longest - 1)
    return both[0], both[1].flatten()


def _tokens_at(canvas: Canvas, places: Tensor) -> Tensor:
    """Ids at `places` (B, P); -3, which equals nothing, outside the canvas."""
    is_outside = (places < 0) | (places >= canvas.length[:, None])
    return canvas.tokens.gather(1, places.clamp(0, canvas.capacity - 1)).masked_fill(is_outside, -3)


def repeated_sequences(canvas: Canvas, size: int, longest: int) -> Tensor:
    """All runs of `size` tokens among the first `longest` places, as sequences (B, F, size) not to be written again."""
    windows = canvas.tokens[:, :longest].unfold(1, min(size, longest), 1)
    start = torch.arange(windows.shape[1], device=canvas.tokens.device)
    is_outer = (start == 0) | (start + size >= canvas.length[:, None])  # (B, F): it holds <bos>, <eos> or nothing
    return windows.masked_fill(is_outer[:, :, None], -2)  # -2 stands nowhere, so it never matches
