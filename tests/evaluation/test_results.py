"""A result file says by itself where its numbers come from, and nothing about whose machine it was."""

import json
import lzma
import math
import re
import subprocess
from datetime import UTC, datetime

import pytest

from insnet.evaluation import results
from insnet.evaluation.results import without_machine_paths, write_result


def write(path, **changes):
    arguments = {"command": "insnet benchmark x", "headline": {"ratio": 1.5}, "seeds": [1, 2], "data": "made up"}
    return write_result(path, **{**arguments, **changes})


def test_a_result_has_every_promised_entry(tmp_path):
    path = write(tmp_path / "speed.json", detail={"rows": [{"n": 32, "ms": 1.25}]}, outputs=["a b", "c"])
    found = json.loads(path.read_text(encoding="utf-8"))
    assert list(found) == ["command", "commit", "hardware", "date", "seeds", "data", "headline", "rows"]
    assert found["headline"] == {"ratio": 1.5} and found["seeds"] == [1, 2] and found["rows"] == [{"n": 32, "ms": 1.25}]
    assert re.search(r".+, \d+ cores", found["hardware"])
    assert abs((datetime.now(UTC) - datetime.fromisoformat(found["date"])).total_seconds()) < 60
    assert lzma.decompress((tmp_path / "speed.outputs.txt.xz").read_bytes()) == b"a b\nc\n"


def test_command_may_come_as_words(tmp_path):
    path = write(tmp_path / "a.json", command=["insnet", "generate", "new york"])
    assert json.loads(path.read_text())["command"] == "insnet generate 'new york'"
    assert not (tmp_path / "a.outputs.txt.xz").exists()


def test_no_path_of_the_machine_is_written(tmp_path, monkeypatch):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    monkeypatch.chdir(here)
    path = write(
        here / "a.json",
        command=[f"{here}/bin/insnet", "--data", f"{elsewhere}/yelp", f"--output={here}/out", f"src:{elsewhere}/lib"],
        data={"folder": elsewhere / "yelp"},
        detail={"files": [f"{here}/recipes/a.toml"], f"{elsewhere}/key": 1},
    )
    text = path.read_text()
    assert "elsewhere" not in text and str(tmp_path) not in text
    found = json.loads(text)
    assert found["command"] == "bin/insnet --data yelp --output=out src:lib"
    assert found["data"] == {"folder": "yelp"} and found["files"] == ["recipes/a.toml"] and found["key"] == 1


@pytest.mark.parametrize(
    "text", ["tokens /s", "and/or", "https://example.org/usr/x", "./usr/x", "a / b", "1/2", "~/usr"]
)
def test_what_only_looks_like_a_path_stays(text):
    assert without_machine_paths(text) == text


@pytest.mark.parametrize("headline", [{}, {"a": math.nan}, {"a": math.inf}, {"a": {"b": 1}}, {"a": True}, {"a": None}])
def test_a_headline_is_flat_and_finite(tmp_path, headline):
    with pytest.raises(ValueError, match="headline"):
        write(tmp_path / "a.json", headline=headline)
    assert not list(tmp_path.iterdir())


def test_names_and_suffix_are_checked_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="'commit'"):
        write(tmp_path / "a.json", detail={"commit": "x"}, outputs=["a"])
    with pytest.raises(ValueError, match="JSON file"):
        write(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path / "a.json", detail={"loss": math.nan}, outputs=["a"])
    assert not list(tmp_path.iterdir())


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of its own, in which the running code seems to lie, not yet committed."""
    code = tmp_path / "src" / "results.py"
    code.parent.mkdir()
    code.write_text("one")
    monkeypatch.setattr(results, "__file__", str(code))
    monkeypatch.delenv("INSNET_COMMIT", raising=False)
    git(tmp_path, "init", "-q")
    return tmp_path


def test_commit_is_marked_dirty_only_by_changes_that_matter(checkout):
    git(checkout, "add", "src/results.py")
    git(checkout, "commit", "-q", "-m", "one")
    head = git(checkout, "rev-parse", "HEAD")
    assert results.commit() == head
    for written in ("benchmarks/results/a.json", "docs/figures/a.svg"):
        (checkout / written).parent.mkdir(parents=True)
        (checkout / written).write_text("{}")
        assert results.commit() == head
    (checkout / "docs" / "page.md").write_text("")
    assert results.commit() == f"{head}-dirty"
    (checkout / "docs" / "page.md").unlink()
    (checkout / "new.py").write_text("")
    assert results.commit() == f"{head}-dirty"
    (checkout / "new.py").unlink()
    (checkout / "src" / "results.py").write_text("two")
    assert results.commit() == f"{head}-dirty"


def test_code_that_is_not_tracked_does_not_borrow_a_commit(checkout):
    (checkout / "other.txt").write_text("somebody else's project")
    git(checkout, "add", "other.txt")
    git(checkout, "commit", "-q", "-m", "other")
    assert results.commit() == "unknown"


def test_a_copy_believes_the_commit_it_is_told(checkout, monkeypatch):
    git(checkout, "add", "src/results.py")
    git(checkout, "commit", "-q", "-m", "what was sent before")
    (checkout / "src" / "results.py").write_text("what was sent now")
    monkeypatch.setenv("INSNET_COMMIT", "abc123")
    assert results.commit() == "abc123"
