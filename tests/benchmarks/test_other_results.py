"""Figures of other files keep their value and tell where they come from; what cannot be compared is refused."""

import json

import pytest
from small_models import LINES, small_model

from benchmarks.other_results import OtherFigure, check_comparable, with_other_figures
from benchmarks.parallel_speed import ParallelSpeedConfig, measure
from insnet.evaluation.task import Task

THERE = {
    "command": "python -m benchmarks.parallel_speed",
    "commit": "abc",
    "hardware": "a GPU",
    "date": "2022-11-28",
    "seeds": [0],
    "headline": {"latency_ratio_batch1": 0.31, "rounds_ratio": 0.3},
    "model": "general",
    "settings": {"generation": {"parallel": {"top_k": 1}}},
}
HERE = {"model": "general", "generation": {"parallel": {"top_k": 1}}, "own_names": ("bleu4",)}


@pytest.fixture
def figure(tmp_path):
    def of(names, **changes):
        (tmp_path / "there.json").write_text(json.dumps({**THERE, **changes}))
        return OtherFigure.of(f"{tmp_path / 'there.json'}:{names}")

    return of


def test_a_figure_is_copied_with_how_it_was_measured(figure):
    plain, renamed = figure("latency_ratio_batch1"), figure("rounds_ratio=rounds_there")
    check_comparable([plain, renamed], **HERE)
    headline, detail = with_other_figures({"bleu4": 3.5}, {"model": "general"}, [plain, renamed])
    assert headline == {"latency_ratio_batch1": 0.31, "rounds_there": 0.3, "bleu4": 3.5}
    how = {name: THERE[name] for name in ("command", "commit", "hardware", "date", "seeds")}
    assert detail["taken_from"]["rounds_there"] == {"file": "there.json", "name": "rounds_ratio", **how}
    assert with_other_figures({"bleu4": 3.5}, {"a": 1}, []) == ({"bleu4": 3.5}, {"a": 1})


def test_what_cannot_be_read_is_refused(figure, tmp_path):
    for text in ("there.json", "there.txt:a", "there.json:", f"{tmp_path}/none.json:a"):
        with pytest.raises(ValueError, match=r"expected FILE.json:NAME|does not exist"):
            OtherFigure.of(text)
    with pytest.raises(ValueError, match="has no figure 'bleu4'; it has latency_ratio_batch1, rounds_ratio"):
        figure("bleu4")


def test_what_cannot_be_compared_is_refused(figure):
    for other, told in (
        (figure("rounds_ratio", model="tour"), "is about the model 'tour', not of 'general'"),
        (figure("rounds_ratio", settings={"generation": {"parallel": {"top_k": 2}}}), "other decoding settings"),
        (figure("rounds_ratio=bleu4"), "bleu4 would be there twice"),
    ):
        with pytest.raises(ValueError, match=told):
            check_comparable([other], **HERE)
    with pytest.raises(ValueError, match="rounds_ratio would be there twice"):
        check_comparable([figure("rounds_ratio")] * 2, **HERE)
    bare = figure("rounds_ratio", model="general", settings={"tau": ["0.3"]})  # a training speed decodes nothing
    check_comparable([bare], **HERE)


def test_this_machines_latencies_stand_beside_anothers(figure):
    model = small_model("insnet", "word", generation={"stopping": "sampled", "max_tokens": 6})
    task = Task("tour", "valid", LINES[:2], [line.split()[:2] for line in LINES[:2]])
    sizes = {"batch_sizes": (1,), "texts": 1, "rounds": 1, "warmup": 0}
    other = figure("latency_ratio_batch1", model="InsNet", settings={})
    headline, detail, _ = measure(model, task, ParallelSpeedConfig(**sizes, suffix="cpu"), {}, others=[other])
    assert headline["latency_ratio_batch1"] == 0.31 != headline["latency_ratio_batch1_cpu"]
    assert detail["taken_from"].keys() == {"latency_ratio_batch1"}
    with pytest.raises(ValueError, match="latency_ratio_batch1 would be there twice"):
        measure(model, task, ParallelSpeedConfig(**sizes), {}, others=[other], on_written=pytest.fail)


def test_a_texts_candidates_are_timed_in_one_batch(monkeypatch):
    model = small_model("insnet", "word", generation={"stopping": "sampled", "max_tokens": 6, "candidates": 3})
    task = Task("tour", "valid", LINES[:2], [line.split()[:2] for line in LINES[:2]])
    asked = []
    generate = model.generate_batch
    monkeypatch.setattr(
        model, "generate_batch", lambda lists, **o: asked.append((len(lists), o["batch_size"])) or generate(lists, **o)
    )
    measure(model, task, ParallelSpeedConfig((1, 2), texts=1, rounds=1, warmup=0), {})
    assert set(asked[2:]) == {(1, 3), (2, 6)}  # after the two that quality is read from
