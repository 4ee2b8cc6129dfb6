"""The left-to-right yardstick: Plan-and-Write (keywords, separator, sentence) or plain language modelling.

Shapes: B rows, L places of a sentence, W tokens of plan and sentence together, C capacity, D width, V vocabulary.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.families.generator import FamilyConfig, Generator, Prompt, State, Traits
from insnet.families.losses import FamilyObjective, Likelihood, LossContext, LossTerm, at_least_float32
from insnet.families.offers import ChosenSlots, Insertions
from insnet.insertion.canvas import INSERTED, Canvas, Edits, apply
from insnet.layers.cache import Append, KeyValueCache, entries_for
from insnet.layers.heads import TokenHead
from insnet.layers.transformer import RotaryTransformer, initialise
from insnet.text.batching import TokenBatch
from insnet.text.specials import BOS, EOS, SEP, SPECIALS, UNK


@dataclass(frozen=True)
class AutoregressiveConfig(FamilyConfig):
    """Size and switches of a left-to-right model."""

    plan: bool = True
    """Write the keywords and a separator before the sentence; false for a plain language model."""


@dataclass(frozen=True)
class Memory:
    """The cache of plan and text."""

    cache: KeyValueCache
    cached: Tensor
    """(B,) entries of the cache in use."""
    used: int
    """No row has more of them."""
    last: Tensor
    """(B, D) the newest token's encoding."""


class Autoregressive(Generator):
    """A decoder-only transformer; its edits put one token in front of <eos>."""

    Config = AutoregressiveConfig
    traits: ClassVar[Traits] = Traits(
        keeps_given=False, inserts_anywhere=False, fills_blanks=False, several_per_step=False, likelihood="exact"
    )

    def __init__(self, config: AutoregressiveConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.width)
        self.decoder = RotaryTransformer(config.shape())
        self.token_head = TokenHead(config.vocabulary_size, (EOS, UNK), len(SPECIALS))
        initialise(self, config.layers)

    def losses(self, batch: TokenBatch, objective: FamilyObjective, context: LossContext) -> dict[str, LossTerm]:
        """The negative log-likelihood of the sentence and its end; the plan carries no loss."""
        nats, is_target = self._nats(batch, context.label_smoothing)
        return {"token": LossTerm(nats.sum(), is_target.sum())}

    def compile(self, *, backend: str = "inductor") -> None:
        """Blocks, and what turns their output into losses."""
        super().compile(backend=backend)
        self._token_nats = torch.compile(  # type: ignore[method-assign]
            self._token_nats, dynamic=False, fullgraph=True, backend=backend
        )

    def log_likelihood(self, batch: TokenBatch) -> Likelihood:
        """Exact, the end included; the words of the plan are written anew, so that no token is there from the start."""
        nats, is_target = self._nats(batch)
        tokens = torch.zeros(batch.tokens.shape, dtype=nats.dtype, device=nats.device)
        place = torch.arange(batch.tokens.shape[1], device=nats.device)
        is_written = (place > 0) & (place < batch.lengths[:, None])  # (B, L): targets stand in the same order
        tokens[is_written] = -nats[is_target]
        return Likelihood(-nats.sum(dim=1), tokens.scatter(1, batch.lengths[:, None] - 1, 0.0))

    def _nats(self, batch: TokenBatch, label_smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
        """-log p of each target, and where there is one (B, W - 1)."""
        sequence, is_target = self._planned(batch)
        hidden = self.decoder(self.embedding(sequence[:, :-1]))
        nats = self._token_nats(hidden, sequence[:, 1:], label_smoothing)
        return nats.masked_fill(~is_target[:, 1:], 0), is_target[:, 1:]

    def _token_nats(self, hidden: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
        """-log p(target) (B, W - 1) after each encoded token (B, W - 1, D)."""
        return self.token_head.nats(hidden, self.embedding.weight, target, label_smoothing)

    def _planned(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Plan and sentence as one sequence (B, W), and where the sentence's own tokens stand."""
        place = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)[None, :]
        is_inner = (place > 0) & (place < batch.lengths[:, None] - 1)
        plan = _plan(batch.tokens, batch.given & is_inner) if self.config.plan else batch.tokens[:, :1]
        prefix = (plan != 0).sum(dim=1, keepdim=True)  # (B, 1)
        width = plan.shape[1] + batch.tokens.shape[1] - 1
        is_text = (place > 0) & (place < batch.lengths[:, None])
        target_place = torch.where(is_text, prefix + place - 1, width)  # behind the prefix, <bos> left out
        sequence = F.pad(plan, (0, width + 1 - plan.shape[1])).scatter(1, target_place, batch.tokens)
        is_target = torch.zeros_like(sequence, dtype=torch.bool).scatter(1, target_place, True)
        return sequence[:, :-1], is_target[:, :-1]

    def start(self, prompt: Prompt) -> State:
        """Encodes the plan; the canvas starts empty."""
        canvas = prompt.canvas
        plan = canvas.tokens[:, :1]
        if self.config.plan:
            plan = _plan(canvas.tokens, canvas.origin != INSERTED)
        rows, shape, like = len(plan), self.config.shape(), self.embedding.weight
        entries = entries_for(plan.shape[1])
        memory = Memory(
            cache=KeyValueCache.empty(rows, shape.layers, shape.heads, entries, shape.width // shape.heads, like),
            cached=torch.zeros_like(canvas.length),
            used=0,
            last=like.new_zeros(rows, shape.width),
        )
        memory = self._encode(memory, plan, (plan != 0).sum(dim=1))
        no_words = torch.zeros_like(canvas.length)  # nothing is given
        limits = replace(prompt.limits, word_correction=no_words)
        return State.first(replace(prompt, canvas=_empty_like(canvas), limits=limits, longest=2), memory)

    def offer(self, state: State) -> Insertions:
        """The end (<eos>), or one token in front of it."""
        logits = self.token_head(state.memory.last, self.embedding.weight)
        log_probs = at_least_float32(logits).log_softmax(dim=-1)
        log_stop = log_probs[:, EOS].clone()
        log_probs[:, EOS] = -math.inf
        log_go = log_probs.logsumexp(dim=1)
        log_probs = log_probs - log_go[:, None]
        is_end = torch.arange(state.longest - 1, device=log_go.device) == state.canvas.length[:, None] - 2
        slots = torch.zeros_like(is_end, dtype=log_probs.dtype).masked_fill(~is_end, -math.inf)

        def tokens(chosen: ChosenSlots) -> Tensor:
            of_row: Tensor = log_probs[chosen.row]
            return of_row

        return Insertions(slots, tokens, log_stop, log_go)

    def advance(self, state: State, edits: Edits) -> State:
        """Appends one token per row; a left-to-right model knows no other edit."""
        puts = edits.puts()
        is_end = (edits.slot == state.canvas.length[:, None] - 2) | ~puts
        if edits.token.shape[1] != 1 or edits.deleted is not None:
            raise ValueError("an autoregressive model only appends one token at the end of the text")
        torch._assert_async(is_end.all(), "an autoregressive model only appends one token at the end of the text")
        canvas, _ = apply(state.canvas, edits)
        memory = self._encode(state.memory, edits.token.clamp_min(0), puts[:, 0].long())
        return replace(state.after(edits, canvas), memory=memory)

    def _encode(self, memory: Memory, tokens: Tensor, count: Tensor) -> Memory:
        """The memory with the first `count` (B,) of the new tokens (B, Q) encoded."""
        used = memory.used + tokens.shape[1]
        cache = memory.cache.with_room(used)
        append = Append.after(cache, memory.cached, tokens.shape[1], used)
        hidden = self.decoder(self.embedding(tokens), append=append)
        index = (count - 1).clamp_min(0)[:, None, None].expand(-1, 1, hidden.shape[2])
        last = torch.where((count > 0)[:, None], hidden.gather(1, index)[:, 0], memory.last)
        return Memory(cache, memory.cached + count, used, last)


def _plan(tokens: Tensor, is_keyword: Tensor) -> Tensor:
    """<bos>, keywords in reading order, <sep>, then zeros (B, P); room for 8, 16, 32, ... so that few shapes occur."""
    count = is_keyword.sum(dim=1)
    keywords = max(8, 1 << (int(count.max()) - 1).bit_length())
    first = (~is_keyword).long().argsort(dim=1, stable=True)[:, :keywords]  # keywords first
    plan = F.pad(tokens.gather(1, first), (1, 1 + keywords - first.shape[1]))
    place = torch.arange(plan.shape[1], device=tokens.device)[None, :]
    plan = plan.masked_fill(place > count[:, None], 0).masked_fill(place == 0, BOS)
    return plan.masked_fill(place == count[:, None] + 1, SEP)


def _empty_like(canvas: Canvas) -> Canvas:
    """<bos> <eos> on a canvas of the same size."""
    tokens = torch.zeros_like(canvas.tokens)
    tokens[:, 0], tokens[:, 1] = BOS, EOS
    nothing = torch.full_like(canvas.origin, INSERTED)
    return Canvas(tokens, nothing, torch.zeros_like(canvas.closed_after), torch.full_like(canvas.length, 2))
