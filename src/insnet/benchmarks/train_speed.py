"""What a training step of InsNet costs over one of the left-to-right model: same width, depth, tokens and precision.

Shapes: B sentences of L tokens, <bos> and <eos> counted.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from insnet.benchmarks.timing import peak_memory, place, time_in_turns
from insnet.families import FAMILIES
from insnet.families.generator import Generator, LossContext
from insnet.text.batching import TokenBatch
from insnet.text.tokenizer import SPECIALS

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
    heads: int = 8
    """Attention heads a block."""
    vocabulary: int = 16_384
    """Tokens in the vocabulary."""
    batch_tokens: int = 16_384
    """Tokens of a batch, the same for both models and every length."""
    precision: str = "auto"
    """Of activations: float32 or bf16; auto is bf16 on CUDA and float32 elsewhere."""
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


def measure(config: TrainSpeedConfig) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (ratio_n32, ...) and the detail behind it."""
    device = place(config.device)
    headline: dict[str, float] = {}
    rows = []
    for length in config.lengths:
        row = _measure_length(config, length, device)
        rows.append(row)
        headline[f"ratio_n{length}"] = row["ratio"]
        if length == 64:
            headline["insnet_tokens_per_s_n64"] = row["insnet_tokens_per_s"]
            headline["ar_tokens_per_s_n64"] = row["autoregressive_tokens_per_s"]
        if length == 256 and row["memory_ratio"] is not None:
            headline["memory_ratio_n256"] = row["memory_ratio"]
    settings = {
        **asdict(config),
        "precision": str(_dtype(config, device)).removeprefix("torch."),
        "device": device.type,
    }
    return headline, {"settings": settings, "threads": torch.get_num_threads(), "lengths": rows}


def _measure_length(config: TrainSpeedConfig, length: int, device: torch.device) -> dict[str, Any]:
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
    model: Generator, batch: TokenBatch, config: TrainSpeedConfig, device: torch.device
) -> Callable[[], None]:
    """One whole update: forward, backward and AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=device.type == "cuda")
    dtype, context = _dtype(config, device), LossContext()
    if config.compile:
        model.compile_for_training()

    def step() -> None:
        with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
            terms = model.losses(batch, context)
        loss = torch.stack([term.nats for term in terms.values()]).sum() / terms["token"].count
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()

    return step


def _model(family: str, config: TrainSpeedConfig) -> Generator:
    torch.manual_seed(config.seed)
    size = {"vocabulary_size": config.vocabulary, "width": config.width, "layers": config.layers, "heads": config.heads}
    plain = {"plan": False} if family == "autoregressive" else {}  # the same tokens as InsNet: no plan before them
    kind = FAMILIES[family]
    return kind(kind.Config(**size, **plain)).train()


def _dtype(config: TrainSpeedConfig, device: torch.device) -> torch.dtype:
    is_half = config.precision == "bf16" or (config.precision == "auto" and device.type == "cuda")
    return torch.bfloat16 if is_half else torch.float32


def _memory(model: Generator, step: Callable[[], None], device: torch.device) -> int | None:
    """Bytes for training one model: what a step adds, its weights and AdamW's two moments of each."""
    added = peak_memory(step, device)
    return None if added is None else added + 3 * sum(weight.nbytes for weight in model.parameters())


def _ratio(one: int | None, other: int | None) -> float | None:
    return one / other if one is not None and other is not None else None
