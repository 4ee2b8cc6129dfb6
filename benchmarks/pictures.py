"""Plots as files: small, and the same bytes each time."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from insnet.files import write_atomically

_STYLE: dict[Any, Any] = {"svg.hashsalt": "insnet", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
_FINE = re.compile(r"\b\d+\.\d{2,}")


@contextmanager
def panels(number: int, path: str | Path, *, size: tuple[float, float] = (2.6, 2.4)) -> Iterator[list[Any]]:
    """Axes side by side, of a size in inches each, which become a picture (.svg or .png) once something is plotted."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(_STYLE):
        whole = (size[0] * number, size[1])
        figure, [axes] = plt.subplots(1, number, figsize=whole, layout="constrained", squeeze=False)
        yield list(axes)
        _save(figure, Path(path))
        plt.close(figure)


def _save(figure: Any, path: Path) -> None:
    if path.suffix != ".svg":
        figure.savefig(path)
        return
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    # A tenth of a point is finer than a screen; spaces at the ends of lines are matplotlib's.
    fine = _FINE.sub(lambda number: f"{float(number[0]):.1f}", text.getvalue())
    write_atomically(path, re.sub(r"[ \t]+$", "", fine, flags=re.MULTILINE))
