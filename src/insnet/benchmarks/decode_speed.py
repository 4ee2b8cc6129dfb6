"""What decoding costs: with the cache and without it, InsNet beside the left-to-right model, one row and many.

Weights are random: the time of a step does not depend on what is written, and lengths are prescribed.
Shapes: B rows, L places in reading order, V vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from insnet.benchmarks.rivals import untrained
from insnet.benchmarks.timing import Timing, time_in_turns
from insnet.decoding.choose import Chooser
from insnet.decoding.config import GenerationConfig
from insnet.decoding.decide import Decider
from insnet.decoding.loop import decode
from insnet.devices import find_device
from insnet.families.generator import Generator, Prompt
from insnet.insertion.canvas import INSERTED, Canvas, apply
from insnet.insertion.constraints import Lexicon, Limits
from insnet.text.specials import BOS, EOS, SPECIALS

_MANY_WORDS = 1 << 30


@dataclass(frozen=True)
class DecodeSpeedConfig:
    """What is measured."""

    lengths: tuple[int, ...] = (32, 64, 128, 256)
    """Tokens inserted into an empty text."""
    batch_sizes: tuple[int, ...] = (1, 64, 128)
    """Texts decoded at a time."""
    reencode_up_to: int = 64
    """The most texts at a time for which the decoder without a cache is timed too."""
    width: int = 512
    """Size of a token's vector."""
    layers: int = 8
    """Transformer blocks."""
    slot_layers: int = 0
    """How many of InsNet's blocks are not for encoding tokens, but for slots that look at the canvas."""
    heads: int = 8
    """Attention heads per block."""
    vocabulary: int = 16_384
    """Tokens in the vocabulary."""
    device: str = "auto"
    """Where to run."""
    rounds: int = 3
    """Texts of each kind that are timed, in turns; medians are compared."""
    warmup: int = 1
    """Texts before that."""
    seed: int = 0
    """The seed of weights and texts."""

    def __post_init__(self) -> None:
        for name in ("lengths", "batch_sizes"):
            if min(getattr(self, name), default=0) < 1:
                raise ValueError(f"{name} are {getattr(self, name)}; expected one or more, each 1 or more")
        if self.rounds < 1 or self.warmup < 0:
            raise ValueError(f"rounds is {self.rounds} and warmup {self.warmup}; expected at least 1 and 0")


def measure(config: DecodeSpeedConfig) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline (reencode_over_cached_n64, ...) and the detail behind it."""
    device = find_device(config.device)
    bench = Bench(config, device)
    rows = []
    for batch in config.batch_sizes:
        for length in config.lengths:
            timings = bench.compare(length, batch, reencodes=batch <= config.reencode_up_to)
            rows.append({"n": length, "batch": batch, **_described(timings, length * batch)})
    settings = {**asdict(config), "device": device.type, "generation": bench.decide.chooser.config.flat()}
    return _headline(rows), {"settings": settings, "threads": torch.get_num_threads(), "runs": rows}


def _headline(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Ratios of each run, one text at a time without a suffix; and how the cost of a token grows with the length."""
    headline: dict[str, float] = {}
    for row in rows:
        suffix = "" if row["batch"] == 1 else f"_batch{row['batch']}"
        cached = row["cached_ms_per_token"]
        if "reencoded_ms_per_token" in row:
            headline[f"reencode_over_cached_n{row['n']}{suffix}"] = row["reencoded_ms_per_token"] / cached
    for batch in dict.fromkeys(row["batch"] for row in rows):
        suffix = "" if batch == 1 else f"_batch{batch}"
        of_batch = sorted((row for row in rows if row["batch"] == batch), key=lambda row: row["n"])
        short, long = of_batch[0], of_batch[-1]
        headline[f"insnet_over_ar_token_latency{suffix}"] = (
            short["cached_ms_per_token"] / short["autoregressive_ms_per_token"]
        )
        headline[f"insnet_tokens_per_s_batch{batch}"] = 1000 / short["cached_ms_per_token"]
        headline[f"cost_of_token_n{long['n']}_over_n{short['n']}{suffix}"] = (
            long["cached_ms_per_token"] / short["cached_ms_per_token"]
        )
    return headline


class Bench:
    """Two models of one size and a way to decide, ready to be timed."""

    def __init__(self, config: DecodeSpeedConfig, device: torch.device) -> None:
        self.config, self.device = config, device
        self.insnet = untrained("insnet", config).eval().to(device)
        self.autoregressive = untrained("autoregressive", config).eval().to(device)
        lexicon = _plain_lexicon(config.vocabulary).to(device)
        self.decide = Decider(Chooser(GenerationConfig.of(stopping="sampled"), lexicon))

    def compare(self, length: int, batch: int, *, reencodes: bool) -> dict[str, Timing]:
        """Texts of `length` tokens: InsNet with its cache and, if wanted, without; left to right with its cache."""
        prompt = empty_prompt(batch, length, self.config.seed, self.device)
        rivals: dict[str, Callable[[], object]] = {
            "cached": lambda: write_cached(self.insnet, prompt, self.decide),
            "autoregressive": lambda: write_cached(self.autoregressive, prompt, self.decide),
        }
        if reencodes:
            rivals["reencoded"] = lambda: write_reencoded(self.insnet, prompt, self.decide)
        return time_in_turns(rivals, rounds=self.config.rounds, warmup=self.config.warmup, device=self.device)


def write_cached(model: Generator, prompt: Prompt, decide: Decider) -> int:
    """Tokens written by the decode loop that all of the product uses."""
    puts = [step.edits.puts().sum() for step in decode(model, prompt, decide)]
    return int(torch.stack(puts).sum())  # asked once, at the end: the loop itself must not wait for it


@torch.no_grad()
def write_reencoded(model: Generator, prompt: Prompt, decide: Decider) -> int:
    """Tokens written by the slow obvious twin: after every insertion the whole canvas is encoded anew.

    Its canvas is only as large as it must be, which a cache has to reserve in advance: the twin is given every
    advantage but one (it computes the keys of all offsets anew, about a seventh of its work at one row).
    """
    canvas, step, written = prompt.canvas, 0, 0
    while True:
        length = int(canvas.length.max())
        state = model.start(replace(prompt, canvas=_trimmed(canvas, length + 1), longest=length))
        counter = torch.full_like(state.step, step)
        state = replace(state, step=counter, inserted=counter)
        edits = decide(model.offer(state), state)
        if bool(edits.finished.all()):
            return written
        canvas, _ = apply(canvas, edits)
        step, written = step + 1, written + int(edits.puts().sum())


def empty_prompt(rows: int, insertions: int, seed: int, device: torch.device) -> Prompt:
    """Nothing given, and exactly so many insertions to make."""
    tokens = torch.zeros(rows, insertions + 3, dtype=torch.int64, device=device)
    tokens[:, 0], tokens[:, 1] = BOS, EOS

    def every_row(number: int) -> torch.Tensor:
        return torch.full((rows,), number, device=device)

    return Prompt(
        canvas=Canvas(
            tokens, torch.full_like(tokens, INSERTED), torch.zeros_like(tokens, dtype=torch.bool), every_row(2)
        ),
        limits=Limits(
            min_words=every_row(0),
            max_words=every_row(_MANY_WORDS),
            max_tokens=every_row(insertions),
            insertions=every_row(insertions),
            slack=every_row(0),
            word_correction=every_row(0),
            forbidden=torch.zeros(rows, 0, 1, dtype=torch.int64, device=device),
            fills_blanks=every_row(0).bool(),
            has_blanks=False,
            least_in_gap=torch.zeros(rows, 0, dtype=torch.int64, device=device),
            most_in_gap=torch.zeros(rows, 0, dtype=torch.int64, device=device),
            given_words=every_row(0),
        ),
        seeds=seed + torch.arange(rows, device=device),
        longest=2,
        order=every_row(0),
    )


def _trimmed(canvas: Canvas, capacity: int) -> Canvas:
    capacity = min(capacity, canvas.capacity)
    tables = canvas.tokens[:, :capacity], canvas.origin[:, :capacity], canvas.closed_after[:, :capacity]
    return Canvas(*tables, canvas.length)


def _plain_lexicon(vocabulary: int) -> Lexicon:
    """Every token a word of its own."""
    yes, no = torch.ones(vocabulary, dtype=torch.bool), torch.zeros(vocabulary, dtype=torch.bool)
    generatable = yes.clone()
    generatable[: len(SPECIALS)] = False
    return Lexicon(yes, no, no, yes, yes, generatable, yes)


def _described(timings: dict[str, Timing], tokens: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, timing in timings.items():
        found[f"{name}_seconds"] = timing.median
        found[f"{name}_spread"] = timing.spread()
        found[f"{name}_ms_per_token"] = 1000 * timing.median / tokens
    return found
