"""InsNet: an encoder that is causal in insertion order, slot vectors, and heads for slot, token and stop.

Shapes: B rows, T steps in insertion order, L = C places (capacity), S slots, E edits, D width, V vocabulary.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.families.generator import (
    Generator,
    Prompt,
    Shared,
    State,
    Traits,
    restarted,
)
from insnet.families.insnet_config import InsNetConfig, InsNetObjective
from insnet.families.insnet_objective import OnePass, take
from insnet.families.losses import FamilyObjective, Likelihood, LossContext, LossTerm, at_least_float32
from insnet.families.offers import ChosenSlots, Insertions
from insnet.insertion.canvas import Canvas, Edits, apply
from insnet.insertion.constraints import FREE
from insnet.insertion.offsets import insert_into_ranks, offsets_of_order, offsets_of_slots, step_at_position
from insnet.layers.cache import Append, KeyValueCache, entries_for, with_room
from insnet.layers.heads import TokenHead
from insnet.layers.packing import Packing
from insnet.layers.reader import SlotReader
from insnet.layers.slots import SlotComposer
from insnet.layers.transformer import OffsetTransformer, initialise
from insnet.text.batching import TokenBatch
from insnet.text.specials import SPECIALS, UNK


@dataclass(frozen=True)
class Memory:
    """Ranks, cache and what each token contributes to slots, all in insertion order."""

    rank_of_step: Tensor
    """(B, C) each token's place on the canvas."""
    step_of_place: Tensor
    """(B, L) the inverse: which step put the token that stands at each place."""
    cache: KeyValueCache
    left_half: Tensor
    """(B, C, D/2) each token as a left neighbour."""
    right_half: Tensor
    """(B, C, D/2) each token as a right neighbour."""
    last: Tensor
    """(B, D) the newest token's encoding."""
    position_keys: Shared
    """(N, H, D/H, R) every layer's keys of every offset."""
    order_number: Tensor
    """(B,) of the order, among those learned, that the model is told."""


class InsNet(Generator):
    """The model of the paper's section 3."""

    Config = InsNetConfig
    Objective = InsNetObjective
    traits: ClassVar[Traits] = Traits(
        keeps_given=True, inserts_anywhere=True, fills_blanks=True, several_per_step=True, likelihood="bound"
    )

    def __init__(self, config: InsNetConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.width)
        self.encoder = OffsetTransformer(config.shape(), truncated=config.truncated)
        self.slots = SlotComposer(config.width, use_global=not config.noglobal)
        self.token_head = TokenHead(config.vocabulary_size, (UNK,), len(SPECIALS))
        self.slot_head = nn.Linear(config.width, 1, bias=False)  # w_o
        self.stop_head = nn.Linear(config.width, 1 + config.count_head)  # q, or the count of what is to come
        if config.slot_layers:
            self.reader = SlotReader(replace(config.shape(), layers=config.slot_layers), truncated=config.truncated)
        if config.length_conditioned:
            self.count_embedding = nn.Embedding(1 + config.count_head, config.width)
        if len(config.orders) > 1:
            self.order_embedding = nn.Embedding(len(config.orders), config.width)
        initialise(self, config.layers)
        self.one_pass = OnePass(self)

    # ---- training: every step of a sentence in one pass ----

    def losses(self, batch: TokenBatch, objective: FamilyObjective, context: LossContext) -> dict[str, LossTerm]:
        """Token, slot and stop terms of section 3.3, summed over all steps after the given ones."""
        assert isinstance(objective, InsNetObjective)
        return self.one_pass.losses(batch, objective, label_smoothing=context.label_smoothing)

    def compile(self, *, backend: str = "inductor") -> None:
        """Blocks, and what turns their output into losses."""
        super().compile(backend=backend)
        self.one_pass.compile(dynamic=False, fullgraph=True, backend=backend)

    def log_likelihood(self, batch: TokenBatch) -> Likelihood:
        """log p(text, order) + log(number of orders): its mean over orders bounds log p(text) from below.

        Of several kinds of order that were learned, the first is meant."""
        return self.one_pass.likelihood(batch)

    def embed(self, tokens: Tensor, order_number: Tensor) -> Tensor:
        """Tokens (B, Q) as vectors (B, Q, D), which also say the order (B,) if there are several."""
        vectors: Tensor = self.embedding(tokens)
        if len(self.config.orders) > 1:
            vectors = vectors + self.order_embedding(order_number)[:, None]
        return vectors

    def with_count(self, newest: Tensor, remaining: Tensor) -> Tensor:
        """What a step adds to its slots (..., D): the newest token and, in a model that knows it, how many insertions
        remain (...)."""
        if not self.config.length_conditioned:
            return newest
        count: Tensor = self.count_embedding(remaining.clamp(1, self.config.count_head))
        return newest + count

    def stop_log_probs(self, encoded: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Log-probabilities (...) of stopping and of going on after each newest token (..., D); and, with a count head,
        those (..., 1 + count_head) of how many insertions are still to come."""
        logits = at_least_float32(self.stop_head(encoded))
        if not self.config.count_head:
            return F.logsigmoid(logits[..., 0]), F.logsigmoid(-logits[..., 0]), None
        log_counts = logits.log_softmax(dim=-1)
        return log_counts[..., 0], log_counts[..., 1:].logsumexp(dim=-1), log_counts

    # ---- decoding: one cached row per token ----

    def start(self, prompt: Prompt) -> State:
        """Encodes <bos>, <eos> and the required words, in that order, in one pass."""
        canvas, like = prompt.canvas, self.embedding.weight
        rows, capacity = canvas.tokens.shape
        order = _given_order(canvas, prompt.longest)  # (B, G)
        given = order.shape[1]
        shape = self.config.shape()
        entries = entries_for(given)
        layers = shape.layers + self.config.slot_layers
        half = like.new_zeros(rows, entries, shape.width // 2)
        memory = Memory(
            rank_of_step=F.pad(order, (0, capacity - given)),
            step_of_place=step_at_position(F.pad(order, (0, capacity - given)), canvas.length),
            cache=KeyValueCache.empty(rows, layers, shape.heads, entries, shape.width // shape.heads, like),
            left_half=half,
            right_half=half.clone(),
            last=like.new_zeros(rows, shape.width),
            position_keys=Shared(self._position_keys(entries, like)),
            order_number=prompt.order,
        )
        tokens = canvas.tokens.gather(1, order)
        offsets, none = offsets_of_order(order, torch.int32), torch.zeros_like(canvas.length)
        memory = self._encode(memory, tokens, offsets, none, canvas.length, given)
        return State.first(prompt, memory)

    def offer(self, state: State) -> Insertions:
        """The end, every slot, and the tokens of those slots that somebody chooses."""
        stop, go, counts = self.stop_log_probs(state.memory.last)
        vectors, slots = self._slots(state, counts)  # (B, S, D), (B, S)
        stop, go = self._certain(state, stop, go, counts)

        def tokens(chosen: ChosenSlots) -> Tensor:
            slot = chosen.slot.clamp_min(0)
            filled = self._read(state, take(vectors, slot), slot)  # (B, E, D)
            logits = self.token_head(chosen.of_each(filled), self.embedding.weight)  # (N, V)
            return at_least_float32(logits).log_softmax(dim=-1)

        return Insertions(slots, tokens, stop, go, counts=counts)

    def _certain(
        self, state: State, log_stop: Tensor, log_go: Tensor, log_counts: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities (B,) of stopping and of going on: certain for a model that was told how many are to come,
        except at the first step, which answers for that number."""
        planned = state.limits.insertions
        if not self.config.length_conditioned or log_counts is None:
            return log_stop, log_go
        is_told, is_done = planned != FREE, state.inserted >= planned
        chosen = log_counts.gather(1, planned.clamp(0, self.config.count_head)[:, None])[:, 0]
        certain = chosen.masked_fill(state.step != 0, 0.0)
        log_stop = torch.where(is_told, certain.masked_fill(~is_done, -math.inf), log_stop)
        return log_stop, torch.where(is_told, certain.masked_fill(is_done, -math.inf), log_go)

    def advance(self, state: State, edits: Edits) -> State:
        """Carries out edits left to right, as if one after the other, and encodes the new tokens in one pass."""
        if edits.deleted is not None:
            canvas, _ = apply(state.canvas, edits)
            return restarted(self, state.after(edits, canvas), canvas, state.memory.order_number)
        edits, start = edits.left_to_right(), state.canvas.length
        rank, offsets = insert_into_ranks(state.memory.rank_of_step, start, edits.slot, edits.puts())
        own_step = start[:, None] + torch.arange(edits.slot.shape[1], device=start.device)  # (B, E)
        canvas, [step_of_place] = apply(state.canvas, edits, (state.memory.step_of_place, own_step))
        state = state.after(edits, canvas)
        token = edits.token.clamp_min(0)
        packing = Packing.of(edits.puts())
        memory = replace(state.memory, rank_of_step=rank, step_of_place=step_of_place)
        memory = self._encode(memory, token, offsets, start, canvas.length, state.longest, packing)
        return replace(state, memory=memory)

    def _encode(
        self,
        memory: Memory,
        tokens: Tensor,
        offsets: Tensor,
        start: Tensor,
        length: Tensor,
        used: int,
        packing: Packing | None = None,
    ) -> Memory:
        """The memory with new tokens (B, Q) encoded at entries `start`... (B,) of those `used`, the texts then being of
        `length` (B,); offsets (B, Q, K). Where rows have different numbers of new tokens, `packing` tells their
        places."""
        memory = self._with_room(memory, used)
        offsets = F.pad(offsets, (0, max(used - offsets.shape[2], 0)))[:, :, :used]
        append = Append.after(memory.cache, start, tokens.shape[1], used, packing)
        embedded, keys = self.embed(tokens, memory.order_number), memory.position_keys.tensor
        encoded = self.encoder(embedded, offsets, append=append, position_keys=keys)  # (B, Q, D)
        if self.config.slot_layers:
            self.reader.remember(encoded, append, self.config.layers)
        halves = self.slots.halves(append.pack(encoded))
        for store, new in zip((memory.left_half, memory.right_half), halves, strict=True):
            append.put(store, new)
        newest = (length - start - 1)[:, None]  # (B, 1): index of the row's newest token, -1 if it got none
        last = encoded[:, 0] if encoded.shape[1] == 1 else take(encoded, newest.clamp_min(0))[:, 0]
        return replace(memory, last=torch.where(newest >= 0, last, memory.last))

    def _with_room(self, memory: Memory, tokens: int) -> Memory:
        """The memory with stores for so many tokens per row."""
        keys = memory.position_keys
        if not self.encoder.reaches(keys.tensor, tokens):
            keys = Shared(self._position_keys(entries_for(tokens), memory.last))
        return replace(
            memory,
            cache=memory.cache.with_room(tokens),
            left_half=with_room(memory.left_half, tokens),
            right_half=with_room(memory.right_half, tokens),
            position_keys=keys,
        )

    def _position_keys(self, tokens: int, like: Tensor) -> Tensor:
        """Those of the encoder, then those of slots that look at the canvas."""
        keys = self.encoder.position_keys(tokens, like)
        return torch.cat([keys, self.reader.position_keys(tokens, like)]) if self.config.slot_layers else keys

    def _read(self, state: State, vectors: Tensor, slot: Tensor) -> Tensor:
        """Vectors (B, E, D) of slots (B, E) that have looked at the canvas."""
        if not self.config.slot_layers:
            return vectors
        used = state.longest
        offsets = offsets_of_slots(state.memory.rank_of_step[:, None, :used], slot[:, :, None])  # (B, E, K)
        hides = torch.arange(used, device=slot.device) >= state.canvas.length[:, None, None]  # (B, 1, K)
        memory = state.memory.cache.memory(used)[self.config.layers :]
        keys = state.memory.position_keys.tensor[self.config.layers :]
        return self.reader(vectors, offsets, hides, memory, keys)  # type: ignore[no-any-return]

    def _slots(self, state: State, log_counts: Tensor | None) -> tuple[Tensor, Tensor]:
        """Every slot's vector (B, S, D) and log-probability (B, S), in reading order."""
        slots, memory = state.longest - 1, state.memory
        step = memory.step_of_place[:, : slots + 1]  # (B, S + 1)
        left, right = take(memory.left_half, step[:, :-1]), take(memory.right_half, step[:, 1:])
        last = memory.last
        if self.config.length_conditioned and log_counts is not None:
            planned = state.limits.insertions
            remaining = torch.where(planned != FREE, planned - state.inserted, log_counts.argmax(dim=1))
            last = self.with_count(last, remaining)
        vectors = self.slots.compose(left, right, last[:, None])
        logits = at_least_float32(self.slot_head(vectors)[:, :, 0])
        logits = logits.masked_fill(~state.canvas.is_slot()[:, :slots], -math.inf)
        return vectors, logits.log_softmax(dim=1)


def _given_order(canvas: Canvas, longest: int) -> Tensor:
    """<bos>, <eos>, then what stands between them, left to right: places (B, G), G the longest row."""
    step = torch.arange(longest, device=canvas.length.device)[None, :]
    length = canvas.length[:, None]
    place = torch.where(step < length, step - 1, step)  # padding keeps its place at the end
    return torch.where(step == 0, 0, torch.where(step == 1, length - 1, place))
