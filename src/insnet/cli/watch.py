"""A sentence growing before one's eyes."""

import re
import time
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from insnet.cli.terminal import with_keywords

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_SECONDS_A_STEP = 0.12  # a step takes a few milliseconds, which no eye can follow
_PART = re.compile(r"[\w'’-]+|[^\w\s]")


def watch(steps: Iterable[dict[str, Any]], keywords: Sequence[str]) -> None:
    """Shows trace entries as they come: in place on a terminal, elsewhere one line a step."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        _watch_in_place(steps, keywords, console)
    else:
        print(_line(0, " ".join(keywords)), flush=True)
        for step in steps:
            print(_line(step["step"], step["text"]), flush=True)


def _watch_in_place(steps: Iterable[dict[str, Any]], keywords: Sequence[str], console: "Console") -> None:
    from rich.live import Live

    text, number = " ".join(keywords), 0
    with Live(_frame(number, with_keywords(text, keywords)), console=console, auto_refresh=False) as live:
        live.refresh()
        for step in steps:
            time.sleep(_SECONDS_A_STEP)
            previous, text, number = text, step["text"], step["step"]
            live.update(_frame(number, with_newest(text, previous, keywords)), refresh=True)
        time.sleep(_SECONDS_A_STEP)
        live.update(_frame(number, with_keywords(text, keywords)), refresh=True)


def with_newest(text: str, previous: str, keywords: Sequence[str]) -> "Text":
    """The text with its required words styled, and what was not in the previous text highlighted."""
    styled = with_keywords(text, keywords)
    parts = list(_PART.finditer(text))
    matcher = SequenceMatcher(None, _PART.findall(previous), [part.group() for part in parts], autojunk=False)
    for kind, _, _, first, last in matcher.get_opcodes():
        if kind in ("insert", "replace"):
            styled.stylize("bold black on green", parts[first].start(), parts[last - 1].end())
    return styled


def _frame(number: int, text: "Text") -> "Text":
    from rich.text import Text

    return Text.assemble((f"{number:>3}  ", "dim"), text)


def _line(number: int, text: str) -> str:
    return f"{number:>3}  {text}"
