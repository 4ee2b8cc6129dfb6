"""How long a run has taken, and how much of its budget of time that is: the same for all its processes."""

import time
from typing import Any

import torch


class Clock:
    """A run's time over all restarts. Learning rate and progress go by the first process's: by clocks of their own the
    processes would drift apart, and their weights with them."""

    def __init__(self, accelerator: Any, minutes: float, seconds: float) -> None:
        self._accelerator, self._budget = accelerator, 60 * minutes
        self._lap_began = time.perf_counter()
        self.seconds = seconds
        """Up to the last lap."""
        self.spent = 0.0
        """The share of the budget that is used up, as last agreed; 0 where there is none."""

    def lap(self) -> float:
        """Seconds since the last lap."""
        now = time.perf_counter()
        seconds, self._lap_began = max(now - self._lap_began, 1e-9), now
        self.seconds += seconds
        return seconds

    def agree(self, wants_stop: bool = False) -> bool:
        """Reads the clock, on all processes at the same point; whether any of them wants to stop."""
        seconds = self.seconds + time.perf_counter() - self._lap_began
        self.spent = seconds / self._budget if self._budget else 0.0
        if self._accelerator.num_processes == 1:
            return wants_stop
        own = [self.spent if self._accelerator.is_main_process else 0.0, float(wants_stop)]
        shared = torch.tensor(own, dtype=torch.float64, device=self._accelerator.device)
        self.spent, stops = self._accelerator.reduce(shared, "sum").tolist()
        return bool(stops > 0)
