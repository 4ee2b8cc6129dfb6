"""The left-to-right yardstick: Plan-and-Write (keywords, separator, sentence) or plain language modelling.

Shapes: B rows, L places of a sentence, W tokens of plan and sentence together, C capacity, D width, V vocabulary.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from insnet.families.generator import (
    Choose,
    FamilyConfig,
    Generator,
    LossContext,
    LossTerm,
    Prompt,
    State,
    Traits,
    initial_counters,
)
from insnet.insertion.canvas import INSERTED, Canvas, Edits, apply
from insnet.layers.cache import KeyValueCache, entries_for
from insnet.layers.heads import TokenHead
from insnet.layers.transformer import Append, RotaryTransformer, initialise
from insnet.text.batching import TokenBatch
from insnet.text.specials import BOS, EOS, SEP, SPECIALS, UNK


@dataclass(frozen=True)
class AutoregressiveConfig(FamilyConfig):
    """Size and switches of a left-to-right model."""

    plan: bool = True
    """Write the keywords and a separator before the sentence; false for a plain language model."""


@dataclass(frozen=True)
class AutoregressiveState(State):
    """A state with the cache of plan and text."""

    cache: KeyValueCache
    cached: Tensor
    """(B,) entries of the cache in use."""
    last: Tensor
    """(B, D) the newest token's encoding."""


class Autoregressive(Generator):
    """A decoder-only transformer; its edits put one token in front of <eos>."""

    Config = AutoregressiveConfig
    traits: ClassVar[Traits] = Traits(keeps_keywords=False, fills_blanks=False, exact_likelihood=True)

    def __init__(self, config: AutoregressiveConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.width)
        self.decoder = RotaryTransformer(config.shape())
        self.token_head = TokenHead(config.vocabulary_size, (EOS, UNK), len(SPECIALS))
        initialise(self, config.layers)

    def losses(self, batch: TokenBatch, context: LossContext) -> dict[str, LossTerm]:
        """The negative log-likelihood of the sentence and its end; the plan carries no loss."""
        nats, is_target = self._nats(batch, context.label_smoothing)
        return {"token": LossTerm(nats.sum(), is_target.sum())}

    def compile_for_training(self, backend: str = "inductor") -> None:
        """Blocks, and what turns their output into losses."""
        super().compile_for_training(backend)
        self._token_nats = torch.compile(  # type: ignore[method-assign]
            self._token_nats, dynamic=False, fullgraph=True, backend=backend
        )

    def log_likelihood(self, batch: TokenBatch) -> Tensor:
        """The exact log-likelihood (B,), the end included."""
        return -self._nats(batch)[0].sum(dim=1)

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

    def start(self, prompt: Prompt) -> AutoregressiveState:
        """Encodes the plan; the canvas starts empty."""
        canvas = prompt.canvas
        plan = canvas.tokens[:, :1]
        if self.config.plan:
            plan = _plan(canvas.tokens, canvas.origin != INSERTED)
        rows, shape, like = len(plan), self.config.shape(), self.embedding.weight
        entries = entries_for(plan.shape[1])
        state = AutoregressiveState(
            canvas=_empty_like(canvas),
            constraints=replace(
                prompt.constraints, word_correction=torch.zeros_like(canvas.length)
            ),  # nothing is given
            **initial_counters(prompt),
            cache=KeyValueCache.empty(rows, shape.layers, shape.heads, entries, shape.width // shape.heads, like),
            cached=torch.zeros_like(canvas.length),
            last=like.new_zeros(rows, shape.width),
        )
        return self._encode(state, plan, (plan != 0).sum(dim=1))

    def propose(self, state: State, choose: Choose) -> Edits:
        """Stop (<eos>), or one token at the end."""
        assert isinstance(state, AutoregressiveState)
        logits = self.token_head(state.last, self.embedding.weight)
        log_probs = (logits if logits.dtype == torch.float64 else logits.float()).log_softmax(dim=-1)
        log_stop = log_probs[:, EOS].clone()
        log_probs[:, EOS] = -math.inf
        log_go = log_probs.logsumexp(dim=1)
        finished = choose.stop(state, log_stop)
        slot = state.canvas.length - 2
        token_log_probs = log_probs - log_go[:, None]
        token = choose.token(state, slot, token_log_probs)
        finished = finished | (token == Edits.NOTHING)
        return Edits(
            slot=slot[:, None],
            token=token.masked_fill(finished, Edits.NOTHING)[:, None],
            log_prob=token_log_probs.gather(1, token.clamp_min(0)[:, None]).masked_fill(finished[:, None], 0.0),
            stop_log_prob=torch.where(finished, log_stop, log_go),
            finished=finished,
        )

    def advance(self, state: State, edits: Edits) -> AutoregressiveState:
        """Appends one token a row; a left-to-right model knows no other edit."""
        assert isinstance(state, AutoregressiveState)
        puts = edits.puts()
        if edits.token.shape[1] != 1 or bool((puts[:, 0] & (edits.slot[:, 0] != state.canvas.length - 2)).any()):
            raise ValueError("an autoregressive model only appends one token at the end of the text")
        state = state.after(edits, apply(state.canvas, edits))
        return self._encode(state, edits.token.clamp_min(0), puts[:, 0].long())

    def _encode(self, state: AutoregressiveState, tokens: Tensor, count: Tensor) -> AutoregressiveState:
        """The state with the first `count` (B,) of the new tokens (B, Q) encoded."""
        used = int(state.cached.max()) + tokens.shape[1]
        state = replace(state, cache=state.cache.with_room(used))
        hidden = self.decoder(self.embedding(tokens), append=Append(state.cache, state.cached, used))
        index = (count - 1).clamp_min(0)[:, None, None].expand(-1, 1, hidden.shape[2])
        last = torch.where((count > 0)[:, None], hidden.gather(1, index)[:, 0], state.last)
        return replace(state, cached=state.cached + count, last=last)


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
