"""Where training runs, and who may stop it."""

import importlib.util
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from insnet.devices import cpu_has_bf16, find_device
from insnet.training.recipe import TrainConfig


def make_accelerator(config: TrainConfig) -> Any:
    """accelerate's Accelerator for this process, one of several if torchrun or accelerate started it."""
    if importlib.util.find_spec("accelerate") is None:
        raise ValueError("training needs the accelerate package: pip install 'insnet[train]'")
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    on_gpu = find_device(config.device).type == "cuda"
    if config.precision == "bf16" and not (on_gpu or cpu_has_bf16()):
        raise ValueError(
            "train.precision 'bf16' needs a GPU, or a CPU that computes in it: set it to 'auto' or 'float32'"
        )
    if AcceleratorState._shared_state and not torch.distributed.is_initialized():
        AcceleratorState._reset_state(reset_partial_state=True)  # an earlier run of this process may have used another
    is_half = config.precision == "bf16" or (config.precision == "auto" and on_gpu)
    return Accelerator(mixed_precision="bf16" if is_half else "no", cpu=not on_gpu)


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C or a polite kill came; a second one stops at once.

    Signals reach the main thread only; elsewhere none arrives.
    """
    requested = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def on_signal(number: int, frame: FrameType | None) -> None:
        requested.set()
        signal.signal(number, before[signal.Signals(number)])

    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield requested.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
