"""From sequential to parallel: what a point says, by hand; the paper's settings; and how fast either is."""

import math

import pytest
from small_models import LINES, small_model

from benchmarks.command import write_texts
from benchmarks.decodings import read_settings
from benchmarks.drawing import Drawing
from benchmarks.paper import spectrum_points
from benchmarks.parallel_speed import ParallelSpeedConfig
from benchmarks.parallel_speed import measure as measure_speed
from benchmarks.spectrum import (
    DEFAULT_SETTINGS,
    draw,
    measure,
    points_of_model,
    points_of_taus,
)
from insnet.evaluation.bleu import bleu
from insnet.evaluation.task import Task
from insnet.text.corpus import read_lines

TASK = Task("tour", "valid", LINES[:6], [line.split()[:2] for line in LINES[:6]])


@pytest.fixture(scope="module")
def model():
    return small_model("insnet", "word", generation={"stopping": "sampled", "min_words": 8, "max_tokens": 16})


def test_settings_are_read_in_every_combination():
    read = read_settings("parallel_mass=0.5/1 stopping=counted top_p=0.5")
    assert read == [
        {"parallel_mass": 0.5, "stopping": "counted", "top_p": 0.5},
        {"parallel_mass": 1, "stopping": "counted", "top_p": 0.5},
    ]
    assert read_settings("") == [{}]
    for wrong in ("parallel_mass", "=1", "top_k="):
        with pytest.raises(ValueError, match="cannot read the setting"):
            read_settings(wrong)


def test_each_tolerance_has_the_papers_top_k_and_the_last_is_sequential():
    points = points_of_taus({tau: f"runs/{tau}" for tau in (10, 3, 1, 0.3, -math.inf, 7)})
    assert {point.name: (point.settings["mode"], point.settings.get("top_k")) for point in points} == {
        "tau_-inf": ("sequential", 5),
        "tau_0.3": ("parallel", 3),
        "tau_1": ("parallel", 3),
        "tau_3": ("parallel", 1),
        "tau_7": ("parallel", None),  # the model's own
        "tau_10": ("parallel", 1),
    }
    assert [point.model for point in points][:2] == ["runs/-inf", "runs/0.3"]


def test_uniform_is_a_point_that_fills_every_slot_in_seven_rounds_at_most(model):
    """Of one model by its name, of a model trained for it by its tolerance."""
    settings = {"mode": "parallel", "parallel_mass": 1, "rounds": 7}
    one = points_of_model("one", ["uniform", "parallel_mass=0.5"])[1]
    assert (one.name, one.series, one.settings) == ("uniform", "uniform", settings)
    assert points_of_taus({math.inf: "runs/inf"})[0].settings == settings
    assert read_settings("uniform top_k=1/3")[1] == {"parallel_mass": 1, "rounds": 7, "top_k": 3}
    assert "uniform" in [point.name for point in points_of_model("one", DEFAULT_SETTINGS)]
    headline, detail, _ = measure([one], TASK, lambda name: model, Drawing())
    assert detail["points"][0]["rounds"] <= 7 and "bleu4_uniform" in headline
    for result in model.generate_batch(TASK.keywords, seed=0, **settings):
        canvas = len(result.keywords)
        for entry in result.trace[:2]:  # every slot that was open; all are, as long as the text has room
            assert len(entry["insert"]) == canvas + 1
            canvas += len(entry["insert"])


def test_a_point_tells_the_scores_and_rounds_of_its_texts(model, tmp_path):
    points = points_of_model("one", ["parallel_mass=0.9", "parallel_mass=1 min_p=0.3/0.5"])
    counted = []
    headline, detail, texts = measure(
        points, TASK, lambda name: model, Drawing((0, 1), batch_size=4, on_written=counted.append)
    )
    assert sum(counted) == 6 * 4 * 2
    names = ["sequential", "parallel_mass_0.9", "parallel_mass_1_min_p_0.3", "parallel_mass_1_min_p_0.5"]
    assert [row["name"] for row in detail["points"]] == list(texts) == names
    assert headline["sequential_ratio_sequential"] == 1.0
    for point, row in zip(points, detail["points"], strict=True):
        drawn = [model.generate_batch(TASK.keywords, seed=seed, **point.settings) for seed in (0, 1)]
        assert texts[point.name] == [result.text for result in drawn[0]]
        ratio = [
            sum(r.steps for r in results) / sum(len(e["insert"]) for r in results for e in r.trace) for results in drawn
        ]
        scores = [bleu([r.text for r in results], TASK.references, order=4, lower_case=True).score for results in drawn]
        assert headline[f"sequential_ratio_{point.name}"] == row["sequential_ratio"] == pytest.approx(sum(ratio) / 2)
        assert headline[f"bleu4_{point.name}"] == pytest.approx(sum(scores) / 2)
        assert headline[f"coverage_{point.name}"] == 1.0
    assert all(row["sequential_ratio"] < 0.8 for row in detail["points"][1:])
    write_texts(texts, tmp_path / "curve.json")
    kept = list(read_lines(tmp_path / "curve.parallel_mass_0.9.outputs.txt.xz"))
    assert kept == texts["parallel_mass_0.9"]


def test_a_model_is_loaded_once_and_wrong_settings_are_refused_before_anything_is_written(model):
    loaded = []
    points = [*points_of_model("one", ["parallel_mass=0.9"]), *points_of_taus({10: "two", -math.inf: "one"})]
    measure(points, TASK, lambda name: (loaded.append(name), model)[1], Drawing())
    assert loaded == ["one", "two"]
    for settings, told in (
        ("paralel_mass=1", "did you mean 'parallel_mass'"),
        ("parallel_mass=1/1", "asked for twice"),
    ):
        with pytest.raises(ValueError, match=told):
            measure(points_of_model("one", [settings]), TASK, lambda name: model, Drawing(on_written=pytest.fail))


def test_series_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        {"name": "sequential", "series": "sequential", "settings": {"mode": "sequential"}},
        {
            "name": "parallel_mass_0.5",
            "series": "parallel_mass",
            "settings": {"mode": "parallel", "parallel_mass": 0.5},
        },
        {
            "name": "parallel_mass_0.9",
            "series": "parallel_mass",
            "settings": {"mode": "parallel", "parallel_mass": 0.9},
        },
        {"name": "tau_10", "series": "a model for every tau", "settings": {"mode": "parallel", "top_k": 1}},
        {"name": "tau_3", "series": "a model for every tau", "settings": {"mode": "parallel", "top_k": 1}},
    ]
    rows = [{**row, "bleu4": 3.0 + n, "sequential_ratio": 1 / (1 + n)} for n, row in enumerate(rows)]
    draw(rows, tmp_path / "spectrum.svg")
    svg = (tmp_path / "spectrum.svg").read_text()
    assert all(f">{label}</text>" in svg for label in ("parallel_mass", "0.9", "10", "rounds / insertions", "BLEU-4"))
    assert "the paper (lengths estimated)" not in svg
    draw([*rows, *spectrum_points("news")], tmp_path / "beside.svg")
    svg = (tmp_path / "beside.svg").read_text()
    assert all(f">{label}</text>" in svg for label in ("the paper (lengths estimated)", "uniform", "-inf"))
    draw(rows, tmp_path / "spectrum.png")
    assert (tmp_path / "spectrum.png").read_bytes().startswith(b"\x89PNG")


def test_the_papers_points_follow_from_its_table():
    yelp = {point["name"]: point for point in spectrum_points("yelp")}
    assert {name: point["bleu4"] for name, point in yelp.items()} == {"uniform": 2.30, "10": 4.35, "-inf": 5.78}
    assert yelp["10"]["sequential_ratio"] == pytest.approx(11.83 / 43.6)
    assert yelp["-inf"]["sequential_ratio"] == 1.0
    with pytest.raises(ValueError, match="choose yelp or news"):
        spectrum_points("tour")


def test_speed_compares_the_modes_of_one_model(model):
    config = ParallelSpeedConfig(batch_sizes=(1, 3), texts=2, rounds=1, warmup=0, seed=1)
    headline, detail, texts = measure_speed(model, TASK, config, {"parallel_mass": 1.0})
    assert {"latency_ratio_batch1", "latency_ratio_batch3", "rounds_per_word", "rounds_ratio"} < headline.keys()
    drawn = {
        mode: model.generate_batch(TASK.keywords, seed=1, mode=mode, parallel_mass=1.0)
        for mode in ("sequential", "parallel")
    }
    steps = {mode: sum(result.steps for result in results) for mode, results in drawn.items()}
    words = sum(len(result.text.split()) for result in drawn["parallel"])
    assert texts == [result.text for result in drawn["parallel"]]
    assert headline["rounds_ratio"] == pytest.approx(steps["parallel"] / steps["sequential"])
    assert headline["rounds_per_word"] == pytest.approx(steps["parallel"] / words)
    assert [(row["batch"], row["texts"]) for row in detail["timings"]] == [(1, 2), (3, 3)]
    for row in detail["timings"]:
        assert row["latency_ratio"] == row["parallel_seconds"] / row["sequential_seconds"]
        assert row["latency_ratio"] == pytest.approx(row["rounds_ratio"] * row["round_cost_ratio"])
    first = [drawn["parallel"][index].steps for index in range(2)]
    assert [row["parallel_rounds"] for row in detail["timings"]] == [
        sum(first),
        max(r.steps for r in drawn["parallel"]),
    ]
    with pytest.raises(ValueError, match="batch_sizes are"):
        ParallelSpeedConfig(batch_sizes=(0,))
