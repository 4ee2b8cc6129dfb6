"""The pieces of choosing, with hazards and distributions made by hand."""

import math
from dataclasses import replace

import pytest
import torch
from small_models import decider, prompt_of, small_model, traces

from insnet.decoding.choose import Chooser
from insnet.decoding.config import GenerationConfig
from insnet.decoding.decide import Decider
from insnet.decoding.desk import OwnDesk
from insnet.decoding.lengths import with_length
from insnet.decoding.loop import decode
from insnet.decoding.rehearse import rehearsed
from insnet.families.generator import State
from insnet.families.offers import ChosenSlots
from insnet.insertion.canvas import NOTHING
from insnet.insertion.constraints import FREE
from insnet.randomness import Purpose, mix

HAZARDS = [0.1, 0.2, 0.2, 0.45, 0.55, 0.2, 0.9, 0.99]


@pytest.fixture(scope="module")
def model():
    return small_model("insnet", "word")


def state_of(model, rows, keywords=(), **bounds):
    prompt = prompt_of(model, [keywords] * rows, **{"max_tokens": 50, "max_words": 60, **bounds})
    return State.first(prompt, None)


def chooser_of(model, **settings):
    return decider(model, **settings).chooser


def log_of(*probabilities):
    return torch.tensor(probabilities, dtype=torch.float64).log()


# ---- when a text ends ----


def stops(model, hazards, *, rows=1, **settings):
    """The number of insertions before each row's stop, for a model whose hazards are these."""
    chooser = chooser_of(model, **settings)
    state = state_of(model, rows, min_words=0)
    ended = torch.full((rows,), -1)
    for step, hazard in enumerate(hazards):
        ends = chooser.ending(state, log_of(hazard).expand(rows)).ends
        ended = torch.where((ended < 0) & ends, step, ended)
        state = replace(state, step=state.step + 1)
    return ended.tolist()


def test_threshold_stops_as_soon_as_stopping_is_likelier_than_going_on(model):
    assert stops(model, HAZARDS, stopping="threshold") == [4]


def test_sampled_stops_as_often_as_the_hazard_says(model):
    lengths = torch.tensor(stops(model, HAZARDS[:4], rows=4000, stopping="sampled"))
    alive = 4000
    for step, hazard in enumerate(HAZARDS[:4]):
        ended = int((lengths == step).sum())
        assert abs(ended / alive - hazard) < 4 * math.sqrt(0.25 / alive)
        alive -= ended


@pytest.mark.parametrize("stopping", ["threshold", "sampled"])
def test_bounds_overrule_every_stopping_rule_and_then_the_models_word_does_not_count(model, stopping):
    """Per case: (fewest words, insertions made, planned insertions, hazard), then (ends, is cut off, was forced to)."""
    never, always = 1e-9, 1 - 1e-9
    cases = [
        ((1, 0, FREE, always), (False, False, True)),  # no word yet
        ((0, 50, FREE, never), (True, True, True)),  # max_tokens
        ((0, 50, FREE, always), (True, False, False)),  # it ends by itself there
        ((0, 50, 50, never), (True, False, False)),  # planned to end there
        ((0, 3, FREE, always), (True, False, False)),
        ((0, 3, FREE, never), (False, False, False)),
        ((0, 2, 3, always), (False, False, False)),
        ((0, 3, 3, never), (True, False, False)),
    ]
    chooser = chooser_of(model, stopping=stopping)
    for (least, inserted, planned, hazard), expected in cases:
        state = state_of(model, 1, min_words=least)
        limits = replace(state.limits, insertions=torch.tensor([planned]))
        state = replace(state, limits=limits, inserted=torch.tensor([inserted]))
        ending = chooser.ending(state, log_of(hazard))
        assert (bool(ending.ends), bool(ending.is_cut), bool(ending.is_forced)) == expected


def test_slack_lets_a_text_end_at_the_first_good_place_near_its_length(model):
    def ended_after(hazards):
        state = state_of(model, 1, min_words=0)
        limits = replace(state.limits, insertions=torch.tensor([4]), slack=torch.tensor([2]))
        for inserted, hazard in enumerate(hazards):
            state = replace(state, limits=limits, inserted=torch.tensor([inserted]))
            if chooser_of(model).ending(state, log_of(hazard)).ends.item():
                return inserted
        return None

    assert ended_after([0.9, 0.9, 0.1, 0.6, 0.9, 0.9, 0.9]) == 3  # not before 4 - 2
    assert ended_after([0.1] * 9) == 6  # 4 + 2 at the latest
    limits = with_length(state_of(model, 2).limits, torch.tensor([8, FREE]))
    assert (limits.insertions.tolist(), limits.slack.tolist()) == ([8, FREE], [2, 0])


@pytest.mark.parametrize(("quantile", "place"), [(0.5, 2), (0.25, 1)])
@pytest.mark.parametrize("name", ["insnet", "autoregressive"])
def test_rehearsed_length_is_a_quantile_of_untruncated_samples(name, quantile, place):
    model = small_model(name, "word")
    chooser = chooser_of(model, rehearsals=5, count_quantile=quantile)
    requests = [["baker"], [], ["old ship", "rain"], ["x", "y", "z"]]
    prompt = prompt_of(model, requests, seeds=[7, 8, 9, 10], max_tokens=20)
    found = rehearsed(model.family, prompt, chooser, OwnDesk()).tolist()
    free = Decider(Chooser(chooser.config.untruncated(), chooser.lexicon))
    for row, request in enumerate(requests):
        lengths = []
        for number in range(5):
            seed = int(mix(Purpose.REHEARSAL, 7 + row, number))
            [steps] = traces(model, prompt_of(model, [request], seeds=[seed], max_tokens=20), free)
            lengths.append(sum(len(step.inserts) for step in steps))
        assert found[row] == sorted(lengths)[place]
    assert len(set(found)) > 1
    limits = replace(with_length(prompt.limits, torch.tensor(found)), slack=torch.zeros(4, dtype=torch.int64))
    decoded = traces(model, replace(prompt, limits=limits), Decider(chooser))
    assert [sum(len(step.inserts) for step in steps) for steps in decoded] == found


# ---- which token ----


def drawn(model, state, log_probs, **settings):
    """The tokens that go into slot 0 of every row."""
    chosen = ChosenSlots.of(torch.zeros(len(state.seeds), 1, dtype=torch.int64))
    chooser = chooser_of(model, **settings)
    return chooser.tokens(state, chosen, log_probs.expand(len(state.seeds), -1), chooser.noise(state))


def test_cuts_follow_one_another(model):
    """Each sees what the one before it has left, renormalised."""
    words = model.scribe.lexicon.generatable.nonzero()[50:58, 0]
    shares = [0.3, 0.25, 0.15, 0.12, 0.08, 0.06, 0.03, 0.01]
    log_probs = torch.full((1, model.tokenizer.size), -math.inf, dtype=torch.float64)
    log_probs[0, words] = log_of(*shares)
    state = state_of(model, 3000)
    for settings, kept in (
        ({"top_k": 6}, 6),
        ({"top_k": 0, "top_p": 0.8}, 4),
        ({"top_k": 4, "top_p": 0.8}, 3),  # of 0.82 that are left
        ({"top_k": 0, "top_p": 0.9, "min_p": 0.3}, 4),
    ):
        assert sorted(set(drawn(model, state, log_probs, **settings).tolist())) == words[:kept].tolist()


def token_runs(model, size, **settings):
    """Every row's runs of `size` tokens, <bos> and <eos> aside."""
    prompt = prompt_of(model, [[]] * 20, min_words=12, max_tokens=25)
    for steps in traces(model, prompt, decider(model, stopping="sampled", top_k=1, **settings)):
        tokens = []
        for step in steps:
            for slot, token, _ in step.inserts:
                tokens.insert(slot, token)
        yield [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_run_is_written_twice_and_no_token_beside_its_equal_unless_allowed(model, size):
    assert all(len(set(runs)) == len(runs) for runs in token_runs(model, size, no_repeat_ngram=size))
    assert any(len(set(runs)) < len(runs) for runs in token_runs(model, size, no_repeat_ngram=0))
    assert not any(a == b for runs in token_runs(model, 2, no_repeat_ngram=size) for a, b in runs)
    assert any(a == b for runs in token_runs(model, 2, no_repeat_ngram=0) for a, b in runs)


def test_repetition_penalty_divides_a_tokens_probability_for_each_time_it_stands_there(model):
    state = state_of(model, 1)
    tokens = state.canvas.tokens.clone()
    tokens[0, :6] = torch.tensor([1, 9, 8, 9, 9, 2])
    state = replace(state, canvas=replace(state.canvas, tokens=tokens, length=torch.tensor([6])), longest=6)
    flat = torch.zeros(1, model.tokenizer.size, dtype=torch.float64)
    chooser, slot = chooser_of(model, no_repeat_ngram=0, repetition_penalty=2.0), torch.tensor([2])
    changed = chooser._without_repetitions(state.canvas, slot, torch.tensor([[8, 9]]), flat, state.longest)[0]
    assert changed[[7, 8, 9]].exp().tolist() == pytest.approx([1, 1 / 2, 1 / 8])


@pytest.mark.parametrize("name", ["insnet", "autoregressive"])
def test_where_nothing_may_be_written_the_row_ends(name):
    """A lexicon that allows nothing: no forbidden token is put, and decoding comes to its end."""
    model = small_model(name, "word")
    mute = replace(model.scribe.lexicon, generatable=torch.zeros_like(model.scribe.lexicon.generatable))
    config = GenerationConfig.of(stopping="sampled")
    prompt = prompt_of(model, [["baker"], []], min_words=5, max_tokens=9)
    [step] = decode(model.family, prompt, Decider(Chooser(config, mute)))
    assert step.edits.finished.all() and step.edits.token.eq(NOTHING).all()


@pytest.mark.parametrize(
    ("insertions", "inserted", "temperature"),
    [(6, 0, 0.5 + 1.5 * 6 / 8), (6, 3, 0.5 + 1.5 * 3 / 5), (6, 5, 0.5 + 1.5 * 1 / 3), (6, 8, 0.5), (FREE, 3, 2.0)],
)
def test_temperature_falls_with_the_share_of_the_text_that_is_missing(model, insertions, inserted, temperature):
    """Two words are there. Past the wanted length it has fallen to the end; where none is wanted, it does not fall."""
    rows = 300
    state = state_of(model, rows, ["baker", "rain"])
    limits = replace(state.limits, insertions=torch.full((rows,), insertions))
    state = replace(state, limits=limits, inserted=torch.full((rows,), inserted), seeds=torch.arange(rows))
    log_probs = torch.randn(1, model.tokenizer.size, dtype=torch.float64).log_softmax(dim=1)
    falling = drawn(model, state, log_probs, top_k=0, temperature=2.0, final_temperature=0.5)
    assert torch.equal(falling, drawn(model, state, log_probs, top_k=0, temperature=temperature))
    assert len(set(falling.tolist())) > 10
