"""The service as a client meets it: answers, limits in one line, nothing stuck, no stack trace."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from small_models import small_model

from insnet.serving.app import create_app
from insnet.serving.office import FullError, Office
from insnet.serving.settings import ServiceConfig
from insnet.text.words import contains_in_order

LONG = {"keywords": ["sea"], "length": [150, 190], "seed": 1}


@pytest.fixture
def model():
    return small_model("insnet", "word")


@pytest.fixture
def client(model):
    config = ServiceConfig(most_requests=4, most_samples=5, most_candidates=8, seconds=20)
    with TestClient(create_app(model, config), raise_server_exceptions=False) as client:
        yield client


def test_texts_are_those_of_the_library(client):
    own = small_model("insnet", "word")
    asked = {"keywords": ["captain", "ship"], "samples": 3, "seed": 7, "banned": ["the"], "length": [2, 12]}
    answer = client.post("/v1/generate", json=asked)
    expected = own.generate(["captain", "ship"], num_samples=3, seed=7, banned=["the"], length=(2, 12))
    assert answer.status_code == 200
    assert [each["text"] for each in answer.json()["results"]] == [each.text for each in expected]
    assert "trace" not in answer.json()["results"][0]
    [traced] = client.post("/v1/generate", json={**asked, "samples": 1, "trace": True}).json()["results"]
    assert traced["trace"] == own.generate(["captain", "ship"], seed=7, banned=["the"], length=(2, 12)).trace


def test_blanks_are_filled_and_texts_scored(client):
    own = small_model("insnet", "word")
    [filled] = client.post("/v1/infill", json={"text": "The ___ ship.", "seed": 2}).json()["results"]
    assert filled["text"] == own.infill("The ___ ship.", seed=2).text
    score = client.post("/v1/score", json={"text": "the ship"}).json()
    assert score["log_prob"] == pytest.approx(own.score("the ship").log_prob)


def test_a_stream_ends_in_what_was_asked_for(client):
    own = [entry["text"] for entry in small_model("insnet", "word").stream(["captain", "ship"], seed=3)]
    with client.stream("POST", "/v1/stream", json={"keywords": ["captain", "ship"], "seed": 3}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [block.split("\n") for block in "".join(answer.iter_text()).strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in events]
    texts = [json.loads(data.removeprefix("data: ")).get("text") for _, data in events]
    assert names == ["step"] * len(own) + ["end"] and texts[:-1] == own


@pytest.mark.parametrize(
    ("path", "asked", "told"),
    [
        ("generate", {"keywords": ["sea"] * 65}, "65 keywords; this service takes at most 64"),
        ("generate", {"keywords": ["s" * 5000]}, "5000 characters; this service takes at most 4000"),
        ("generate", {"keywords": ["sea"], "samples": 6}, "6 samples; this service takes at most 5"),
        ("generate", {"keywords": ["sea"], "candidates": 9}, "9 candidates; this service takes at most 8"),
        ("generate", {"keywords": ["sea"], "length": 500}, "500 words; this service takes at most 200"),
        ("generate", {"keywords": ["sea"], "length": [9, 2]}, "the fewest words are more than the most"),
        ("generate", {"keywords": ["sea"], "banned": ["sea"]}, "both required and banned"),
        ("generate", {"keywords": "sea"}, "keywords: Input should be a valid list"),
        ("generate", {"keywords": ["sea"], "temprature": 1}, "temprature: Extra inputs are not permitted"),
        ("generate", {}, "keywords: Field required"),
        ("infill", {"text": "no blank"}, "___"),
        ("score", {"text": ""}, "empty"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(client, path, asked, told):
    answer = client.post(f"/v1/{path}", json=asked)
    assert answer.status_code == 422 and list(answer.json()) == ["error"]
    assert told in answer.json()["error"] and "\n" not in answer.json()["error"]
    assert client.post("/v1/generate", json={"keywords": ["sea"]}).status_code == 200


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[1]", b"null", b'{"keywords": ["\\ud800"]}'])
def test_no_body_brings_the_service_down(client, body):
    answer = client.post("/v1/generate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422 and answer.json()["error"]
    assert client.get("/healthz").status_code == 200


def test_a_large_body_is_refused_before_it_is_read(client):
    def endless():
        for _ in range(100):
            yield b" " * 4096

    for content in (b" " * 70_000, endless()):
        assert client.post("/v1/generate", content=content).status_code == 413


def test_more_requests_than_there_is_room_for_are_told_to_come_again(client):
    with ThreadPoolExecutor(12) as callers:
        answers = list(callers.map(lambda seed: client.post("/v1/generate", json={**LONG, "seed": seed}), range(12)))
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused and all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    done = [answer.json()["results"][0]["text"] for answer in answers if answer.status_code == 200]
    assert len(done) + len(refused) == 12 and len(done) >= 4
    assert all(contains_in_order(text, ["sea"]) for text in done)


def test_who_waits_too_long_is_told_and_nothing_stays(client):
    answer = client.post("/v1/generate", json={**LONG, "timeout": 0.05})
    assert answer.status_code == 504 and "deadline" in answer.json()["error"]
    until = time.monotonic() + 20
    while "insnet_requests_now 0.0" not in client.get("/metrics").text and time.monotonic() < until:
        time.sleep(0.02)
    assert "insnet_requests_now 0.0" in client.get("/metrics").text


def test_a_request_that_would_be_late_is_not_let_in(model):
    office = Office(100)
    tickets = [office._enter(60.0) for _ in range(10)]  # each takes a second, as far as is known
    with pytest.raises(FullError, match="try again in 10 s"):
        office._enter(5.0)
    office._leave(tickets.pop())
    assert office.requests == 9 and office._enter(30.0)


def test_a_mistake_of_ours_shows_no_stack_trace(client, model, monkeypatch):
    monkeypatch.setattr(model.family, "offer", lambda state: 1 / 0)
    answer = client.post("/v1/generate", json={"keywords": ["sea"]})
    assert answer.status_code == 500 and "Traceback" not in answer.text and "division" not in answer.text
    monkeypatch.undo()
    assert client.post("/v1/generate", json={"keywords": ["sea"]}).status_code == 200


def test_only_who_has_the_token_is_served(model):
    with TestClient(create_app(model, ServiceConfig(token="s3cret"))) as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}):
            assert client.post("/v1/generate", json={"keywords": ["sea"]}, headers=headers).status_code == 401
        right = {"Authorization": "Bearer s3cret"}
        assert client.post("/v1/generate", json={"keywords": ["sea"]}, headers=right).status_code == 200
        assert client.get("/metrics").status_code == 401
        assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200


def test_other_pages_may_ask_only_where_they_are_named(model):
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    with TestClient(create_app(model)) as client:
        assert "access-control-allow-origin" not in client.options("/v1/generate", headers=asked).headers
    with TestClient(create_app(model, ServiceConfig(origins=("https://page.example",)))) as client:
        allowed = client.options("/v1/generate", headers=asked).headers["access-control-allow-origin"]
        assert allowed == "https://page.example"


def test_what_is_counted_can_be_read(client):
    client.post("/v1/generate", json={"keywords": ["sea"], "samples": 2})
    client.post("/v1/generate", json={})
    client.get("/nowhere")
    page = client.get("/metrics").text
    assert 'insnet_requests_total{path="/v1/generate",status="200"} 1.0' in page
    assert 'insnet_requests_total{path="/v1/generate",status="422"} 1.0' in page
    assert 'insnet_requests_total{path="other",status="404"} 1.0' in page
    assert "insnet_texts_total 2.0" in page


def test_its_description_has_an_example_for_every_request(client):
    described = client.get("/openapi.json").json()
    asked = {name: schema for name, schema in described["components"]["schemas"].items() if name.startswith("AskedFor")}
    assert len(asked) == 3 and all(schema["examples"] for schema in asked.values())
    assert {"/v1/generate", "/v1/infill", "/v1/score", "/v1/stream", "/readyz"} <= set(described["paths"])
