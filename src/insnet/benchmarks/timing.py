"""Fair timing of rivals: in turns, after a warm-up, compared by their medians."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Timing:
    """The seconds that each round took."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median: how far to trust it."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / 2 / self.median


def time_in_turns(
    rivals: Mapping[str, Callable[[], object]], *, rounds: int, warmup: int, device: torch.device
) -> dict[str, Timing]:
    """The timing of each rival; they take turns, so that whatever else the machine does hits all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for number in range(warmup + rounds):
        for name, run in rivals.items():
            elapsed = _seconds(run, device)
            if number >= warmup:
                seconds[name].append(elapsed)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def peak_memory(run: Callable[[], object], device: torch.device) -> int | None:
    """The most bytes of GPU memory that a run added to what was in use; None where there is no GPU to ask."""
    if device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    run()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    _wait(device)
    start = time.perf_counter()
    run()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
