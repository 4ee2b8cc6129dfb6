"""The Insertion Transformer (Stern, Chan, Kiros and Uszkoreit, 2019): every step reads the canvas anew, both ways.

What stands on a canvas is encoded without a causal mask. Two neighbours' encodings make a slot, and one distribution
says where the next token goes and which it is: p(token, slot). A text ends when every slot says that nothing goes there
(`slot` finalisation), or when the end itself is likelier than any insertion (`sequence` finalisation).

One update sees one canvas of each text (section 4): what is given and k of the n other tokens, k uniform from 0 to n. A
slot costs the mean of -log p(token, slot) over its missing span, weighted by the order; a canvas the mean over its
slots. That stands for one of n + 1 canvases on the way to a text, so it is counted n + 1 times, over n insertions: its
mean is that of a whole trajectory, and a loss per insertion can be set beside those of the other families.

Shapes: B rows, L places in reading order, S = L - 1 slots, D width, V vocabulary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from insnet.families.generator import FamilyConfig, Generator, Prompt, State, Traits, sentence_of_batch
from insnet.families.losses import FamilyObjective, LossContext, LossTerm, at_least_float32
from insnet.families.offers import ChosenSlots, Insertions
from insnet.insertion.canvas import NOTHING, Edits, apply
from insnet.insertion.subsets import SpanOrder, draw_subset, open_places
from insnet.layers.heads import TokenHead
from insnet.layers.transformer import RotaryTransformer, initialise
from insnet.text.batching import TokenBatch
from insnet.text.specials import SPECIALS, UNK


@dataclass(frozen=True)
class InsertionTransformerConfig(FamilyConfig):
    """Size and switches of an Insertion Transformer."""

    distribution: Literal["joint", "factorised"] = "joint"
    """`joint`: one softmax over all pairs of slot and token; `factorised`: p(slot) p(token | slot)."""
    finalisation: Literal["slot", "sequence"] = "slot"
    """What the one choice beside the vocabulary means: that nothing goes into this slot, or that the text ends."""
    vocabulary_bias: bool = False
    """Add to all slots' logits a bias that follows from the largest of each coordinate among the slots' vectors."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("distribution", ("joint", "factorised")), ("finalisation", ("slot", "sequence"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(known)}")


@dataclass(frozen=True)
class InsertionTransformerObjective(FamilyObjective):
    """Which token of a slot's missing span should come first."""

    order: SpanOrder = "balanced_tree"
    """`balanced_tree`: the middle, so that several tokens per step finish a text in few steps; `uniform`: any, for all
    orders alike; `left_to_right`: the text's first, for `sequence` finalisation."""
    tau_tree: float = 1.0
    """How soft the balanced tree is, in tokens: small values want the very middle of a span, large ones any token."""

    def __post_init__(self) -> None:
        if self.order not in ("uniform", "balanced_tree", "left_to_right"):
            raise ValueError(f"order is {self.order!r}; expected uniform, balanced_tree or left_to_right")
        if not self.tau_tree > 0:
            raise ValueError(f"tau_tree is {self.tau_tree}; expected more than 0")


@dataclass(frozen=True)
class Pairs:
    """p(token, slot) of every pair, as p(slot) p(token | slot)."""

    slots: Tensor
    """(B, S) log p(slot); -inf where there is none."""
    scores: Tensor
    """(B, S, V + 1) of the tokens in each slot, the last of the one choice beside them; not normalised."""
    normaliser: Tensor
    """(B, S) the log of the sum of their exponentials."""

    def nats(self, slot: Tensor, token: Tensor) -> Tensor:
        """-log p (B, N) of some pairs (B, N)."""
        score = self.scores.flatten(1).gather(1, slot * self.scores.shape[2] + token)
        return (self.normaliser - self.slots).gather(1, slot) - score

    def ends(self) -> Tensor:
        """log p (B, S) of each slot and the one choice beside its tokens."""
        return self.scores[:, :, -1] - self.normaliser + self.slots


class InsertionTransformer(Generator):
    """Reads the whole canvas at every step."""

    Config = InsertionTransformerConfig
    Objective = InsertionTransformerObjective
    traits: ClassVar[Traits] = Traits(keeps_given=True, inserts_anywhere=True, fills_blanks=True, several_per_step=True)

    def __init__(self, config: InsertionTransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.width)
        self.encoder = RotaryTransformer(config.shape())
        self.join = nn.Linear(2 * config.width, config.width)
        self.token_head = TokenHead(config.vocabulary_size, (UNK,), len(SPECIALS))
        self.end_head = nn.Linear(config.width, 1)  # the choice beside the vocabulary
        if config.distribution == "factorised":
            self.slot_head = nn.Linear(config.width, 1, bias=False)  # q
        if config.vocabulary_bias:
            self.bias_head = nn.Linear(config.width, config.vocabulary_size + 1, bias=False)
        initialise(self, config.layers)

    def losses(self, batch: TokenBatch, objective: FamilyObjective, context: LossContext) -> dict[str, LossTerm]:
        """Of one canvas per text, counted for all: the tokens that are missing, and where nothing is."""
        assert isinstance(objective, InsertionTransformerObjective)
        by_slot, is_prefix = self.config.finalisation == "slot", objective.order == "left_to_right"
        if by_slot and is_prefix:
            raise ValueError(
                "order is 'left_to_right', which never says that a slot stays empty; with finalisation 'slot', use "
                "'uniform' or 'balanced_tree'"
            )
        sentence = sentence_of_batch(batch)
        subset = draw_subset(sentence, is_prefix=is_prefix)
        pairs = self._pairs(subset.tokens, subset.length)
        nats = self._token_nats(pairs, subset.slot, batch.tokens, context.label_smoothing)  # (B, L)
        nats = nats.masked_fill(~subset.is_missing, 0)
        weights = subset.weights(objective.order, objective.tau_tree).to(nats.dtype)
        insertions = open_places(sentence).sum(dim=1)  # (B,)
        is_slot, is_wanted = pairs.slots > -math.inf, subset.per_slot(weights) > 0
        if by_slot:
            name, decisions = "nothing", is_slot.sum(dim=1)
            ending = pairs.ends().neg().masked_fill(is_wanted | ~is_slot, 0).sum(dim=1)
        else:  # the text ends where all slots are empty; elsewhere empty ones have no target
            name, decisions = "stop", is_wanted.sum(dim=1).clamp_min(1)
            ending = pairs.ends().logsumexp(dim=1).neg().masked_fill(is_wanted.any(dim=1), 0)
        share = (insertions + 1).to(nats.dtype) / decisions  # (B,): canvases that this one stands for, over its slots
        token = (nats * weights).sum(dim=1)
        return {
            "token": LossTerm((token * share).sum(), insertions.sum()),
            name: LossTerm((ending * share).sum(), (insertions + 1).sum()),
        }

    def _token_nats(self, pairs: Pairs, slot: Tensor, tokens: Tensor, label_smoothing: float) -> Tensor:
        """-log p (B, L) of each token in its slot; smoothing spreads a share over the tokens of that slot."""
        nats = pairs.nats(slot, tokens)
        if label_smoothing == 0:
            return nats
        possible = (self.token_head.never == 0).to(pairs.scores.dtype)
        mean = pairs.scores[:, :, :-1] @ (possible / possible.sum())  # (B, S)
        score = pairs.scores.flatten(1).gather(1, slot * pairs.scores.shape[2] + tokens)
        return nats + label_smoothing * (score - mean.gather(1, slot))

    def start(self, prompt: Prompt) -> State:
        """The canvas as given: nothing is remembered from step to step."""
        return State.first(prompt, None)

    def offer(self, state: State) -> Insertions:
        """Every pair of slot and token, and the end as far as it is a choice of its own."""
        pairs = self._pairs(state.canvas.tokens[:, : state.longest], state.canvas.length)
        if self.config.finalisation == "slot":
            return Insertions(pairs.slots, _of_chosen(pairs.scores), empty=NOTHING, is_joint=True)
        tokens = pairs.scores[:, :, :-1]
        slots = pairs.slots - pairs.normaliser + tokens.logsumexp(dim=2)  # (B, S): of going on, there
        go = slots.logsumexp(dim=1)
        stop = pairs.ends().logsumexp(dim=1)
        return Insertions(slots - go[:, None], _of_chosen(tokens), stop, go, is_joint=True)

    def advance(self, state: State, edits: Edits) -> State:
        """The canvas after the edits, whatever they are."""
        canvas, _ = apply(state.canvas, edits)
        return state.after(edits, canvas)

    def _pairs(self, tokens: Tensor, length: Tensor) -> Pairs:
        """What goes where, on canvases (B, L) of some lengths (B,)."""
        place = torch.arange(tokens.shape[1], device=tokens.device)
        encoded = self.encoder(self.embedding(tokens), hides=(place >= length[:, None])[:, None, :])  # (B, L, D)
        vectors = self.join(torch.cat([encoded[:, :-1], encoded[:, 1:]], dim=2))  # (B, S, D)
        is_slot = place[:-1] < length[:, None] - 1
        content = [self.token_head(vectors, self.embedding.weight), self.end_head(vectors)]
        scores = at_least_float32(torch.cat(content, dim=2))  # (B, S, V + 1)
        if self.config.vocabulary_bias:
            largest = vectors.masked_fill(~is_slot[:, :, None], -math.inf).amax(dim=1, keepdim=True)
            scores = scores + at_least_float32(self.bias_head(largest))
        normaliser = scores.logsumexp(dim=2)
        of_slots = normaliser  # of all pairs: how much of their sum is in each slot
        if self.config.distribution == "factorised":
            of_slots = at_least_float32(self.slot_head(vectors)[:, :, 0])
        return Pairs(of_slots.masked_fill(~is_slot, -math.inf).log_softmax(dim=1), scores, normaliser)


def _of_chosen(scores: Tensor) -> Callable[[ChosenSlots], Tensor]:
    """What computes log-probabilities of chosen slots from scores (B, S, N)."""
    return lambda chosen: scores[chosen.row, chosen.flat()].log_softmax(dim=-1)
