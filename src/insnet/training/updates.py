"""One update: gradients of many batches as if they were one, and losses of the valid split.

An update's gradient is that of all its nats, of all its batches on all processes, over the tokens that an update has
on average. Over its own tokens would not do: batches hold texts of like length, and one of short texts, of which
more is padding and more is given, has fewer insertions; its texts would weigh more than others, and what is learned
of length would come out short.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from insnet.families.generator import Generator
from insnet.families.losses import FamilyObjective, LossContext, learned_nats
from insnet.randomness import SeededPurpose, mix
from insnet.text.batching import TokenBatch

TOKEN_TERM = "token"


class SummedLosses(nn.Module):
    """A family's losses as a module's forward pass, which is what data parallelism and autocast wrap."""

    def __init__(
        self,
        model: Generator,
        *,
        objective: FamilyObjective | None = None,
        label_smoothing: float = 0.0,
        compile_losses: bool = False,
        shapes: int = 1,
    ) -> None:
        super().__init__()
        self.model = model
        self.objective = objective or model.Objective()
        self.label_smoothing = label_smoothing
        self.names: list[str] = []
        """The loss terms, in the order of the totals' rows; known after the first batch."""
        self.figures: set[str] = set()
        """Those of them that are only watched."""
        if compile_losses:
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 2 * shapes + 8)
            model.compile()

    def forward(self, batch: TokenBatch, progress: float) -> tuple[Tensor, Tensor]:
        """All nats of a batch as one differentiable number, and (terms, 2) float64: nats and count of each term.

        While training, labels are smoothed if they are to be.
        """
        smoothing = self.label_smoothing if self.training else 0.0
        terms = self.model.losses(batch, self.objective, LossContext(progress, smoothing))
        self.names, self.figures = list(terms), {name for name, term in terms.items() if term.is_figure}
        assert TOKEN_TERM in terms
        nats = torch.stack([term.nats.detach() for term in terms.values()])
        counts = torch.stack([term.count for term in terms.values()])
        return learned_nats(terms), torch.stack([nats.double(), counts.double()], dim=1)

    def token_count(self, totals: Tensor) -> Tensor:
        """The number of "token" decisions in totals (terms, 2)."""
        return totals[self.names.index(TOKEN_TERM), 1]

    def means(self, totals: Tensor) -> dict[str, float]:
        """Nats per decision of each term, and "loss": all nats over "token" decisions. Figures that nothing was
        measured for are left out."""
        rows = dict(zip(self.names, totals.tolist(), strict=True))
        means = {
            name: nats / max(count, 1) for name, (nats, count) in rows.items() if count > 0 or name not in self.figures
        }
        nats = sum(nats for name, (nats, _) in rows.items() if name not in self.figures)
        return {"loss": nats / max(rows[TOKEN_TERM][1], 1), **means}


def compute_gradients(
    accelerator: Any,
    module: nn.Module,
    batches: Sequence[tuple[int, TokenBatch]],
    *,
    mean_tokens: float,
    seed: int,
    progress: float,
) -> Tensor:
    """Nats and counts (terms, 2) of the whole update; the gradients of its loss are left in the parameters.

    Each batch comes with its global index, from which dropout is seeded: which process sees it changes nothing.
    `mean_tokens` of an update (see above) must be the same on all processes.
    """
    scale = accelerator.num_processes / mean_tokens  # data parallelism averages over the processes: a sum is wanted
    parts: list[Tensor] = []
    for number, (index, batch) in enumerate(batches, start=1):
        torch.manual_seed(int(mix(seed, SeededPurpose.DROPOUT, index)))
        is_last = number == len(batches)
        with nullcontext() if is_last else accelerator.no_sync(module):
            nats, part = module(batch.to(accelerator.device), progress)
            accelerator.backward(nats * scale)
        parts.append(part)
    totals: Tensor = accelerator.reduce(torch.stack(parts).sum(dim=0), "sum")
    return totals


@torch.no_grad()
def evaluate(
    accelerator: Any, module: nn.Module, batches: Iterable[TokenBatch], *, progress: float
) -> dict[str, float]:
    """The valid split's nats per decision of each term, and "loss": all nats over "token" decisions."""
    losses: SummedLosses = accelerator.unwrap_model(module)
    was_training = losses.training
    losses.eval()
    totals = torch.zeros(0)
    with torch.compiler.set_stance("force_eager"):  # the valid split has shapes of its own, seen once
        for batch in batches:
            # Not through data parallelism: processes may have different numbers of batches.
            part = losses(batch.to(accelerator.device), progress)[1]
            totals = part if not len(totals) else totals + part
    losses.train(was_training)
    totals = (
        totals if len(totals) else torch.zeros(len(losses.names), 2, dtype=torch.float64, device=accelerator.device)
    )
    return losses.means(accelerator.reduce(totals, "sum"))


def freeze_others(model: nn.Module, parts: Sequence[str]) -> None:
    """Lets only those parameters learn whose names begin with one of the parts; all of them if no part is named."""
    names = [name for name, _ in model.named_parameters()]
    for part in parts:
        if not any(name.startswith(part) for name in names):
            known = ", ".join(dict.fromkeys(name.split(".")[0] for name in names))
            raise ValueError(f"train.only names {part!r}, which the model does not have; its parts are {known}")
    if parts:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith(tuple(parts)))


def clip_gradients(model: nn.Module, clip: float) -> Tensor:
    """The norm of all gradients, which are scaled down to `clip` if it is larger and `clip` is not 0."""
    limit = clip if clip > 0 else float("inf")
    return torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
