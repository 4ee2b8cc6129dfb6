"""Rows that join a running loop, and rows that are given up: the others are written as if they were alone."""

import pytest
import torch
from small_models import small_model

from insnet.decoding.loop import Decoding, decode
from insnet.decoding.request import Request, required_words
from insnet.decoding.trace import Recorder
from insnet.families import FAMILIES

LISTS = [["captain", "ship"], ["girl", "song", "old garden"], ["bread"], []]
LATE = [["sea"], ["lighthouse", "storm", "captain", "ship", "girl"]]
SETTINGS = {"temperature": 1.0, "max_tokens": 12}


@pytest.fixture(params=list(FAMILIES))
def model(request):
    return small_model(request.param, "word")


def asked(model, lists, first_seed=0):
    """The prompt and the decider of some keyword lists."""
    job = model.job(seed=0, **SETTINGS)
    requests = [job.bounded(Request(required_words(keywords))) for keywords in lists]
    seeds = list(range(first_seed, first_seed + len(lists)))
    requests = model.scribe.rehearse(requests, seeds, job.config)
    return model.scribe.prompt(requests, seeds, job.config), model.scribe.decider(job.config)


def alone(model, prompt, decide):
    recorder = Recorder(len(prompt.seeds), list(decode(model.family, prompt, decide)))
    return [[step.inserts for step in steps] for steps in recorder.traces()]


@pytest.mark.parametrize("after", [1, 3, 1000])
def test_rows_that_join_late_change_nothing_and_are_written_as_if_alone(model, after):
    (first, decide), (late, _) = asked(model, LISTS), asked(model, LATE, first_seed=50)
    decoding, recorder = Decoding(model.family, decide), Recorder(len(LISTS) + len(LATE))
    decoding.join(first)
    steps, has_joined = 0, False
    while decoding.goes_on() or not has_joined:
        if not has_joined and (steps == after or not decoding.goes_on()):
            decoding.join(late, first_row=len(LISTS))
            has_joined = True
        recorder.steps.append(decoding.step())
        steps += 1
    together = [[step.inserts for step in steps] for steps in recorder.traces()]
    expected = [*alone(model, first, decide), *alone(model, late, decide)]
    assert [tokens(row) for row in together] == [tokens(row) for row in expected]


def tokens(steps):
    """Which token went where at each step."""
    return [[(slot, token) for slot, token, _ in inserts] for inserts in steps]


def test_rows_that_are_given_up_change_nothing_in_the_others(model):
    prompt, decide = asked(model, LISTS)
    decoding, recorder = Decoding(model.family, decide), Recorder(len(LISTS))
    decoding.join(prompt)
    while decoding.goes_on():
        recorder.steps.append(decoding.step())
        if len(recorder.steps) == 2:
            decoding.give_up(torch.tensor([1, 3]))
    traces = [[step.inserts for step in steps] for steps in recorder.traces()]
    expected = alone(model, prompt, decide)
    for row in (0, 2):
        assert tokens(traces[row]) == tokens(expected[row])
    for row in (1, 3):
        assert tokens(traces[row]) == tokens(expected[row])[:2]


def test_a_loop_whose_rows_are_all_given_up_is_over(model):
    prompt, decide = asked(model, LISTS[:1])
    decoding = Decoding(model.family, decide)
    decoding.join(prompt)
    assert decoding.goes_on()
    decoding.give_up(torch.tensor([0]))
    assert not decoding.goes_on() and not decoding.goes_on()
