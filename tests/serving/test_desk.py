"""Many callers share one decode loop: each receives what it would have received alone, whoever comes, goes or fails."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from small_models import small_model

from insnet.decoding.loop import Decoding
from insnet.families import FAMILIES
from insnet.serving.desk import SharedDesk, StoppedError
from insnet.serving.ticket import CalledOffError, DeadlineError, Ticket, current_ticket, working_for

LISTS = [["captain", "ship"], ["girl", "song", "old garden"], ["bread"], [], ["sea", "storm"], ["lighthouse"]] * 2
SETTINGS = [
    {},
    {"temperature": 0.7, "max_words": 9},
    {"candidates": 3, "candidate_choice": "consensus"},
    {"banned": ["the"]},
]


ONCE = {"stopping": "sampled", "candidates": 1}  # one row for each text, and no rehearsals


@pytest.fixture
def desk():
    shared = SharedDesk(most_rows=16)
    yield shared
    shared.stop()


@pytest.fixture(params=list(FAMILIES))
def model(request):
    return small_model(request.param, "word")


def shared(model, desk):
    """The model, its steps from now on made at a desk."""
    model.scribe = replace(model.scribe, desk=desk)
    return model


def texts(model, number):
    options = SETTINGS[number % len(SETTINGS)]
    return [result.text for result in model.generate_batch(LISTS[: 1 + number % 5], seed=number, **options)]


def test_each_caller_receives_what_it_would_alone(model, desk):
    expected = [texts(model, number) for number in range(16)]
    busy = shared(model, desk)
    with ThreadPoolExecutor(16) as callers:
        found = list(callers.map(lambda number: texts(busy, number), range(16)))
    assert found == expected


def test_callers_with_the_same_settings_share_steps(desk, monkeypatch):
    rows, step = [], Decoding.step
    monkeypatch.setattr(Decoding, "step", lambda self: rows.append(len(self._is_active)) or step(self))
    busy = shared(small_model("insnet", "word"), desk)
    with ThreadPoolExecutor(8) as callers:
        with desk.turn():  # nothing is made until all have come
            waiting = [callers.submit(busy.generate, ["sea"], seed=number, **ONCE) for number in range(8)]
            while len(desk._waiting) < 8:
                time.sleep(0.01)
        assert all("sea" in each.result(30).text.lower() for each in waiting)
    assert rows[0] == 8


def test_who_would_make_a_batch_too_large_waits(desk, monkeypatch):
    rows, step = [], Decoding.step
    monkeypatch.setattr(Decoding, "step", lambda self: rows.append(int(self._is_active.sum())) or step(self))
    busy = shared(small_model("insnet", "word"), desk)
    with ThreadPoolExecutor(8) as callers:
        done = list(callers.map(lambda seed: busy.generate_batch([["sea"]] * 6, seed=seed, **ONCE), range(8)))
    assert len(done) == 8 and max(rows) <= 16


def test_a_caller_whose_prompt_is_refused_disturbs_nobody(desk):
    busy = shared(small_model("insnet", "word"), desk)
    with ThreadPoolExecutor(2) as callers:
        good = callers.submit(busy.generate, ["sea"], seed=1)
        with pytest.raises(ValueError, match="both required and banned"):
            busy.generate(["sea"], banned=["sea"])
        assert "sea" in good.result(30).text.lower()


def test_an_error_in_a_step_is_told_and_the_desk_goes_on(desk, monkeypatch):
    busy = shared(small_model("insnet", "word"), desk)
    offer = busy.family.offer
    monkeypatch.setattr(busy.family, "offer", lambda state: (_ for _ in ()).throw(MemoryError("too much")))
    with pytest.raises(MemoryError, match="too much"):
        busy.generate(["sea"], seed=1)
    monkeypatch.setattr(busy.family, "offer", offer)
    assert "sea" in busy.generate(["sea"], seed=1).text.lower()


def test_a_request_that_is_called_off_frees_its_rows(desk):
    busy = shared(small_model("insnet", "word"), desk)
    ticket, has_begun = Ticket(), threading.Event()

    def write():
        with working_for(ticket):
            for _ in busy.stream(["sea"], seed=1, min_words=200, max_words=400, max_tokens=500):
                has_begun.set()

    with ThreadPoolExecutor(1) as callers:
        running = callers.submit(write)
        assert has_begun.wait(30)
        ticket.call_off()
        with pytest.raises(CalledOffError):
            running.result(30)
    until = time.monotonic() + 30
    while desk._batches and time.monotonic() < until:
        time.sleep(0.01)
    assert not desk._batches


def test_a_request_ends_at_its_deadline(desk):
    busy = shared(small_model("insnet", "word"), desk)
    start = time.monotonic()
    with working_for(Ticket(0.2)), pytest.raises(DeadlineError, match="deadline"):
        busy.generate_batch([["sea"]] * 16, min_words=400, max_words=500, max_tokens=900)
    assert time.monotonic() - start < 10
    with working_for(Ticket(0)), pytest.raises(DeadlineError):
        busy.generate(["sea"])
    assert "sea" in busy.generate(["sea"], seed=1).text.lower()
    assert current_ticket().remaining() is None


def test_a_desk_that_stops_finishes_what_runs_and_takes_nothing_more():
    desk = SharedDesk()
    busy = shared(small_model("insnet", "word"), desk)
    expected = small_model("insnet", "word").generate(["sea"], seed=3, min_words=20, max_tokens=60, **ONCE).text
    with ThreadPoolExecutor(1) as callers:
        running = callers.submit(busy.generate, ["sea"], seed=3, min_words=20, max_tokens=60, **ONCE)
        while not (desk._batches or running.done()):
            time.sleep(0.001)
        desk.stop()
        assert running.result(30).text == expected
    with pytest.raises(StoppedError, match="shutting down"):
        busy.generate(["sea"])
