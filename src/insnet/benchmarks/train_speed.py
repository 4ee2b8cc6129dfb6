"""What a training step of InsNet costs: over one of the left-to-right model, or in layers over one by one.

Rivals have the same width, depth, tokens and precision. Shapes: B sentences of L tokens, <bos> and <eos> counted.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from insnet.benchmarks.rivals import untrained
from insnet.benchmarks.timing import peak_memory, time_in_turns
from insnet.devices import find_device
from insnet.families.generator import Generator
from insnet.families.insnet import InsNet
from insnet.families.insnet_config import InsNetObjective
from insnet.families.losses import FamilyObjective, LossContext, learned_nats
from insnet.text.batching import TokenBatch
from insnet.text.specials import SPECIALS

RIVALS = ("insnet", "autoregressive")


@dataclass(frozen=True)
class TrainSpeedConfig:
    """What is measured."""

    lengths: tuple[int, ...] = (32, 64, 128, 256, 1024)
    """Tokens of a sentence, <bos> and <eos> counted."""
    width: int = 512
    """Size of a token's vector."""
    layers: int = 8
    """Transformer blocks."""
    slot_layers: int = 0
    """How many of InsNet's blocks are not for encoding tokens, but for slots that look at the canvas."""
    heads: int = 8
    """Attention heads a block."""
    vocabulary: int = 16_384
    """Tokens in the vocabulary."""
    batch_tokens: int = 16_384
    """Tokens of a batch, the same for both models and every length."""
    precision: str = "auto"
    """Of activations: float32 or bf16; auto is bf16 on CUDA and float32 elsewhere."""
    tau: tuple[float, ...] = ()
    """Tolerances that sentences draw from, to time InsNet in rounds over InsNet one by one; none for the left-to-right
    model. Random weights take about as many turns at 0.3 as trained ones do."""
    compile: bool = False
    """Compile both with torch.compile, in the way that training does."""
    device: str = "auto"
    """Where to run."""
    rounds: int = 20
    """Steps of each model that are timed, in turns; medians are compared."""
    warmup: int = 5
    """Steps before that."""
    seed: int = 0
    """The seed of weights and sentences."""

    def __post_init__(self) -> None:
        if self.precision not in ("auto", "float32", "bf16"):
            raise ValueError(f"precision is {self.precision!r}; expected auto, float32 or bf16")
        if min(self.lengths, default=0) < 4:
            raise ValueError(f"lengths are {self.lengths}; expected one or more, each 4 tokens or more")
        if self.batch_tokens < max(self.lengths):
            raise ValueError(
                f"batch_tokens {self.batch_tokens} is less than one sentence of {max(self.lengths)} tokens"
            )
        if self.rounds < 1 or self.warmup < 0:
            raise ValueError(f"rounds is {self.rounds} and warmup {self.warmup}; expected at least 1 and 0")
        if any(math.isnan(value) for value in self.tau):
            raise ValueError(f"tau is {self.tau}; expected numbers, such as 0.3, inf or -inf")


def measure(config: TrainSpeedConfig) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (ratio_n32, ...; with tau, layered_over_sequential_n32, ..., train_step_ratio) and the detail."""
    device = find_device(config.device)
    of_length = _measure_layers if config.tau else _measure_families
    rows = [of_length(config, length, device) for length in config.lengths]
    settings = {
        **asdict(config),
        "tau": [f"{value:g}" for value in config.tau],  # JSON has no infinity
        "precision": str(_dtype(config, device)).removeprefix("torch."),
        "device": device.type,
    }
    headline = _headline_of_layers(rows) if config.tau else _headline_of_families(rows)
    return headline, {"settings": settings, "threads": torch.get_num_threads(), "lengths": rows}


def _headline_of_families(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    headline: dict[str, float] = {}
    for row in rows:
        headline[f"ratio_n{row['n']}"] = row["ratio"]
        if row["n"] == 64:
            headline["insnet_tokens_per_s_n64"] = row["insnet_tokens_per_s"]
            headline["ar_tokens_per_s_n64"] = row["autoregressive_tokens_per_s"]
        if row["n"] == 256 and row["memory_ratio"] is not None:
            headline["memory_ratio_n256"] = row["memory_ratio"]
    return headline


def _headline_of_layers(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """`train_step_ratio` is that of all lengths together, with equally many tokens of each."""
    layered, sequential = (sum(row[f"{name}_seconds"] for row in rows) for name in ("layered", "sequential"))
    ratios = {f"layered_over_sequential_n{row['n']}": row["ratio"] for row in rows}
    return {"train_step_ratio": layered / sequential, **ratios}


def _measure_layers(config: TrainSpeedConfig, length: int, device: torch.device) -> dict[str, Any]:
    """InsNet in layers and one by one; and what it takes to find the layers: a pass without gradient, and visits."""
    batch = random_batch(config, length).to(device)
    objective = InsNetObjective(config.tau)
    torch._dynamo.reset()  # as below
    models = {name: _model("insnet", config).to(device) for name in ("layered", "sequential")}
    find_layers = _finding_layers(models["layered"], batch, config, device, objective)
    steps = {
        "layered": training_step(models["layered"], batch, config, device, objective),
        "sequential": training_step(models["sequential"], batch, config, device),
        "finding_layers": find_layers,
    }
    timings = time_in_turns(steps, rounds=config.rounds, warmup=config.warmup, device=device)
    return {
        "n": length,
        "sentences": len(batch.tokens),
        "ratio": timings["layered"].median / timings["sequential"].median,
        "layers_per_insertion": float(find_layers()) / (len(batch.tokens) * (length - 2)),
        **{f"{name}_seconds": timing.median for name, timing in timings.items()},
        **{f"{name}_spread": timing.spread() for name, timing in timings.items()},
    }


def _finding_layers(
    model: Generator, batch: TokenBatch, config: TrainSpeedConfig, device: torch.device, objective: InsNetObjective
) -> Callable[[], Tensor]:
    """Counts how many layers a batch has in all."""
    assert isinstance(model, InsNet)
    dtype = _dtype(config, device)

    def find() -> Tensor:
        with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
            rounds = model.one_pass.plan(batch, objective).rounds
        assert rounds is not None
        return rounds.amax(dim=1).sum()

    return find


def _measure_families(config: TrainSpeedConfig, length: int, device: torch.device) -> dict[str, Any]:
    batch = random_batch(config, length).to(device)
    torch._dynamo.reset()  # every length starts afresh: nothing counts towards the compiler's limit of shapes
    models = {family: _model(family, config).to(device) for family in RIVALS}
    steps = {family: training_step(model, batch, config, device) for family, model in models.items()}
    timings = time_in_turns(steps, rounds=config.rounds, warmup=config.warmup, device=device)
    memory = {family: _memory(models[family], step, device) for family, step in steps.items()}
    tokens = batch.tokens.numel()
    return {
        "n": length,
        "sentences": len(batch.tokens),
        "ratio": timings["insnet"].median / timings["autoregressive"].median,
        **{f"{family}_seconds": timing.median for family, timing in timings.items()},
        **{f"{family}_spread": timing.spread() for family, timing in timings.items()},
        **{f"{family}_tokens_per_s": tokens / timing.median for family, timing in timings.items()},
        **{f"{family}_peak_bytes": peak for family, peak in memory.items()},
        "memory_ratio": _ratio(memory["insnet"], memory["autoregressive"]),
    }


def random_batch(config: TrainSpeedConfig, length: int) -> TokenBatch:
    """Sentences of random words, all of one length, nothing given."""
    generator = torch.Generator().manual_seed(config.seed)
    shape = (config.batch_tokens // length, length - 2)
    sentences = torch.randint(len(SPECIALS), config.vocabulary, shape, generator=generator)
    starts_word = torch.ones(config.vocabulary, dtype=torch.bool)
    return TokenBatch.of(sentences.tolist(), starts_word=starts_word)


def training_step(
    model: Generator,
    batch: TokenBatch,
    config: TrainSpeedConfig,
    device: torch.device,
    objective: FamilyObjective | None = None,
) -> Callable[[], None]:
    """One whole update: forward, backward and AdamW; for another objective than the family's own if there is one."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=device.type == "cuda")
    dtype, goal = _dtype(config, device), objective or model.Objective()
    if config.compile:
        model.compile()

    def step() -> None:
        with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
            terms = model.losses(batch, goal, LossContext())
        loss = learned_nats(terms) / terms["token"].count
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    return step


def _model(family: str, config: TrainSpeedConfig) -> Generator:
    plain = {"plan": False} if family == "autoregressive" else {}  # the same tokens as InsNet: no plan before them
    return untrained(family, config, **plain).train()


def _dtype(config: TrainSpeedConfig, device: torch.device) -> torch.dtype:
    is_half = config.precision == "bf16" or (config.precision == "auto" and device.type == "cuda")
    return torch.bfloat16 if is_half else torch.float32


def _memory(model: Generator, step: Callable[[], None], device: torch.device) -> int | None:
    """Bytes for training one model: what a step adds, its weights and AdamW's two moments of each."""
    added = peak_memory(step, device)
    return None if added is None else added + 3 * sum(weight.nbytes for weight in model.parameters())


def _ratio(one: int | None, other: int | None) -> float | None:
    return one / other if one is not None and other is not None else None
