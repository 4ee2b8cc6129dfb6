"""Clients over a real connection: those who leave give their place to others."""

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from small_models import small_model

from insnet.serving.app import create_app
from insnet.serving.settings import ServiceConfig

ENDLESS = {"keywords": ["sea"], "length": [150, 190], "candidates": 8}


@contextmanager
def running(app):
    """The port of a service that runs in another thread."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
    assert not thread.is_alive()


def sent(port, path, asked=None):
    """A connection that has asked for something."""
    body = b"" if asked is None else json.dumps(asked).encode()
    method = "GET" if asked is None else "POST"
    head = f"{method} {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
    return connection


def answer(connection):
    """All that comes."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def requests_now(port):
    page = answer(sent(port, "/metrics"))
    [line] = [line for line in page.splitlines() if line.startswith("insnet_requests_now ")]
    return float(line.split()[1])


@pytest.mark.parametrize("path", ["/v1/generate", "/v1/stream"])
def test_who_leaves_frees_the_place(path):
    model = small_model("insnet", "word")
    offer = model.family.offer
    model.family.offer = lambda state: time.sleep(0.05) or offer(state)  # so slow that it would take many seconds
    with running(create_app(model, ServiceConfig(most_requests=2, seconds=600))) as port:
        leaving = sent(port, path, ENDLESS)
        while requests_now(port) < 1:
            time.sleep(0.02)
        if path == "/v1/stream":
            assert b"200 OK" in leaving.recv(65536)
        leaving.close()
        start = time.monotonic()
        while requests_now(port) > 0:
            assert time.monotonic() - start < 5, "somebody still works for a client who has left"
            time.sleep(0.05)
        model.family.offer = offer
        assert "200 OK" in answer(sent(port, "/v1/generate", {"keywords": ["sea"]}))


def test_half_a_request_and_nonsense_hold_nobody_up():
    with running(create_app(small_model("insnet", "word"), ServiceConfig(most_requests=1))) as port:
        half = sent(port, "/healthz")
        half.sendall(b"POST /v1/generate HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        nonsense = socket.create_connection(("127.0.0.1", port), timeout=30)
        nonsense.sendall(b"\x00\x01\x02 nonsense\r\n\r\n")
        assert "400" in answer(nonsense)
        done = answer(sent(port, "/v1/generate", {"keywords": ["sea"]}))
        assert "200 OK" in done and "sea" in done.lower()
        half.close()


def test_a_model_is_its_owners_again_when_the_service_has_stopped():
    model = small_model("insnet", "word")
    expected = model.generate(["sea"], seed=1).text
    with running(create_app(model)) as port:
        assert expected in answer(sent(port, "/v1/generate", {"keywords": ["sea"], "seed": 1}))
    assert model.generate(["sea"], seed=1).text == expected


def test_a_service_that_shuts_down_finishes_what_runs():
    model, has_begun = small_model("insnet", "word"), threading.Event()
    expected = model.generate(["sea"], seed=1, length=(20, 30)).text
    offer = model.family.offer
    model.family.offer = lambda state: has_begun.set() or time.sleep(0.01) or offer(state)
    with running(create_app(model)) as port:
        asking = sent(port, "/v1/generate", {"keywords": ["sea"], "seed": 1, "length": [20, 30]})
        assert has_begun.wait(20)
    done = answer(asking)
    assert "200 OK" in done and json.dumps(expected, ensure_ascii=False) in done
