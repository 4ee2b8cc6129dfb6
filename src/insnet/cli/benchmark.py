"""`insnet benchmark`: how fast models of a size train and decode; each ends in one JSON line."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from insnet.cli import options, terminal

app = typer.Typer(help="Measure how fast models train and decode; each ends in one JSON line.", no_args_is_help=True)

WidthOption = Annotated[int, typer.Option(min=2, help="Size of a token's vector.")]
LayersOption = Annotated[int, typer.Option(min=1, help="Transformer blocks.")]
SlotLayersOption = Annotated[
    int, typer.Option(min=0, help="How many of InsNet's are for slots that look at the canvas.")
]
HeadsOption = Annotated[int, typer.Option(min=1, help="Attention heads a block.")]
VocabularyOption = Annotated[int, typer.Option(min=6, help="Tokens in the vocabulary.")]
SeedOption = Annotated[int, typer.Option(help="The seed of weights and texts.")]
WarmupOption = Annotated[int, typer.Option(min=0, help="Rounds before the clock starts.")]
ResultOption = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Also write a results file, NAME.json.")
]


@app.command()
def train_speed(
    lengths: Annotated[
        str, typer.Option("-n", "--lengths", help="Tokens of a sentence, several with commas.")
    ] = "32,64,128,256,1024",
    width: WidthOption = 512,
    layers: LayersOption = 8,
    slot_layers: SlotLayersOption = 0,
    heads: HeadsOption = 8,
    vocabulary: VocabularyOption = 16_384,
    batch_tokens: Annotated[int, typer.Option(min=4, help="Tokens of a batch.")] = 16_384,
    tau: Annotated[
        str, typer.Option(metavar="A,B,...", help="Time InsNet in layers of these tolerances over one by one instead.")
    ] = "",
    precision: Annotated[str, typer.Option(help="auto, float32 or bf16.")] = "auto",
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the losses of both models.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Steps to time of each.")] = 20,
    warmup: WarmupOption = 5,
    seed: SeedOption = 0,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Time a training step of InsNet over one of the autoregressive model of its size, or in layers over one by one.

    insnet benchmark train-speed --tau 0.3 --lengths 32,64
    """
    from insnet.benchmarks.train_speed import TrainSpeedConfig, measure

    config = TrainSpeedConfig(
        lengths=numbers(lengths),
        width=width,
        layers=layers,
        slot_layers=slot_layers,
        heads=heads,
        vocabulary=vocabulary,
        batch_tokens=batch_tokens,
        tau=tolerances(tau),
        precision=precision,
        compile=compiled,
        device=device,
        rounds=rounds,
        warmup=warmup,
        seed=seed,
    )
    report("random sentences", seed, output, *measure(config))


@app.command()
def decode_speed(
    lengths: Annotated[
        str, typer.Option("-n", "--lengths", help="Tokens to insert, several with commas.")
    ] = "32,64,128,256",
    batch_sizes: Annotated[str, typer.Option(help="Texts at a time, several with commas.")] = "1,64,128",
    width: WidthOption = 512,
    layers: LayersOption = 8,
    slot_layers: SlotLayersOption = 0,
    heads: HeadsOption = 8,
    vocabulary: VocabularyOption = 16_384,
    rounds: Annotated[int, typer.Option(min=1, help="Texts to time of each kind.")] = 3,
    warmup: WarmupOption = 1,
    seed: SeedOption = 0,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Time decoding: the cache over encoding everything anew, and InsNet over the autoregressive model."""
    from insnet.benchmarks.decode_speed import DecodeSpeedConfig, measure

    config = DecodeSpeedConfig(
        lengths=numbers(lengths),
        batch_sizes=numbers(batch_sizes),
        width=width,
        layers=layers,
        slot_layers=slot_layers,
        heads=heads,
        vocabulary=vocabulary,
        device=device,
        rounds=rounds,
        warmup=warmup,
        seed=seed,
    )
    report("random weights, lengths prescribed", seed, output, *measure(config))


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers with commas, as an option takes them."""
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"cannot read {text!r}; expected numbers with commas, as in 32,64") from None


def tolerances(text: str) -> tuple[float, ...]:
    """Numbers with commas, which may be infinite; none for an empty text."""
    try:
        return tuple(float(number) for number in text.split(",")) if text else ()
    except ValueError:
        raise typer.BadParameter(f"cannot read {text!r}; expected numbers with commas, as in 0.3,0.5") from None


def report(
    data: str,
    seeds: int | Sequence[int],
    output: Path | None,
    headline: dict[str, float],
    detail: dict[str, Any],
    *,
    outputs: Sequence[str] | None = None,
    command: Sequence[str] = (),
) -> None:
    """Prints a measurement as one JSON line, and writes its results file if one is asked for; texts that were scored
    are `outputs`. Left out, `command` is this one."""
    if output is not None:
        from insnet.evaluation.results import write_result

        path = write_result(
            output,
            command=command or ["insnet", *sys.argv[1:]],
            headline=headline,
            seeds=[seeds] if isinstance(seeds, int) else seeds,
            data=data,
            detail=detail,
            outputs=outputs,
        )
        terminal.note(f"written: {path}")
    terminal.print_json({"headline": headline, **detail})
