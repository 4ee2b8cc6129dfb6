"""What a decoder may and may not do: closed slots, whole words, banned words, repetitions, length in words.

Shapes: B rows, L places in reading order, V vocabulary, F token sequences of at most M tokens.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from insnet.insertion.canvas import INSERTED, Canvas

ABSENT = -1  # pads a sequence shorter than M


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
    same_letters: Tensor = field(default_factory=lambda: torch.arange(0))
    """The first token with the same letters in whatever case, as an id; bans speak of these. Empty: each its own."""
    is_word: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    """True for tokens that begin a word and hold a letter or a digit: what a blank must begin with."""

    def to(self, device: torch.device) -> "Lexicon":
        return Lexicon(**{name: table.to(device) for name, table in vars(self).items()})


@dataclass(frozen=True)
class Constraints:
    """What one call demands of each row."""

    min_words: Tensor
    """(B,) stop no earlier; whitespace words of the printed text."""
    max_words: Tensor
    """(B,) stop here at the latest."""
    max_tokens: Tensor
    """(B,) insertions after which a row is cut off."""
    insertions: Tensor
    """(B,) stop after so many insertions; FREE to let the stopping rule decide."""
    slack: Tensor
    """(B,) how many insertions before or after that a row may end, where the model finds a good place to."""
    word_correction: Tensor
    """(B,) printed words of the given text less the count of its tokens' words (unknown words print as they were)."""
    forbidden: Tensor
    """(B, F, M) sequences of the lexicon's `same_letters` that must not come to stand together, padded with ABSENT."""
    fills_blanks: Tensor
    """(B,) true where every open slot between two given stretches must get a token."""

    FREE = -1


def count_words(canvas: Canvas, lexicon: Lexicon, word_correction: Tensor) -> Tensor:
    """How many whitespace words (B,) the canvas prints, <bos> and <eos> left aside."""
    inner = torch.arange(canvas.capacity, device=canvas.tokens.device)[None, :]
    is_inner = (inner > 0) & (inner < canvas.length[:, None] - 1)  # (B, L)
    begins = lexicon.starts_word[canvas.tokens] & ~lexicon.joins_left[canvas.tokens]  # (B, L)
    follows_space = torch.ones_like(is_inner)
    follows_space[:, 2:] = ~lexicon.joins_right[canvas.tokens[:, 1:-1]]
    is_first = inner == 1
    return (is_inner & (is_first | (begins & follows_space))).sum(dim=1) + word_correction


def neighbours_of_slot(canvas: Canvas, slot: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids and origins (B,) left and right of a slot (B,)."""
    places = torch.stack([slot, slot + 1], dim=1)  # (B, 2)
    tokens, origins = canvas.tokens.gather(1, places), canvas.origin.gather(1, places)
    return tokens[:, 0], tokens[:, 1], origins[:, 0], origins[:, 1]


def allowed_tokens(canvas: Canvas, slot: Tensor, lexicon: Lexicon, forbidden: Tensor) -> Tensor:
    """True (B, V) for what may go into `slot` (B,): leaves required words whole and completes nothing banned.

    By induction no piece ever glues itself to a required word: behind one only word-initial pieces may go, so what
    stands behind it is always word-initial, whatever else is inserted later.
    """
    _, _, left_origin, right_origin = neighbours_of_slot(canvas, slot)
    behind_required = lexicon.generatable & lexicon.may_follow_required
    left = torch.stack([lexicon.generatable, behind_required])  # (2, V): behind what was inserted, and what is required
    both = torch.cat([left, left & lexicon.may_precede_required])  # (4, V): the same before what is required
    allowed = both[(left_origin != INSERTED).long() + 2 * (right_origin != INSERTED)]
    if forbidden.shape[1]:
        allowed = allowed & ~_banned_tokens(canvas, slot, lexicon, forbidden)
    return allowed


def _banned_tokens(canvas: Canvas, slot: Tensor, lexicon: Lexicon, forbidden: Tensor) -> Tensor:
    """True (B, V) for tokens that would complete something banned, whatever its case."""
    same = lexicon.same_letters
    if len(same) == 0:
        return completing_tokens(canvas, slot, forbidden, len(lexicon.generatable))
    folded = replace(canvas, tokens=same[canvas.tokens])
    return completing_tokens(folded, slot, forbidden, len(same))[:, same]


def completing_tokens(canvas: Canvas, slot: Tensor, sequences: Tensor, vocabulary: int) -> Tensor:
    """True (B, V) for tokens that, put into `slot` (B,), complete one of the sequences (B, F, M)."""
    rows, longest = sequences.shape[0], sequences.shape[2]
    completes = torch.zeros(rows, vocabulary + 1, dtype=torch.bool, device=slot.device)
    for hole in range(longest):
        others = [index for index in range(longest) if index != hole]
        places = torch.tensor([index - hole + 1 - (index > hole) for index in others], device=slot.device)
        around = _tokens_at(canvas, slot[:, None] + places.long()[None, :])  # (B, M-1)
        wanted = sequences[:, :, others]  # (B, F, M-1)
        is_match = ((wanted == ABSENT) | (wanted == around[:, None, :])).all(dim=2)  # (B, F)
        token = sequences[:, :, hole]
        index = torch.where(is_match & (token >= 0), token, vocabulary)
        completes.scatter_(1, index, True)
    return completes[:, :vocabulary]


def repeated_sequences(canvas: Canvas, size: int) -> Tensor:
    """All runs of `size` tokens on the canvas, as sequences (B, F, size) that a decoder may refuse to write again."""
    tokens = canvas.tokens
    windows = tokens.unfold(1, size, 1) if canvas.capacity >= size else tokens.new_zeros(tokens.shape[0], 0, size)
    start = torch.arange(windows.shape[1], device=canvas.tokens.device)[None, :]
    is_inner = (start > 0) & (start + size < canvas.length[:, None])  # (B, F)
    return torch.where(is_inner[:, :, None], windows, -2)  # -2 stands nowhere, so it never matches


def _tokens_at(canvas: Canvas, places: Tensor) -> Tensor:
    """Ids at `places` (B, P); -3, which equals nothing, outside the canvas."""
    is_inside = (places >= 0) & (places < canvas.length[:, None])
    return torch.where(is_inside, canvas.tokens.gather(1, places.clamp(0, canvas.capacity - 1)), -3)
