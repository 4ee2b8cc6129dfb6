"""The best of several candidates, against slow twins and other paths to the same number."""

import math
from dataclasses import replace

import pytest
import torch
from small_models import KINDS, batch_of, offers, prompt_of, small_model

from insnet.decoding import rerank, write
from insnet.decoding.config import CANDIDATE_CHOICES as CHOICES
from insnet.decoding.config import GenerationConfig
from insnet.decoding.job import Job
from insnet.decoding.request import Request, required_words
from insnet.decoding.rerank import Given, agreement, best_of, best_of_orders, fluencies, likelihoods, log_likelihoods
from insnet.decoding.trace import log_prob_of_steps
from insnet.families import FAMILIES
from insnet.insertion.canvas import INSERTED
from insnet.model import Model
from insnet.randomness import Purpose, mix

LISTS = [["captain", "ship"], [], ["girl", "song", "old garden"], ["bread"]]


@pytest.fixture(params=[name for name, family in FAMILIES.items() if family.traits.likelihood != "none"])
def model(request):
    return small_model(request.param, "word")


def written(model, keywords, seeds, **settings):
    """What the scribe writes with each seed; its lengths are rehearsed with the first."""
    job = model.job(seed=0, **settings)
    request = job.bounded(Request(required_words(keywords)))
    [request] = model.scribe.rehearse([request], seeds[:1], job.config)
    return model.scribe.write([request] * len(seeds), seeds, job.config)


def candidate_seeds(seed, count):
    return [Job.candidate_seed(seed, number) for number in range(count)]


# ---- which is the best ----


def slow_bleu(own, other):
    """Sentence BLEU-4 with a sum in place of the product, counted by crossing out."""
    total = 0.0
    for size in (1, 2, 3, 4):
        mine = [own[i : i + size] for i in range(len(own) - size + 1)]
        left = [other[i : i + size] for i in range(len(other) - size + 1)]
        found = 0
        for run in mine:
            if run in left:
                left.remove(run)
                found += 1
        total += found / max(len(mine), 1)
    brevity = 1.0 if len(own) >= len(other) else math.exp(1 - len(other) / max(len(own), 1))
    return brevity * total / 4


def test_agreement_is_the_mean_bleu_against_the_others(model):
    for keywords in LISTS:
        texts = [each.text for each in written(model, keywords, range(6), top_k=3)]
        words = [text.lower().split() for text in texts]
        for place, score in enumerate(agreement(texts)):
            others = [slow_bleu(words[place], other) for index, other in enumerate(words) if index != place]
            assert score == pytest.approx(sum(others) / 5)


def test_agreement_prefers_what_others_say_too():
    texts = ["The cat sat on a mat.", "the cat sat on the mat.", "A dog ran away.", "the cat sat on the rug."]
    assert max(range(4), key=agreement(texts).__getitem__) == 1
    assert agreement(["alone"]) == [0.0] and agreement([]) == []
    assert all(map(math.isfinite, agreement(["", "a", ""])))


def test_likelihoods_are_those_of_score_along_the_same_orders(model):
    """Without required words a candidate is scored like any text."""
    drafts = written(model, [], range(12), min_words=0, stopping="sampled")  # bounds cost nothing, so none may bind
    texts = [each for each in drafts if each.inserted and each.finished]
    found = likelihoods(model.scribe, texts, [5] * len(texts), 3)
    for text, score in zip(texts, found, strict=True):
        tokens = [token for token, _ in text.end().tokens]
        is_exact = model.family.traits.likelihood == "exact"
        orders = 1 if is_exact else 3
        seeds = [
            int(mix(Purpose.CANDIDATE_ORDER, write.seed_of_request(text.request, 5), number))
            for number in range(orders)
        ]
        with torch.no_grad():
            expected = model.family.log_likelihood(
                batch_of(model.tokenizer, [tokens] * orders, seeds=seeds)
            ).total.mean()
        decisions = len(tokens) + is_exact  # the end is a token of its own there
        assert score * decisions == pytest.approx(float(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_is_scored_given_its_required_words(kind):
    """They carry no loss, as in training: a text of required words alone pays for stopping only."""
    model = small_model("insnet", kind)
    text = written(model, ["captain", "zzz qq"], [3], min_words=6, stopping="sampled")[0]
    tokens = text.end().tokens
    given = [origin != INSERTED for _, origin in tokens]
    assert any(given) and not all(given)
    batch = batch_of(model.tokenizer, [[t for t, _ in tokens]] * 2, given=[given] * 2, seeds=[8, 9])
    with torch.no_grad():
        expected = model.family.log_likelihood(batch).total.tolist()
    assert log_likelihoods(model.scribe, [Given.of(text, 8), Given.of(text, 9)]) == pytest.approx(expected)
    alone = replace(text, steps=())
    assert log_likelihoods(model.scribe, [Given.of(alone, 8)]) == pytest.approx([_log_stop(model, text.request)])


@torch.no_grad()
def _log_stop(model, request):
    """What the model says of stopping at once, whatever slots are closed."""
    prompt = prompt_of(model, [request])
    state = model.family.start(
        replace(prompt, canvas=replace(prompt.canvas, closed_after=torch.zeros_like(prompt.canvas.closed_after)))
    )
    return float(offers(model.family, state)["stop"])


def test_scores_do_not_depend_on_the_chunks(model, monkeypatch):
    texts = [text for keywords in LISTS for text in written(model, keywords, range(5), stopping="sampled")]
    rows = [Given.of(text, number) for number, text in enumerate(texts)]
    together = log_likelihoods(model.scribe, rows)
    monkeypatch.setattr(rerank, "_MOST_NUMBERS", 1)  # a row at a time
    assert log_likelihoods(model.scribe, rows) == pytest.approx(together, rel=0, abs=1e-9)


def test_chunks_hold_every_row_once_within_the_bound(monkeypatch):
    monkeypatch.setattr(rerank, "_MOST_NUMBERS", 32 * 900)
    lengths = [5, 30, 7, 7, 100, 8, 1]
    chunks = list(rerank._chunks(lengths, 500))
    assert sorted(index for chunk in chunks for index in chunk) == list(range(7))
    for chunk in chunks:
        longest = max(lengths[index] for index in chunk)
        assert len(chunk) == 1 or len(chunk) * longest * (500 + 40 * longest) <= 32 * 900
    assert len(chunks) < 7


@pytest.mark.parametrize("choice", CHOICES)
def test_the_kept_text_is_the_best_of_those_written_with_the_candidates_seeds(model, choice):
    changed = 0
    for keywords in LISTS:
        texts = written(model, keywords, candidate_seeds(7, 5), top_k=5)
        alike = torch.tensor(agreement([text.text for text in texts]), dtype=torch.float64)
        likely = torch.tensor(likelihoods(model.scribe, texts, [7] * 5, 2), dtype=torch.float64)
        both = sum((each - each.mean()) / each.std(correction=0) for each in (alike, likely))
        fluent = torch.tensor(fluencies(model.scribe, texts, [7] * 5, model.generation), dtype=torch.float64)
        scores = {"consensus": alike, "likelihood": likely, "both": both, "fluency": fluent}[choice].tolist()
        held = [sum(keyword in text.text.lower().split() for keyword in keywords) for text in texts]
        best = max(range(5), key=lambda place: (held[place], scores[place]))
        result = model.generate(keywords, seed=7, candidates=5, candidate_choice=choice, top_k=5)
        assert (result.text, result.seed) == (texts[best].text, 7)
        changed += best != 0
    assert changed


@pytest.mark.parametrize("choice", CHOICES)
def test_a_left_to_right_model_keeps_the_text_with_most_required_words(choice):
    model = small_model("autoregressive", "word")
    keywords, changed = ["captain", "ship", "girl", "song", "old", "garden", "bread"], 0
    for seed in range(6):
        texts = [text.text for text in written(model, keywords, candidate_seeds(seed, 6), top_k=0)]
        result = model.generate(keywords, seed=seed, candidates=6, candidate_choice=choice, top_k=0)
        held = [sum(keyword in text.split() for keyword in keywords) for text in texts]
        assert held[texts.index(result.text)] == max(held)
        changed += min(held) < max(held)
    assert changed


def test_candidates_share_the_rehearsals_of_their_text(model, monkeypatch):
    rehearsed_rows = []
    plain = write.rehearsed

    def spy(family, prompt, *others):
        rehearsed_rows.extend(prompt.seeds.tolist())
        return plain(family, prompt, *others)

    monkeypatch.setattr(write, "rehearsed", spy)
    options = {"seed": 3, "stopping": "rehearsed", "rehearsals": 2, "max_tokens": 30}
    model.generate_batch(LISTS, candidates=4, **options)
    once = len(rehearsed_rows)
    assert once == (len(LISTS))
    job = model.job(**options)
    requests = [job.bounded(Request(required_words(keywords))) for keywords in LISTS]
    known = model.scribe.rehearse(requests, [3] * len(LISTS), job.config, batch_size=1)
    assert known == model.scribe.rehearse(requests, [3] * len(LISTS), job.config)
    assert len(rehearsed_rows) == 3 * once
    for text in model.scribe.write(known * 2, [3] * len(LISTS) + [4] * len(LISTS), job.config):
        assert abs(text.inserted - text.request.insertions) <= text.request.insertions // 4  # the slack
    assert len(rehearsed_rows) == 3 * once


def test_one_candidate_changes_nothing(model):
    plain = model.generate_batch(LISTS, seed=3)
    for choice in CHOICES:
        assert model.generate_batch(LISTS, seed=3, candidates=1, candidate_choice=choice) == plain


@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_refused_is_no_candidate(model, choice):
    texts = [text.text for text in written(model, ["ship"], candidate_seeds(2, 6))]
    best = model.generate(["ship"], seed=2, candidates=6, candidate_choice=choice).text
    second = model.generate(
        ["ship"], seed=2, candidates=6, candidate_choice=choice, accept=lambda text: text != best, attempts=1
    )
    assert second.text in texts and second.text != best


def test_texts_of_several_orders_are_compared_by_the_probability_of_a_step():
    model = small_model("insnet", "word")
    config = GenerationConfig.of(candidates=3, candidate_choice="consensus")
    orders = [["captain", "ship"], ["ship", "captain"]]
    groups = [written(model, order, candidate_seeds(4, 3)) for order in orders]
    firsts = best_of(model.scribe, groups, [4, 4], config)
    expected = [max(firsts, key=lambda text: log_prob_of_steps(text.steps) / len(text.steps))]
    assert best_of_orders(model.scribe, [groups], [4], config) == expected
    result = model.generate(["captain", "ship"], seed=4, any_order=True, candidates=3)
    assert result.text == expected[0].text
    assert best_of_orders(model.scribe, [[[], []], groups], [4, 4], config) == [None, *expected]


def test_candidates_cannot_be_streamed(model):
    with pytest.raises(ValueError, match="candidates chooses among finished texts"):
        next(model.stream(["ship"], candidates=2))


def test_a_model_that_chooses_by_itself_streams_its_first_draft(model):
    first = model.generate(["ship"], seed=3, candidates=1, min_words=4)
    choosy = Model(model.family, model.tokenizer, model.generation.changed(candidates=4, min_words=4))
    assert [step["text"] for step in choosy.stream(["ship"], seed=3)][-1] == first.text


def test_progress_counts_texts_not_candidates(model):
    counts = []
    model.generate_batch(LISTS, seed=5, candidates=3, batch_size=2, on_written=counts.append)
    assert sum(counts) == len(LISTS)


def test_rows_without_insertions_have_a_score():
    model = small_model("insnet", "word")
    texts = written(model, ["captain", "ship"], [1, 2], min_words=0, max_words=2)
    assert prompt_of(model, [["captain", "ship"]]).canvas.length.tolist() == [4] and texts[0].inserted == 0
    assert all(map(math.isfinite, likelihoods(model.scribe, texts, [1, 2], 2)))
