"""What the commands print: results on stdout, everything else on stderr."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.text import Text

_REQUIRED = "bold cyan"


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object as one line on stdout, there at once for a reader at the other end of a pipe."""
    print(json_line(values), flush=True)


def json_line(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False)


def note(text: str) -> None:
    """A remark for a person, on stderr."""
    from rich.console import Console

    Console(stderr=True, highlight=False).print(text, markup=False, style="dim", soft_wrap=True)


@contextmanager
def progress_bar(what: str, *, total: int | None, done: int = 0) -> "Iterator[_Bar]":
    """A bar on stderr, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        yield _Bar(progress, progress.add_task(what, total=total, completed=done))


class _Bar:
    def __init__(self, progress: "Progress", task: Any) -> None:
        self._progress, self._task = progress, task

    def advance(self, amount: int) -> None:
        self._progress.advance(self._task, amount)

    def reach(self, amount: int) -> None:
        self._progress.update(self._task, completed=amount)


def with_keywords(text: str, keywords: Sequence[str]) -> "Text":
    """The text with its required words in a style of their own, each where it first comes after the one before."""
    from rich.text import Text

    from insnet.text.words import find_phrase

    styled, end = Text(text), 0
    for keyword in keywords:
        span = next(find_phrase(text, keyword, end), None)
        if span is None:  # a family that promises nothing may leave a keyword out
            continue
        styled.stylize(_REQUIRED, *span)
        end = span[1]
    return styled


def print_text(text: str, keywords: Sequence[str]) -> None:
    """A finished text on stdout; required words stand out if that is a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        console.print(with_keywords(text, keywords), soft_wrap=True)
    else:
        print(text, flush=True)


def print_spans(text: str, spans: Sequence[tuple[int, int]]) -> None:
    """A finished text on stdout; what stands at some spans of it stands out if that is a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if console.is_terminal:
        styled = Text(text)
        for span in spans:
            styled.stylize(_REQUIRED, *span)
        console.print(styled, soft_wrap=True)
    else:
        print(text, flush=True)
