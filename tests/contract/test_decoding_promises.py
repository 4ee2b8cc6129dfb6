"""Promises 3, 4, 6 and 7: batches, replaying, purity and foreign edits, seeds and storage."""

import copy
from dataclasses import replace

import pytest
import torch
from small_models import decider, edits_of, offers, prompt_of, small_model, traces

from insnet.decoding.config import STOPPING_RULES, GenerationConfig
from insnet.decoding.loop import decode
from insnet.decoding.request import Request, required_words
from insnet.decoding.trace import Replay
from insnet.decoding.write import seed_of_request
from insnet.families.generator import map_tensors
from insnet.families.storage import load_model, save_model
from insnet.insertion.canvas import Canvas
from insnet.model import Model
from insnet.text.words import contains_in_order

ATOL = 1e-9

REQUESTS = [
    ["baker", "bread"],
    [],
    ["new york", "🙂", "C++"],
    ["the", "the", "harbour"],
    ["Sunday"],
    ["a very long phrase that stays whole", "ship"],
    ["neighbour", "visited", "market", "fish", "boat", "rain", "old", "young", "garden"],
]

SETTINGS = [
    {},
    {"top_k": 0, "slot_mass": 1.0, "temperature": 2.0},
    {"top_k": 1, "slot_mass": 1e-9},
    {"top_k": 0, "top_p": 0.8, "no_repeat_ngram": 0, "min_words": 4, "max_words": 22},
    {"repetition_penalty": 1.5, "no_repeat_ngram": 1, "max_tokens": 5},
    {"top_k": 0, "min_p": 0.1},
]

CHOICES = [
    {},
    {"candidates": 3, "top_k": 0},
    {"candidates": 3, "candidate_choice": "likelihood", "min_p": 0.02},
    {"candidates": 3, "candidate_choice": "fluency", "top_k": 0},
    {"candidates": 2, "revise": 2, "revise_share": 0.4, "top_k": 0},
]
"""How a text is chosen among finished ones."""


@pytest.fixture(params=range(len(CHOICES)), ids=lambda number: "_".join(CHOICES[number]) or "plain")
def choices(request, model):
    """Every way that the family knows."""
    options = CHOICES[request.param]
    if "revise" in options and not model.family.traits.fills_blanks:
        pytest.skip("it only appends")
    if options.keys() & {"revise", "candidate_choice"} and model.family.traits.likelihood == "none":
        pytest.skip("it has no likelihood")
    return options


def plain(steps):
    return [([(slot, token) for slot, token, _ in s.inserts], s.deletes, s.is_last) for s in steps]


def log_probs(steps):
    return [p for s in steps for p in (s.stop_log_prob, *(log_prob for _, _, log_prob in s.inserts))]


def assert_same_trace(first, second):
    assert plain(first) == plain(second)
    assert log_probs(first) == pytest.approx(log_probs(second), rel=0, abs=ATOL)


@pytest.mark.parametrize("stopping", STOPPING_RULES)
def test_row_decoded_alone_equals_row_in_batch(model, stopping):
    if stopping == "counted" and model.family.offer(model.family.start(prompt_of(model, [[]]))).counts is None:
        pytest.skip("it counts nothing")
    for number, settings in enumerate(SETTINGS):
        config = GenerationConfig.of({"max_tokens": 9, "stopping": stopping, "rehearsals": 3, **settings})
        bounds = config.bounds  # rows end at different steps
        requests = [
            Request(required_words(keywords), bounds=replace(bounds, max_tokens=bounds.max_tokens - row % 4))
            for row, keywords in enumerate(REQUESTS)
        ]
        seeds = [100 * number + row for row in range(len(REQUESTS))]
        together = model.scribe.write(requests, seeds, config)
        assert all(text.steps[-1].is_last and not any(s.is_last for s in text.steps[:-1]) for text in together)
        for row, text in enumerate(together):
            [alone] = model.scribe.write([requests[row]], [seeds[row]], config)
            assert_same_trace(alone.steps, text.steps)


def test_results_do_not_depend_on_the_batch_size(model, choices):
    options = {"seed": 3, "max_tokens": 8, "rehearsals": 2, **choices}
    one_by_one = model.generate_batch(REQUESTS, batch_size=1, **options)
    assert len({result.text for result in one_by_one}) > 1
    for size in (2, 3, 64):
        for alone, other in zip(one_by_one, model.generate_batch(REQUESTS, batch_size=size, **options), strict=True):
            assert (alone.text, alone.steps, alone.finished) == (other.text, other.steps, other.finished)
            assert alone.log_prob == pytest.approx(other.log_prob, rel=0, abs=ATOL)


def test_finished_rows_are_dropped_and_reported_no_more(model):
    seen, over = [], set()
    prompt = prompt_of(model, REQUESTS * 3, max_tokens=12)
    for step in decode(model.family, prompt, decider(model, stopping="sampled", top_k=0, max_tokens=12)):
        rows = step.row[step.is_active].tolist()
        assert not over & set(rows) and len(set(rows)) == len(rows)
        assert not step.edits.puts()[~step.is_active].any()
        over |= set(step.row[step.edits.finished].tolist())
        seen.append(len(step.row))
    assert over == set(range(len(REQUESTS) * 3))
    assert seen[0] == len(REQUESTS) * 3 and seen[-1] < seen[0]


def test_replaying_the_trace_gives_the_output_and_the_prompt_survives(model, choices):
    for settings in SETTINGS:
        settings = {"max_tokens": 9, **choices, **settings}
        results = model.generate_batch(REQUESTS, seed=5, stopping="sampled", **settings)
        for keywords, result in zip(REQUESTS, results, strict=True):
            assert result.steps == len(result.trace)
            if result.trace:
                assert result.trace[-1]["text"] == result.text
            if model.family.traits.keeps_given:
                assert contains_in_order(result.text, keywords)
    config = GenerationConfig.of(stopping="sampled", max_tokens=9)
    request = Request(required_words(REQUESTS[0]), bounds=config.bounds)
    prompt = model.scribe.prompt([request], [seed_of_request(request, 0)], config)
    recorded = traces(model, prompt, model.scribe.decider(config))
    text = model.generate(REQUESTS[0], seed=0, stopping="sampled", max_tokens=9).text
    assert text.lower() == _replayed(model, prompt, recorded[0], 0).lower()  # tokens take no capital, keywords do


def _replayed(model, prompt, steps, row):
    """The text by inserting into a Python list, rendered from tokens (the keywords are in the vocabulary)."""
    keeps = model.family.traits.keeps_given
    tokens = prompt.canvas.tokens[row, 1 : int(prompt.canvas.length[row]) - 1].tolist() if keeps else []
    replay = Replay((), [(token, -1) for token in tokens])
    for step in steps:
        for slot, token, _ in reversed(step.inserts):
            tokens.insert(slot, token)
        replay.apply(step)
    assert [token for token, _ in replay.tokens] == tokens
    return model.tokenizer.decode(tokens)


def bits(state):
    """A deep copy of all tensors of a state."""
    kept = []
    map_tensors(state, lambda tensor: (kept.append(tensor.clone()), tensor)[1])
    return kept


@torch.no_grad()
def test_offering_and_deciding_change_nothing(model):
    decide = decider(model, top_k=0, stopping="sampled")
    state = model.family.start(prompt_of(model, REQUESTS, max_tokens=12))
    for _ in range(4):
        before = bits(state)
        first, second = decide(model.family.offer(state), state), decide(model.family.offer(state), state)
        assert all(torch.equal(a, b) for a, b in zip(before, bits(state), strict=True))
        assert torch.equal(first.token, second.token) and torch.equal(first.log_prob, second.log_prob)
        state = model.family.advance(state, first)


def same_offers(family, first, second, rows_first=slice(None), rows_second=slice(None)):
    found, expected = offers(family, first), offers(family, second)
    for name in found:
        a, b = found[name][rows_first], expected[name][rows_second]
        shape = [min(x, y) for x, y in zip(a.shape, b.shape, strict=True)]
        a, b = (t[tuple(slice(0, n) for n in shape)] for t in (a, b))
        torch.testing.assert_close(a, b, rtol=0, atol=ATOL)


def append_edits(state, token):
    """One token at the end of every row: an edit that every family knows."""
    return edits_of([[(int(length) - 2, token)] for length in state.canvas.length])


@torch.no_grad()
def test_foreign_edits_work(model):
    """A person's edits: rows with none; where the family allows it, several in a step and in one slot."""
    keywords = [["baker", "bread"], [], ["ship"]]
    start = lambda: model.family.start(prompt_of(model, keywords, max_tokens=12))  # noqa: E731
    state = start()
    length = state.canvas.length.tolist()
    end = [n - 2 for n in length]
    partial = model.family.advance(state, edits_of([[(end[0], 7)], [], [(end[2], 8)]]))
    assert partial.canvas.length.tolist() == [length[0] + 1, length[1], length[2] + 1]
    assert partial.inserted.tolist() == [1, 0, 1]
    untouched = start()
    same_offers(model.family, partial, untouched, rows_first=slice(1, 2), rows_second=slice(1, 2))
    both = model.family.advance(partial, edits_of([[], [(end[1], 9)], []]))
    at_once = model.family.advance(start(), edits_of([[(end[0], 7)], [(end[1], 9)], [(end[2], 8)]]))
    assert torch.equal(both.canvas.tokens, at_once.canvas.tokens)
    same_offers(model.family, both, at_once)
    if not model.family.traits.inserts_anywhere:
        for edits in ([[(end[0], 7), (end[0], 8)], [], []], [[], [], [(end[2] + 1, 7)]]):
            with pytest.raises((ValueError, RuntimeError), match="only appends"):
                model.family.advance(start(), edits_of(edits))
        return
    several = model.family.advance(start(), edits_of([[(1, 7), (0, 8), (1, 9)], [(0, 7), (0, 7)], []]))
    one_by_one = start()
    for edits in ([[(0, 8)], [(0, 7)], []], [[(2, 7)], [(1, 7)], []], [[(3, 9)], [], []]):
        one_by_one = model.family.advance(one_by_one, edits_of(edits))
    assert torch.equal(several.canvas.tokens, one_by_one.canvas.tokens)
    same_offers(model.family, several, one_by_one)


@torch.no_grad()
def test_select_copies_so_that_two_directions_can_be_taken(model):
    state = model.family.start(prompt_of(model, [["baker"], ["ship", "rain"]], max_tokens=12))
    state = model.family.advance(state, append_edits(state, 7))
    copies = state.select(torch.tensor([1, 0, 1, 1]))
    kept = bits(state)
    one = model.family.advance(copies, append_edits(copies, 8))
    assert all(torch.equal(a, b) for a, b in zip(kept, bits(state), strict=True))
    other = model.family.advance(state, append_edits(state, 9))
    again = model.family.advance(other, append_edits(other, 8))
    expected = model.family.start(prompt_of(model, [["baker"], ["ship", "rain"]], max_tokens=12))
    for token in (7, 8):
        expected = model.family.advance(expected, append_edits(expected, token))
    same_offers(model.family, one, expected, slice(2, 4), torch.tensor([1, 1]))
    assert not torch.equal(again.canvas.tokens[:, :5], expected.canvas.tokens[:, :5])


@torch.no_grad()
def test_joined_states_decode_as_if_apart(model):
    """Different capacities, ages, plans and bans; banned words stay banned."""
    decide = decider(model, top_k=0, stopping="sampled", no_repeat_ngram=2)
    small = prompt_of(model, [["baker"], []], seeds=[3, 4], max_tokens=7, banned=("the",))
    large = prompt_of(
        model, [REQUESTS[6], ["new york"]], seeds=[5, 6], max_tokens=25, banned=("old ship", "a cold rain")
    )
    states = [model.family.start(small), model.family.start(large)]
    for _ in range(2):
        states[0] = model.family.advance(states[0], append_edits(states[0], 9))
    joined = [states[0].join(states[1]), states[1].join(states[0])]
    assert all(state.canvas.origin[:, -1].eq(-1).all() for state in joined)
    parts = {"small": states[0].select(torch.arange(2)), "large": states[1].select(torch.arange(2))}
    orders = [("small", "large"), ("large", "small")]
    for state, order in zip(joined, orders, strict=True):
        own = {name: copy.copy(parts[name]).select(torch.arange(2)) for name in order}
        for _ in range(5):
            edits = decide(model.family.offer(state), state)
            for place, name in enumerate(order):
                apart = decide(model.family.offer(own[name]), own[name])
                rows = slice(2 * place, 2 * place + 2)
                for field in ("token", "finished"):
                    assert torch.equal(getattr(edits, field)[rows], getattr(apart, field))
                puts = apart.puts()
                assert torch.equal(edits.slot[rows][puts], apart.slot[puts])
                torch.testing.assert_close(edits.stop_log_prob[rows], apart.stop_log_prob, rtol=0, atol=ATOL)
                torch.testing.assert_close(edits.log_prob[rows], apart.log_prob, rtol=0, atol=ATOL)
                own[name] = model.family.advance(own[name], apart)
            state = model.family.advance(state, edits)


@torch.no_grad()
def test_joining_keeps_every_ban(model):
    """The shorter list of banned sequences is padded with what matches nothing, not with a token."""
    first = model.family.start(prompt_of(model, [[]], banned=("the",)))
    second = model.family.start(prompt_of(model, [[]], banned=("the old ship", "rain")))
    for state, row, own in ((first.join(second), 0, first), (second.join(first), 1, first)):
        banned = {tuple(t for t in s if t >= 0) for s in state.limits.forbidden[row].tolist()} - {()}
        assert banned == {tuple(t for t in s if t >= 0) for s in own.limits.forbidden[0].tolist()} - {()}


def test_same_seed_same_trace_and_another_seed_another(model, choices):
    options = {"stopping": "sampled", "top_k": 0, "min_words": 6, "max_tokens": 14, **choices}
    first, again = (model.generate_batch(REQUESTS, seed=11, **options) for _ in range(2))
    assert [r.trace for r in first] == [r.trace for r in again]
    assert [r.log_prob for r in first] == [r.log_prob for r in again]
    other = model.generate_batch(REQUESTS, seed=12, **options)
    assert [r.text for r in first] != [r.text for r in other]


def test_saved_and_loaded_gives_the_same_trace(model, choices, tmp_path):
    save_model(tmp_path, model.family)
    loaded = Model(load_model(tmp_path, "cpu", torch.float64), model.tokenizer, model.generation)
    options = {"seed": 11, "top_k": 0, "min_words": 5, "stopping": "sampled", **choices}
    for before, after in zip(
        model.generate_batch(REQUESTS, **options), loaded.generate_batch(REQUESTS, **options), strict=True
    ):
        assert before == after
    assert (tmp_path / "config.json").is_file() and (tmp_path / "model.safetensors").is_file()


def test_streaming_gives_the_steps_of_generating(model):
    options = {"seed": 4, "max_tokens": 9}
    for keywords in REQUESTS[:4]:
        result = model.generate(keywords, **options)
        assert list(model.stream(keywords, **options)) == result.trace


@torch.no_grad()
def test_a_state_that_was_left_behind_keeps_its_meaning(model):
    """Caches are appended to in place, but an earlier state never looks past its own length."""
    state = model.family.start(prompt_of(model, [["baker"], ["ship", "rain"]], max_tokens=12))
    before = offers(model.family, state)
    later = model.family.advance(state, append_edits(state, 9))
    model.family.advance(later, append_edits(later, 10))
    for name, values in offers(model.family, state).items():
        assert torch.equal(values, before[name])


def test_a_family_that_plans_starts_from_an_empty_canvas_and_counts_no_given_words(family_name, kind):
    """Its canvas holds no given words, so nothing is to be corrected: else texts exceed their bound."""
    model = small_model(family_name, kind)
    keywords = ["🙂 ☃ ♫", "zzzz yyyy", "C++ - x"]
    results = model.generate_batch(
        [keywords] * 20, max_words=11, min_words=9, stopping="sampled", max_tokens=60, top_k=0, seed=1
    )
    assert all(9 <= len(result.text.split()) <= 11 for result in results if result.finished)
    state = model.family.start(prompt_of(model, [keywords]))
    assert isinstance(state.canvas, Canvas)
    if not model.family.traits.keeps_given:
        assert state.canvas.length.tolist() == [2] and state.limits.word_correction.tolist() == [0]
