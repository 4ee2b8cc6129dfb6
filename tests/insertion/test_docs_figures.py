"""The numbers behind the figures, beside twins that play the insertions; and the drawings themselves."""

import itertools
import random
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from scripts import draw_figures as figures

DOCS = Path(__file__).parents[2] / "docs"
NOT_THERE = -1


def orders():
    """The example, and random orders of other lengths."""
    rng = random.Random(1)
    yield [0, 6, 2, 4, 1, 3, 5]
    for _ in range(100):
        inner = list(range(1, rng.randint(2, 14)))
        yield [0, len(inner) + 1, *rng.sample(inner, len(inner))]


def canvases(order):
    """The canvas after each step, a list of steps in reading order."""
    canvas, played = [], []
    for step, position in enumerate(order):
        canvas.insert(sum(order[other] < position for other in canvas), step)
        played.append(list(canvas))
    return played


def places_twin(order):
    steps = range(len(order))
    return [[canvas.index(j) if j in canvas else NOT_THERE for j in steps] for canvas in canvases(order)]


def offsets_twin(order):
    steps = range(len(order))
    return [[row[j] - row[t] if j <= t else 0 for j in steps] for t, row in enumerate(places_twin(order))]


def tree_depths(order):
    """Depths in a binary search tree, each token walking down from the root; <bos> and <eos> stand above it."""
    children, depths, root = {}, [0, 0], None
    for position in order[2:]:
        depth, node = 1, root
        if root is None:
            root = position
        while node is not None and node != position:
            depth += 1
            side = (node, position < node)
            node = children.setdefault(side, position)
        depths.append(depth)
    return depths


def test_places_and_moves_are_those_of_the_lists():
    for order in orders():
        places = places_twin(order)
        assert figures.place_after_step(torch.tensor(order)).tolist() == places
        moved = [[False] * len(order)] + [
            [was not in (NOT_THERE, now) for was, now in zip(before, after, strict=True)]
            for before, after in itertools.pairwise(places)
        ]
        assert figures.moved_in_step(torch.tensor(order)).tolist() == moved


def test_relative_positions_and_offsets_are_those_of_the_lists():
    for order in orders():
        text, steps = canvases(order)[-1], range(len(order))
        vanilla = [[text.index(j) - text.index(t) if j <= t else 0 for j in steps] for t in steps]
        assert figures.vanilla_relative_positions(torch.tensor(order)).tolist() == vanilla
        assert figures.offsets(torch.tensor(order)).tolist() == offsets_twin(order)


def test_restored_rows_count_through_the_canvas_without_a_gap():
    for order in orders():
        restored, is_there = figures.restored_offsets(torch.tensor(order))
        for step, canvas in enumerate(canvases(order)):
            own = canvas.index(step)
            assert restored[step][is_there[step]].tolist() == [place - own for place in range(len(canvas))]


def test_the_stages_of_compression_follow_from_each_other():
    """Each stage computed from the one before it as the paper tells it, with sorted lists."""
    for order in orders():
        stages = {name: stage.tolist() for name, stage in figures.compression_stages(torch.tensor(order)).items()}
        assert list(stages) == ["duplicated", "masked", "ranked", "baselined"]
        mask = figures.MASKED
        masked = [[p if j <= t else mask for j, p in enumerate(row)] for t, row in enumerate(stages["duplicated"])]
        ranked = [[sorted(row).index(p) if p != mask else mask for p in row] for row in masked]
        baselined = [[rank - row[t] if rank != mask else mask for rank in row] for t, row in enumerate(ranked)]
        assert stages["duplicated"] == [order] * len(order)
        assert (stages["masked"], stages["ranked"], stages["baselined"]) == (masked, ranked, baselined)


def test_merged_layers_are_depths_in_the_search_tree():
    for order in orders():
        assert figures.merged_layer_of_step(torch.tensor(order)) == tree_depths(order)
        assert figures.sequential_layer_of_step(torch.tensor(order))[1:] == list(range(len(order) - 1))


def test_the_example_is_the_papers():
    words = [figures.TEXT[position] for position in figures.POSITION_OF_STEP]
    assert words == ["<bos>", "<eos>", "have", "pen", "I", "a", "."]
    assert figures.merged_layer_of_step(torch.tensor(figures.POSITION_OF_STEP)) == [0, 0, 1, 2, 2, 3, 3]


def test_figures_are_drawn_the_same_every_time(tmp_path):
    """Also the same as the committed ones, where the same matplotlib drew both."""
    matplotlib = pytest.importorskip("matplotlib")
    first = figures.draw_all(tmp_path / "first")
    second = figures.draw_all(tmp_path / "second")
    assert [path.stem for path in first] == list(figures.FIGURES)
    for path, again in zip(first, second, strict=True):
        drawn = path.read_bytes()
        assert drawn == again.read_bytes()
        assert ElementTree.fromstring(drawn).tag.endswith("svg")
        committed = (DOCS / "figures" / path.name).read_bytes()
        if f"Matplotlib v{matplotlib.__version__}".encode() in committed:
            assert committed == drawn, f"{path.name} is out of date: run python -m scripts.draw_figures"
