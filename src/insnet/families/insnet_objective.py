"""What InsNet learns: token, slot and stop terms of whole trajectories, one token at a time or in rounds (section 3.3).

With rounds 1..m (the paper's layers), C(r) the canvas of the rounds before r, e(r) the encoding of its newest token and
n(r) the number of tokens that remain (those of rounds r..m), a sentence costs

    sum over r and tokens x of round r of  -log p(x | slot of x, C(r), e(r), n(r)) - log o(slot of x | C(r), e(r), n(r))
    + sum over r of  -log q(go on | e(r))  - log q(stop | e(m+1))

Only a model with `length_conditioned` knows n(r). It pays -log p(n(1) | e(1)) instead of the last line: it decides
its length once. A model with a `count_head` alone pays -log p(n(r) | e(r)) for r = 1..m+1, stopping being a count of 0.
One token per round gives the sequential objective.

Shapes: B rows, T steps in insertion order, L places in reading order, D width, V vocabulary.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.families.generator import sentence_of_batch
from insnet.families.insnet_config import InsNetObjective
from insnet.families.losses import Likelihood, LossTerm, at_least_float32
from insnet.insertion.concurrency import (
    TURNS_PER_CALL,
    Seen,
    Visit,
    after_turn,
    ends_round,
    round_of_step,
    round_of_step_by_order,
    row_before_round,
    sort_by_round,
)
from insnet.insertion.offsets import offsets_of_slots, ranks_of_order
from insnet.insertion.order import draw_orders, log_order_count, position_of_step_in
from insnet.insertion.trajectory import is_slot_after_step, neighbours_of_step, right_neighbour_after_step
from insnet.layers.cache import Memory
from insnet.text.batching import TokenBatch

if TYPE_CHECKING:
    from insnet.families.insnet import InsNet


@dataclass(frozen=True)
class Plan:
    """How the rows of a batch go in."""

    order: Tensor
    """(B, T) position_of_step."""
    order_number: Tensor
    """(B,) which of the model's orders that is."""
    rounds: Tensor | None = None
    """(B, T) of each step; None for one token per round."""
    merges: Tensor | None = None
    """(B,) whether insertions may share a round, where any may."""


@dataclass(frozen=True)
class RowLosses:
    """What each row costs."""

    nats: dict[str, Tensor]
    """Of every term, (B,)."""
    counts: dict[str, Tensor]
    """Decisions of every term, (B,)."""
    rounds: Tensor
    """(B,) rounds in which the row is written."""
    next_token: Tensor
    """(B, T) the nats of the token that follows each step; 0 where none is inserted."""

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


class OnePass:
    """The losses of one model, all steps of a text in one pass."""

    def __init__(self, model: "InsNet") -> None:
        self.model = model

    def losses(
        self, batch: TokenBatch, objective: InsNetObjective, *, label_smoothing: float = 0.0
    ) -> dict[str, LossTerm]:
        """The terms, summed over all rows; where rounds may merge also how many there were, and what rows cost per
        insertion with and without."""
        plan = self.plan(batch, objective)
        rows = self.rows(batch, plan, label_smoothing=label_smoothing)
        terms = {name: LossTerm(rows.nats[name].sum(), rows.counts[name].sum()) for name in rows.nats}
        if len(self.model.config.orders) > 1:
            terms |= _figures_of_orders(rows, self.model.config.orders, plan.order_number)
        return terms if plan.merges is None else terms | _figures_of_rounds(rows, plan.merges)

    def likelihood(self, batch: TokenBatch) -> Likelihood:
        """One insertion per round, in the first of the orders that the model has learned."""
        plan = self.sequential_plan(batch, torch.zeros_like(batch.lengths))
        rows = self.rows(batch, plan)
        spent = rows.nats["token"] + rows.nats["slot"] + rows.nats["stop"]  # a count beyond that is no part of the text
        tokens = torch.zeros_like(rows.next_token).scatter(1, plan.order, -rows.next_token.roll(1, dims=1))
        orders = log_order_count(self.model.config.orders[0], sentence_of_batch(batch))
        return Likelihood(orders - spent, tokens)

    def compile(self, **options: Any) -> None:
        """Compiles what turns encodings into losses and rounds."""
        self.token_nats = torch.compile(self.token_nats, **options)  # type: ignore[method-assign]
        self.slot_nats = torch.compile(self.slot_nats, **options)  # type: ignore[method-assign]
        self.take_turns = torch.compile(self.take_turns, **options)  # type: ignore[method-assign]

    def plan(self, batch: TokenBatch, objective: InsNetObjective) -> Plan:
        """Orders and, where the objective merges rounds, the rounds of those rows that are in the last order."""
        plan = self.sequential_plan(batch, draw_orders(self.model.config.orders, batch.seeds))
        tau = objective.tau_of_rows(batch.seeds)
        if tau is None:
            return plan
        tau = tau.masked_fill(plan.order_number < len(self.model.config.orders) - 1, -math.inf)
        if objective.needs_likelihoods:
            rounds = self.rounds(batch, plan, tau)
        else:
            rounds = round_of_step_by_order(plan.order, batch.given.sum(dim=1), batch.lengths, tau > 0)
        return replace(plan, rounds=rounds, merges=tau > -math.inf)

    def sequential_plan(self, batch: TokenBatch, order_number: Tensor) -> Plan:
        """One insertion per round, in these (B,) of the model's orders, unless the batch prescribes an order."""
        order = batch.order
        if order is None:
            order = position_of_step_in(self.model.config.orders, order_number, sentence_of_batch(batch))
        return Plan(order, order_number)

    def rows(self, batch: TokenBatch, plan: Plan, *, label_smoothing: float = 0.0) -> RowLosses:
        """What each row costs."""
        order, rounds = plan.order, plan.rounds
        if rounds is not None:
            order, rounds = sort_by_round(order, rounds)
        encoded = self._encode(batch, order, plan.order_number)
        step = torch.arange(order.shape[1], device=order.device)[None, :]
        first = batch.given.sum(dim=1, keepdim=True) - 1  # (B, 1): row from which the first insertion is predicted
        decides = (step >= first) & (step < batch.lengths[:, None])  # (B, T): rows that decide whether to stop
        inserts = decides & (step < batch.lengths[:, None] - 1)  # (B, T): rows followed by an insertion
        remaining = batch.lengths[:, None] - 1 - step  # (B, T): insertions after this row
        last, context_step = encoded.last, None
        number_of_rounds = inserts.sum(dim=1)
        if rounds is not None:
            context_step = row_before_round(rounds).roll(-1, dims=1)  # (B, T): the row that predicts what follows row t
            last, decides = take(last, context_step), decides & ends_round(rounds)
            number_of_rounds = rounds.gather(1, batch.lengths[:, None] - 1)[:, 0]
        token = self.token_nats(
            encoded.vector, last, order, encoded.token, encoded.canvases, context_step, label_smoothing
        ).masked_fill(~inserts, 0)
        slot = self.slot_nats(encoded.vector, last, order, batch.lengths, context_step).masked_fill(~inserts, 0)
        nats, counts = {"token": token, "slot": slot}, {"token": inserts.sum(dim=1), "slot": inserts.sum(dim=1)}
        for name, (values, is_decision) in self._stop_nats(encoded.vector, remaining, decides, step == first).items():
            nats[name], counts[name] = values.masked_fill(~is_decision, 0), is_decision.sum(dim=1)
        return RowLosses({name: values.sum(dim=1) for name, values in nats.items()}, counts, number_of_rounds, token)

    def rounds(self, batch: TokenBatch, plan: Plan, tau: Tensor) -> Tensor:
        """The round (B, T) of each step, as the model in its present state would promote it with tolerance (B,)."""
        order = plan.order
        with _judging(self.model):
            encoded = self._encode(batch, order, plan.order_number)
            seen = Seen.of(order, self._log_prob_of_step(encoded, order), batch.lengths, tau)
            left_half, right_half = self.model.slots.halves(encoded.vector)
            halves = take(left_half, seen.left[:, :-1]), take(right_half, seen.right[:, :-1])
            slots = torch.cat(halves, dim=2)  # (B, T, D): of each step

            def take_turns(seen: Seen, visit: Visit) -> Visit:
                return self.take_turns(seen, visit, slots, encoded.last, encoded.token, encoded.canvases)

            return round_of_step(seen, batch.given.sum(dim=1), take_turns, turns=TURNS_PER_CALL)

    def _log_prob_of_step(self, encoded: Encoded, order: Tensor) -> Tensor:
        """log p (B, T) of each step's token, one token per step."""
        nats = self.token_nats(encoded.vector, encoded.last, order, encoded.token, encoded.canvases)
        return -nats.roll(1, dims=1)

    def take_turns(
        self, seen: Seen, visit: Visit, slots: Tensor, last: Tensor, token_of_step: Tensor, canvases: Canvases | None
    ) -> Visit:
        """Where every row stands after some turns."""
        for _ in range(TURNS_PER_CALL):
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
        context_step: Tensor | None = None,
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """-log p(token of step t+1 | its slot after step t or, if given, `context_step`[t], what `last`[t] adds to it),
        at row t (B, T)."""
        left, right = (steps.roll(-1, dims=1) for steps in neighbours_of_step(order))
        left_half, right_half = self.model.slots.halves(encoded)  # (B, T, D/2)
        vectors = self.model.slots.compose(take(left_half, left), take(right_half, right), last)  # (B, T, D)
        if context_step is None:
            context_step = torch.arange(order.shape[1], device=order.device).expand_as(order)
        vectors = self._read(vectors, canvases, context_step, left)
        target = token_of_step.roll(-1, dims=1)
        return self.model.token_head.nats(vectors, self.model.embedding.weight, target, label_smoothing)

    def _read(self, slots: Tensor, canvases: Canvases | None, step: Tensor, left: Tensor) -> Tensor:
        """Slots (B, Q, D) of the canvas after `step` (B, Q), right of the tokens of the steps `left` (B, Q), once they
        have looked at it."""
        if canvases is None:
            return slots
        return self.model.reader(slots, *canvases.after(step, left), canvases.memory)  # type: ignore[no-any-return]

    def slot_nats(
        self, encoded: Tensor, last: Tensor, order: Tensor, lengths: Tensor, context_step: Tensor | None = None
    ) -> Tensor:
        """-log o(slot of step t+1), among all slots after step t or, if given, `context_step`[t], at row t (B, T)."""
        right_neighbour = right_neighbour_after_step(order)  # (B, T, T)
        is_slot = is_slot_after_step(lengths, order.shape[1])
        if context_step is not None:
            rows = context_step[:, :, None].expand_as(right_neighbour)
            right_neighbour, is_slot = right_neighbour.gather(1, rows), is_slot.gather(1, rows)
        logits = self.model.slots.logits_of_all_steps(encoded, right_neighbour, self.model.slot_head.weight[0], last)
        is_slot[:, :, 0] = True  # in padded rows too, which have none and are not counted: no row may be empty
        logits = logits.masked_fill(~is_slot, -math.inf)
        left, _ = neighbours_of_step(order)
        return logits.logsumexp(dim=2) - logits.gather(2, left.roll(-1, dims=1)[:, :, None])[:, :, 0]

    def _stop_nats(
        self, encoded: Tensor, remaining: Tensor, decides: Tensor, is_first: Tensor
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Nats (B, T) of stopping or going on, and of counting beyond that, each with where it is decided.

        A model that knows its length decides it once, before the first insertion.
        """
        config = self.model.config
        log_stop, log_go, log_counts = self.model.stop_log_probs(encoded)
        stop = -torch.where(remaining == 0, log_stop, log_go)
        if log_counts is None:
            return {"stop": (stop, decides)}
        count = -log_counts.gather(2, remaining.clamp(0, config.count_head)[:, :, None])[:, :, 0]
        if config.length_conditioned:
            return {"stop": (count, decides & is_first)}
        return {"stop": (stop, decides), "count": (count + log_go, decides & (remaining > 0))}

    def _encode(self, batch: TokenBatch, order: Tensor, order_number: Tensor) -> Encoded:
        """A batch in insertion order, which rounds, if there are any, must be sorted by."""
        token_of_step = batch.tokens.gather(1, order)
        rank = ranks_of_order(order)  # never compiled: Triton cannot sum up numbers of 16 bits
        encoded = self.model.encoder(self.model.embed(token_of_step, order_number), rank)
        remaining = batch.lengths[:, None] - 1 - torch.arange(order.shape[1], device=order.device)
        last = self.model.with_count(encoded, remaining)
        canvases = Canvases(self.model.reader.memory(encoded), rank) if self.model.config.slot_layers else None
        return Encoded(token_of_step, encoded, last, canvases)


def _figures_of_rounds(rows: RowLosses, merges: Tensor) -> dict[str, LossTerm]:
    """What is worth watching while rounds merge: all over insertions, of the rows (B,) in question."""
    return {
        "layers_per_insertion": _over_insertions(rows.rounds, rows, merges),
        "layered_loss": _over_insertions(rows.total(), rows, merges),
        "sequential_loss": _over_insertions(rows.total(), rows, ~merges),
    }


def _figures_of_orders(rows: RowLosses, orders: Sequence[str], order_number: Tensor) -> dict[str, LossTerm]:
    """What the rows (B,) of each order cost."""
    names = {number: f"{order}_loss" for number, order in enumerate(orders)}
    return {name: _over_insertions(rows.total(), rows, order_number == number) for number, name in names.items()}


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
