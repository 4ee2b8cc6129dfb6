"""What InsNet learns: token, slot and stop terms of whole trajectories, one token at a time or in layers (section 3.3).

With layers 1..m, C(l) the canvas of the layers before l, e(l) the encoding of its newest token and n(l) the number of
tokens still to come (those of layers l..m), a sentence costs

    sum over l and tokens x of layer l of  -log p(x | slot of x, C(l), e(l), n(l)) - log o(slot of x | C(l), e(l), n(l))
    + sum over l of  -log q(go on | e(l))  - log q(stop | e(m+1))

Only a model with `length_conditioned` is told n(l). It pays -log p(n(1) | e(1)) instead of the last line: it decides
its length once. A model with a `count_head` alone pays -log p(n(l) | e(l)) for l = 1..m+1, stopping being a count of 0.
One token a layer gives the sequential objective.

Shapes: B rows, T steps in insertion order, D width, V vocabulary.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.families.generator import LossTerm, sentence_of_batch
from insnet.insertion.concurrency import (
    TURNS_A_CALL,
    Seen,
    Visit,
    after_turn,
    ends_layer,
    layer_of_step,
    layer_of_step_unasked,
    row_before_layer,
    sort_by_layer,
)
from insnet.insertion.offsets import offsets_of_slots, ranks_of_order
from insnet.insertion.order import draw_orders, position_of_step_in
from insnet.insertion.trajectory import is_slot_after_step, neighbours_of_step, right_neighbour_after_step
from insnet.layers.cache import Memory
from insnet.text.batching import TokenBatch

if TYPE_CHECKING:
    from insnet.families.insnet import InsNet


GIVEN = -1  # how many insertions are left after a token that was not inserted


@dataclass(frozen=True)
class RowLosses:
    """What each row costs."""

    nats: dict[str, Tensor]
    """Of every term, (B,)."""
    counts: dict[str, Tensor]
    """Decisions of every term, (B,)."""
    layers: Tensor
    """(B,) steps in which the row is written."""

    def total(self) -> Tensor:
        """(B,) of all terms, to look at."""
        return torch.stack(list(self.nats.values())).sum(dim=0).detach()


@dataclass(frozen=True)
class Canvases:
    """What slots can look at: all tokens, and where they stand on the canvas after each step."""

    memory: list[Memory]
    """What each of their blocks looks at."""
    rank: Tensor
    """(B, T, T) of token j after step t, as [t, j]."""

    def after(self, step: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
        """What slots see of the canvas after `step` (B, Q), `left` (B, Q) having put their left neighbours: offsets,
        and True where there is no token yet, (B, Q, T) each."""
        rank = take(self.rank, step)
        column = torch.arange(rank.shape[2], device=rank.device)
        return offsets_of_slots(rank, rank.gather(2, left[:, :, None])), column > step[:, :, None]


@dataclass(frozen=True)
class Encoded:
    """Texts in insertion order, read once."""

    token: Tensor
    """(B, T)"""
    vector: Tensor
    """(B, T, D)"""
    last: Tensor
    """(B, T, D) what each token adds to slots while it is the newest one."""
    canvases: Canvases | None
    """What slots look at, if they look."""


class InsNetObjective:
    """The losses of one model."""

    def __init__(self, model: "InsNet") -> None:
        self.model = model

    def losses(
        self,
        batch: TokenBatch,
        tau: Tensor | None = None,
        *,
        asks_model: bool = True,
        label_smoothing: float = 0.0,
    ) -> dict[str, LossTerm]:
        """The terms, summed over all rows; with `tau` (B,) also how many layers there were, and each objective's nats
        an insertion."""
        which = self.which(batch)
        tau = None if tau is None else self._in_last_order(tau, which)
        rows = self.rows(batch, tau, which=which, asks_model=asks_model, label_smoothing=label_smoothing)
        terms = {name: LossTerm(rows.nats[name].sum(), rows.counts[name].sum()) for name in rows.nats}
        if len(self.model.config.orders) > 1:
            terms |= _figures_of_orders(rows, self.model.config.orders, which)
        return terms if tau is None else terms | _figures_of_layers(rows, tau > -math.inf)

    def compile(self, **options: Any) -> None:
        """Compiles what turns encodings into losses and layers."""
        self.token_nats = torch.compile(self.token_nats, **options)  # type: ignore[method-assign]
        self.slot_nats = torch.compile(self.slot_nats, **options)  # type: ignore[method-assign]
        self.take_turns = torch.compile(self.take_turns, **options)  # type: ignore[method-assign]

    def rows(
        self,
        batch: TokenBatch,
        tau: Tensor | None = None,
        *,
        which: Tensor | None = None,
        asks_model: bool = True,
        label_smoothing: float = 0.0,
    ) -> RowLosses:
        """What each row costs: one token a step, or in the layers that `tau` (B,) allows (-inf: one token a step); the
        model need not be asked where all of them are endless.

        `which` (B,) of the model's orders a row is inserted in is drawn if it is not given."""
        which = self.which(batch) if which is None else which
        order = self._order(batch, which)
        layer = None if tau is None else self.layers(batch, order, tau, which, asks_model=asks_model)
        return self.rows_in_layers(batch, order, layer, which, label_smoothing=label_smoothing)

    def which(self, batch: TokenBatch) -> Tensor:
        """The number (B,) of each row's order."""
        return draw_orders(self.model.config.orders, batch.seeds)

    def _order(self, batch: TokenBatch, which: Tensor) -> Tensor:
        """position_of_step (B, T), drawn unless somebody prescribes it."""
        if batch.order is not None:
            return batch.order
        return position_of_step_in(self.model.config.orders, which, sentence_of_batch(batch))

    def _in_last_order(self, tau: Tensor, which: Tensor) -> Tensor:
        """`tau` (B,) where the row's order is the last, which is the one for layers; -inf elsewhere."""
        return tau.masked_fill(which < len(self.model.config.orders) - 1, -math.inf)

    def rows_in_layers(
        self,
        batch: TokenBatch,
        order: Tensor,
        layer: Tensor | None,
        which: Tensor | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> RowLosses:
        """What each row costs, its layers (B, T) given by step; None for one token a layer."""
        if layer is not None:
            order, layer = sort_by_layer(order, layer)
        encoded = self._encode(batch, order, which, layer)
        step = torch.arange(order.shape[1], device=order.device)[None, :]
        first = batch.given.sum(dim=1, keepdim=True) - 1  # (B, 1): row from which the first insertion is predicted
        decides = (step >= first) & (step < batch.lengths[:, None])  # (B, T): rows that decide whether to stop
        inserts = decides & (step < batch.lengths[:, None] - 1)  # (B, T): rows followed by an insertion
        to_come = batch.lengths[:, None] - 1 - step  # (B, T): insertions after this row
        last, source = encoded.last, None
        layers = inserts.sum(dim=1)
        if layer is not None:
            source = row_before_layer(layer).roll(-1, dims=1)  # (B, T): the row that predicts what follows row t
            last, decides = take(last, source), decides & ends_layer(layer)
            layers = layer.gather(1, batch.lengths[:, None] - 1)[:, 0]
        token = self.token_nats(encoded.vector, last, order, encoded.token, encoded.canvases, source, label_smoothing)
        slot = self.slot_nats(encoded.vector, last, order, batch.lengths, source)
        nats = {"token": token.masked_fill(~inserts, 0), "slot": slot.masked_fill(~inserts, 0)}
        counts = {"token": inserts.sum(dim=1), "slot": inserts.sum(dim=1)}
        for name, (values, is_decision) in self._stop_nats(encoded.vector, to_come, decides, step == first).items():
            nats[name], counts[name] = values.masked_fill(~is_decision, 0), is_decision.sum(dim=1)
        return RowLosses({name: values.sum(dim=1) for name, values in nats.items()}, counts, layers)

    def token_log_probs(self, batch: TokenBatch, which: Tensor) -> Tensor:
        """log p of each token (B, L) in its slot when it goes in, one token a step; 0 for what is given and padding."""
        order = self._order(batch, which)
        at_step = self._log_prob_of_step(self._encode(batch, order, which), order)
        place = torch.arange(order.shape[1], device=order.device)
        is_absent = batch.given | (place >= batch.lengths[:, None])
        return torch.zeros_like(at_step).scatter(1, order, at_step).masked_fill(is_absent, 0)

    def layers(
        self,
        batch: TokenBatch,
        order: Tensor,
        tau: Tensor,
        which: Tensor | None = None,
        *,
        asks_model: bool = True,
    ) -> Tensor:
        """The layer (B, T) of each step of an order, as the model in its present state would promote it."""
        if not asks_model:
            return layer_of_step_unasked(order, batch.given.sum(dim=1), batch.lengths, tau > 0)
        with _judging(self.model):
            encoded = self._encode(batch, order, which)
            seen = Seen.of(order, self._log_prob_of_step(encoded, order), batch.lengths, tau)
            left_half, right_half = self.model.slots.halves(encoded.vector)
            halves = take(left_half, seen.left[:, :-1]), take(right_half, seen.right[:, :-1])
            slots = torch.cat(halves, dim=2)  # (B, T, D): of each step

            def take_turns(seen: Seen, visit: Visit) -> Visit:
                return self.take_turns(seen, visit, slots, encoded.last, encoded.token, encoded.canvases)

            return layer_of_step(seen, batch.given.sum(dim=1), take_turns, turns=TURNS_A_CALL)

    def _log_prob_of_step(self, encoded: Encoded, order: Tensor) -> Tensor:
        """log p (B, T) of each step's token, one token a step."""
        nats = self.token_nats(encoded.vector, encoded.last, order, encoded.token, encoded.canvases)
        return -nats.roll(1, dims=1)

    def take_turns(
        self, seen: Seen, visit: Visit, slots: Tensor, last: Tensor, token_of_step: Tensor, canvases: Canvases | None
    ) -> Visit:
        """Where every row stands after some turns."""
        for _ in range(TURNS_A_CALL):
            visit = self._take_turn(seen, visit, slots, last, token_of_step, canvases)
        return visit

    def _take_turn(
        self, seen: Seen, visit: Visit, slots: Tensor, last: Tensor, token_of_step: Tensor, canvases: Canvases | None
    ) -> Visit:
        """One turn of every row: how likely its token would be with an older row as the newest, and what follows."""
        step = visit.step.clamp_max(slots.shape[1] - 1)[:, None]  # rows that are through stand at their end
        left_half, right_half = take(slots, step)[:, 0].chunk(2, dim=1)
        older = visit.older()[:, None]
        vector = self.model.slots.compose(left_half[:, None], right_half[:, None], take(last, older))  # (B, 1, D)
        vector = self._read(vector, canvases, older, seen.left.gather(1, step))[:, 0]
        logits = at_least_float32(self.model.token_head(vector, self.model.embedding.weight))  # (B, V)
        nats = F.cross_entropy(logits, token_of_step.gather(1, step)[:, 0], reduction="none")
        return after_turn(seen, visit, -nats)

    def token_nats(
        self,
        encoded: Tensor,
        last: Tensor,
        order: Tensor,
        token_of_step: Tensor,
        canvases: Canvases | None,
        source: Tensor | None = None,
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """-log p(token of step t+1 | its slot after step t or, if given, `source`[t], what `last`[t] adds to it), at
        row t (B, T)."""
        left, right = (steps.roll(-1, dims=1) for steps in neighbours_of_step(order))
        left_half, right_half = self.model.slots.halves(encoded)  # (B, T, D/2)
        vectors = self.model.slots.compose(take(left_half, left), take(right_half, right), last)  # (B, T, D)
        if source is None:
            source = torch.arange(order.shape[1], device=order.device).expand_as(order)
        vectors = self._read(vectors, canvases, source, left)
        target = token_of_step.roll(-1, dims=1)
        return self.model.token_head.nats(vectors, self.model.embedding.weight, target, label_smoothing)

    def _read(self, slots: Tensor, canvases: Canvases | None, step: Tensor, left: Tensor) -> Tensor:
        """Slots (B, Q, D) of the canvas after `step` (B, Q), right of the tokens of the steps `left` (B, Q), once they
        have looked at it."""
        if canvases is None:
            return slots
        return self.model.reader(slots, *canvases.after(step, left), canvases.memory)  # type: ignore[no-any-return]

    def slot_nats(
        self, encoded: Tensor, last: Tensor, order: Tensor, lengths: Tensor, source: Tensor | None = None
    ) -> Tensor:
        """-log o(slot of step t+1), among all slots after step t or, if given, `source`[t], at row t (B, T)."""
        right_neighbour = right_neighbour_after_step(order)  # (B, T, T)
        is_slot = is_slot_after_step(lengths, order.shape[1])
        if source is not None:
            rows = source[:, :, None].expand_as(right_neighbour)
            right_neighbour, is_slot = right_neighbour.gather(1, rows), is_slot.gather(1, rows)
        logits = self.model.slots.logits_of_all_steps(encoded, right_neighbour, self.model.slot_head.weight[0], last)
        if self.model.config.slot_queries:
            halves = self.model.slots.halves(encoded)
            logits = logits + self.model.slot_queries.logits_of_all_steps(*halves, right_neighbour, last)
        is_slot[:, :, 0] = True  # in padded rows too, which have none and are not counted: no row may be empty
        logits = logits.masked_fill(~is_slot, -math.inf)
        left, _ = neighbours_of_step(order)
        return logits.logsumexp(dim=2) - logits.gather(2, left.roll(-1, dims=1)[:, :, None])[:, :, 0]

    def _stop_nats(
        self, encoded: Tensor, to_come: Tensor, decides: Tensor, is_first: Tensor
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Nats (B, T) of stopping or going on, and of counting beyond that, each with where it is decided.

        A model that is told its length decides it once, before the first insertion.
        """
        config = self.model.config
        log_stop, log_go, log_counts = self.model.stop_log_probs(encoded)
        stop = -torch.where(to_come == 0, log_stop, log_go)
        if log_counts is None:
            return {"stop": (stop, decides)}
        count = -log_counts.gather(2, to_come.clamp(0, config.count_head)[:, :, None])[:, :, 0]
        if config.length_conditioned:
            return {"stop": (count, decides & is_first)}
        return {"stop": (stop, decides), "count": (count + log_go, decides & (to_come > 0))}

    def _encode(
        self, batch: TokenBatch, order: Tensor, which: Tensor | None = None, layer: Tensor | None = None
    ) -> Encoded:
        """A batch in insertion order, which layers (B, T) must be sorted by."""
        which = self.which(batch) if which is None else which
        token_of_step = batch.tokens.gather(1, order)
        vectors = self.model.embed(token_of_step, which, self._left_after_step(batch, order, layer))
        rank = ranks_of_order(order)  # never compiled: Triton cannot sum up numbers of 16 bits
        encoded = self.model.encoder(vectors, rank)
        to_come = batch.lengths[:, None] - 1 - torch.arange(order.shape[1], device=order.device)
        last = self.model.told(encoded, to_come)
        canvases = Canvases(self.model.reader.memory(encoded), rank) if self.model.config.slot_layers else None
        return Encoded(token_of_step, encoded, last, canvases)

    def _left_after_step(self, batch: TokenBatch, order: Tensor, layer: Tensor | None) -> Tensor:
        """How many insertions (B, T) are left once a token and, if there are layers, all of its layer are there; GIVEN
        for what was there from the start."""
        step = torch.arange(order.shape[1], device=order.device).expand_as(order)
        newest = step if layer is None else torch.searchsorted(layer, layer, right=True) - 1
        left = (batch.lengths[:, None] - 1 - newest).clamp_min(0)
        return left.masked_fill(step < batch.given.sum(dim=1, keepdim=True), GIVEN)


def _figures_of_layers(rows: RowLosses, is_layered: Tensor) -> dict[str, LossTerm]:
    """What is worth watching while layers merge: all over insertions, of the rows (B,) in question."""
    return {
        "layers_per_insertion": _over_insertions(rows.layers, rows, is_layered),
        "layered_loss": _over_insertions(rows.total(), rows, is_layered),
        "sequential_loss": _over_insertions(rows.total(), rows, ~is_layered),
    }


def _figures_of_orders(rows: RowLosses, orders: Sequence[str], which: Tensor) -> dict[str, LossTerm]:
    """What the rows (B,) of each order cost."""
    names = {number: f"{order}_loss" for number, order in enumerate(orders)}
    return {name: _over_insertions(rows.total(), rows, which == number) for number, name in names.items()}


def _over_insertions(values: Tensor, rows: RowLosses, chosen: Tensor) -> LossTerm:
    """A figure of the chosen rows (B,): their values (B,) over their insertions."""
    insertions = rows.counts["token"]
    values = values.to(rows.nats["token"].dtype)
    return LossTerm((values * chosen).sum(), (insertions * chosen).sum(), is_figure=True)


@contextmanager
def _judging(model: nn.Module) -> Iterator[None]:
    """Without gradients and dropout. What autocast casts meanwhile has no gradient, in torch before 2.11: forget it."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
        torch.clear_autocast_cache()


def take(values: Tensor, index: Tensor) -> Tensor:
    """Rows `index` (B, Q) of values (B, T, W), as (B, Q, W)."""
    return values.gather(1, index[:, :, None].expand(-1, -1, values.shape[2]))


def at_least_float32(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()
