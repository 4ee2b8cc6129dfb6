"""Draws the figures of docs/positions.md from the code of insnet.insertion: python -m scripts.draw_figures [FOLDER].

The functions of the first half return the numbers, those of the second half draw them; nothing is typed by hand but
the example: "I have a pen .", inserted as <bos> <eos> have pen I a . (the paper's own).
Shapes: T steps in insertion order; matrices are [step, token], both counted in insertion order unless said otherwise.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from insnet.insertion.offsets import offsets_of_order
from insnet.insertion.trajectory import neighbours_of_step, slot_of_step

TEXT = ["<bos>", "I", "have", "a", "pen", ".", "<eos>"]
POSITION_OF_STEP = [0, 6, 2, 4, 1, 3, 5]

Axes = Any  # matplotlib is imported only when something is drawn


# --- the numbers ---


def place_after_step(position_of_step: Tensor) -> Tensor:
    """Where token j stands on the canvas after step t, as (T, T) [t, j]; -1 for tokens not yet there."""
    own_place = slot_of_step(position_of_step[None])[0] + 1  # (T,): a token stands right of the slot it went into
    places = offsets_of_order(position_of_step[None], torch.int64)[0] + own_place[:, None]
    return places.masked_fill(~_is_there(position_of_step), -1)


def moved_in_step(position_of_step: Tensor) -> Tensor:
    """Whether step t pushed token j to another place, as (T, T) [t, j]."""
    places = place_after_step(position_of_step)
    before = torch.cat([torch.full_like(places[:1], -1), places[:-1]])
    return (before >= 0) & (places != before)


def vanilla_relative_positions(position_of_step: Tensor) -> Tensor:
    """Distances (T, T) [query, key] in the finished text, which a model in the middle of writing cannot know."""
    return (position_of_step[None, :] - position_of_step[:, None]).tril()


def offsets(position_of_step: Tensor) -> Tensor:
    """The offset matrix (T, T) [query, key]."""
    return offsets_of_order(position_of_step[None], torch.int64)[0]


def restored_offsets(position_of_step: Tensor) -> tuple[Tensor, Tensor]:
    """The offset matrix with its columns in reading order, and whether [step, position] is on the canvas by then."""
    columns = position_of_step.argsort()
    return offsets(position_of_step)[:, columns], _is_there(position_of_step)[:, columns]


def compression_stages(position_of_step: Tensor) -> dict[str, Tensor]:
    """The four matrices (T, T) of offset compression as the paper tells it; masked entries hold MASKED."""
    is_there = _is_there(position_of_step)
    duplicated = position_of_step[None, :].expand(len(position_of_step), -1)
    ranked = place_after_step(position_of_step)
    return {
        "duplicated": duplicated,
        "masked": duplicated.masked_fill(~is_there, MASKED),
        "ranked": ranked.masked_fill(~is_there, MASKED),
        "baselined": offsets(position_of_step).masked_fill(~is_there, MASKED),
    }


MASKED = torch.iinfo(torch.int64).max  # larger than any position, so it never counts in a ranking


def sequential_layer_of_step(position_of_step: Tensor) -> list[int]:
    """One token per layer, <bos> and <eos> standing above all layers in layer 0."""
    return [max(step - 1, 0) for step in range(len(position_of_step))]


def merged_layer_of_step(position_of_step: Tensor) -> list[int]:
    """The depth of each token in the binary search tree that the order builds: the layers of tau = infinity."""
    layer_of_step = [0, 0]
    for parent in parent_of_step(position_of_step)[2:]:
        layer_of_step.append(layer_of_step[parent] + 1)
    return layer_of_step


def parent_of_step(position_of_step: Tensor) -> list[int]:
    """The later one of the two neighbours a token had when it went in; -1 for <bos> and <eos>."""
    left, right = (steps[0].tolist() for steps in neighbours_of_step(position_of_step[None]))
    return [-1, -1, *map(max, left[2:], right[2:])]


def _is_there(position_of_step: Tensor) -> Tensor:
    """Whether token j is on the canvas after step t, as (T, T) [t, j]."""
    return torch.ones(len(position_of_step), len(position_of_step), dtype=torch.bool).tril()


# --- the drawings ---

INK, MUTED, RULE, PAPER = "#1f2933", "#7b8794", "#cbd2d9", "#ffffff"
STILL, NEW, MOVED = "#eef2f6", "#bfe3d0", "#f8cdbd"
LEFT_TINT, RIGHT_TINT = (0.36, 0.55, 0.80), (0.90, 0.58, 0.25)  # keys left and right of the query


def draw_volatile_positions(position_of_step: Tensor) -> Any:
    """Figure 1: the canvas after every insertion; what an insertion pushes aside changes its position."""
    words = _words(position_of_step)
    places, moved = place_after_step(position_of_step), moved_in_step(position_of_step)
    last = len(words) - 1
    figure, axes = _blank_figure(7.6, 4.6)
    for step in range(1, last + 1):
        for token in range(step + 1):
            place = int(places[step, token])
            is_new = token == step or step == 1
            colour = NEW if is_new else MOVED if moved[step, token] else STILL
            if not is_new:
                _line(axes, (int(places[step - 1, token]), step - 1 + 0.3), (place, step - 0.3), moved[step, token])
            _box(axes, place, step, words[token], colour)
            axes.text(place + 0.37, step + 0.21, str(place), fontsize=7, color=MUTED, ha="right", va="center")
        label = "start" if step == 1 else f"+ {words[step]}"
        axes.text(-0.75, step, label, ha="right", va="center", fontsize=10, color=INK)
    _legend(axes, last + 0.85, [(NEW, "inserted"), (MOVED, "pushed to another position"), (STILL, "unmoved")])
    axes.set_xlim(-1.75, last + 0.5)
    axes.set_ylim(last + 1.15, 0.55)
    return figure


def draw_position_encodings(position_of_step: Tensor) -> Any:
    """Figure 3: four ways to say where tokens stand, row by row what the token of that step sees."""
    plt = _pyplot()
    words = _words(position_of_step)
    is_there = _is_there(position_of_step)
    restored, restored_is_there = restored_offsets(position_of_step)
    vanilla, ours = vanilla_relative_positions(position_of_step), offsets(position_of_step)
    figure, axes = plt.subplots(1, 4, figsize=(13.2, 4.1))
    _matrix(axes[0], place_after_step(position_of_step), is_there, words, words, moved_in_step(position_of_step))
    _matrix(axes[1], vanilla, is_there, words, words, vanilla != ours)
    _matrix(axes[2], ours, is_there, words, words)
    _matrix(axes[3], restored, restored_is_there, words, _in_reading_order(words, position_of_step))
    titles = ["absolute positions", "vanilla relative positions", "offsets, insertion order", "offsets, reading order"]
    notes = [
        "red: the position changed after\nthe token had been encoded",
        "red: counts tokens that are\nnot on the canvas yet",
        "blue to the left, amber to the right;\na row is final once its token is in",
        "each row counts through the\ncanvas of its step without a gap",
    ]
    for panel, letter, title, note in zip(axes, "abcd", titles, notes, strict=True):
        panel.set_title(f"({letter}) {title}", fontsize=11, color=INK, pad=44)
        panel.text(3, 7.15, note, ha="center", va="center", fontsize=9, color=MUTED)
    axes[0].set_ylabel("step: the token that goes in", fontsize=9, color=MUTED)
    figure.subplots_adjust(left=0.06, right=0.98, top=0.76, bottom=0.1, wspace=0.28)
    return figure


def draw_offset_compression(position_of_step: Tensor) -> Any:
    """Figure 4: from an order to its offsets in four whole-matrix operations."""
    plt = _pyplot()
    words = _words(position_of_step)
    stages = compression_stages(position_of_step)
    figure, axes = plt.subplots(1, 4, figsize=(13.2, 4.1))
    notes = [
        "the order, once for every step",
        "later tokens become infinite",
        "each row by rank: places on the\ncanvas just after the step",
        "each row minus its diagonal:\nseen from the new token",
    ]
    for index, (panel, (name, stage), note) in enumerate(zip(axes, stages.items(), notes, strict=True)):
        is_shown = torch.ones_like(stage, dtype=torch.bool)
        _matrix(panel, stage, is_shown, words if index == 0 else None, words, tinted=name == "baselined")
        panel.set_title(f"{index + 1}. {name}", fontsize=11, color=INK, pad=44)
        panel.text(3, 7.15, note, ha="center", va="center", fontsize=9, color=MUTED)
        if index:
            arrow = {"arrowstyle": "-|>", "color": MUTED, "lw": 1.2}
            panel.annotate("", xy=(-0.75, 3), xytext=(-1.65, 3), arrowprops=arrow, annotation_clip=False)
    figure.subplots_adjust(left=0.06, right=0.99, top=0.76, bottom=0.1, wspace=0.24)
    return figure


def draw_layers(position_of_step: Tensor) -> Any:
    """Figure 5: the same order with one token per layer, and with layers merged as far as slots allow."""
    plt = _pyplot()
    layers = [sequential_layer_of_step(position_of_step), merged_layer_of_step(position_of_step)]
    titles = ["(a) one token per layer: sequential", "(b) merged layers: the limit tau = infinity"]
    words, parents = _words(position_of_step), parent_of_step(position_of_step)
    deepest = max(layers[0])
    figure, axes = plt.subplots(1, 2, figsize=(11.2, 4.2))
    for panel, layer_of_step, title in zip(axes, layers, titles, strict=True):
        panel.axis("off")
        for layer in range(max(layer_of_step) + 1):
            panel.axhspan(layer - 0.42, layer + 0.42, color=STILL if layer else PAPER, lw=0, zorder=0)
            label = f"layer {layer}" if layer else "given"
            panel.text(-0.6, layer, label, ha="right", va="center", fontsize=9, color=MUTED)
        for step, layer in enumerate(layer_of_step):
            place = int(position_of_step[step])
            if parents[step] > 1:
                start = (int(position_of_step[parents[step]]), layer_of_step[parents[step]] + 0.28)
                _line(panel, start, (place, layer - 0.28), False)
            _box(panel, place, layer, words[step], NEW if layer else PAPER, height=0.56)
        if layer_of_step is layers[1]:
            note = "each token one layer below the later of its two neighbours:\nno two tokens of a layer share a slot"
            panel.text(len(words) / 2 - 0.5, deepest - 0.5, note, ha="center", va="center", fontsize=9, color=MUTED)
        panel.set_title(f"{title}, {max(layer_of_step)} steps", fontsize=11, color=INK)
        panel.set_xlim(-1.5, len(words) - 0.4)
        panel.set_ylim(deepest + 0.5, -0.5)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.92, bottom=0.02, wspace=0.04)
    return figure


FIGURES: dict[str, Callable[[Tensor], Any]] = {
    "volatile_positions": draw_volatile_positions,
    "position_encodings": draw_position_encodings,
    "offset_compression": draw_offset_compression,
    "layers": draw_layers,
}


def draw_all(folder: Path, kind: str = "svg") -> list[Path]:
    """The files written, one a figure; the same bytes every time."""
    plt = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with plt.rc_context({"svg.hashsalt": "insnet", "font.family": "DejaVu Sans"}):
        for name, draw in FIGURES.items():
            figure = draw(torch.tensor(POSITION_OF_STEP))
            path = folder / f"{name}.{kind}"
            metadata = {"Date": None} if kind == "svg" else {}
            figure.savefig(path, metadata=metadata, facecolor=PAPER, dpi=110)
            plt.close(figure)
            written.append(path)
    return written


# --- the parts of a drawing ---


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _words(position_of_step: Tensor) -> list[str]:
    return [TEXT[position] for position in position_of_step.tolist()]


def _in_reading_order(words: list[str], position_of_step: Tensor) -> list[str]:
    return [words[step] for step in position_of_step.argsort().tolist()]


def _blank_figure(width: float, height: float) -> tuple[Any, Axes]:
    figure, axes = _pyplot().subplots(figsize=(width, height))
    axes.axis("off")
    figure.subplots_adjust(left=0.01, right=0.99, top=0.99, bottom=0.01)
    return figure, axes


def _box(axes: Axes, x: float, y: float, word: str, colour: str, height: float = 0.6) -> None:
    from matplotlib.patches import FancyBboxPatch

    shape = "round,pad=0,rounding_size=0.08"
    corner = (x - 0.41, y - height / 2)
    axes.add_patch(FancyBboxPatch(corner, 0.82, height, boxstyle=shape, fc=colour, ec=RULE, lw=0.8, zorder=2))
    axes.text(x, y, word, ha="center", va="center", fontsize=10, color=INK, zorder=3)


def _line(axes: Axes, start: tuple[float, float], end: tuple[float, float], is_moved: Any) -> None:
    colour, width = ("#d9734e", 1.4) if is_moved else (RULE, 1.0)
    axes.plot([start[0], end[0]], [start[1], end[1]], color=colour, lw=width, zorder=1)


def _legend(axes: Axes, y: float, entries: list[tuple[str, str]]) -> None:
    x = -0.3
    for colour, label in entries:
        axes.scatter([x], [y], s=70, marker="s", color=colour, edgecolors=RULE, linewidths=0.8)
        axes.text(x + 0.2, y, label, ha="left", va="center", fontsize=9, color=INK)
        x += 0.6 + 0.075 * len(label)


def _matrix(
    axes: Axes,
    values: Tensor,
    is_shown: Tensor,
    row_labels: list[str] | None,
    column_labels: list[str],
    is_marked: Tensor | None = None,
    tinted: bool = True,
) -> None:
    """Numbers in cells: tinted by their sign and size, or plain with some marked."""
    from matplotlib.patches import Rectangle

    size = len(values)
    for row in range(size):
        for column in range(size):
            if not is_shown[row, column]:
                continue
            value = int(values[row, column])
            colour: Any = _tint(value, size) if tinted and is_marked is None and value != MASKED else STILL
            if value == MASKED:
                colour = PAPER
            elif is_marked is not None and is_marked[row, column]:
                colour = MOVED
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fc=colour, ec=PAPER, lw=1.5))
            text = "∞" if value == MASKED else f"{value}".replace("-", "−")
            shade = RULE if value == MASKED else INK
            axes.text(column, row, text, ha="center", va="center", fontsize=9, color=shade)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_xticks(range(size), column_labels, rotation=45, ha="left", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(size), row_labels or [""] * size, fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _tint(value: int, size: int) -> Any:
    """The colour of an offset: the farther away, the stronger; another hue on each side."""
    if value == 0:
        return STILL
    strength = 0.15 + 0.6 * abs(value) / size
    hue = LEFT_TINT if value < 0 else RIGHT_TINT
    return tuple(1 - strength * (1 - channel) for channel in hue)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "docs" / "figures"
    for path in draw_all(target):
        print(path)
