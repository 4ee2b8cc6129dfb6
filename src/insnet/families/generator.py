"""The contract that every family of models fulfils, and the state that its decoding passes along.

Shapes: B rows, L places in reading order, E edits a step, V vocabulary.
"""

import abc
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor, nn

from insnet.insertion.canvas import INSERTED, Canvas, Edits
from insnet.insertion.constraints import ABSENT, Constraints
from insnet.insertion.order import Sentence
from insnet.layers.transformer import Block, TransformerShape
from insnet.text.batching import TokenBatch
from insnet.text.specials import SPECIALS


@dataclass(frozen=True)
class Traits:
    """What a family can do, for those who must treat families differently."""

    keeps_keywords: bool
    """Required words are on the canvas from the start and can't be lost."""
    fills_blanks: bool
    """Text may be given around blanks."""
    exact_likelihood: bool
    """The likelihood of a text needs no sum over orders."""
    inserts_in_layers: bool = False
    """Insertions may share a step, and be trained to: the losses heed `LossContext.tau`."""


@dataclass(frozen=True)
class LossTerm:
    """Summed nats and the number of decisions they were summed over."""

    nats: Tensor
    count: Tensor
    is_figure: bool = False
    """Only to be watched: no part of the loss."""


@dataclass(frozen=True)
class LossContext:
    """What a loss may depend on beside the batch."""

    progress: float = 0.0
    """How far training has come, from 0 to 1."""
    tau: Tensor | None = None
    """(B,) nats that a token may lose in likelihood by going in a layer earlier (section 3.3); -inf for one token a
    step, +inf for all that fits. None is -inf for all rows, without looking for layers."""
    asks_model: bool = True
    """Whether some tau may be finite: where all are endless, layers follow from the order alone, at next to no cost."""
    label_smoothing: float = 0.0
    """The share of each token's target that is spread over all tokens that can be predicted. The same at every update:
    compiled losses take it for a constant."""


@dataclass(frozen=True)
class Prompt:
    """What is given to a decoder, for a batch of texts."""

    canvas: Canvas
    """The required words in reading order between <bos> and <eos>."""
    constraints: Constraints
    seeds: Tensor
    """(B,) each row's source of randomness."""
    order: int = 0
    """The number, among the orders that the family knows, of the one to insert in."""


@dataclass(frozen=True)
class Shared:
    """A tensor that all rows of a state have in common, left alone by `select` and `join`."""

    tensor: Tensor


@dataclass(frozen=True)
class State:
    """Where decoding stands. Families add private fields in a subclass; every plain tensor is batch-first."""

    canvas: Canvas
    constraints: Constraints
    seeds: Tensor
    """(B,)"""
    row: Tensor
    """(B,) the prompt's row, which a trace reports."""
    step: Tensor
    """(B,) steps made so far."""
    inserted: Tensor
    """(B,) tokens inserted so far."""
    log_survival: Tensor
    """(B,) the log-probability of not having stopped until now."""

    def select(self, rows: Tensor) -> Self:
        """The state of some rows, repeats allowed. A copy: the way to advance one state in two directions."""
        selected: Self = map_tensors(self, lambda tensor: tensor[rows])
        return selected

    def public(self, rows: Tensor) -> "State":
        """What a chooser looks at, of some rows, repeats allowed: no family's private part, which may be large."""
        parts = {field.name: getattr(self, field.name) for field in dataclasses.fields(State)}
        return State(**{name: map_tensors(part, lambda tensor: tensor[rows]) for name, part in parts.items()})

    def join(self, other: Self) -> Self:
        """The rows of both states, this one's first; capacities may differ."""
        joined: Self = _join(self, other)
        return joined

    def after(self, edits: Edits, canvas: Canvas, **private: Any) -> Self:
        """The state once `edits` are done: counters moved on, the rest replaced."""
        return dataclasses.replace(
            self,
            canvas=canvas,
            step=self.step + 1,
            inserted=self.inserted + edits.puts().sum(dim=1),
            log_survival=self.log_survival + edits.stop_log_prob.to(self.log_survival.dtype),
            **private,
        )


class Choose(Protocol):
    """How a decoder decides; see insnet.decoding.choose. Everything is batched and pure."""

    def stop(self, state: State, log_stop: Tensor) -> Tensor:
        """True (B,) where the row ends now; `log_stop` (B,) is the model's."""
        ...

    def slots(self, state: State, log_probs: Tensor) -> Tensor:
        """The slots (B, E) to fill, all different, from log-probabilities (B, S) over open slots; Edits.NOTHING where a
        row fills fewer than E, but each has one at least."""
        ...

    def token(self, state: State, slot: Tensor, log_probs: Tensor) -> Tensor:
        """The token (B,) to put into `slot` (B,), from log-probabilities (B, V); Edits.NOTHING where none may go there.
        A row that gets no token at all ends."""
        ...

    def settle(self, state: State, slot: Tensor, token: Tensor, log_prob: Tensor) -> Tensor:
        """The tokens (B, E) that may go into their slots (B, E) together, Edits.NOTHING in place of the others;
        `log_prob` (B, E) is that of slot and token."""
        ...


@dataclass(frozen=True)
class FamilyConfig:
    """What every family's configuration says; each adds its own switches."""

    vocabulary_size: int
    """Tokens, specials included."""
    width: int = 768
    """Size of a token's vector."""
    layers: int = 12
    """Transformer blocks."""
    heads: int = 12
    """Attention heads a block."""
    dropout: float = 0.1
    """Share of activations dropped while training."""

    def __post_init__(self) -> None:
        if self.vocabulary_size <= len(SPECIALS):
            raise ValueError(f"vocabulary_size is {self.vocabulary_size}; expected more than {len(SPECIALS)} specials")
        self.shape()

    def shape(self) -> TransformerShape:
        return TransformerShape(self.width, self.layers, self.heads, self.dropout)


class Generator(nn.Module, abc.ABC):
    """A family of models of edits."""

    Config: ClassVar[type[FamilyConfig]]
    traits: ClassVar[Traits]
    config: Any

    @abc.abstractmethod
    def losses(self, batch: TokenBatch, context: LossContext) -> dict[str, LossTerm]:
        """Named loss terms of a batch; the term "token" counts the insertions."""

    @abc.abstractmethod
    def log_likelihood(self, batch: TokenBatch) -> Tensor:
        """A lower bound (B,) of each text's log-likelihood given its given words, from one sampled order;
        exact where the traits say so."""

    def token_log_probs(self, batch: TokenBatch) -> Tensor:
        """The log-probability (B, L) of each token in its slot when it goes in, along one sampled order; 0 for what is
        given and padding. Asked only of families that fill blanks."""
        raise NotImplementedError

    def compile_for_training(self, backend: str = "inductor") -> None:
        """Compiles what training spends its time on. Blocks are alike, so that each shape compiles one of them for all:
        a whole model at once takes many times as long."""
        for module in self.modules():
            if isinstance(module, Block):
                module.compile(dynamic=False, fullgraph=True, backend=backend)

    @abc.abstractmethod
    def start(self, prompt: Prompt) -> State:
        """The state before the first step: what is given, encoded."""

    @abc.abstractmethod
    def propose(self, state: State, choose: Choose) -> Edits:
        """The next step's edits; changes nothing."""

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders of insertion that the model has learned and is told; the first is for one by one, the last for
        several at a time."""
        return ("left_to_right",)

    @property
    def is_told_its_length(self) -> bool:
        """Whether a text's number of insertions must be fixed before the first one."""
        return False

    def count_log_probs(self, state: State) -> Tensor | None:
        """Log-probabilities (B, N) of how many insertions are still to come, from 0 on; None where none are learned."""
        del state
        return None

    @abc.abstractmethod
    def advance(self, state: State, edits: Edits) -> State:
        """The state once `edits` are done, whoever decided them. Appends to the state's cache in place, so advance
        a state once; `select` makes a copy to advance another way."""


def sentence_of_batch(batch: TokenBatch) -> Sentence:
    """What an order may look at."""
    return Sentence(batch.tokens, batch.lengths, batch.given, batch.starts_word, batch.seeds)


def initial_counters(prompt: Prompt) -> dict[str, Tensor]:
    """The public fields of a state that has made no step."""
    zeros = torch.zeros_like(prompt.seeds)
    return {
        "seeds": prompt.seeds,
        "row": torch.arange(len(prompt.seeds), device=prompt.seeds.device),
        "step": zeros,
        "inserted": zeros,
        "log_survival": zeros.double(),
    }


_FILL = {"origin": INSERTED, "forbidden": ABSENT}
"""What fields of a canvas and of constraints hold where there is nothing; zero everywhere else."""


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, Shared | type):
        fields = {f.name: map_tensors(getattr(value, f.name), change) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    return value


def _join(first: Any, second: Any, name: str = "") -> Any:
    if isinstance(first, Tensor):
        return torch.cat(_equal_sizes(first, second, _FILL.get(name, 0)))
    if isinstance(first, Shared):
        return first if first.tensor.shape[-1] >= second.tensor.shape[-1] else second
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        names = [field.name for field in dataclasses.fields(first)]
        return dataclasses.replace(first, **{n: _join(getattr(first, n), getattr(second, n), n) for n in names})
    return first


def _equal_sizes(first: Tensor, second: Tensor, fill: int) -> tuple[Tensor, Tensor]:
    """Both tensors padded with `fill` to the larger size in every dimension but the batch's."""
    sizes = [max(a, b) for a, b in zip(first.shape[1:], second.shape[1:], strict=True)]

    def pad(tensor: Tensor) -> Tensor:
        missing = [size - own for size, own in zip(sizes, tensor.shape[1:], strict=True)]
        return nn.functional.pad(tensor, [amount for size in reversed(missing) for amount in (0, size)], value=fill)

    return pad(first), pad(second)
