"""A run's model with few bits per weight, in the folder small of the run: python -m scripts.small_model RUN 8|16.

Of a run that learned an adapter, the adapter alone.
"""

import shutil
import sys
from pathlib import Path

import torch

from insnet.families.quantize import quantized
from insnet.families.storage import (
    load_model,
    read_tensors,
    save_model,
    write_tensors,
)
from insnet.files import ADAPTER_FILE, ADAPTER_WEIGHTS_FILE, CONFIG_FILE, GENERATION_FILE, WEIGHTS_FILE
from insnet.layers.low_rank import plain_name
from insnet.training.checkpoint import newest_checkpoint
from insnet.training.run_folder import ADAPTER_FOLDER

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def main() -> None:
    run, bits = Path(sys.argv[1]), int(sys.argv[2])
    if bits not in (8, 16):
        raise SystemExit(f"{bits} bits per weight: expected 8 or 16")
    small = run / "small"
    small.mkdir(exist_ok=True)
    if (run / ADAPTER_FOLDER).is_dir():
        write_adapter(run, small, bits)
    else:
        write_model(run, small, bits)
    shutil.copyfile(run / GENERATION_FILE, small / GENERATION_FILE)


def write_model(run: Path, small: Path, bits: int) -> None:
    """The whole model and its tokenizer."""
    model = load_model(run, "cpu")
    if bits == 8:
        save_model(small, model, eight_bits=True)
    else:
        save_model(small, model, dtype=torch.bfloat16)
    for name in TOKENIZER_FILES:
        shutil.copyfile(run / name, small / name)


def write_adapter(run: Path, small: Path, bits: int) -> None:
    """What the newest checkpoint has learned."""
    checkpoint = newest_checkpoint(run / "checkpoints")
    if checkpoint is None:
        raise SystemExit(f"{run} has no checkpoint to take the adapter from")
    learned = {plain_name(name): tensor for name, tensor in read_tensors(checkpoint / WEIGHTS_FILE).items()}
    halved = {name: tensor.bfloat16() for name, tensor in learned.items()}
    write_tensors(small / ADAPTER_WEIGHTS_FILE, quantized(learned) if bits == 8 else halved)
    for source in (run / CONFIG_FILE, run / ADAPTER_FOLDER / ADAPTER_FILE):
        shutil.copyfile(source, small / source.name)


if __name__ == "__main__":
    main()
