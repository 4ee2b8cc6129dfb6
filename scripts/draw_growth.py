"""Draws a sentence that grows, for the README: python -m scripts.draw_growth [FILE.svg].

The small model writes it in parallel; `insnet generate --mode parallel` prints the same sentence. Required words are
blue, new ones green.
"""

import sys
from html import escape
from pathlib import Path

import insnet
from insnet.cli.watch import View
from insnet.shelf import SMALL

FIGURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "growing.svg"
KEYWORDS = ["day", "decided", "started", "focus"]
SETTINGS = {"mode": "parallel", "seed": 2}
INK, MUTED, GIVEN, NEW = "#1f2933", "#7b8794", "#1d5fbf", "#0b7a45"
WIDTH, LEFT, TOP, ROW = 850, 44, 34, 30  # room for fonts that are wider than Helvetica


def drawn(views: list[View]) -> str:
    """An SVG with a line for every round."""
    height = TOP + ROW * len(views)
    rows = [line(view, number, TOP + ROW * number) for number, view in enumerate(views)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(views[-1].text)}</title>",
            "<style>text { font: 17px Helvetica, Arial, sans-serif; } .n { font-weight: bold; }</style>",
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff" stroke="#cbd2d9"/>',
            *rows,
            "</svg>\n",
        ]
    )


def line(view: View, number: int, height: int) -> str:
    """The canvas after a round: words that were asked for, words that are new, and all others."""
    spans, end = [], 0
    for step, start, stop in view.parts():
        spans.append(escape(view.text[end:start]))
        colour = GIVEN if step == 0 else NEW if step == number else INK
        kind = ' class="n"' if step in (0, number) else ""
        spans.append(f'<tspan fill="{colour}"{kind}>{escape(view.text[start:stop])}</tspan>')
        end = stop
    spans.append(escape(view.text[end:]))
    label = f'<text x="16" y="{height}" fill="{MUTED}">{number}</text>'
    return f'{label}<text x="{LEFT}" y="{height}" fill="{INK}" xml:space="preserve">{"".join(spans)}</text>'


def views_of(result: insnet.Result) -> list[View]:
    """The canvas at the start and after every round."""
    views = [View.of(" ".join(result.keywords))]
    for entry in result.trace:
        views.append(views[-1].grown(entry["text"]))
    return views


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURE
    path.write_text(drawn(views_of(insnet.load(SMALL, device="cpu").generate(KEYWORDS, **SETTINGS))), encoding="utf-8")
    print(path)
