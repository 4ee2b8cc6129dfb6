"""A keyword `run*`: some form of it is in every text, whichever a candidate drew."""

import random
from collections import Counter

import pytest
from small_models import small_model

from insnet.decoding.job import Job
from insnet.decoding.request import Request, required_words
from insnet.families import FAMILIES
from insnet.text.inflection import choices_of
from insnet.text.words import contains_in_order, count_found

HOT = {"temperature": 5.0, "top_k": 0}
LISTS = [
    ["dog*", "run*"],
    ["ice cream*"],
    ["Ship*", "old", "be*"],
    ["ship"],
    ["run*", "run*"],
    [r"wow\*", "the*", "5*"],
]
OPTIONS = [
    {},
    {"candidates": 3},
    {"any_order": True},
    {"any_order": True, "candidates": 4, "candidate_choice": "fluency"},
    {"accept": lambda text: len(text) % 2 == 0, "attempts": 60},
]
FORMS = {
    "dog*": ["dog", "dogs"],
    "run*": ["run", "runs", "ran", "running"],
    "ice cream*": ["ice cream", "ice creams"],
    "Ship*": ["Ship", "Ships", "Shipped", "Shipping"],
    "be*": ["be", "am", "is", "are", "was", "were", "been", "being"],
    r"wow\*": ["wow*"],
}


def has_a_form_of_each(result, keywords):
    """By hand: each reported word is a form of its keyword, in whatever order, and all are in the text as reported."""
    wanted = [FORMS.get(keyword, [keyword.rstrip("*") if keyword == "the*" else keyword]) for keyword in keywords]
    rest = list(result.keywords)
    for own in wanted:
        rest.remove(next(word for word in rest if word in own))
    return not rest and contains_in_order(result.text, result.keywords)


@pytest.fixture(params=[name for name, family in FAMILIES.items() if family.traits.keeps_given])
def model(request):
    return small_model(request.param, "bpe", generation={"min_words": 4})


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "_".join(options) or "plain")
def test_every_text_holds_a_form_of_each_keyword(model, options):
    if "candidate_choice" in options and model.family.traits.likelihood == "none":
        pytest.skip("it has no likelihood")
    for seed in range(4):
        for keywords, result in zip(LISTS, model.generate_batch(LISTS, seed=seed, **options, **HOT), strict=True):
            assert has_a_form_of_each(result, keywords), (keywords, result)


def test_a_text_with_drawn_forms_is_the_same_alone_and_in_any_batch_and_follows_from_its_seed(model):
    for options in ({}, {"candidates": 3}):
        together = model.generate_batch(LISTS, seed=7, **options)
        apart = model.generate_batch(LISTS, seed=7, batch_size=1, **options)
        alone = [model.generate(keywords, seed=7, **options) for keywords in LISTS]
        assert [r.text for r in together] == [r.text for r in apart] == [r.text for r in alone]
    samples = model.generate(LISTS[0], num_samples=6, seed=1, **HOT)
    assert all(model.generate(LISTS[0], seed=result.seed, **HOT).text == result.text for result in samples)
    assert len({tuple(result.keywords) for result in samples}) > 1
    *_, last = model.stream(LISTS[0], seed=samples[0].seed, **HOT)
    assert last["text"] == samples[0].text


def test_half_of_the_draws_are_the_form_as_given_and_the_others_even():
    request = Request(required_words(["run*", "run*"]))
    draws = [request.drawn(seed).phrases() for seed in range(2000)]
    for place in (0, 1):
        shares = {form: count / 2000 for form, count in Counter(draw[place] for draw in draws).items()}
        assert shares.pop("run") == pytest.approx(1 / 2, abs=0.04)
        assert shares == pytest.approx(dict.fromkeys(["runs", "ran", "running"], 1 / 6), abs=0.04)
    assert 0.2 < sum(first == second == "run" for first, second in draws) / 2000 < 0.3  # drawn apart


def test_a_keyword_without_other_forms_gives_the_text_of_the_bare_word():
    model = small_model("insnet", "bpe")
    assert model.generate(["the*"], seed=3, **HOT).text == model.generate(["the"], seed=3, **HOT).text


def test_banned_forms_are_not_drawn_and_a_word_banned_in_all_forms_is_told_in_one_line():
    model = small_model("insnet", "bpe")
    for seed in range(12):
        result = model.generate(["dog*", "run*"], seed=seed, banned=["dog", "Running"], **HOT)
        assert result.keywords[0] == "dogs" and result.keywords[1] in ("run", "runs", "ran")
        assert count_found(result.text, ["dog", "running"], ignore_case=True) == 0
    with pytest.raises(ValueError, match="'dog' is both required and banned"):
        model.generate(["dog*"], banned=["dog", "dogs"])


def test_candidates_of_a_request_differ_in_their_forms():
    """As many forms as chance gives to 32 draws: all four of a verb."""
    job = Job.of(small_model("insnet", "bpe").generation, seed=2, candidates=32)
    rng = random.Random(0)
    for seed in (rng.randrange(2**31) for _ in range(5)):
        [drafts] = job.drafts(Request(required_words(["run*"])), seed)
        assert {request.phrases()[0] for request, _ in drafts} == set(choices_of("run*"))
