"""Stopping rules are compared on the same keywords, each as if it were the model's own."""

import json

import pytest
from small_models import LINES, small_model

from benchmarks.stopping import measure, rules, texts_to_write
from insnet.evaluation.lengths import mean_words
from insnet.evaluation.task import Task, evaluate_task

TASK = Task("tour", "valid", LINES[:6], [["captain"], ["bread"], [], ["goat", "hat"], ["garden"], ["boat"]])
MODELS = {
    "binary": {},
    "count": {"count_head": 12},
    "told": {"count_head": 12, "length_conditioned": True},
}


@pytest.mark.parametrize("head", MODELS)
def test_every_rule_a_model_can_follow_is_tried(head):
    model = small_model("insnet", "word", **MODELS[head])
    written = []
    headline, detail = measure(model, TASK, quantiles=(0.25, 0.75), on_written=written.append)
    tried = {row["rule"] for row in detail["rules"]}
    counted, by_hazard = {"counted_q25", "counted_q75"}, {"threshold", "rehearsed"}
    expected = {"binary": by_hazard, "count": by_hazard | counted, "told": counted}[head] | {"sampled"}
    assert tried == expected == set(rules(model, (0.25, 0.75)))
    assert sum(written) == texts_to_write(model, TASK, (0.25, 0.75))
    for row in detail["rules"]:
        assert headline[f"bleu4_{row['rule']}"] == row["bleu4"]
        report, _ = evaluate_task(model, TASK, **rules(model, (0.25, 0.75))[row["rule"]])
        assert report.length_ratio == row["length_ratio"]
    json.dumps(detail, allow_nan=False)


def test_a_higher_quantile_writes_longer():
    headline, _ = measure(small_model("insnet", "word", **MODELS["told"]), TASK, quantiles=(0.05, 0.95))
    assert headline["length_ratio_counted_q5"] < headline["length_ratio_counted_q95"]


def test_untruncated_texts_are_drawn_from_the_whole_distribution_with_keywords_and_without():
    model = small_model("insnet", "word")
    headline, _ = measure(model, TASK)
    whole = {"slot_mass": 1.0, "top_k": 0, "stopping": "sampled", "no_repeat_ngram": 0}
    with_keywords = model.generate_batch(TASK.keywords, seed=0, **whole)
    nothing_given = model.generate([], num_samples=6, seed=0, **whole)
    assert len({result.text for result in nothing_given}) > 1
    for name, results in (("", with_keywords), ("_nothing_given", nothing_given)):
        ratio = mean_words([result.text for result in results]) / mean_words(TASK.references)
        assert headline[f"untruncated_length_ratio{name}"] == pytest.approx(ratio)


def test_untruncated_texts_can_be_compared_with_another_text_than_the_rules():
    model = small_model("insnet", "word")
    other = Task("tour", "valid", LINES[20:23], [["cat"], [], ["ship"]])
    headline, _ = measure(model, TASK, whole_task=other)
    alone, _ = measure(model, other)
    here, _ = measure(model, TASK)
    assert headline["untruncated_length_ratio"] == alone["untruncated_length_ratio"]
    assert headline["bleu4_threshold"] == here["bleu4_threshold"]
    assert texts_to_write(model, TASK, (0.5,), other) == 2 * 3 + 6 * 3
