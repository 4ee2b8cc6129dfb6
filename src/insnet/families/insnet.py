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
    Choose,
    Generator,
    LossContext,
    LossTerm,
    Prompt,
    Shared,
    State,
    Traits,
    initial_counters,
    sentence_of_batch,
)
from insnet.families.insnet_config import InsNetConfig
from insnet.families.insnet_objective import GIVEN, InsNetObjective, at_least_float32, take
from insnet.insertion.canvas import Canvas, Edits, apply
from insnet.insertion.constraints import Constraints
from insnet.insertion.offsets import insert_into_ranks, offsets_of_order, offsets_of_slots, step_at_position
from insnet.insertion.order import log_order_count
from insnet.layers.attention import reach_of
from insnet.layers.cache import KeyValueCache, entries_for, with_room
from insnet.layers.heads import TokenHead
from insnet.layers.packing import Packing
from insnet.layers.reader import SlotReader
from insnet.layers.slots import SlotComposer, SlotQueries
from insnet.layers.transformer import Append, OffsetTransformer, initialise
from insnet.text.batching import TokenBatch
from insnet.text.specials import SPECIALS, UNK

_NEVER = -1e4  # the log-probability of what a model that was told its length does not do; finite, so that it prints


@dataclass(frozen=True)
class InsNetState(State):
    """A state with ranks, cache and what each token contributes to slots, all in insertion order."""

    rank_of_step: Tensor
    """(B, C) each token's place on the canvas."""
    cache: KeyValueCache
    left_half: Tensor
    """(B, C, D/2) each token as a left neighbour."""
    right_half: Tensor
    """(B, C, D/2) each token as a right neighbour."""
    last: Tensor
    """(B, D) the newest token's encoding."""
    position_keys: Shared
    """(N, H, D/H, R) every layer's keys of every offset."""
    which: Tensor
    """(B,) the number of the order, among those learned, that the model is told."""


class InsNet(Generator):
    """The model of the paper's section 3."""

    Config = InsNetConfig
    traits: ClassVar[Traits] = Traits(
        keeps_keywords=True, fills_blanks=True, exact_likelihood=False, inserts_in_layers=True
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
        if config.slot_queries:
            self.slot_queries = SlotQueries(config.width)
        if config.slot_layers:
            self.reader = SlotReader(replace(config.shape(), layers=config.slot_layers), truncated=config.truncated)
        if config.length_conditioned:
            self.count_embedding = nn.Embedding(1 + config.count_head, config.width)
        if config.countdown:
            self.countdown_embedding = nn.Embedding(2 + config.count_head, config.width)  # the first for given tokens
        if len(config.orders) > 1:
            self.order_embedding = nn.Embedding(len(config.orders), config.width)
        initialise(self, config.layers)
        self.objective = InsNetObjective(self)

    # ---- training: every step of a sentence in one pass ----

    def losses(self, batch: TokenBatch, context: LossContext) -> dict[str, LossTerm]:
        """Token, slot and stop terms of section 3.3, summed over all steps after the given ones."""
        return self.objective.losses(
            batch, context.tau, asks_model=context.asks_model, label_smoothing=context.label_smoothing
        )

    def compile_for_training(self, backend: str = "inductor") -> None:
        """Blocks, and what turns their output into losses."""
        super().compile_for_training(backend)
        self.objective.compile(dynamic=False, fullgraph=True, backend=backend)

    def log_likelihood(self, batch: TokenBatch) -> Tensor:
        """log p(text, order) + log(number of orders): its mean over orders bounds log p(text) from below.

        Of several kinds of order that were learned, the first is meant."""
        nats = self.objective.rows(batch, which=torch.zeros_like(batch.lengths)).nats
        spent = nats["token"] + nats["slot"] + nats["stop"]  # a count beyond stopping or not is no part of the text
        return log_order_count(self.config.orders[0], sentence_of_batch(batch)) - spent

    def token_log_probs(self, batch: TokenBatch) -> Tensor:
        """Of several kinds of order that were learned, the first is meant."""
        return self.objective.token_log_probs(batch, torch.zeros_like(batch.lengths))

    @property
    def orders(self) -> tuple[str, ...]:
        return self.config.orders  # type: ignore[no-any-return]

    def embed(self, tokens: Tensor, which: Tensor, left: Tensor) -> Tensor:
        """Tokens (B, Q) as vectors (B, Q, D), which also say the order (B,) if there are several, and with a countdown
        how many insertions were `left` (B, Q) after each; GIVEN for what was there from the start."""
        vectors: Tensor = self.embedding(tokens)
        if self.config.countdown:
            vectors = vectors + self.countdown_embedding(left.clamp(GIVEN, self.config.count_head) - GIVEN)
        if len(self.config.orders) > 1:
            vectors = vectors + self.order_embedding(which)[:, None]
        return vectors

    def told(self, newest: Tensor, to_come: Tensor) -> Tensor:
        """What a step adds to its slots (..., D): the newest token and, if the model is told, how many are to come."""
        if not self.config.length_conditioned:
            return newest
        count: Tensor = self.count_embedding(to_come.clamp(1, self.config.count_head))
        return newest + count

    def stop_log_probs(self, encoded: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Log-probabilities (...) of stopping and of going on after each newest token (..., D); and, with a count head,
        those (..., 1 + count_head) of how many insertions are still to come."""
        logits = at_least_float32(self.stop_head(encoded))
        if not self.config.count_head:
            return F.logsigmoid(logits[..., 0]), F.logsigmoid(-logits[..., 0]), None
        log_counts = logits.log_softmax(dim=-1)
        return log_counts[..., 0], log_counts[..., 1:].logsumexp(dim=-1), log_counts

    # ---- decoding: one cached row a token ----

    def start(self, prompt: Prompt) -> InsNetState:
        """Encodes <bos>, <eos> and the required words, in that order, in one pass."""
        canvas = prompt.canvas
        rows, capacity = canvas.tokens.shape
        order = _given_order(canvas)  # (B, G)
        given = order.shape[1]
        like = self.embedding.weight
        shape = self.config.shape()
        entries = entries_for(given)
        layers = shape.layers + self.config.slot_layers
        cache = KeyValueCache.empty(rows, layers, shape.heads, entries, shape.width // shape.heads, like)
        half = like.new_zeros(rows, entries, shape.width // 2)
        state = InsNetState(
            canvas=canvas,
            constraints=prompt.constraints,
            **initial_counters(prompt),
            rank_of_step=F.pad(order, (0, capacity - given)),
            cache=cache,
            left_half=half,
            right_half=half.clone(),
            last=like.new_zeros(rows, shape.width),
            position_keys=Shared(self._position_keys(entries, like)),
            which=torch.full_like(canvas.length, prompt.order),
        )
        tokens = canvas.tokens.gather(1, order)
        offsets, none = offsets_of_order(order, torch.int32), torch.zeros_like(canvas.length)
        return self._encode(state, tokens, torch.full_like(tokens, GIVEN), offsets, none, canvas)

    def propose(self, state: State, choose: Choose) -> Edits:
        """Stop, or a token in every slot that is chosen; the mass of closed slots counts as stopping."""
        assert isinstance(state, InsNetState)
        vectors, slot_log_probs = self._slots(state)  # (B, S, D), (B, S)
        open_slots = state.canvas.open_slots()[:, : slot_log_probs.shape[1]]
        open_log_probs = slot_log_probs.masked_fill(~open_slots, -math.inf)
        log_open = open_log_probs.logsumexp(dim=1)  # (B,): what mass lies on slots that take an insertion
        log_closed = slot_log_probs.masked_fill(open_slots, -math.inf).logsumexp(dim=1)
        log_stop, log_go = self._stops(state)
        log_stop, log_go = torch.logaddexp(log_stop, log_go + log_closed), log_go + log_open
        finished = choose.stop(state, log_stop) | ~open_slots.any(dim=1)
        if bool(finished.all()):
            return Edits.none(log_stop)
        open_log_probs = (open_log_probs - log_open[:, None]).masked_fill(~open_slots, -math.inf)
        slot = choose.slots(state, open_log_probs)  # (B, E)
        token, log_prob = self._tokens(state, choose, vectors, slot)
        log_prob = log_prob + open_log_probs.gather(1, slot.clamp_min(0))
        token = choose.settle(state, slot, token, log_prob)
        finished = finished | (token == Edits.NOTHING).all(dim=1)
        token = token.masked_fill(finished[:, None], Edits.NOTHING)
        return Edits(
            slot=slot.clamp_min(0),
            token=token,
            log_prob=log_prob.masked_fill(token == Edits.NOTHING, 0.0),
            stop_log_prob=torch.where(finished, log_stop, log_go),
            finished=finished,
        )

    def _tokens(self, state: InsNetState, choose: Choose, vectors: Tensor, slot: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens (B, E) chosen for slots (B, E), and their log-probabilities; NOTHING where there is no slot."""
        row, column = (slot != Edits.NOTHING).nonzero(as_tuple=True)  # (N,): rows may have different numbers of slots
        chosen = slot[row, column]
        vectors = self._read(state, take(vectors, slot.clamp_min(0)), slot.clamp_min(0))  # (B, E, D)
        logits = at_least_float32(self.token_head(vectors[row, column], self.embedding.weight))
        log_probs = logits.log_softmax(dim=-1)  # (N, V)
        seen = state if slot.shape[1] == 1 else state.public(row)
        token = choose.token(seen, chosen, log_probs)  # (N,)
        log_prob = log_probs.gather(1, token.clamp_min(0)[:, None])[:, 0]
        tokens, token_log_probs = torch.full_like(slot, Edits.NOTHING), log_prob.new_zeros(slot.shape)
        return tokens.index_put((row, column), token), token_log_probs.index_put((row, column), log_prob)

    def _stops(self, state: InsNetState) -> tuple[Tensor, Tensor]:
        """Log-probabilities (B,) of stopping and of going on; certain for a model that was told how many are to come,
        except at the first step, which answers for that number."""
        log_stop, log_go, log_counts = self.stop_log_probs(state.last)
        wanted = state.constraints.insertions
        if not self.config.length_conditioned or log_counts is None:
            return log_stop, log_go
        is_told, is_done = wanted != Constraints.FREE, state.inserted >= wanted
        chosen = log_counts.gather(1, wanted.clamp(0, self.config.count_head)[:, None])[:, 0]
        certain = torch.where(state.step == 0, chosen, torch.zeros_like(chosen))
        never = torch.full_like(chosen, _NEVER)
        log_stop = torch.where(is_told, torch.where(is_done, certain, never), log_stop)
        return log_stop, torch.where(is_told, torch.where(is_done, never, certain), log_go)

    def _to_come(self, state: InsNetState) -> Tensor:
        """How many insertions (B,) are left: as wanted, or as the count head thinks likeliest."""
        wanted, log_counts = state.constraints.insertions, self.stop_log_probs(state.last)[2]
        if log_counts is None:
            return torch.zeros_like(wanted)
        return torch.where(wanted != Constraints.FREE, wanted - state.inserted, log_counts.argmax(dim=1))

    @property
    def is_told_its_length(self) -> bool:
        return self.config.length_conditioned  # type: ignore[no-any-return]

    def count_log_probs(self, state: State) -> Tensor | None:
        """How many insertions are still to come, if there is a count head."""
        assert isinstance(state, InsNetState)
        return self.stop_log_probs(state.last)[2]

    def advance(self, state: State, edits: Edits) -> InsNetState:
        """Carries out edits left to right, as if one after the other, and encodes the new tokens in one pass."""
        assert isinstance(state, InsNetState)
        start = state.canvas.length
        slot, token = _left_to_right(edits)
        rank, offsets = insert_into_ranks(state.rank_of_step, start, slot, token != Edits.NOTHING)
        state = state.after(edits, apply(state.canvas, edits), rank_of_step=rank)
        left = state.constraints.insertions - state.inserted  # (B,): the same after each token of a round
        packing = Packing.of(token != Edits.NOTHING)
        left = left[:, None].expand_as(token)
        return self._encode(state, token.clamp_min(0), left, offsets, start, state.canvas, packing)

    def _encode(
        self,
        state: InsNetState,
        tokens: Tensor,
        left: Tensor,
        offsets: Tensor,
        start: Tensor,
        canvas: Canvas,
        packing: Packing | None = None,
    ) -> InsNetState:
        """The state with new tokens (B, Q), after which so many are `left` (B, Q), encoded at entries `start`...;
        offsets (B, Q, K). Where rows have different numbers of new tokens, `packing` may tell their places."""
        used = min(int(start.max()) + tokens.shape[1], canvas.capacity)
        state = self._with_room(state, used)
        offsets = F.pad(offsets, (0, max(used - offsets.shape[2], 0)))[:, :, :used]
        append = Append(state.cache, start, used, packing)
        encoded = self.encoder(
            self.embed(tokens, state.which, left), offsets, append=append, position_keys=state.position_keys.tensor
        )  # (B, Q, D)
        if self.config.slot_layers:
            for layer, (keys, values) in enumerate(self.reader.memory(encoded), start=self.config.layers):
                state.cache.append(layer, keys, values, start, used)
        entry = start[:, None] + torch.arange(tokens.shape[1], device=start.device)  # (B, Q)
        for store, new in zip((state.left_half, state.right_half), self.slots.halves(encoded), strict=True):
            store.scatter_(1, entry.clamp_max(store.shape[1] - 1)[:, :, None].expand_as(new), new)
        newest = canvas.length - start - 1  # (B,): index of the row's newest token, -1 if it got none
        last = encoded.gather(1, newest.clamp_min(0)[:, None, None].expand(-1, 1, encoded.shape[2]))[:, 0]
        return replace(state, last=torch.where((newest >= 0)[:, None], last, state.last))

    def _with_room(self, state: InsNetState, tokens: int) -> InsNetState:
        """The state with stores for so many tokens a row."""
        keys = state.position_keys
        if keys.tensor.shape[3] // 2 < reach_of(tokens, truncated=self.config.truncated):
            keys = Shared(self._position_keys(entries_for(tokens), state.last))
        return replace(
            state,
            cache=state.cache.with_room(tokens),
            left_half=with_room(state.left_half, tokens),
            right_half=with_room(state.right_half, tokens),
            position_keys=keys,
        )

    def _position_keys(self, tokens: int, like: Tensor) -> Tensor:
        """Those of the encoder, then those of slots that look at the canvas."""
        keys = self.encoder.position_keys(tokens, like)
        return torch.cat([keys, self.reader.position_keys(tokens, like)]) if self.config.slot_layers else keys

    def _read(self, state: InsNetState, vectors: Tensor, slot: Tensor) -> Tensor:
        """Vectors (B, E, D) of slots (B, E) that have looked at the canvas."""
        if not self.config.slot_layers:
            return vectors
        used = int(state.canvas.length.max())
        offsets = offsets_of_slots(state.rank_of_step[:, None, :used], slot[:, :, None])  # (B, E, K)
        hides = torch.arange(used, device=slot.device) >= state.canvas.length[:, None, None]  # (B, 1, K)
        own = range(self.config.layers, self.config.layers + self.config.slot_layers)
        memory = [state.cache.at(layer, used) for layer in own]
        keys = state.position_keys.tensor[self.config.layers :]
        return self.reader(vectors, offsets, hides, memory, keys)  # type: ignore[no-any-return]

    def _slots(self, state: InsNetState) -> tuple[Tensor, Tensor]:
        """Every slot's vector (B, S, D) and log-probability (B, S), in reading order."""
        slots = int(state.canvas.length.max()) - 1
        step = step_at_position(state.rank_of_step, state.canvas.length)[:, : slots + 1]  # (B, S + 1)
        left, right = take(state.left_half, step[:, :-1]), take(state.right_half, step[:, 1:])
        last = self.told(state.last, self._to_come(state))
        vectors = self.slots.compose(left, right, last[:, None])
        logits = at_least_float32(self.slot_head(vectors)[:, :, 0])
        if self.config.slot_queries:
            logits = logits + at_least_float32(self.slot_queries(left, right, last))
        logits = logits.masked_fill(~state.canvas.is_slot()[:, :slots], -math.inf)
        return vectors, logits.log_softmax(dim=1)


def _given_order(canvas: Canvas) -> Tensor:
    """<bos>, <eos>, then what stands between them, left to right: places (B, G), G the longest row."""
    step = torch.arange(int(canvas.length.max()), device=canvas.length.device)[None, :]
    length = canvas.length[:, None]
    place = torch.where(step < length, step - 1, step)  # padding keeps its place at the end
    return torch.where(step == 0, 0, torch.where(step == 1, length - 1, place))


def _left_to_right(edits: Edits) -> tuple[Tensor, Tensor]:
    """Slots and tokens (B, E) in reading order, what is nothing last; only as many columns as any row needs."""
    puts = edits.puts()
    key = torch.where(puts, edits.slot, torch.iinfo(edits.slot.dtype).max)
    order = key.argsort(dim=1, stable=True)
    if order.shape[1] > 1:
        order = order[:, : max(int(puts.sum(dim=1).max()), 1)]
    return edits.slot.gather(1, order), edits.token.gather(1, order)
