"""The contract that every family of models fulfils, and the state that its decoding passes along.

Shapes: B rows, L places in reading order, E edits per step, V vocabulary.
"""

import abc
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from insnet.families.losses import FamilyObjective, Likelihood, LossContext, LossTerm
from insnet.families.offers import Offer
from insnet.insertion.canvas import INSERTED, Canvas, Edits
from insnet.insertion.constraints import ABSENT, Limits
from insnet.insertion.order import Sentence
from insnet.layers.shape import TransformerShape
from insnet.layers.transformer import Block
from insnet.text.batching import TokenBatch
from insnet.text.specials import SPECIALS


@dataclass(frozen=True)
class Traits:
    """Facts about a family, for those who must treat families differently."""

    keeps_given: bool
    """Given words are on the canvas from the start and stay there."""
    inserts_anywhere: bool
    """A token may go into any open slot; false for a family that only appends."""
    fills_blanks: bool
    """Text may be given around blanks."""
    several_per_step: bool
    """One step may fill several slots."""
    gap_by_gap: bool = False
    """Gaps between given words are filled one after the other, each from left to right until it is closed."""
    deletes: bool = False
    """A step may remove tokens that were inserted."""
    takes_source: bool = False
    """A text is written from another one, as in translation."""
    likelihood: Literal["exact", "bound", "none"] = "none"
    """What `log_likelihood` computes: `bound` is one from below, from one sampled order. Without any, texts are not
    scored, chosen by likelihood or revised."""


@dataclass(frozen=True)
class Prompt:
    """What is given to a decoder, for a batch of texts."""

    canvas: Canvas
    """The required words in reading order between <bos> and <eos>."""
    limits: Limits
    seeds: Tensor
    """(B,) each row's source of randomness."""
    longest: int
    """Places of the longest row, known without asking the device."""
    order: Tensor
    """(B,) the number, among the orders that the family knows, of the one to insert in."""


@dataclass(frozen=True)
class Shared:
    """A tensor that all rows of a state have in common, left alone by `select` and `join`."""

    tensor: Tensor


@dataclass(frozen=True)
class State:
    """Where decoding stands. Every plain tensor is batch-first."""

    canvas: Canvas
    limits: Limits
    seeds: Tensor
    """(B,)"""
    row: Tensor
    """(B,) the prompt's row, which a trace reports."""
    step: Tensor
    """(B,) steps made so far."""
    inserted: Tensor
    """(B,) tokens inserted so far, less those removed."""
    longest: int
    """No row has more places than this: known without asking the device."""
    memory: Any
    """The family's own part: a frozen dataclass of batch-first tensors, such as caches; None for a family that reads
    the canvas anew at every step."""

    @classmethod
    def first(cls, prompt: Prompt, memory: Any) -> "State":
        """The state of a prompt before any step."""
        zeros = torch.zeros_like(prompt.seeds)
        row = torch.arange(len(zeros), device=zeros.device)
        return cls(prompt.canvas, prompt.limits, prompt.seeds, row, zeros, zeros, prompt.longest, memory)

    def select(self, rows: Tensor) -> Self:
        """The state of some rows, repeats allowed. A copy: the way to advance one state in two directions."""
        selected: Self = map_tensors(self, lambda tensor: tensor[rows])
        return selected

    def tightened(self) -> Self:
        """The same with `longest` as it is; asks the device."""
        return dataclasses.replace(self, longest=int(self.canvas.length.max()))

    def join(self, other: Self) -> Self:
        """The rows of both states, this one's first; capacities may differ."""
        joined: Self = _join(self, other)
        return joined

    def after(self, edits: Edits, canvas: Canvas) -> Self:
        """The state once `edits` have made `canvas`: counters moved on, the memory left as it is."""
        columns = edits.token.shape[1]
        inserted = self.inserted + (edits.puts()[:, 0] if columns == 1 else edits.puts().sum(dim=1))
        if edits.deleted is not None:
            inserted = inserted - edits.deleted.sum(dim=1)
        longest = min(self.longest + 1, canvas.capacity) if columns == 1 else int(canvas.length.max())
        return dataclasses.replace(self, canvas=canvas, step=self.step + 1, inserted=inserted, longest=longest)


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
    """Attention heads per block."""
    dropout: float = 0.1
    """Share of activations dropped while training."""

    def __post_init__(self) -> None:
        if self.vocabulary_size <= len(SPECIALS):
            raise ValueError(f"vocabulary_size is {self.vocabulary_size}; expected more than {len(SPECIALS)} specials")
        self.shape()

    def shape(self) -> TransformerShape:
        return TransformerShape(self.width, self.layers, self.heads, self.dropout)

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders of insertion that the model has learned and is told; the first is for one by one, the last for
        several at a time."""
        return ("left_to_right",)

    @property
    def longest(self) -> int | None:
        """The most insertions that the model can be told to make; None where it is told none."""
        return None


class Generator(nn.Module, abc.ABC):
    """A family of models of edits."""

    Config: ClassVar[type[FamilyConfig]]
    Objective: ClassVar[type[FamilyObjective]] = FamilyObjective
    traits: ClassVar[Traits]
    config: Any

    @abc.abstractmethod
    def losses(self, batch: TokenBatch, objective: FamilyObjective, context: LossContext) -> dict[str, LossTerm]:
        """Named loss terms of a batch, by an objective of the family's own kind; the term "token" counts the
        insertions."""

    def log_likelihood(self, batch: TokenBatch) -> Likelihood:
        """How likely each text is given its given words; of a family that has no likelihood nobody asks it."""
        raise NotImplementedError

    def compile(self, *, backend: str = "inductor") -> None:
        """Compiles what training spends its time on. Blocks are alike, so that each shape compiles one of them for all:
        a whole model at once takes many times as long."""
        for module in self.modules():
            if isinstance(module, Block):
                module.compile(dynamic=False, fullgraph=True, backend=backend)

    def halve(self) -> None:
        """Keeps large matrices in bfloat16 and multiplies in it; a small family stays as it is."""

    @abc.abstractmethod
    def start(self, prompt: Prompt) -> State:
        """The state before the first step: what is given, encoded."""

    @abc.abstractmethod
    def offer(self, state: State) -> Offer:
        """What may come next, and how likely it is; changes nothing."""

    @abc.abstractmethod
    def advance(self, state: State, edits: Edits) -> State:
        """The state once `edits` are done, whoever decided them. Appends to the state's cache in place, so advance
        a state once; `select` makes a copy to advance another way."""


def restarted(family: Generator, state: State, canvas: Canvas, order: Tensor) -> State:
    """The state with another canvas, encoded anew: how a family with a cache answers a deletion, which would
    invalidate what later tokens have seen."""
    longest = int(canvas.length.max())
    fresh = family.start(Prompt(canvas, state.limits, state.seeds, longest, order))
    return dataclasses.replace(state, canvas=canvas, longest=longest, memory=fresh.memory)


def rows_alike(state: State) -> tuple[Tensor, Tensor]:
    """The first of all rows that show the same text and are asked for as many words (A,), and which of these each row
    is like (B,). Asks the device."""
    canvas, limits = state.canvas, state.limits
    places = (canvas.tokens, canvas.origin, canvas.closed_after)
    figures = (canvas.length, limits.min_words, limits.max_words, limits.word_correction)
    shown = [each.long() for each in (*places, *(figure[:, None] for figure in figures))]
    _, alike = torch.unique(torch.cat(shown, dim=1), dim=0, return_inverse=True)
    row = torch.arange(len(alike), device=alike.device)
    first = torch.full_like(row, len(row)).scatter_reduce(0, alike, row, "amin")
    return first[: int(alike.max()) + 1], alike


def sentence_of_batch(batch: TokenBatch) -> Sentence:
    """What an order may look at."""
    return Sentence(batch.tokens, batch.lengths, batch.given, batch.starts_word, batch.seeds)


_FILL = {"origin": INSERTED, "forbidden": ABSENT}
"""What fields of a canvas and of limits hold where there is nothing; zero everywhere else."""


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same with every tensor changed, in nested dataclasses too; what is Shared stays."""
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
    return first if first is None else max(first, second)  # bounds and flags kept on the host


def _equal_sizes(first: Tensor, second: Tensor, fill: int) -> tuple[Tensor, Tensor]:
    """Both tensors padded with `fill` to the larger size in every dimension but the batch's."""
    sizes = [max(a, b) for a, b in zip(first.shape[1:], second.shape[1:], strict=True)]

    def pad(tensor: Tensor) -> Tensor:
        missing = [size - own for size, own in zip(sizes, tensor.shape[1:], strict=True)]
        return nn.functional.pad(tensor, [amount for size in reversed(missing) for amount in (0, size)], value=fill)

    return pad(first), pad(second)
