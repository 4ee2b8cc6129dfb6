"""What one round of parallel decoding inserts (section 3.3): into which slots, and which tokens may go in together.

Every slot takes one token per round, so a new token stands between two old ones: what required words, closed slots and
equal neighbours allow, each slot decides by itself. Only longer runs of tokens can be completed by several insertions.
Shapes: B rows, S slots, E insertions of a round, L places in reading order, F banned sequences of at most M tokens.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.families.generator import State
from insnet.insertion.canvas import NOTHING, Canvas, Edits, apply, place_of_edits
from insnet.insertion.constraints import ABSENT, FREE, GapRoom, Lexicon, within_reach

_UNKNOWN = 1 << 30  # insertions to come where nobody has said


@dataclass(frozen=True)
class Room:
    """How many insertions (B,) a round should make at least, and may make at most."""

    least: Tensor
    most: Tensor

    @classmethod
    def of(cls, state: State, rounds: int, words: Tensor) -> "Room":
        """Within all bounds, of a text of so many words (B,): an insertion makes one word at most. The last of the
        `rounds` has to end the text."""
        limits, remaining = state.limits, _remaining(state)
        least = torch.ones_like(remaining)
        if rounds:
            rounds_left = (rounds - state.step).clamp_min(1)
            least = torch.where(remaining == _UNKNOWN, least, _ceil(remaining.double() / rounds_left))
        most = torch.minimum(remaining, torch.minimum(limits.max_words - words, limits.max_tokens - state.inserted))
        most = most.clamp_min(1)
        return cls(torch.minimum(least, most), most)


def _remaining(state: State) -> Tensor:
    """Insertions (B,) until the planned length; once that is reached, until the latest end."""
    wanted, slack = state.limits.insertions, state.limits.slack
    end = torch.where(state.inserted < wanted, wanted, wanted + slack)
    return torch.where(wanted == FREE, _UNKNOWN, (end - state.inserted).clamp_min(1))


def _ceil(numbers: Tensor) -> Tensor:
    return (numbers - 1e-9).ceil().long()  # 0.1 * 30 is a little more than 3


def slots_of_round(log_probs: Tensor, room: Room, mass: float) -> Tensor:
    """The slots (B, E) of a round, likeliest first: the fewest that hold `mass` of log_probs (B, S), as many as there
    is room for; NOTHING behind a row's last."""
    ordered = log_probs.sort(dim=1, descending=True, stable=True)
    probs = ordered.values.double().softmax(dim=1).nan_to_num(0.0)  # (B, S)
    holds_mass = (probs.cumsum(dim=1) - probs) < mass
    count = (holds_mass & (probs > 0)).sum(dim=1)  # (B,): a row's slots stand in front
    count = torch.maximum(count, torch.minimum(room.least, (probs > 0).sum(dim=1)))
    count = torch.minimum(count, room.most).clamp_min(1)
    columns = torch.arange(int(count.max()), device=count.device)
    return ordered.indices[:, : len(columns)].masked_fill(columns >= count[:, None], NOTHING)


def settle(
    state: State,
    slot: Tensor,
    token: Tensor,
    log_prob: Tensor,
    room: Room,
    repeat_size: int,
    lexicon: Lexicon,
    gaps: GapRoom | None = None,
) -> Tensor:
    """The tokens (B, E) that go in together; NOTHING in place of those that clash with a surer one, and of the least
    sure if there are more than there is room for, in all or in their gap.

    The surest token of a row always stays. What is left out may come in a later round, when the others are seen.
    """
    order = log_prob.masked_fill(token == NOTHING, -math.inf).argsort(dim=1, descending=True, stable=True)
    slot, token = slot.gather(1, order), token.gather(1, order)  # the surest first
    token = token.masked_fill(torch.arange(token.shape[1], device=token.device) >= room.most[:, None], NOTHING)
    if gaps is not None:
        token = _drop_crowded(slot, token, gaps, lexicon)
    token = _drop_sequences(state, slot, token, repeat_size, lexicon)
    return torch.full_like(token, NOTHING).scatter(1, order, token)


def _drop_crowded(slot: Tensor, token: Tensor, gaps: GapRoom, lexicon: Lexicon) -> Tensor:
    """Without the least sure words (B, E) of each gap that are more than it may get."""
    slot = slot.clamp_min(0)
    gap, room = gaps.gap_of_slot.gather(1, slot), gaps.at_slots(gaps.room).gather(1, slot)  # (B, E) each
    begins = lexicon.is_parted[0][token.clamp_min(0)] & (token != NOTHING)
    is_same = (gap[:, :, None] == gap[:, None, :]) & begins[:, :, None]  # (B, E, E): of [other, own]
    surer = is_same.triu(diagonal=1).sum(dim=1)  # words of the same gap
    return token.masked_fill(begins & (surer >= room), NOTHING)


def _drop_sequences(state: State, slot: Tensor, token: Tensor, repeat_size: int, lexicon: Lexicon) -> Tensor:
    """Without tokens that together would complete something banned, or write a run of tokens twice.

    One by one, the least sure first, until the text is in order; mostly it is at once.
    """
    forbidden = state.limits.forbidden
    may_clash = repeat_size > 0 or (forbidden.shape[1] > 0 and forbidden.shape[2] > 2)  # two new, one old between them
    if token.shape[1] == 1 or not may_clash:
        return token
    rank = torch.arange(token.shape[1], device=token.device)
    while True:
        ranks = rank * _clashes(state, slot, token, repeat_size, lexicon)  # (B, E): 0 for the surest, which stays
        worst = ranks.amax(dim=1, keepdim=True)  # (B, 1)
        if not bool(worst.any()):
            return token
        token = token.masked_fill((rank == worst) & (worst > 0), NOTHING)


def _clashes(state: State, slot: Tensor, token: Tensor, repeat_size: int, lexicon: Lexicon) -> Tensor:
    """True (B, E) for new tokens that stand in a banned sequence or in a run that is there twice."""
    zeros = torch.zeros_like(token)
    edits = Edits(slot, token, zeros, zeros[:, 0], zeros[:, 0].bool())
    canvas, _ = apply(_with_room(state.canvas, state.longest + token.shape[1] + 1), edits)
    place, puts = place_of_edits(edits), edits.puts()
    clashing = torch.zeros_like(canvas.tokens, dtype=torch.bool)  # (B, L)
    if state.limits.forbidden.shape[1]:
        clashing = clashing | banned_places(canvas, lexicon, state.limits.forbidden)
    if repeat_size:
        is_new = torch.zeros_like(clashing).scatter(1, place, puts)
        clashing = clashing | repeating_places(canvas, repeat_size, is_new)
    return clashing.gather(1, place) & puts


def _with_room(canvas: Canvas, wanted: int) -> Canvas:
    """The canvas with just so many places."""
    kept = slice(0, min(wanted, canvas.capacity))
    cut = Canvas(canvas.tokens[:, kept], canvas.origin[:, kept], canvas.closed_after[:, kept], canvas.length)
    return cut.with_capacity(wanted)


def banned_places(canvas: Canvas, lexicon: Lexicon, forbidden: Tensor) -> Tensor:
    """True (B, L) where a token is part of one of the banned sequences (B, F, M)."""
    folded = lexicon.folded(canvas)
    forbidden = within_reach(folded, forbidden, missing=0)
    longest, places, tokens = forbidden.shape[2], canvas.capacity, folded.tokens
    is_used = torch.arange(places, device=tokens.device) < canvas.length[:, None]
    tokens = torch.nn.functional.pad(tokens.masked_fill(~is_used, -3), (0, longest - 1), value=-3)  # equals nothing
    starts = (forbidden[:, :, 0] != ABSENT)[:, None, :].expand(-1, places, -1)  # (B, L, F): a sequence stands here
    for index in range(longest):
        wanted = forbidden[:, None, :, index]  # (B, 1, F)
        starts = starts & ((wanted == ABSENT) | (wanted == tokens[:, index : index + places, None]))
    found = torch.zeros_like(tokens, dtype=torch.bool)
    for index in range(longest):
        found[:, index : index + places] |= (starts & (forbidden[:, None, :, index] != ABSENT)).any(dim=2)
    return found[:, :places]


def repeating_places(canvas: Canvas, size: int, is_new: Tensor) -> Tensor:
    """True (B, L) where a token is part of a run of `size` tokens that stands there twice and has a new token in it."""
    runs = max(canvas.capacity - size + 1, 0)
    start = torch.arange(runs, device=is_new.device)
    is_run = (start > 0) & (start + size < canvas.length[:, None])  # (B, R): <bos> and <eos> are part of none
    is_twice = is_run[:, :, None] & is_run[:, None, :] & (start[:, None] != start[None, :])  # (B, R, R)
    has_new = torch.zeros_like(is_run)
    for index in range(size):
        tokens = canvas.tokens[:, index : index + runs]
        is_twice = is_twice & (tokens[:, :, None] == tokens[:, None, :])
        has_new = has_new | is_new[:, index : index + runs]
    repeats = is_twice.any(dim=2) & has_new
    found = torch.zeros_like(is_new)
    for index in range(size):
        found[:, index : index + runs] |= repeats
    return found
