"""Parallel decoding keeps every promise of decoding one by one: several insertions share a step, nothing else changes.

Models are untrained: whatever they write, promises hold.
"""

import itertools
import random
from dataclasses import replace

import pytest
import torch
from small_models import decider, prompt_of, small_model, traces

from insnet.decoding.choose import Chooser
from insnet.decoding.config import Bounds, GenerationConfig
from insnet.decoding.decide import Decider
from insnet.decoding.lengths import planned
from insnet.decoding.request import Request, blanks, required_words
from insnet.decoding.trace import Replay, log_prob_of_steps
from insnet.families.generator import State
from insnet.families.insnet_objective import Plan
from insnet.families.offers import ChosenSlots
from insnet.insertion.constraints import count_words
from insnet.text.batching import TokenBatch
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
TOLD = {"count_head": 24, "length_conditioned": True}
KINDS = [("word", {}), ("bpe", {}), ("word", {"count_head": 24}), ("bpe", TOLD)]
MECHANISMS = [
    {},
    {"parallel_mass": 1.0},
    {"parallel_mass": 0.3, "top_k": 1},
    {"parallel_mass": 0.95, "top_k": 0, "rounds": 3},
    {"parallel_mass": 1.0, "no_repeat_ngram": 1},
]


@pytest.fixture(params=KINDS, ids=["word", "bpe", "word, counting", "bpe, told"])
def model(request):
    """Untrained models, with settings under which several insertions share most steps."""
    kind, config = request.param
    generation = {"mode": "parallel", "stopping": "sampled", "min_words": 8, "max_tokens": 18}
    return small_model("insnet", kind, generation=generation, **config)


def parallel(model, **settings):
    return decider(model, **{"mode": "parallel", "max_tokens": 20, **settings})


def of_length(prompt, insertions):
    """The prompt of texts whose number of insertions is known, without slack."""
    known = torch.full_like(prompt.limits.insertions, insertions)
    return replace(prompt, limits=replace(prompt.limits, insertions=known, slack=torch.zeros_like(known)))


def plain(steps):
    return [([(slot, token) for slot, token, _ in step.inserts], step.is_last) for step in steps]


def log_probs(steps):
    return [p for step in steps for p in (step.stop_log_prob, *(log_prob for _, _, log_prob in step.inserts))]


def tokens_after(prompt, row, steps):
    """The tokens of a row after every step, by inserting into a list from the right."""
    tokens = prompt.canvas.tokens[row, 1 : int(prompt.canvas.length[row]) - 1].tolist()
    for step in steps:
        for slot, token, _ in sorted(step.inserts, reverse=True):
            tokens.insert(slot, token)
        yield list(tokens)


# ---- batches, seeds, traces ----


@pytest.mark.parametrize("stopping", ["counted", "rehearsed", "sampled", "threshold"])
def test_row_decoded_alone_equals_row_in_batch(model, stopping):
    if stopping == "counted" and not model.family.config.count_head:
        pytest.skip("it has no count head")
    shared = 0
    for number, settings in enumerate(MECHANISMS[:2] if stopping == "rehearsed" else MECHANISMS):
        config = GenerationConfig.of({"mode": "parallel", "stopping": stopping, "rehearsals": 2, **settings})
        requests = [
            Request(required_words(keywords), bounds=replace(config.bounds, min_words=9, max_tokens=20 - 3 * (row % 4)))
            for row, keywords in enumerate(REQUESTS)
        ]
        seeds = [100 * number + row for row in range(len(requests))]
        for request, seed, text in zip(requests, seeds, model.scribe.write(requests, seeds, config), strict=True):
            [alone] = model.scribe.write([request], [seed], config)
            assert plain(alone.steps) == plain(text.steps)
            assert log_probs(alone.steps) == pytest.approx(log_probs(text.steps), rel=0, abs=ATOL)
            shared += sum(len(step.inserts) > 1 for step in text.steps)
    assert shared > 15


def test_results_depend_on_the_seed_and_not_on_the_batch_size(model):
    options = {"seed": 3}
    one_by_one = model.generate_batch(REQUESTS, batch_size=1, **options)
    for size in (2, 64):
        results = model.generate_batch(REQUESTS, batch_size=size, **options)
        assert [(r.text, r.steps) for r in results] == [(r.text, r.steps) for r in one_by_one]
    again = model.generate_batch(REQUESTS, **options)
    assert [(r.trace, r.log_prob) for r in again] == [(r.trace, r.log_prob) for r in results]
    other = model.generate_batch(REQUESTS, **{**options, "seed": 4})
    assert [r.text for r in other] != [r.text for r in results]


def test_equal_slots_of_a_round_draw_different_tokens(model):
    """The slot is a counter of the noise: else all slots with like distributions would get the same token."""
    prompt = prompt_of(model, [["baker"] * 3], seeds=[1])
    state = State.first(prompt, None).select(torch.zeros(50, dtype=torch.int64))
    flat = torch.zeros(50, model.tokenizer.size, dtype=torch.float64)
    pieces = (int(prompt.canvas.length[0]) - 2) // 3
    slot = pieces * (1 + torch.arange(50) % 2)  # before and behind the second: the same neighbours allow the same
    chooser = parallel(model, temperature=100.0, top_k=0, no_repeat_ngram=0).chooser
    tokens = chooser.tokens(state, ChosenSlots.of(slot[:, None]), flat, None)
    assert len(set(tokens.tolist())) == 2


def test_steps_are_rounds_left_to_right_and_streaming_gives_them(model):
    options = {"seed": 4}
    rounds = insertions = 0
    for keywords in REQUESTS:
        result = model.generate(keywords, **options)
        assert result.steps == len(result.trace)
        assert list(model.stream(keywords, **options)) == result.trace
        assert result.trace[-1]["text"] == result.text if result.trace else True
        slots = [[slot for slot, _, _ in entry["insert"]] for entry in result.trace]
        assert all(each == sorted(set(each)) and each for each in slots)  # left to right, one token per slot
        rounds, insertions = rounds + len(slots), insertions + sum(map(len, slots))
    assert rounds < 0.7 * insertions


def test_a_replayed_text_is_the_printed_one(model):
    request = Request(required_words(["baker", "bread"]), bounds=Bounds(min_words=9, max_tokens=18))
    [written] = model.scribe.write([request], [3], model.generation)
    *_, tokens = tokens_after(prompt_of(model, [request]), 0, written.steps)
    assert Replay((), [(token, -1) for token in tokens]).text(model.tokenizer) == written.text


def test_the_smallest_mass_and_the_likeliest_token_are_greedy_decoding_one_by_one(model):
    greedy = {"top_k": 1, "seed": 5, "stopping": "sampled"}
    parallel = model.generate_batch(REQUESTS, parallel_mass=1e-12, **greedy)
    sequential = model.generate_batch(REQUESTS, mode="sequential", slot_mass=1e-12, **greedy)
    assert [r.trace for r in parallel] == [r.trace for r in sequential]
    assert [r.log_prob for r in parallel] == [r.log_prob for r in sequential]


def layered_batch(model, written):
    """The text, order and layers that a decoder played, for training's loss to judge."""
    tokens = [token for token, _ in written.start.tokens]
    place_of = list(range(1, len(tokens) + 1))  # of each token, in order of insertion
    reading, layers = list(tokens), [0] * (len(tokens) + 2)
    for number, step in enumerate(written.steps):
        for shift, (slot, token, _) in enumerate(sorted(step.inserts)):
            place_of = [place + (place > slot + shift) for place in place_of] + [slot + shift + 1]
            reading.insert(slot + shift, token)
            layers.append(number + 1)
    given = [place in place_of[: len(tokens)] for place in range(1, len(reading) + 1)]
    batch = TokenBatch.of([reading], starts_word=model.scribe.lexicon.starts_word, given=[given])
    order, number = torch.tensor([[0, len(reading) + 1, *place_of]]), torch.zeros_like(batch.lengths)
    return batch, Plan(order, number, torch.tensor([layers]))


@torch.no_grad()
@pytest.mark.parametrize("stopping", ["sampled", "threshold"])
def test_log_probs_of_a_trace_add_up_to_minus_the_layered_loss(model, stopping):
    """Section 3.3's objective of the layers that were played: token, slot and stop terms, cached as in one pass.

    Where a bound makes a text go on or end, going on and ending cost nothing."""
    keywords = [[], ["the"], ["a", "the"]]  # one token each: nothing is closed, whose mass would count as stopping
    several = free = 0
    for least in (0, 0 if model.family.config.longest else 9):  # a told model does not go on beyond its length
        requests = [Request(required_words(words), bounds=Bounds(least, max_tokens=24)) for words in keywords]
        for written in model.scribe.write(requests * 6, range(18), model.generation.changed(stopping=stopping)):
            rows = model.family.one_pass.rows(*layered_batch(model, written))
            nats = {name: float(rows.nats[name]) for name in ("token", "slot", "stop")}
            stop = sum(step.stop_log_prob for step in written.steps)
            found = log_prob_of_steps(written.steps)
            assert found - stop == pytest.approx(-nats["token"] - nats["slot"], rel=ATOL)
            if least == 0 and written.finished:
                assert found == pytest.approx(-sum(nats.values()), rel=ATOL)
                free += 1
            several += int(rows.rounds) < int(rows.counts["token"])
    assert several > 3 and (free or stopping == "threshold")


# ---- constraints ----

HARD = [["C++", "don't", "50%"], ["me@home", "(or)"], ["~50", "a*b=c"], ["3", "14"], ["it’s", "«da»"], ["zzqx", "ing"]]


def test_required_words_stay_whole_and_in_order_whatever_shares_a_step(model):
    """Checked by reading the text; with pieces, both sides of a required word may be filled in one round."""
    for settings in MECHANISMS:
        options = {"max_tokens": 24, "top_k": 0, "seed": 6, **settings}
        for keywords, result in zip(HARD + REQUESTS, model.generate_batch(HARD + REQUESTS, **options), strict=True):
            assert contains_in_order(result.text, keywords)


def few_words(model, words):
    """A lexicon that lets a model write these tokens only."""
    lexicon = model.scribe.lexicon
    generatable = torch.zeros_like(lexicon.generatable)
    generatable[words] = True
    return replace(lexicon, generatable=generatable)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_run_is_written_twice_though_several_tokens_go_in_at_once(size):
    model = small_model("insnet", "word")
    words = list(range(20, 20 + (40 if size == 1 else 12)))
    prompt = prompt_of(model, [[]] * 20, min_words=12, max_words=14, max_tokens=30)
    config = {"mode": "parallel", "stopping": "sampled", "parallel_mass": 1.0, "top_k": 3}

    def repeats(**settings):
        decide = Decider(Chooser(GenerationConfig.of(config, **settings), few_words(model, words)))
        found = 0
        for row, steps in enumerate(traces(model, prompt, decide)):
            *_, tokens = tokens_after(prompt, row, steps)
            runs = [tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1)]
            found += len(runs) - len(set(runs))
        return found

    assert repeats(no_repeat_ngram=0) > 10
    assert repeats(no_repeat_ngram=size) == 0


@pytest.mark.parametrize("size", [0, 1, 2])
def test_no_token_comes_to_stand_beside_its_equal(size):
    model = small_model("insnet", "word")
    prompt = prompt_of(model, [["baker", "ship"]] * 20, min_words=12, max_tokens=20)
    pairs = []
    decide = parallel(model, stopping="sampled", parallel_mass=1.0, top_k=1, no_repeat_ngram=size)
    for row, steps in enumerate(traces(model, prompt, decide)):
        *_, tokens = tokens_after(prompt, row, steps)
        pairs += itertools.pairwise(tokens)
    assert any(left == right for left, right in pairs) == (size == 0)


def test_what_is_banned_is_never_written_though_several_insertions_would_complete_it():
    """First written freely; then every three words that one round put together are banned, and written no more."""
    model = small_model("insnet", "word")
    words = [20, 22, 23, 24, 25, 26]
    settings = {"mode": "parallel", "parallel_mass": 1.0, "top_k": 0, "no_repeat_ngram": 0, "stopping": "sampled"}
    decide = Decider(Chooser(GenerationConfig.of(settings), few_words(model, words)))
    bounds = {"min_words": 10, "max_words": 12, "max_tokens": 20}

    def threes(banned):
        prompt = prompt_of(model, [[]] * 30, banned=banned, **bounds)
        for row, steps in enumerate(traces(model, prompt, decide)):
            *_, tokens = tokens_after(prompt, row, steps)
            yield from (tuple(tokens[start : start + 3]) for start in range(len(tokens) - 2))

    free = list(threes(()))
    banned = sorted(set(free), key=lambda three: (-free.count(three), three))[:60]
    assert sum(free.count(three) for three in banned) > 60
    phrases = tuple(model.tokenizer.decode(list(three)) for three in banned)
    assert not set(threes(phrases)) & set(banned)


def test_blanks_are_filled_and_the_text_around_them_is_kept(model):
    counts = {"stopping": "counted" if model.family.config.longest else "threshold"}
    for text in ("The ___ sat on ___ .", "___ and ___ went (___) home", "Dear ___,"):
        parts = [part.strip() for part in text.split("___")]
        for result in model.infill(text, num_samples=12, seed=2, max_tokens=12, **counts):
            place = 0
            for part in parts:
                found = result.text.find(part, place)
                assert found >= place
                place = found + len(part)
            assert result.steps >= 1
    prompt = prompt_of(model, [blanks("The ___ sat on ___ .")] * 8)
    closed = prompt.canvas.closed_after[0].nonzero()[:, 0].tolist()
    for steps in traces(model, prompt, parallel(model, stopping="sampled", parallel_mass=1.0)):
        assert {slot for slot, _, _ in steps[0].inserts}.isdisjoint(closed)
        assert len(steps[0].inserts) <= 2


@pytest.mark.parametrize("bounds", [(1, 4), (6, 9), (12, 12), (3, 30)])
def test_a_round_never_overshoots_the_words_or_tokens_allowed(model, bounds):
    least, most = bounds
    limits = Bounds(min_words=least, max_words=most, max_tokens=17)
    requests = [Request(required_words(words), bounds=limits) for words in REQUESTS[:2]] * 10
    for settings in MECHANISMS:
        decide = parallel(model, stopping="sampled", **settings)
        state = decide.begin(model.family, model.family.start(prompt_of(model, requests)))
        for _ in range(18):
            state = model.family.advance(state, decide(model.family.offer(state), state))
            words = count_words(state.canvas, model.scribe.lexicon, state.limits.word_correction)
            assert (words <= most).all() and (state.inserted <= 17).all()
        for text in model.scribe.write(requests, range(20), decide.chooser.config):
            assert len(text.text.split()) <= most
            is_tidied = any(step.deletes for step in text.steps)  # a lone bracket goes at the end: one word less
            assert len(text.text.split()) >= least or not text.finished or is_tidied


# ---- lengths ----


@pytest.mark.parametrize("settings", MECHANISMS)
@pytest.mark.parametrize("config", [{"count_head": 24}, TOLD], ids=["counting", "told"])
def test_a_counted_length_is_met_to_the_token_or_within_its_slack(settings, config):
    model = small_model("insnet", "word", **config)
    decide = parallel(model, stopping="counted", **{**settings, "rounds": 0})
    prompt = prompt_of(model, REQUESTS, min_words=0, max_tokens=24)
    limits = planned(model.family, model.family.start(prompt), decide.chooser.config, model.scribe.lexicon).limits
    written = [sum(len(step.inserts) for step in steps) for steps in traces(model, prompt, decide)]
    slack = torch.zeros_like(limits.slack) if model.family.config.longest else limits.slack
    assert (torch.tensor(written) - limits.insertions).abs().le(slack).all()
    assert max(written) > 5


def test_a_told_model_is_told_what_is_left_at_every_round(monkeypatch):
    model = small_model("insnet", "word", **TOLD)
    told, original = [], model.family.with_count

    def watched(newest, remaining):
        told.append(remaining.tolist())
        return original(newest, remaining)

    monkeypatch.setattr(model.family, "with_count", watched)
    prompt = of_length(prompt_of(model, [["baker"]], min_words=0, max_tokens=24), 13)
    [steps] = traces(model, prompt, parallel(model, stopping="counted", parallel_mass=1.0))
    counts = [len(step.inserts) for step in steps]
    assert told[-len(steps) :] == [[13 - sum(counts[:number])] for number in range(len(counts))]
    assert max(counts) > 1 and sum(counts) == 13


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_a_fixed_number_of_rounds_ends_the_text_and_fills_what_it_can(rounds):
    """Twelve insertions around nine given words: as many as are left fit into the last round's slots."""
    model = small_model("insnet", "word", **TOLD)
    decide = parallel(model, stopping="counted", rounds=rounds, parallel_mass=0.1, no_repeat_ngram=0)
    prompt = of_length(prompt_of(model, [REQUESTS[-1]] * 4, min_words=0, max_tokens=24), 12)
    for steps in traces(model, prompt, decide):
        counts = [len(step.inserts) for step in steps[:-1]]
        assert len(counts) == rounds
        assert sum(counts) == (10 if rounds == 1 else 12)  # ten slots are open at first
    results = model.generate_batch([REQUESTS[-1]] * 4, seed=1, rounds=rounds, mode="parallel", stopping="counted")
    assert all(result.steps <= rounds for result in results)


def test_rounds_that_are_used_up_leave_no_blank_empty_and_no_text_too_short():
    model = small_model("insnet", "word", generation={"mode": "parallel", "stopping": "threshold", "rounds": 1})
    text = "The ___ sat on ___ with ___ ."
    for seed in range(20):
        result = model.infill(text, seed=seed, parallel_mass=0.01)
        assert result.steps == 3 and len(result.text.split()) >= 8
    assert len(model.generate(["baker"], seed=1, min_words=9, parallel_mass=0.01).text.split()) >= 9


def test_families_that_insert_one_by_one_refuse_the_mode():
    model = small_model("autoregressive", "word")
    with pytest.raises(ValueError, match="mode is 'parallel', but a model of the family Autoregressive inserts one by"):
        model.generate(["baker"], mode="parallel")
    with pytest.raises(ValueError, match="inserts one by one"):
        next(model.stream(["baker"], mode="parallel"))


def test_random_mixtures_of_settings_keep_every_promise():
    """Whatever is combined: words kept, bounds kept, one token per slot, and the trace gives the text."""
    rng = random.Random(3)
    models = [small_model("insnet", kind, **config) for kind, config in KINDS]
    for seed in range(30):
        model = rng.choice(models)
        settings = {
            "parallel_mass": rng.choice([0.2, 0.7, 1.0]),
            "rounds": rng.choice([0, 0, 2, 6]),
            "top_k": rng.choice([0, 1, 5]),
            "no_repeat_ngram": rng.choice([0, 1, 3]),
            "stopping": rng.choice(["sampled", "threshold", *(["counted"] if model.family.config.count_head else [])]),
            "length": (rng.randint(0, 1), rng.randint(20, 25)),
        }
        for keywords, result in zip(
            REQUESTS, model.generate_batch(REQUESTS, mode="parallel", seed=seed, max_tokens=15, **settings), strict=True
        ):
            assert contains_in_order(result.text, keywords)
            assert len(result.text.split()) <= settings["length"][1]
            assert sum(len(entry["insert"]) for entry in result.trace) <= 15
            assert not result.trace or result.trace[-1]["text"] == result.text
