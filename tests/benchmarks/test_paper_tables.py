"""The paper's tables: every promised figure is there, is what the texts say, and comes from the models it names."""

import json
import math
import random
from statistics import fmean
from types import SimpleNamespace

import pytest
import torch
from small_models import LINES, edits_of, offers, order_of, plays_of, prompt_of, small_model

from benchmarks import ablation, dinic, quality
from benchmarks.decodings import PAPER_DECODING, Decoding, draw
from benchmarks.drawing import Drawing
from benchmarks.stop_nll import given_tokens, given_words, sentence_nats
from insnet.evaluation.bleu import bleu
from insnet.evaluation.judge import Judged
from insnet.evaluation.task import Task, evaluate_task
from insnet.text.batching import TokenBatch

REFERENCES = [line.lower() for line in LINES[:5]]
TASK = Task("tour", "valid", REFERENCES, [[word.strip(",.?") for word in line.split()[1:5:2]] for line in REFERENCES])
SHORT = {"generation": {"max_tokens": 9, "rehearsals": 2}}
QUALITY = [
    "bleu2", "bleu4", "nist2", "nist4", "coverage", "length_ratio", "distinct2_ratio", "judge_ppl",
    "judge_ppl_reference", "steps", "faithful_bleu2", "faithful_bleu4", "faithful_length_ratio",
    "ar_bleu2", "ar_bleu4", "ar_nist4", "ar_coverage", "ar_length_ratio",
]  # fmt: skip
ABLATION = [
    f"{name}_{model}" for name in ("stop_nll", "bleu2", "bleu4", "nonterminating") for model in ablation.SWITCHES
]
DINIC = [
    "bleu2", "bleu4", "nist2", "nist4", "steps", "length_ratio", "coverage", "sequential_bleu4", "sequential_steps",
    "uniform_bleu2", "uniform_bleu4", "latency_ratio_batch1",
]  # fmt: skip


class LongTextsSurprise:
    """A judge that counts words."""

    name = "counter"

    def perplexity(self, texts):
        words = sum(len(text.split()) for text in texts)
        return Judged(len(texts), words, words, nats=words * math.log(2 + words))


def lower(family="insnet", **config):
    return small_model(family, "word", lower_case=True, **{**SHORT, **config})


def bleu2_of(way, seeds):
    """The mean over seeds, found by hand."""
    drawn = [way.model.generate_batch(TASK.keywords, seed=seed, **way.settings) for seed in seeds]
    return fmean(bleu([result.text for result in results], TASK.references, order=2).score for results in drawn)


# ---- quality ----


def test_quality_has_every_promised_figure_of_every_way_to_write():
    told = lower(count_head=9, length_conditioned=True, generation={"stopping": "counted", "max_tokens": 9})
    ways = quality.ways(
        Decoding(told, {"top_k": 2}), baseline=Decoding(lower("autoregressive"), {}), faithful=lower(seed=1)
    )
    written = []
    headline, detail, texts = quality.measure(
        ways, TASK, Drawing((3, 4), batch_size=4, on_written=written.append), LongTextsSurprise()
    )
    assert set(QUALITY) <= headline.keys() and sum(written) == 5 * 2 * 3
    for name, way in ways.items():
        begin = f"{name}_" if name else ""
        assert headline[f"{begin}bleu2"] == pytest.approx(bleu2_of(way, (3, 4)))
        assert texts[name] == [r.text for r in way.model.generate_batch(TASK.keywords, seed=3, **way.settings)]
        assert [row["seed"] for row in (detail[name] if name else detail)["per_seed"]] == [3, 4]
    assert headline["coverage"] == 1.0 and headline["ar_coverage"] < 1
    assert detail["settings"]["top_k"] == 2 and detail["faithful"]["settings"]["stopping"] == "threshold"
    report, _ = evaluate_task(told, TASK, seed=3, top_k=2)
    assert detail["per_seed"][0]["distinct2_ratio"] == report.distinct2 / report.distinct2_reference
    printed = json.dumps(detail, allow_nan=False)
    assert not any(reference in printed for reference in TASK.references)


def test_a_model_told_its_length_cannot_decode_as_the_paper_does():
    told = lower(count_head=9, length_conditioned=True)
    with pytest.raises(ValueError, match="was given its length"):
        quality.ways(Decoding(told, {}), faithful=told)
    with pytest.raises(ValueError, match="is of the family Autoregressive"):
        quality.ways(Decoding(told, {}), faithful=lower("autoregressive"))
    assert list(quality.ways(Decoding(told, {}))) == [""]


def test_the_papers_decoding_ignores_what_the_model_would_choose():
    """Two models that differ in their own settings alone write the same."""
    plain = lower()
    fancy = lower(
        generation={
            **{"max_tokens": 9, "candidates": 3, "revise": 1, "min_p": 0.3, "top_p": 0.5, "top_k": 1},
            **{"slot_mass": 1e-9, "repetition_penalty": 3.0, "rounds": 2, "mode": "parallel", "min_words": 4},
        }
    )
    texts = [draw(Decoding(model, PAPER_DECODING), TASK, Drawing((0,))).texts for model in (plain, fancy)]
    assert texts[0] == texts[1] != draw(Decoding(fancy, {}), TASK, Drawing((0,))).texts


def test_texts_that_hit_the_cap_are_counted_in_tokens_and_in_words():
    never = lower()
    with torch.no_grad():
        never.family.stop_head.bias.fill_(-1e3)
        never.family.stop_head.weight.zero_()
    assert draw(Decoding(never, PAPER_DECODING), TASK, Drawing((0, 1))).nonterminating == 1.0
    capped = {**PAPER_DECODING, "max_words": 4, "max_tokens": 50}
    assert draw(Decoding(never, capped), TASK, Drawing((0,))).nonterminating == 1.0
    with torch.no_grad():
        never.family.stop_head.bias.fill_(1e3)
    assert draw(Decoding(never, PAPER_DECODING), TASK, Drawing((0, 1))).nonterminating == 0.0


# ---- stop terms ----


def test_keywords_are_found_in_their_sentence_in_order():
    line = "a red hat, a green hat and the old red hat."
    flags = given_words(line, ["Red", "hat", "old red"])
    assert [number for number, flag in enumerate(flags) if flag] == [1, 2, 9, 10]
    with pytest.raises(ValueError, match="'boat' does not stand in"):
        given_words(line, ["hat", "boat"])
    pieces = small_model("insnet", "bpe")
    tokens = pieces.tokenizer.encode(LINES[0])
    given = given_tokens(pieces, tokens, LINES[0], [LINES[0].split()[1]])
    shown = [token for token, flag in zip(tokens, given, strict=True) if flag]
    assert pieces.tokenizer.decode(shown).strip() == LINES[0].split()[1]


def test_stop_terms_are_what_a_decoder_meets_step_by_step(monkeypatch):
    """Against the decoding path: every stop decision on the way to each sentence, forced along the same order."""
    model, orders, rng = lower(), 2, random.Random(0)
    drawn = {}

    def prescribed(sentences, *, starts_word, given, seeds):
        batch = TokenBatch.of(sentences, starts_word=starts_word, given=given, seeds=seeds)
        rows = [order_of(len(s), g, rng, left_to_right=False) for s, g in zip(sentences, given, strict=True)]
        drawn.update({seed: row for seed, row in zip(seeds, zip(sentences, given, rows, strict=True), strict=True)})
        width = batch.tokens.shape[1]
        order = torch.tensor([[*row, *range(len(row), width)] for row in rows])
        return TokenBatch(batch.tokens, batch.lengths, batch.given, batch.starts_word, batch.seeds, order)

    monkeypatch.setattr("benchmarks.stop_nll.TokenBatch", SimpleNamespace(of=prescribed))
    found = sentence_nats(model, TASK, orders=orders)
    assert len(drawn) == orders * len(TASK.references)
    assert found.stop == pytest.approx(fmean(stop_nats_by_steps(model, *row) for row in drawn.values()), rel=1e-9)


def stop_nats_by_steps(model, tokens, given, order):
    words = [model.tokenizer.decode([token]).strip() for token, flag in zip(tokens, given, strict=True) if flag]
    state, nats = model.family.start(prompt_of(model, [words])), 0.0
    plays = plays_of(tokens, order, sum(given))
    for number in range(len(plays) + 1):
        with torch.no_grad():
            stop = offers(model.family, state)["stop"].double().exp()
        nats -= float(torch.log(stop if number == len(plays) else 1 - stop))
        if number < len(plays):
            with torch.no_grad():
                state = model.family.advance(state, edits_of([[plays[number]]]))
    return nats


def test_only_insnet_has_stop_terms():
    with pytest.raises(ValueError, match="give an InsNet"):
        sentence_nats(lower("autoregressive"), TASK)


# ---- ablation ----


@pytest.fixture(scope="module")
def ablated():
    return {name: lower(**switches) for name, switches in ablation.SWITCHES.items()}


def test_the_ablation_has_every_promised_figure(ablated):
    headline, detail, texts = ablation.measure(ablated, TASK, Drawing((0, 1)), orders=2, settings={"max_words": 20})
    assert set(ABLATION) <= headline.keys()
    for name, model in ablated.items():
        way = Decoding(model, {**PAPER_DECODING, "max_words": 20})
        assert headline[f"bleu2_{name}"] == pytest.approx(bleu2_of(way, (0, 1)))
        assert headline[f"stop_nll_{name}"] == sentence_nats(model, TASK, orders=2).stop
        assert headline[f"nonterminating_{name}"] == draw(way, TASK, Drawing((0, 1))).nonterminating
        assert detail[name]["settings"]["max_words"] == 20 and len(texts[name]) == 5
    assert headline["stop_nll_truncated"] != headline["stop_nll_full"]
    json.dumps(detail, allow_nan=False)


def test_models_in_each_others_place_and_other_stopping_are_refused(ablated):
    swapped = {**ablated, "full": ablated["noglobal"]}
    with pytest.raises(ValueError, match="given as full has noglobal = True; expected False"):
        ablation.measure(swapped, TASK, Drawing((0,)))
    with pytest.raises(ValueError, match="the ablation stops as the paper does"):
        ablation.measure(ablated, TASK, Drawing((0,)), settings={"stopping": "sampled"})
    told = {**ablated, "full": lower(count_head=9, length_conditioned=True)}
    with pytest.raises(ValueError, match="given as full was given its length"):
        ablation.measure(told, TASK, Drawing((0,)))
    left_to_right = {**ablated, "truncated": lower("autoregressive")}
    with pytest.raises(ValueError, match="given as truncated has truncated = None"):
        ablation.measure(left_to_right, TASK, Drawing((0,)))


# ---- dinic ----


def test_dinic_has_every_promised_figure():
    sequential, parallel, uniform = (
        lower(seed=seed, generation={"max_tokens": 12, "min_words": 6}) for seed in (0, 1, 2)
    )
    ways = dinic.ways(
        sequential,
        parallel,
        uniform=uniform,
        settings={"parallel_mass": 0.9, "top_k": 2},
        sequential_settings={"top_k": 3},
    )
    latency = dinic.LatencyConfig(texts=2, rounds=1, warmup=0)
    headline, detail, texts = dinic.measure(ways, TASK, Drawing((0, 1)), LongTextsSurprise(), latency=latency)
    assert set(DINIC) <= headline.keys()
    for name, way in ways.items():
        assert headline[f"{name}_bleu2" if name else "bleu2"] == pytest.approx(bleu2_of(way, (0, 1)))
        assert texts[name] == [r.text for r in way.model.generate_batch(TASK.keywords, seed=0, **way.settings)]
    assert headline["uniform_steps"] <= 7 and headline["steps"] < headline["sequential_steps"]
    assert detail["settings"]["parallel_mass"] == 0.9 and detail["uniform"]["settings"]["parallel_mass"] == 1
    assert detail["uniform"]["settings"]["top_k"] == 2 and detail["sequential"]["settings"]["top_k"] == 3
    assert headline["judge_ppl_reference"] == LongTextsSurprise().perplexity(TASK.references).perplexity
    assert headline["judge_ppl"] == pytest.approx(fmean(row["judge_ppl"] for row in detail["per_seed"]))
    seconds = detail["latency"]
    assert headline["latency_ratio_batch1"] == seconds["parallel"]["seconds"] / seconds["sequential"]["seconds"]
    json.dumps(detail, allow_nan=False)


def test_without_a_model_for_it_uniform_is_the_parallel_model():
    one, other = lower(), lower(seed=1)
    assert dinic.ways(one, other)["uniform"].model is other
    with pytest.raises(ValueError, match="inserts one by one"):
        dinic.measure(dinic.ways(one, lower("autoregressive")), TASK, Drawing(on_written=pytest.fail))
    with pytest.raises(ValueError, match="texts is 0"):
        dinic.LatencyConfig(texts=0)
