"""Texts that are kept: the same as drawn anew, drawn once, and known by what made them."""

import json
from dataclasses import replace

import pytest
import torch
from small_models import small_model

from benchmarks.decodings import Decoding, draw
from benchmarks.drawing import Drawing, DrawnText, fingerprint
from insnet.evaluation.task import Task

TASK = Task("animals", "valid", ["a cat sat", "the dog ran home", "one bird"], [["cat"], ["dog", "home"], ["bird"]])


@pytest.fixture
def model():
    return small_model("insnet", "word", generation={"max_tokens": 9})


def test_what_was_kept_is_what_would_be_drawn(model, tmp_path):
    plain, kept = Drawing((0, 1)), Drawing((0, 1), keep=tmp_path / "kept")
    wanted = [each.texts for each in plain.draw(model, TASK, {"top_k": 3})]
    for _ in range(2):  # drawn, then read
        found = kept.draw(model, TASK, {"top_k": 3})
        assert [each.texts for each in found] == wanted
        assert all(each.made.keys() == {"commit", "hardware", "date"} for each in found)
    results = model.generate_batch(TASK.keywords, seed=1, top_k=3)
    assert wanted[1] == [
        DrawnText(r.text, r.steps, r.finished, sum(len(s["insert"]) for s in r.trace)) for r in results
    ]
    assert all(each.made == {} for each in plain.draw(model, TASK, {}))


def test_nothing_is_drawn_twice_and_what_differs_is_drawn(model, tmp_path, monkeypatch):
    drawn, told = [], []
    original = type(model).generate_batch

    def counting(self, keywords, **options):
        drawn.append(options["seed"])
        return original(self, keywords, **options)

    monkeypatch.setattr(type(model), "generate_batch", counting)
    one = Drawing((0,), keep=tmp_path, on_written=told.append)
    both = replace(one, seeds=(0, 1))
    one.draw(model, TASK, {})
    both.draw(model, TASK, {})  # goes on where the first was cut off
    assert drawn == [0, 1] and sum(told) == 3 + 3 + 3
    one.draw(model, TASK, {"top_k": 2})
    one.draw(model, replace(TASK, keywords=[["cat"], ["dog"], ["bird"]]), {})
    with torch.no_grad():
        model.family.slot_head.weight += 1e-3
    one.draw(model, TASK, {})
    assert drawn == [0, 1, 0, 0, 0] and len(list(tmp_path.iterdir())) == 5


def test_a_fingerprint_is_of_weights_not_of_where_they_are(model):
    same = small_model("insnet", "word", generation={"max_tokens": 5})
    other = small_model("insnet", "word", seed=1)
    assert fingerprint(model) == fingerprint(same) != fingerprint(other)
    truncated = small_model("insnet", "word", truncated=True)  # the same weights, read in another way
    assert fingerprint(truncated) != fingerprint(model)


def test_a_text_with_a_rare_line_break_is_kept_whole(model, tmp_path, monkeypatch):
    odd = DrawnText("one\u2028two\x85three", 2, True, 2)
    monkeypatch.setattr(DrawnText, "of", classmethod(lambda cls, result: odd))
    for _ in range(2):
        assert Drawing(keep=tmp_path).draw(model, TASK, {})[0].texts == [odd] * 3


def test_detail_tells_where_kept_texts_come_from_and_damage_is_told(model, tmp_path):
    drawing = Drawing((0,), keep=tmp_path)
    made = draw(Decoding(model, {}), TASK, drawing).detail()["drawn"]
    assert "drawn" not in draw(Decoding(model, {}), TASK, Drawing((0,))).detail()
    (path,) = tmp_path.iterdir()
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(head), "hardware": "another machine"}), *rows]))
    assert draw(Decoding(model, {}), TASK, drawing).detail()["drawn"] == [{**made[0], "hardware": "another machine"}]
    path.write_text(head[:-3])
    with pytest.raises(ValueError, match=r"\.jsonl is damaged: remove it, and its texts are drawn again"):
        drawing.draw(model, TASK, {})
