"""A published number can be traced: its file says how it was measured, and tables say what their files say."""

import ast
import json
import math
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import typer

from benchmarks.__main__ import commands
from insnet.cli.app import app
from insnet.text.corpus import read_lines
from scripts import write_tables as tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def missing_from(report: dict) -> list[str]:
    """The names of what a results file has to say and does not."""
    missing = [name for name in ("command", "commit", "hardware", "date") if not report.get(name)]
    seeds, headline = report.get("seeds"), report.get("headline")
    if not (isinstance(seeds, list) and seeds and all(type(seed) is int for seed in seeds)):
        missing.append("seeds")
    if not (isinstance(headline, dict) and headline and all(is_number(value) for value in headline.values())):
        missing.append("headline")
    return missing


def test_every_results_file_says_how_it_was_measured():
    reports = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")}
    assert reports and {name: missing for name, report in reports.items() if (missing := missing_from(report))} == {}


def test_texts_beside_results_are_compressed_and_as_many_as_were_scored():
    texts = sorted(RESULTS.glob("*.outputs.txt*"))
    assert texts and {path.suffix for path in texts} == {".xz"}
    for path in texts:
        result = json.loads((RESULTS / f"{path.name.partition('.')[0]}.json").read_text(encoding="utf-8"))
        lists = re.search(r"(\d+) keyword lists", result["data"])
        assert sum(1 for _ in read_lines(path)) == result.get("sentences", int(lists[1]) if lists else 1000)


def store(folder: Path, name: str, **headline: float) -> None:
    about = {"seeds": [0, 1], "data": "yelp/test, 7 keyword lists", "hardware": "h", "commit": "0123456789ab-dirty"}
    (folder / f"{name}.json").write_text(json.dumps({**about, "headline": headline}))


def test_our_numbers_stand_below_the_papers_and_lead_to_their_files(tmp_path):
    store(tmp_path, "quality_yelp", bleu2=19.456, bleu4=5.5, ar_bleu2=17, ar_bleu4=5, faithful_nist4=3.5)
    store(tmp_path, "dinic_news", steps=7.77, uniform_bleu2=12, uniform_bleu4=2, latency_ratio_batch1=0.31)
    text = tables.tables(tables.Results(tmp_path, tmp_path / "docs" / "page.md"))
    quality, dinic = (f"(../{name}.json)" for name in ("quality_yelp", "dinic_news"))
    rows = text.splitlines()
    assert f"|  | **ours** | [17.00/5.00]{quality} | – | – | – | – | – |" in rows
    ours = next(row for row in rows if row.startswith("| InsNet, one by one, our decoding |"))
    assert ours.split(" | ")[2] == f"[19.46/5.50]{quality}"
    parallel = next(number for number, row in enumerate(rows) if row.startswith("| InsNet-Dinic, τ = 10 | paper"))
    assert rows[parallel].split(" | ")[2] == "16.73/4.35" and rows[parallel + 1].endswith(f"| – | – | [7.8]{dinic} |")
    assert f"Yelp –, News [0.31]{dinic}" in text
    assert f"[quality_yelp.json]{quality}: yelp/test, 7 keyword lists; seeds 0, 1; h; commit 012345678-dirty" in text


def test_the_committed_tables_are_those_of_the_committed_results():
    text = tables.PAGE.read_text(encoding="utf-8")
    assert tables.filled(text, tables.Results(tables.RESULTS, tables.PAGE)) == text
    assert "trained at τ = ∞" in text and "layers_by_tau_yelp.json" in text


def reproduction_commands() -> list[str]:
    lines = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith(("insnet ", "python -m benchmarks."))]


def command_of(words: list[str]) -> typer.core.TyperCommand:
    """The command that a line names; its words are those that are left."""
    if words.pop(0) == "python":
        program = typer.Typer()
        program.command()(import_module(words[1]).main)
        del words[:2]
        return typer.main.get_command(program)
    return typer.main.get_command(app).commands[words.pop(0)]


@pytest.mark.parametrize("line", reproduction_commands(), ids=lambda line: line[:60])
def test_every_command_of_the_page_can_be_given(line):
    """Its options are known and its recipe is there; what it asks for takes a GPU and is not run."""
    words = shlex.split(line, comments=True)
    context = command_of(words).make_context("insnet", words)
    recipe = context.params.get("recipe")
    assert recipe is None or (ROOT / recipe).is_file()


def test_every_benchmark_is_listed_with_a_sentence():
    modules = [path for path in (ROOT / "benchmarks").glob("[!_]*.py") if "if __name__" in path.read_text()]
    assert sorted(commands()) == sorted(path.stem for path in modules)
    assert all(text.endswith(".") for text in commands().values())
    for path in modules:  # what is only imported by others is no command
        assert isinstance(ast.parse(path.read_text()).body[-1], ast.If)
