"""A learning curve says what the metrics say, in fewer numbers."""

import json
from pathlib import Path

import pytest

from benchmarks.learning_curve import (
    draw,
    draw_together,
    in_windows,
    measure,
    measure_together,
    panels_of,
    seeds_of,
)
from insnet.training.metrics import METRICS_FILE
from insnet.training.recipe import load_recipe

RECIPES = Path(__file__).parents[2] / "recipes"


def write(folder, losses, *, valid_every=10):
    lines = []
    for update, loss in enumerate(losses, start=1):
        lines.append({"update": update, "loss": loss, "token": loss / 2, "tokens": 100 * update})
        if update % valid_every == 0:
            lines.append({"update": update, "valid_loss": loss + 1, "valid_token": loss / 2 + 1})
    (folder / METRICS_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_the_headline_is_the_best_evaluation(tmp_path):
    headline, detail = measure(write(tmp_path, [6.0] * 10 + [4.0] * 10 + [5.0] * 10), windows=3)
    assert headline == {
        "valid_loss": 5.0,
        "valid_token": 3.0,
        "updates": 30,
        "insertions": 3000,
        "largest_rise": pytest.approx(1.0),
    }
    assert [(row["update"], row["loss"], row["token"]) for row in detail["windows"]] == [
        (10, 6.0, 3.0),
        (20, 4.0, 2.0),
        (30, 5.0, 2.5),
    ]


def test_a_run_that_only_falls_never_rises(tmp_path):
    headline, _ = measure(write(tmp_path, [9 - number / 10 for number in range(40)]))
    assert headline["largest_rise"] == 0.0


def test_numbers_that_only_some_updates_have_are_averaged_over_those(tmp_path):
    lines = [{"update": 1, "loss": 1.0, "tokens": 1}, {"update": 2, "loss": 3.0, "tokens": 2, "layers": 0.5}]
    assert in_windows(lines, 1) == [{"update": 2, "loss": 2.0, "tokens": 2, "layers": 0.5}]


def test_a_short_last_window_is_left_out():
    lines = [{"update": number, "loss": 1.0, "tokens": number} for number in range(1, 8)]
    assert [row["update"] for row in in_windows(lines, 3)] == [3, 6]


def test_it_is_drawn(tmp_path):
    _, detail = measure(write(tmp_path, [3.0, 2.0] * 10))
    draw(detail, tmp_path / "curve.svg")
    assert "<svg" in (tmp_path / "curve.svg").read_text()


def layered_run(folder, *, first_has_no_layers=False):
    """Layers merge from 0.6 to 0.4 per insertion; what is not drawn by a text of a batch is left out of its line."""
    lines = []
    for update in range(1, 31):
        share = 0.6 - 0.2 * update / 30
        figures = {"layers_per_insertion": share, "layered_loss": 5 - share, "sequential_loss": 4 + share}
        learned = {} if first_has_no_layers and update < 20 else figures
        lines.append({"update": update, "loss": 5.0, "tokens": 100 * update, **learned})
        if update % 10 == 0:
            valid = {f"valid_{name}": value for name, value in figures.items()}
            lines.append({"update": update, "valid_loss": 5.0, **valid})
    (folder / METRICS_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_of_layers_the_headline_tells_where_they_began_and_ended(tmp_path):
    headline, _ = measure(layered_run(tmp_path))
    assert headline["first_layers_per_insertion"] == pytest.approx(0.6 - 0.2 / 3)
    assert headline["last_layers_per_insertion"] == pytest.approx(0.4)
    assert headline["last_layered_loss"] == pytest.approx(4.6)
    assert headline["last_sequential_loss"] == pytest.approx(4.4)


def test_merging_layers_and_both_likelihoods_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    _, detail = measure(layered_run(tmp_path, first_has_no_layers=True), windows=30)
    assert panels_of(detail["windows"]) == {
        "loss": ("loss",),
        "layers per insertion": ("layers_per_insertion",),
        "nats per insertion": ("layered_loss", "sequential_loss"),
    }
    draw(detail, tmp_path / "curve.svg")
    svg = (tmp_path / "curve.svg").read_text()
    labels = ("layers per insertion", "nats per insertion", "valid, layered", "valid, sequential")
    assert all(f">{label}</text>" in svg for label in labels)
    draw({**detail, "windows": [{"update": 1, "loss": 1.0}]}, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_several_runs_are_told_apart_by_their_folders(tmp_path):
    pytest.importorskip("matplotlib")
    steady, jumping = tmp_path / "steady", tmp_path / "jumping"
    for folder, losses in ((steady, [4.0] * 10 + [3.0] * 10), (jumping, [4.0] * 10 + [7.0] * 10)):
        folder.mkdir()
        write(folder, losses)
    headline, detail = measure_together([steady, jumping], windows=2)
    assert (headline["steady_valid_loss"], headline["jumping_valid_loss"]) == (4.0, 5.0)
    assert (headline["steady_largest_rise"], headline["jumping_largest_rise"]) == (0.0, 3.0)
    draw_together(detail["runs"], tmp_path / "both.svg")
    svg = (tmp_path / "both.svg").read_text()
    assert all(f">{label}</text>" in svg for label in ("steady", "jumping", "gradient norm"))
    with pytest.raises(ValueError, match="two runs are called steady"):
        measure_together([steady, steady])


def test_a_folder_without_a_curve_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no learning curve"):
        measure(tmp_path)


def test_the_seeds_are_those_of_the_recipes(tmp_path):
    for name, seed in {"one": 3, "two": 1, "three": 3}.items():
        (tmp_path / name).mkdir()
        recipe = load_recipe(RECIPES / "tour.toml", [f"train.seed={seed}"])
        (tmp_path / name / "recipe.toml").write_text(recipe.to_toml())
    assert seeds_of([tmp_path / "one"]) == [3]
    assert seeds_of([tmp_path / "one", tmp_path / "two", tmp_path / "three"]) == [1, 3]
