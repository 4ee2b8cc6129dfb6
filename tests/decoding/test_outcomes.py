"""Requests with lengths, banned words and seeds of their own: written together as each would be alone."""

from dataclasses import replace

import pytest
from small_models import small_model

from insnet.decoding.request import Request, blanks, required_words

ALONE = [
    (["captain", "ship"], {"length": (4, 6), "seed": 1}),
    (["bread"], {"length": (12, None), "seed": 2}),
    (["rope"], {"seed": 1}),
    (["goat", "hat"], {"length": (None, 9), "banned": ["the"], "seed": 3}),
    (["garden"], {"length": (4, 20), "seed": 4}),
]


@pytest.fixture(scope="module", params=["insnet", "autoregressive"])
def model(request):
    return small_model(request.param, "bpe", generation={"min_words": 3, "stopping": "sampled"})


def request_of(keywords, *, length=None, banned=(), seed=None) -> Request:
    return replace(Request(required_words(keywords)), length=length, banned=tuple(banned))


def essence(result) -> tuple:
    return result.keywords, result.text, result.steps, result.seed


def test_each_request_is_written_as_in_a_call_of_its_own(model):
    requests = [request_of(keywords, **options) for keywords, options in ALONE]
    batches: list[int] = []
    seeds = [options["seed"] for _, options in ALONE]
    together = model.outcomes(requests, seeds, on_written=batches.append)
    assert batches == [len(ALONE)]  # one batch, whatever their lengths
    assert [essence(result) for [result] in together] == [
        essence(model.generate(keywords, **options)) for keywords, options in ALONE
    ]


def test_a_length_of_its_own_stands_in_for_that_of_the_call(model):
    [[own], [other]] = model.outcomes(
        [request_of(["rope"], length=(10, None)), request_of(["rope"])], [1, 1], length=(3, 9)
    )
    assert essence(own) == essence(model.generate(["rope"], length=(10, None), seed=1))
    assert 3 <= len(other.text.split()) <= 9 < 10 <= len(own.text.split())


@pytest.mark.parametrize("count", [1, 2])
def test_a_request_that_cannot_be_met_costs_no_other(model, count):
    possible = [request_of(["captain"]), request_of(["ship"])]
    impossible = [
        request_of(["captain", "ship"], length=(1, 1)),
        request_of(["captain"], banned=["captain"]),
        request_of(["captain"], length=(9, 4)),
        request_of(["word"] * 2000),
    ]
    requests = [possible[0], *impossible, possible[1]]
    first, *refused, last = model.outcomes(requests, [7] * len(requests), num_samples=count)
    alone = model.outcomes(possible, [7, 7], num_samples=count)
    assert [list(map(essence, results)) for results in (first, last)] == [list(map(essence, own)) for own in alone]
    reasons = ["at most 1 allowed", "both required and banned", "fewest words are more than the most", "tokens"]
    assert all(reason in str(error) for reason, error in zip(reasons, refused, strict=True))


def test_texts_that_are_all_refused_cost_no_other():
    model = small_model("insnet", "bpe", generation={"stopping": "sampled"})
    requests = [request_of(["captain"]), request_of(["rope"])]
    refused, [written] = model.outcomes(requests, [7, 7], accept=lambda text: "captain" not in text.lower(), attempts=3)
    assert "accept refused all 3 texts drawn for 'captain'" in str(refused)
    assert written.keywords == ["rope"]


def test_texts_with_blanks_have_lengths_of_their_own_too():
    model = small_model("insnet", "bpe", generation={"stopping": "sampled"})
    requests = [replace(blanks("The ___ sat ."), length=length) for length in ((5, 5), (9, 9))]
    assert [len(result.text.split()) for [result] in model.outcomes(requests, [1, 2])] == [5, 9]
