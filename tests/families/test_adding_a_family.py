"""docs/adding-a-family.md, followed word for word: its family keeps the promises of the contract and learns."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from loss_terms import losses_of
from small_models import LINES, batch_of, tokenizer_of

from insnet.families import FAMILIES
from insnet.training.recipe import load_recipe

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-family.md").read_text(encoding="utf-8")
BROUGHT_ALONG = "not one_pass and not golden and not overfitted"  # what, the page says, a new family must supply


def blocks(language):
    """The page's blocks of code in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to import from, with the page's file and a module that says the page's other lines."""
    file, line, ends = blocks("python")
    (tmp_path / "bigram.py").write_text(file, encoding="utf-8")
    said = [
        "from bigram import Bigram",
        "from small_models import ENDS",
        "from insnet.families import FAMILIES",
        line,
        ends,
    ]
    (tmp_path / "added.py").write_text("\n".join(said), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture
def bigram(folder, monkeypatch):
    monkeypatch.setitem(FAMILIES, "bigram", None)  # and taken away again
    importlib.import_module("added")
    yield FAMILIES["bigram"]
    for name in ("added", "bigram"):
        del sys.modules[name]


@pytest.mark.slow
def test_the_family_of_the_page_keeps_the_promises(folder):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "added"]
    paths = [str(path) for path in (folder, ROOT / "tests" / "support", ROOT / "src")]
    ended = subprocess.run(
        [*command, "tests/contract", "-k", f"bigram and {BROUGHT_ALONG}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
    assert int(re.search(r"(\d+) passed", ended.stdout)[1]) > 40


def test_the_family_of_the_page_learns(bigram):
    tokenizer = tokenizer_of("word")
    family = bigram(bigram.Config(vocabulary_size=tokenizer.size, width=16, layers=1, heads=2))
    optimizer = torch.optim.AdamW(family.parameters(), lr=0.02)
    means = []
    for step in range(40):
        lists = [tokenizer.encode(line) for line in LINES[:16]]
        terms = losses_of(family, batch_of(tokenizer, lists, seeds=range(16 * step, 16 * step + 16)))
        loss = sum(term.nats for term in terms.values()) / terms["token"].count
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        means.append(float(loss.detach()))
    assert sum(means[-5:]) < 0.7 * sum(means[:5])


def test_the_recipe_of_the_page_can_be_read(bigram, folder):
    (recipe,) = blocks("toml")
    (folder / "tour.toml").write_text((ROOT / "recipes" / "tour.toml").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "tour_bigram.toml").write_text(recipe, encoding="utf-8")
    found = load_recipe(folder / "tour_bigram.toml")
    assert isinstance(found.model.for_vocabulary(99), bigram.Config)
    assert found.objective == bigram.Objective(order="balanced_tree")
    assert found.generation["stopping"] == "threshold"
