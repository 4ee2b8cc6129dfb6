"""A second pass over finished texts: what it may remove, what it writes, and a trace that stays true."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from small_models import KINDS, offers, prompt_of, small_model

from insnet.decoding import revise
from insnet.decoding.config import Bounds, GenerationConfig
from insnet.decoding.prompt import prompt_of_texts
from insnet.decoding.request import Request, blanks, required_words
from insnet.decoding.rerank import likelihoods, token_log_probs
from insnet.decoding.revise import Rules, fitness_of_words, inserted_words, lacking
from insnet.insertion.canvas import INSERTED
from insnet.text.words import contains_in_order

LISTS = [["captain", "ship"], [], ["girl", "song", "old garden"], ["bread", "C++", "🙂"]]
HOT = {"top_k": 0, "slot_mass": 1.0}
TOLD = {"count_head": 20, "length_conditioned": True}


def model_of(kind, **options):
    return small_model("insnet", kind, generation={"min_words": 8}, **options)


@pytest.fixture(params=KINDS)
def model(request):
    return model_of(request.param)


def written(model, requests, seed=0, **settings):
    job = model.job(seed=seed, **settings)
    requests = [r if isinstance(r, Request) else job.bounded(Request(required_words(r))) for r in requests]
    return model.scribe.write(requests, [seed] * len(requests), job.config)


# ---- which words go ----


def test_inserted_words_are_whole_and_never_required(model):
    starts = model.tokenizer.starts_word
    for text in written(model, LISTS * 5, **HOT):
        tokens = text.end().tokens
        words = inserted_words(tokens, starts)
        places = [place for word in words for place in word]
        assert places == [place for place, (_, origin) in enumerate(tokens) if origin == INSERTED]
        for word in words:
            assert word.start == 0 or starts[tokens[word.start][0]] or tokens[word.start - 1][1] != INSERTED
            assert not any(starts[tokens[place][0]] for place in word[1:])
            after = word.stop
            assert after == len(tokens) or tokens[after][1] != INSERTED or starts[tokens[after][0]]


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, TOLD, {"slot_layers": 1}, {**TOLD, "slot_layers": 1}])
def test_a_words_fitness_is_the_probability_that_it_is_put_back(options, monkeypatch):
    """One word gone at a time, against the offers of a canvas that lacks it."""
    monkeypatch.setattr(revise, "_READINGS", 99)
    model = model_of("word", **options)
    texts = written(model, LISTS[:3], **HOT)
    ends = [text.end().tokens for text in texts]
    words = [inserted_words(tokens, model.tokenizer.starts_word) for tokens in ends]
    for text, tokens, own, fitness in zip(texts, ends, words, fitness_of_words(model.scribe, ends, words), strict=True):
        assert list(fitness) == own
        for word in own:
            left = [pair for place, pair in enumerate(tokens) if place not in word]
            prompt = prompt_of_texts(prompt_of(model, [text.request]), [left], model.tokenizer.specials)
            insertions = torch.tensor([len(word)])  # what a model that is told its length was told
            prompt = replace(prompt, limits=replace(prompt.limits, insertions=insertions))
            offered = offers(model.family, model.family.start(prompt))
            expected = float(offered["tokens"][0, word.start, tokens[word.start][0]])
            assert fitness[word] == pytest.approx(expected)


@torch.no_grad()
def test_a_word_of_several_pieces_fits_as_well_as_they_do_on_average(monkeypatch):
    monkeypatch.setattr(revise, "_READINGS", 99)
    model = model_of("bpe")
    tokens = written(model, LISTS, **HOT)[0].end().tokens
    words = inserted_words(tokens, model.tokenizer.starts_word)
    long = max(words, key=len)
    assert len(long) > 1
    pieces = token_log_probs(model.scribe, [lacking(tokens, [long])])[0]
    assert [place for place, score in enumerate(pieces) if score] == list(long)
    assert fitness_of_words(model.scribe, [tokens], [words])[0][long] == pytest.approx(sum(pieces) / len(long))


def test_every_word_is_judged_once_in_four_passes(model, monkeypatch):
    texts = [text.end().tokens for text in written(model, LISTS, **HOT)]
    words = [inserted_words(tokens, model.tokenizer.starts_word) for tokens in texts]
    asked = []
    monkeypatch.setattr(
        revise, "token_log_probs", lambda scribe, rows: asked.extend(rows) or token_log_probs(scribe, rows)
    )
    fitness = fitness_of_words(model.scribe, texts, words)
    assert [sorted(own, key=lambda word: word.start) for own in fitness] == words
    assert len(asked) == sum(min(4, len(own)) for own in words) < sum(map(len, words))
    for row in asked:
        gone = [place for place, is_given in enumerate(row.is_given) if not is_given]
        assert gone and len(gone) < len(row.tokens)
    assert fitness_of_words(model.scribe, texts[:1], [[]]) == [{}]


def test_the_least_likely_words_are_removed(model):
    for text in written(model, LISTS, **HOT):
        config = GenerationConfig.of(revise_share=0.3, no_repeat_ngram=0)
        [gone] = revise._least_likely(model.scribe, [text], config)
        tokens = text.end().tokens
        words = inserted_words(tokens, model.tokenizer.starts_word)
        scores = fitness_of_words(model.scribe, [tokens], [words])[0]
        fitness = [scores[word] for word in words]
        kept = [score for word, score in zip(words, fitness, strict=True) if word.start not in gone]
        removed = {word: score for word, score in zip(words, fitness, strict=True) if word.start in gone}
        assert sorted(place for word in removed for place in word) == gone
        assert len(removed) == math.ceil(0.3 * len(words))
        may_glue = [score for score in kept if score < max(removed.values())]
        assert len(may_glue) <= len(text.request.required) * 2  # only beside required words a worse one may stay


def test_words_between_what_must_not_meet_stay():
    """A required 3 and an inserted .14 would read 3.14; new and york are banned together."""
    model = model_of("word")
    of = {surface: token for token, surface in enumerate(model.tokenizer._surfaces)}
    request = Request(required_words(["3"]), banned=("old ship",))
    forbidden = prompt_of(model, [request]).limits.forbidden[0].tolist()
    rules = Rules.of(model.scribe.lexicon, GenerationConfig(), forbidden)
    joins = next(s for s in of if s.startswith("￭") and not model.scribe.lexicon.may_follow_required[of[s]])
    tokens = [(of.get("3", 4), 0), (of["the"], -1), (of[joins], -1), (of["old"], -1)]
    tokens += [(of["the"], -1), (of["ship"], -1), (of["a"], -1), (of["ship"], -1)]
    faults = rules.faults(tokens)
    assert not faults
    whole = [range(place, place + 1) for place in range(1, len(tokens))]
    for word, is_free in ((1, False), (2, True), (4, False), (6, False)):
        gone = revise._chosen(tokens, [whole[word - 1]], rules, 1.0)
        assert gone == ([word] if is_free else []), word


# ---- what is written in their stead ----


def test_a_prompt_of_grown_texts_keeps_closed_slots_and_required_words(model):
    bounds = Bounds(min_words=12)
    parts = [blanks("The ___ sold ___ at the market."), Request(required_words(["old garden", "C++"]))]
    requests = [replace(request, bounds=bounds) for request in parts]
    texts = written(model, requests, **HOT)
    given = prompt_of(model, requests)
    prompt = prompt_of_texts(given, [text.end().tokens for text in texts], model.tokenizer.specials)
    for row, text in enumerate(texts):
        assert int(prompt.canvas.length[row]) == text.tokens + 2  # <bos> and <eos>
        assert _given_places(prompt.canvas, row) == _given_places(given.canvas, row)
        assert prompt.canvas.closed_after[row].sum() == given.canvas.closed_after[row].sum()


def _given_places(canvas, row):
    """(token, origin, closed) of <bos> and of what was given."""
    columns = (values[row].tolist() for values in (canvas.tokens, canvas.origin, canvas.closed_after))
    return [entry for place, entry in enumerate(zip(*columns, strict=True)) if place == 0 or entry[1] != INSERTED]


@pytest.mark.parametrize("config", [{}, TOLD])
def test_as_many_tokens_are_written_as_were_removed_and_the_rest_stays(config):
    model = model_of("bpe", **config)
    longer = written(model, LISTS * 3, seed=1, **HOT)
    free = Bounds(max_tokens=14)  # nothing forces them on
    texts = [replace(text, request=replace(text.request, bounds=free)) for text in longer]
    gone = [
        [place for word in inserted_words(t.end().tokens, model.tokenizer.starts_word)[::3] for place in word]
        for t in texts
    ]
    new = revise._rewritten(model.scribe, texts, gone, [5] * len(texts), model.job(**HOT).config)
    for text, places, again in zip(texts, gone, new, strict=True):
        assert again.tokens == text.tokens and again.request == text.request
        assert again.steps[: text.rounds] == text.steps[: text.rounds]
        assert list(again.steps[text.rounds].deletes) == places and not again.steps[text.rounds].inserts
        left = iter(again.end().tokens)
        assert all(pair in left for place, pair in enumerate(text.end().tokens) if place not in places)  # in order


def test_a_revision_is_kept_where_it_is_likelier_and_accepted(model):
    changed = 0
    for number, keywords in enumerate(LISTS * 3):
        options = {"seed": number, "stopping": "sampled", **HOT}
        before = model.generate(keywords, **options)
        after = model.generate(keywords, revise=1, **options)
        if before.text == after.text:
            continue
        changed += 1
        steps = len(before.trace)
        assert after.trace[:steps] == before.trace
        assert after.trace[steps]["delete"] and not after.trace[steps]["insert"]
        refused = model.generate(keywords, revise=1, accept=lambda text, own=after.text: text != own, **options)
        assert refused.text == before.text
    assert changed >= 3


@pytest.mark.parametrize("most", [9, 12])
def test_a_text_that_was_cut_off_stays_so_when_it_is_revised_and_a_finished_one_is_not_cut_off(most):
    model = small_model("insnet", "bpe", generation={"min_words": 9, "max_tokens": most, "stopping": "sampled"})
    first = model.generate_batch(LISTS * 8, seed=1, **HOT)
    revised = model.generate_batch(LISTS * 8, seed=1, revise=2, **HOT)
    assert any(step["delete"] for result in revised if not result.finished for step in result.trace)
    assert [result.finished for result in revised] == [result.finished for result in first]


def test_revised_texts_are_likelier_round_by_round(model):
    def bound(texts):
        return likelihoods(model.scribe, texts, [3] * len(texts), 2)

    texts = written(model, LISTS * 3, seed=3, stopping="sampled", **HOT)
    job = model.job(seed=3, revise=1, stopping="sampled", **HOT)
    for _ in range(3):
        later = revise.revised(model.scribe, texts, [3] * len(texts), job)
        for old, new, before, after in zip(texts, later, bound(texts), bound(later), strict=True):
            assert after > before if old.text != new.text else old is new
        texts = later
    assert any(any(step.deletes for step in text.steps) for text in texts)


def test_replaying_a_trace_with_removals_gives_the_text(model):
    results = model.generate_batch(LISTS * 4, seed=8, revise=3, stopping="sampled", **HOT)
    removals = 0
    for keywords, result in zip(LISTS * 4, results, strict=True):
        assert [entry["step"] for entry in result.trace] == list(range(1, result.steps + 1))
        texts = [entry["text"] for entry in result.trace]
        assert texts[-1] == result.text
        assert all(contains_in_order(text, keywords) for text in texts)
        removals += sum(len(entry["delete"]) for entry in result.trace)
        net = sum(len(entry["insert"]) - len(entry["delete"]) for entry in result.trace)
        given = sum(len(model.tokenizer.encode(" ".join(keyword.split()))) for keyword in keywords)
        assert result.tokens == given + net
    assert removals


def test_bans_and_bounds_hold_after_revision(model):
    options = {"seed": 2, "revise": 3, "revise_share": 0.5, "stopping": "sampled", "top_k": 0, "slot_mass": 1.0}
    banned = ["the old", "ship", "a cold rain"]
    for result in model.generate_batch(
        [["captain"], ["girl", "song"], []] * 6, length=(4, 9), banned=banned, **options
    ):
        words = len(result.text.split())
        assert 4 <= words <= 9 or not result.finished
        assert not any(phrase in f" {result.text.lower()} " for phrase in (" ship ", " the old ", " a cold rain "))
        ids = model.tokenizer.encode(result.text)
        assert all(left != right for left, right in itertools.pairwise(ids))


def test_blanks_stay_filled_and_the_text_around_them_is_kept(model):
    text = "The ___ sold ___ at the market."
    for result in model.infill(text, num_samples=6, seed=1, revise=2, revise_share=0.6, stopping="sampled"):
        assert result.text.startswith("The ") and result.text.endswith(" at the market.")
        middle = result.text.removeprefix("The ").removesuffix(" at the market.")
        before, sold, after = middle.partition("sold")
        assert before.strip() and sold and after.strip()


def test_nothing_to_revise_changes_nothing(model):
    plain = model.generate(["captain", "ship"], seed=1, min_words=0, max_words=2)
    assert model.generate(["captain", "ship"], seed=1, min_words=0, max_words=2, revise=2) == plain


def test_a_model_that_only_appends_cannot_revise():
    with pytest.raises(ValueError, match="revise is 1, but a model of the family Autoregressive only appends"):
        small_model("autoregressive", "word").generate(["ship"], revise=1)


def test_a_text_under_revision_cannot_be_streamed(model):
    with pytest.raises(ValueError, match="revise chooses among finished texts"):
        next(model.stream(["ship"], revise=1))


def test_revising_several_slots_a_step_keeps_every_promise(model):
    options = {"seed": 6, "mode": "parallel", "parallel_mass": 0.9, "candidates": 2, "revise": 2, "max_tokens": 12}
    options |= {"stopping": "sampled", **HOT}
    together = model.generate_batch(LISTS, **options)
    alone = [model.generate(keywords, **options) for keywords in LISTS]
    assert [(r.text, r.steps) for r in together] == [(r.text, r.steps) for r in alone]
    for keywords, result in zip(LISTS, together, strict=True):
        assert result.trace[-1]["text"] == result.text and contains_in_order(result.text, keywords)
    entries = [entry for result in together for entry in result.trace]
    assert any(len(entry["insert"]) > 1 for entry in entries) and any(entry["delete"] for entry in entries)
