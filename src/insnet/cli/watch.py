"""A sentence growing before one's eyes."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Any

from insnet.cli.terminal import with_keywords

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_SECONDS_A_STEP = 0.12  # a step takes a few milliseconds, which no eye can follow
_PART = re.compile(r"[\w'’-]+|[^\w\s]")
_NEWEST = "bold black on green"
_COLOURS = ("yellow", "magenta", "green", "red", "blue", "bright_black")  # cyan is for required words


def watch(steps: Iterable[dict[str, Any]], keywords: Sequence[str]) -> None:
    """Shows trace entries as they come: in place on a terminal, elsewhere one line per step."""
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

    view = View.of(" ".join(keywords))
    with Live(_numbered(0, view.styled(keywords)), console=console, auto_refresh=False) as live:
        live.refresh()
        for step in steps:
            time.sleep(_SECONDS_A_STEP)
            view = view.grown(step["text"])
            live.update(_numbered(view.step, view.styled(keywords, shows_newest=True)), refresh=True)
        time.sleep(_SECONDS_A_STEP)
        live.update(_numbered(view.step, view.styled(keywords)), refresh=True)


@dataclass(frozen=True)
class View:
    """A text, and which step each of its words and symbols came with."""

    text: str
    step: int
    step_of_part: tuple[int, ...]
    """0 for what was there from the start."""

    @classmethod
    def of(cls, text: str) -> "View":
        """A text before the first step."""
        return cls(text, 0, (0,) * len(_PART.findall(text)))

    def grown(self, text: str) -> "View":
        """The text after one more step; what was not in the previous one is new, but for its capital."""
        step_of_part: list[int] = []
        before, after = ([part.lower() for part in _PART.findall(each)] for each in (self.text, text))
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        for kind, first, last, new_first, new_last in matcher.get_opcodes():
            is_old = kind == "equal"
            step_of_part += self.step_of_part[first:last] if is_old else [self.step + 1] * (new_last - new_first)
        return View(text, self.step + 1, tuple(step_of_part))

    def parts(self) -> list[tuple[int, int, int]]:
        """Step, start and end of each word and symbol."""
        spans = [part.span() for part in _PART.finditer(self.text)]
        return [(step, *span) for step, span in zip(self.step_of_part, spans, strict=True)]

    def styled(self, keywords: Sequence[str], *, shows_newest: bool = False) -> "Text":
        """The text with its required words styled. Words that went in together share a colour, the newest are
        highlighted."""
        styled = with_keywords(self.text, keywords)
        size = Counter(self.step_of_part)
        for step, run in groupby(self.parts(), key=lambda part: part[0]):
            [(_, start, end), *others] = run
            end = others[-1][2] if others else end
            if step == self.step > 0 and shows_newest:
                styled.stylize(_NEWEST, start, end)
            elif step > 0 and size[step] > 1:
                styled.stylize(_COLOURS[step % len(_COLOURS)], start, end)
        return styled


def _numbered(number: int, text: "Text") -> "Text":
    from rich.text import Text

    return Text.assemble((f"{number:>3}  ", "dim"), text)


def _line(number: int, text: str) -> str:
    return f"{number:>3}  {text}"
