"""What a training run reports while it goes on, and how a terminal shows it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO


@dataclass(frozen=True)
class Notice:
    """Something worth a line."""

    text: str


@dataclass(frozen=True)
class Started:
    """Training begins, or goes on, after `update` updates."""

    update: int
    updates: int
    parameters: int
    """How many learn."""
    device: str
    processes: int


@dataclass(frozen=True)
class Updated:
    """Some updates were made; the losses are the last one's."""

    update: int
    updates: int
    """How many there will be; in a run with a budget of time, as many as its pace lets expect."""
    losses: dict[str, float]
    """Nats per decision, and "loss"."""
    learning_rate: float
    insertions_per_second: float
    """Learned from, since the last report."""
    seconds_left: float
    """Until the end, at the pace of the whole run."""


@dataclass(frozen=True)
class Evaluated:
    """The valid split was evaluated."""

    update: int
    losses: dict[str, float]
    is_best: bool


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written."""

    update: int
    path: Path


@dataclass(frozen=True)
class Ended:
    """No more updates follow."""

    status: str
    update: int
    seconds: float


Event = Notice | Started | Updated | Evaluated | Saved | Ended
Listener = Callable[[Event], None]


def console(stream: TextIO | None = None) -> Listener:
    """A listener for people: a progress bar on a terminal, plain lines elsewhere; standard error unless given."""
    stream = stream or sys.stderr
    return _Bar(stream) if stream.isatty() else _Lines(stream)


def text_of_event(event: Event) -> str | None:
    """One line about an event; nothing about routine ones."""
    match event:
        case Notice(text):
            return text
        case Started():
            after = f", going on after update {event.update}" if event.update else ""
            processes = f" x {event.processes}" if event.processes > 1 else ""
            return f"training {event.parameters:,} parameters on {event.device}{processes}{after}"
        case Updated():
            return f"update {event.update}/{event.updates}  {_progress(event)}"
        case Evaluated():
            best = "  (best so far)" if event.is_best else ""
            return f"update {event.update}  valid loss {event.losses['loss']:.3f}{best}"
        case Ended():
            return f"{event.status} after {event.update} updates, {event.seconds:,.0f} s"
        case Saved():
            return None


class _Lines:
    """One plain line an event."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        if (text := text_of_event(event)) is not None:
            print(text, file=self._stream, flush=True)


class _Bar:
    """A progress bar with loss, speed and the time that is left; other events scroll by above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}")
        self._progress = Progress(*columns, console=Console(file=stream))
        self._task: Any = None

    def __call__(self, event: Event) -> None:
        match event:
            case Started():
                self._print(event)
                self._task = self._progress.add_task("", total=event.updates, completed=event.update)
                self._progress.start()
            case Updated():
                self._progress.update(
                    self._task, completed=event.update, total=event.updates, description=_progress(event)
                )
            case Ended():
                self._progress.stop()
                self._print(event)
            case _:
                self._print(event)

    def _print(self, event: Event) -> None:
        if (text := text_of_event(event)) is not None:
            self._progress.console.print(text, markup=False, highlight=False)


def _progress(event: Updated) -> str:
    """Loss, speed and time left; everything else is in the run folder's metrics."""
    minutes, seconds = divmod(round(event.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"loss {event.losses['loss']:.3f}  {event.insertions_per_second:,.0f} insertions/s  "
        f"{hours}:{minutes:02}:{seconds:02} left"
    )
