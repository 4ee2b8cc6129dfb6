"""The measurements measure what they say; no test here depends on how fast this machine is."""

import json
import math
from dataclasses import replace

import pytest
import torch
from loss_terms import losses_of

from insnet.benchmarks import decode_speed, train_speed
from insnet.benchmarks.decode_speed import DecodeSpeedConfig
from insnet.benchmarks.rivals import untrained
from insnet.benchmarks.timing import Timing, time_in_turns
from insnet.benchmarks.train_speed import TrainSpeedConfig
from insnet.decoding.loop import decode

SIZE = {"width": 16, "layers": 1, "heads": 2, "vocabulary": 60, "device": "cpu", "rounds": 2, "warmup": 1}
TRAIN = TrainSpeedConfig(lengths=(8, 64), batch_tokens=128, **SIZE)
DECODE = DecodeSpeedConfig(lengths=(6, 12), batch_sizes=(1, 3), **SIZE)


def test_rivals_take_turns_and_the_warm_up_does_not_count():
    calls = []
    rivals = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    timings = time_in_turns(rivals, rounds=3, warmup=2, device=torch.device("cpu"))
    assert calls == ["a", "b"] * 5
    assert {name: len(timing.seconds) for name, timing in timings.items()} == {"a": 3, "b": 3}


def test_medians_shrug_off_one_slow_round():
    assert Timing((1.0, 1.0, 90.0)).median == 1.0
    assert Timing((2.0,)).spread() == 0.0
    assert Timing((1.0, 2.0, 3.0)).spread() == 0.25


def test_train_speed_has_the_published_names():
    headline, detail = train_speed.measure(TRAIN)
    assert headline.keys() == {"ratio_n8", "ratio_n64", "insnet_tokens_per_s_n64", "ar_tokens_per_s_n64"}
    assert all(math.isfinite(number) and number > 0 for number in headline.values())
    for row in detail["lengths"]:
        assert row["ratio"] == row["insnet_seconds"] / row["autoregressive_seconds"]
        assert row["n"] * row["sentences"] == TRAIN.batch_tokens
    json.dumps(detail, allow_nan=False)


def test_layers_are_timed_over_insertions_one_by_one():
    headline, detail = train_speed.measure(replace(TRAIN, tau=(math.inf, -math.inf)))
    assert headline.keys() == {"train_step_ratio", "layered_over_sequential_n8", "layered_over_sequential_n64"}
    rows = detail["lengths"]
    seconds = {name: sum(row[f"{name}_seconds"] for row in rows) for name in ("layered", "sequential")}
    assert headline["train_step_ratio"] == seconds["layered"] / seconds["sequential"]
    assert headline["layered_over_sequential_n8"] == rows[0]["layered_seconds"] / rows[0]["sequential_seconds"]
    assert all(row["finding_layers_seconds"] > 0 and 0.5 < row["layers_per_insertion"] < 1 for row in rows)
    assert detail["settings"]["tau"] == ["inf", "-inf"]
    json.dumps(detail, allow_nan=False)


@pytest.mark.parametrize("tau", [10.0, math.inf])
def test_the_timed_step_in_layers_finds_layers_and_learns_from_them(monkeypatch, tau):
    batch, model = train_speed.random_batch(TRAIN, 8), train_speed._model("insnet", TRAIN)
    before = model.slot_head.weight.clone()
    found, rows = [], model.one_pass.rows

    def watched(batch, plan, **options):
        found.append(plan.rounds)
        return rows(batch, plan, **options)

    monkeypatch.setattr(model.one_pass, "rows", watched)
    train_speed.training_step(model, batch, TRAIN, torch.device("cpu"), model.Objective((tau,)))()
    assert found[0].max() < 6 and not torch.equal(before, model.slot_head.weight)


def test_both_models_learn_from_the_same_tokens_in_a_whole_update():
    batch = train_speed.random_batch(TRAIN, 8)
    assert batch.lengths.tolist() == [8] * 16
    for family in train_speed.RIVALS:
        model = train_speed._model(family, TRAIN)
        before = {name: value.clone() for name, value in model.named_parameters()}
        train_speed.training_step(model, batch, TRAIN, torch.device("cpu"))()
        assert any(not torch.equal(before[name], value) for name, value in model.named_parameters())
        count = losses_of(model, batch)["token"].count
        assert int(count) == 16 * {"insnet": 6, "autoregressive": 7}[family]  # the latter's end is a token


@pytest.mark.parametrize("config", [TRAIN, DECODE])
def test_blocks_for_slots_are_taken_from_those_of_the_encoder(config):
    config = replace(config, layers=3, slot_layers=1)
    model, rival = (untrained(family, config) for family in ("insnet", "autoregressive"))
    assert (len(model.encoder.blocks), len(model.reader.blocks), len(rival.decoder.blocks)) == (2, 1, 3)
    with pytest.raises(ValueError, match="layers is 0; expected at least 1"):
        untrained("insnet", replace(config, slot_layers=3))


def test_decode_speed_has_the_published_names():
    headline, detail = decode_speed.measure(DECODE)
    assert {"reencode_over_cached_n6", "reencode_over_cached_n12", "insnet_over_ar_token_latency"} <= headline.keys()
    assert {"insnet_tokens_per_s_batch1", "insnet_tokens_per_s_batch3"} <= headline.keys()
    assert {"cost_of_token_n12_over_n6", "cost_of_token_n12_over_n6_batch3"} <= headline.keys()
    assert all(math.isfinite(number) and number > 0 for number in headline.values())
    json.dumps(detail, allow_nan=False)


def test_the_decoder_without_a_cache_is_timed_for_few_texts_only():
    headline, detail = decode_speed.measure(replace(DECODE, lengths=(6,), reencode_up_to=1))
    assert "reencode_over_cached_n6" in headline and "reencode_over_cached_n6_batch3" not in headline
    assert [("reencoded_seconds" in run) for run in detail["runs"]] == [True, False]


def test_all_rivals_write_exactly_as_many_tokens_as_asked():
    bench = decode_speed.Bench(DECODE, torch.device("cpu"))
    prompt = decode_speed.empty_prompt(3, 12, 0, bench.device)
    assert decode_speed.write_cached(bench.insnet, prompt, bench.decide) == 36
    assert decode_speed.write_cached(bench.autoregressive, prompt, bench.decide) == 36
    assert decode_speed.write_reencoded(bench.insnet, prompt, bench.decide) == 36


def test_the_twin_without_a_cache_decides_like_the_cached_model_where_both_see_the_same():
    """With nothing on the canvas the first step's context is the same; later ones are in another order by design."""
    bench = decode_speed.Bench(DECODE, torch.device("cpu"))
    prompt = decode_speed.empty_prompt(2, 4, 0, bench.device)
    first = next(iter(decode(bench.insnet, prompt, bench.decide))).edits
    state = bench.insnet.start(replace(prompt, canvas=decode_speed._trimmed(prompt.canvas, 3)))
    again = bench.decide(bench.insnet.offer(state), state)
    assert torch.equal(first.slot, again.slot)
    assert torch.equal(first.token, again.token)


@pytest.mark.parametrize(
    ("config", "change", "told"),
    [
        (TRAIN, {"precision": "half"}, "precision is 'half'"),
        (TRAIN, {"lengths": ()}, "lengths are"),
        (TRAIN, {"batch_tokens": 10}, "batch_tokens 10"),
        (TRAIN, {"rounds": 0}, "rounds is 0"),
        (TRAIN, {"tau": (math.nan,)}, "tau is"),
        (DECODE, {"batch_sizes": (0,)}, "batch_sizes are"),
        (DECODE, {"warmup": -1}, "warmup -1"),
    ],
)
def test_settings_without_sense_are_refused(config, change, told):
    with pytest.raises(ValueError, match=told):
        replace(config, **change)
