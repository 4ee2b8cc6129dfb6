"""Gaps: a pretrained left-to-right model that writes between given words, gap by gap.

Given words come first, the rest from left to right: one gap after the other is filled until it is closed, and with the
last the text ends. A pretrained decoder reads the text as it always has, exactly so if nothing is given; beside it, it
sees the given words still ahead (`insnet.layers.gaps`). Each row of it decides whether its gap closes, else which token
comes next. Closing a gap passes the given tokens up to the next open slot: they are encoded once more, as text.

A token that is put closes the slot to its left, whoever puts it, so that a gap is only ever filled from left to right.

Shapes: B rows, L places in reading order, Q new tokens, C entries of the cache, D width, N decisions, V vocabulary.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.families.gaps_layout import laid_out
from insnet.families.generator import FamilyConfig, Generator, Prompt, State, Traits, map_tensors, restarted, rows_alike
from insnet.families.losses import FamilyObjective, Likelihood, LossContext, LossTerm, at_least_float32
from insnet.families.offers import ChosenSlots, Insertions
from insnet.insertion.canvas import CLOSE, INSERTED, Edits, apply
from insnet.layers.cache import Append, KeyValueCache, entries_for
from insnet.layers.frozen_head import nats_under_frozen
from insnet.layers.gaps import GapsTransformer, Standing
from insnet.layers.half import halve, halved, linear_in_half
from insnet.layers.shape import TransformerShape
from insnet.layers.transformer import Block, initialise
from insnet.randomness import Purpose, uniform
from insnet.text.batching import TokenBatch
from insnet.text.openings import Openings
from insnet.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class GapsConfig(FamilyConfig):
    """Size and switches of a gaps model: those of the decoder that it is made of."""

    key_heads: int | None = None
    """Heads of keys and values per block; none named: as many as `heads`."""
    inner: int | None = None
    """Width inside the feed-forward part; none named: four times `width`."""
    norm_epsilon: float = 1e-5
    """What a norm adds to the variance."""
    rotary_base: float = 10_000.0
    """The base of rotary frequencies."""
    tied: bool = True
    """Whether the embedding also gives the logits."""
    longest_told: int = 0
    """The most words that the model can be told are still to come; 0 for a model that is told nothing."""

    def shape(self) -> TransformerShape:
        return TransformerShape(
            self.width,
            self.layers,
            self.heads,
            self.dropout,
            key_heads=self.key_heads,
            norm="rms",
            norm_epsilon=self.norm_epsilon,
            feed_forward="swiglu",
            inner=self.inner,
            biases=False,
            rotary_base=self.rotary_base,
        )


@dataclass(frozen=True)
class GapsObjective(FamilyObjective):
    """What a text is told while training."""

    told_share: float = 0.15
    """Share of texts that are told, at every row, how many words are still to come."""

    def __post_init__(self) -> None:
        if not 0 <= self.told_share <= 1:
            raise ValueError(f"told_share is {self.told_share}; expected a share from 0 to 1")


@dataclass(frozen=True)
class Memory:
    """The cache, where its entries stand, and the place that the text has come to."""

    cache: KeyValueCache
    cached: Tensor
    """(B,) entries in use."""
    is_ahead: Tensor
    """(B, C) of each entry, as in `Standing`."""
    place: Tensor
    """(B, C)"""
    given: Tensor
    """(B, C)"""
    frontier: Tensor
    """(B,) the place left of the open gap: what is up to here has been read as text."""
    passed: Tensor
    """(B,) given tokens up to there."""
    last: Tensor
    """(B, D) the encoding of the token at the frontier."""
    has_ahead: bool
    """Whether any row may have something ahead."""


class Gaps(Generator):
    """Writes from left to right through the gaps between given words."""

    Config = GapsConfig
    Objective = GapsObjective
    traits: ClassVar[Traits] = Traits(
        keeps_given=True,
        inserts_anywhere=True,
        fills_blanks=True,
        several_per_step=False,
        gap_by_gap=True,
        likelihood="exact",
    )
    typed: Tensor
    """(V,) how a token that begins a text is typed inside one: with a space, and in lower case unless it is a name."""
    opening: Tensor
    """(V,) what a given token becomes at the beginning of a text: without the space, with a capital."""
    begins_word: Tensor
    """(V,) tokens that are counted as words."""

    def __init__(self, config: GapsConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.width)
        self.decoder = GapsTransformer(config.shape())
        self.output = None if config.tied else nn.Linear(config.width, config.vocabulary_size, bias=False)
        self.ahead = nn.Parameter(torch.zeros(config.width))
        self.passed = nn.Parameter(torch.zeros(config.width))
        self.told = nn.Embedding(config.longest_told + 1, config.width) if config.longest_told else None
        self.close_head = nn.Linear(config.width, 1)
        same = torch.arange(config.vocabulary_size)
        self.register_buffer("typed", same)
        self.register_buffer("opening", same.clone())
        self.register_buffer("begins_word", torch.ones(config.vocabulary_size, dtype=torch.bool))
        initialise(self, config.layers)

    def read_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Takes over what must be known of a pretrained vocabulary."""
        openings = Openings.of(tokenizer)
        self.typed.copy_(openings.typed)
        self.opening.copy_(openings.opening)
        self.begins_word.copy_(tokenizer.lexicon()["starts_word"] & ~tokenizer.lexicon()["joins_left"])

    def compile(self, *, backend: str = "inductor") -> None:
        """The blocks, for any number of rows: how many there are depends on what is given."""
        for module in self.modules():
            if isinstance(module, Block):
                module.compile(fullgraph=True, backend=backend)

    def halve(self) -> None:
        """Blocks and vocabulary, which are nearly all of it."""
        halve(self.decoder)
        if self.output is not None:
            halve(self.output)
        self.embedding.weight = halved(self.embedding.weight)

    # ---- training: every row of a text in one pass ----

    def losses(self, batch: TokenBatch, objective: FamilyObjective, context: LossContext) -> dict[str, LossTerm]:
        """Token and close terms of every decision; inside given words there is none."""
        assert isinstance(objective, GapsObjective)
        is_told = uniform(Purpose.TOLD, batch.seeds) < objective.told_share
        nats = self._nats(batch, is_told, context.label_smoothing)
        return {
            "token": LossTerm(nats.token.sum(), torch.tensor(len(nats.token), device=nats.token.device)),
            "close": LossTerm(nats.close.sum(), torch.tensor(len(nats.close), device=nats.close.device)),
        }

    def log_likelihood(self, batch: TokenBatch) -> Likelihood:
        """Exact: all texts that hold the given tokens in their order, at these very places, are told apart."""
        nats = self._nats(batch, torch.zeros_like(batch.lengths, dtype=torch.bool))
        row, place = nats.close_at
        tokens = torch.zeros(batch.tokens.shape, dtype=nats.token.dtype, device=nats.token.device)
        tokens = tokens.index_put((row, place + 1), -nats.close)
        token_row, token_place = nats.token_at
        tokens = tokens.index_put((token_row, token_place), -nats.token, accumulate=True)
        return Likelihood(tokens.sum(dim=1), tokens.masked_fill(self._is_given(batch), 0.0))

    @staticmethod
    def _is_given(batch: TokenBatch) -> Tensor:
        place = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
        return batch.given | (place >= batch.lengths[:, None] - 1)

    def _nats(self, batch: TokenBatch, is_told: Tensor, label_smoothing: float = 0.0) -> "_Nats":
        """-log p of every decision of a batch."""
        layout = laid_out(batch, self.typed)
        remaining = layout.spread(self._remaining(batch, is_told), _UNTOLD)
        embedded = self._embedded(layout.tokens, layout.standing.is_ahead, layout.is_passed, remaining)
        hidden = self.decoder(embedded, layout.standing, has_ahead=layout.has_ahead).flatten(0, 1)  # (R * W, D)
        place = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
        is_next_given = batch.given.roll(-1, dims=1)  # (B, L) <eos> counts as given
        is_inside = batch.given & (place > 0) & is_next_given & ~batch.starts_word.roll(-1, dims=1)
        is_end = place == batch.lengths[:, None] - 2
        decides = (place < batch.lengths[:, None] - 1) & (~is_inside | is_end)
        row, column = decides.nonzero(as_tuple=True)
        vectors = hidden[layout.slot_of_place[row, column]]  # (N, D)
        closes = is_next_given[row, column]
        close = F.softplus(self._close(vectors) * torch.where(closes, -1.0, 1.0))
        puts = (~closes).nonzero()[:, 0]
        target = batch.tokens[row[puts], column[puts] + 1]
        token = self._token_nats(vectors[puts], target, label_smoothing)
        return _Nats(token, (row[puts], column[puts] + 1), close, (row, column))

    def _remaining(self, batch: TokenBatch, is_told: Tensor) -> Tensor:
        """How many words (B, L) come after each place of told texts."""
        place = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
        begins = (self.begins_word[batch.tokens] | (place == 1)) & (place > 0) & (place < batch.lengths[:, None] - 1)
        remaining = begins.sum(dim=1, keepdim=True) - begins.cumsum(dim=1)
        return remaining.masked_fill(~is_told[:, None], _UNTOLD)

    def _token_nats(self, vectors: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
        """-log p (N,) of the tokens that are put."""
        matrix = self._token_matrix
        if not (matrix.requires_grad and torch.is_grad_enabled()):
            return nats_under_frozen(vectors.to(matrix.dtype), matrix, target, label_smoothing)
        logits = at_least_float32(self.logits(vectors))
        return F.cross_entropy(logits, target, reduction="none", label_smoothing=label_smoothing)

    def logits(self, vectors: Tensor) -> Tensor:
        """The base's logits (..., V) after tokens' encodings (..., D)."""
        return linear_in_half(vectors, self._token_matrix)

    @property
    def _token_matrix(self) -> Tensor:
        return self.embedding.weight if self.output is None else self.output.weight

    def _close(self, vectors: Tensor) -> Tensor:
        """The logit (...) of closing the gap behind tokens' encodings (..., D)."""
        products = at_least_float32(vectors) * self.close_head.weight[0]  # added up alike in any batch
        return products.sum(dim=-1) + self.close_head.bias[0]

    def _embedded(self, tokens: Tensor, is_ahead: Tensor, is_passed: Tensor, remaining: Tensor) -> Tensor:
        """Tokens (B, Q) as vectors (B, Q, D), with what kind of row they are and how many words remain."""
        vectors: Tensor = self.embedding(tokens).to(self.ahead.dtype)
        vectors = vectors + is_ahead[:, :, None] * self.ahead + is_passed[:, :, None] * self.passed
        if self.told is None:
            return vectors
        told: Tensor = self.told(remaining.clamp(0, self.config.longest_told))
        return vectors + told * (~is_ahead & (remaining != _UNTOLD))[:, :, None]

    # ---- decoding: one cached row per token of the text, and one per given token ahead ----

    def start(self, prompt: Prompt) -> State:
        """Encodes what is ahead of the first open slot, and the text up to it; once for all rows that begin alike, as
        the candidates of a request do. Asks the device which they are."""
        state = State.first(prompt, None)
        first, alike = rows_alike(state)
        return replace(state, memory=map_tensors(self._started(state.select(first)), lambda tensor: tensor[alike]))

    def _started(self, state: State) -> Memory:
        """What is known before the first step."""
        canvas, longest, like = state.canvas, state.longest, self.ahead
        place = torch.arange(longest, device=canvas.length.device)
        frontier = canvas.next_open_slot(torch.zeros_like(canvas.length), longest)
        is_ahead = (place > frontier[:, None]) & (place < canvas.length[:, None] - 1)  # (B, L)
        is_given = (canvas.origin[:, :longest] != INSERTED) | is_ahead
        given = is_given.cumsum(dim=1)
        key = torch.where(is_ahead, place, place + longest).masked_fill(place >= canvas.length[:, None] - 1, 1 << 30)
        order = key.argsort(dim=1)  # (B, L) what is ahead, then the passage
        count, shape = canvas.length - 1, self.config.shape()
        entries, rows = entries_for(longest), len(order)
        none = torch.zeros(rows, entries, dtype=torch.int64, device=place.device)
        memory = Memory(
            KeyValueCache.empty(rows, shape.layers, shape.cached_heads, entries, shape.head_width, like),
            cached=torch.zeros_like(canvas.length),
            is_ahead=none.bool(),
            place=none,
            given=none.clone(),
            frontier=frontier,
            passed=given.gather(1, frontier[:, None])[:, 0],
            last=like.new_zeros(rows, shape.width),
            has_ahead=longest > 2,
        )
        new = _New(order, is_ahead.gather(1, order), given.gather(1, order), is_given.gather(1, order), count)
        return self._encode(replace(state, memory=memory), new, longest - 1)

    def offer(self, state: State) -> Insertions:
        """The one open slot, every token in it, and its closing."""
        last = state.memory.last
        slot = torch.arange(max(state.longest - 1, 1), device=last.device)
        slots = torch.zeros(len(last), len(slot), dtype=at_least_float32(last).dtype, device=last.device)
        slots = slots.masked_fill(slot != state.memory.frontier[:, None], -math.inf)
        close = self._close(last)  # (B,)
        tokens = at_least_float32(self.logits(last)).log_softmax(dim=1) + F.logsigmoid(-close)[:, None]
        both = torch.cat([tokens, F.logsigmoid(close)[:, None]], dim=1)  # (B, V + 1)

        def of_rows(chosen: ChosenSlots) -> Tensor:
            return both if chosen.is_one_per_row else both[chosen.row]

        return Insertions(slots, of_rows, empty=CLOSE, is_single=True)

    def advance(self, state: State, edits: Edits) -> State:
        """Carries out edits: a token in the open gap is one more row, its closing as many as there are given tokens up
        to the next open slot. Any other edit starts anew from the canvas."""
        canvas, [is_new] = apply(state.canvas, edits, (torch.zeros_like(state.canvas.closed_after), True))
        closes_left = F.pad(is_new[:, 1:], (0, 1))
        canvas = replace(canvas, closed_after=canvas.closed_after | closes_left)
        state, memory = state.after(edits, canvas), state.memory
        puts, closes = edits.puts()[:, 0], edits.token[:, 0] == CLOSE
        next_slot = canvas.next_open_slot(memory.frontier, state.longest)
        is_over = ~canvas.open_slots()[:, : state.longest].any(dim=1)
        count = torch.where(closes & ~is_over, next_slot - memory.frontier, puts.long())
        is_foreign = (puts | closes) & (edits.slot[:, 0] != memory.frontier)
        figures = [count.max(), (memory.cached + count).max(), is_foreign.max().long()]
        most, used, any_foreign = torch.stack(figures).tolist()
        if any_foreign or edits.token.shape[1] != 1 or edits.deleted is not None:
            return restarted(self, state, canvas, torch.zeros_like(canvas.length))
        if most == 0:
            return state
        place = memory.frontier[:, None] + 1 + torch.arange(most, device=count.device)  # (B, Q)
        place = place.clamp_max(canvas.capacity - 1)
        is_given = closes[:, None].expand_as(place)
        given = memory.passed[:, None] + is_given.long().cumsum(dim=1)
        new = _New(place, torch.zeros_like(is_given), given, is_given, count)
        passed = memory.passed + count * closes
        moved = replace(memory, frontier=memory.frontier + count, passed=passed)
        return replace(state, memory=self._encode(replace(state, memory=moved), new, used))

    def _encode(self, state: State, new: "_New", used: int) -> Memory:
        """The memory with the new tokens encoded, no row then having more than `used`; its frontier has moved
        already."""
        memory: Memory = state.memory
        canvas = state.canvas
        used = -(-used // _KEYS) * _KEYS
        cache = memory.cache.with_room(used)
        tables = [_wider(table, cache.store.shape[4]) for table in (memory.is_ahead, memory.place, memory.given)]
        append = Append.after(cache, memory.cached, new.place.shape[1], used)
        own = (new.is_ahead, new.place, new.given)
        for table, values in zip(tables, own, strict=True):
            append.put(table, values.flatten())
        tokens = canvas.tokens.gather(1, new.place)
        is_passed = new.is_given & ~new.is_ahead
        tokens = torch.where(is_passed & (new.place == 1), self.opening[tokens], tokens)
        embedded = self._embedded(tokens, new.is_ahead, is_passed, self._still_to_come(state, new.place))
        hidden = self.decoder(
            embedded, Standing(*own), append=append, cached=Standing(*tables), has_ahead=memory.has_ahead
        )
        index = (new.count - 1).clamp_min(0)[:, None, None].expand(-1, 1, hidden.shape[2])
        last = torch.where((new.count > 0)[:, None], hidden.gather(1, index)[:, 0], memory.last)
        is_ahead, place, given = tables
        return replace(
            memory,
            cache=cache,
            cached=memory.cached + new.count,
            is_ahead=is_ahead,
            place=place,
            given=given,
            last=last,
        )

    def _still_to_come(self, state: State, place: Tensor) -> Tensor:
        """How many words (B, Q) come after places (B, Q), in rows that were asked for an exact number."""
        limits, tokens = state.limits, state.canvas.tokens[:, : state.longest]
        index = torch.arange(tokens.shape[1], device=tokens.device)
        begins = (self.begins_word[tokens] | (index == 1)) & (index > 0)
        before = begins.cumsum(dim=1).gather(1, place.clamp_max(tokens.shape[1] - 1))
        is_told = limits.min_words == limits.max_words
        remaining = (limits.min_words - limits.word_correction)[:, None] - before
        return remaining.clamp_min(0).masked_fill(~is_told[:, None], _UNTOLD)


_UNTOLD = -1
_KEYS = 16  # are looked at together, as in a processor's registers: so a longer row in the batch changes no sum


@dataclass(frozen=True)
class _Nats:
    """-log p of decisions, and the (row, place) of what they put; of closings, of the token before the gap."""

    token: Tensor
    token_at: tuple[Tensor, Tensor]
    close: Tensor
    close_at: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class _New:
    """Tokens (B, Q) to be encoded."""

    place: Tensor
    """Where they stand on the canvas."""
    is_ahead: Tensor
    given: Tensor
    """As in `Standing`."""
    is_given: Tensor
    count: Tensor
    """(B,) how many of them each row has."""


def _wider(table: Tensor, entries: int) -> Tensor:
    """A table (B, C) for so many entries: this one, or a longer copy."""
    return table if table.shape[1] >= entries else F.pad(table, (0, entries - table.shape[1]))
