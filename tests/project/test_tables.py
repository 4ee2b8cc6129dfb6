"""The paper's tables: our numbers are those of results files and lead there; the commands to make them exist."""

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
import typer

from insnet.benchmarks import paper
from insnet.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduction.md"
_specification = importlib.util.spec_from_file_location("write_tables", ROOT / "docs" / "write_tables.py")
tables = sys.modules["write_tables"] = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(tables)


def store(folder: Path, name: str, **headline: float) -> None:
    about = {"seeds": [0, 1], "data": "yelp/test, 7 keyword lists", "hardware": "h", "commit": "0123456789ab-dirty"}
    (folder / f"{name}.json").write_text(json.dumps({**about, "headline": headline}))


def rows_of(text: str, first: str) -> list[str]:
    """The rows of a model: the paper's, and ours below it."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} "))
    return lines[start : start + 2]


def test_our_numbers_stand_below_the_papers_and_lead_to_their_files(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    store(results, "quality_yelp", bleu2=19.456, bleu4=5.5, ar_bleu2=17, ar_bleu4=5, faithful_nist4=3.5)
    store(results, "dinic_news", steps=7.77, uniform_bleu2=12, uniform_bleu4=2, latency_ratio_batch1=0.31)
    of_full = {"stop_nll_full": 2.0, "nonterminating_full": 0.125, "bleu2_full": 18, "bleu4_full": 5}
    store(results, "ablation", length_ratio_full=0.9, **of_full)
    text = tables.tables(tables.Results(results, tmp_path / "docs" / "page.md"))
    quality, dinic, ablation = (f"(../results/{name}.json)" for name in ("quality_yelp", "dinic_news", "ablation"))
    assert rows_of(text, "left to right")[1] == f"|  | **ours** | [17.00/5.00]{quality} | – | – | – | – | – |"
    assert rows_of(text, "InsNet, one by one, our")[0].split(" | ")[2] == f"[19.46/5.50]{quality}"
    assert rows_of(text, "InsNet, one by one, decoded")[1].split(" | ")[3] == f"[–/3.50]{quality}"
    assert rows_of(text, "InsNet-Dinic,")[0].split(" | ")[2] == "16.73/4.35"
    assert rows_of(text, "InsNet-Dinic,")[1].endswith(f"| – | – | [7.8]{dinic} |")
    cells = [f"[{number}]{ablation}" for number in ("2.00", "18.00/5.00", "0.90", "12.5%")]
    assert rows_of(text, "full")[1] == f"|  | **ours** | {' | '.join(cells)} |"
    assert f"Yelp –, News [0.31]{dinic}" in text
    assert f"[ablation.json]{ablation}: yelp/test, 7 keyword lists; seeds 0, 1; h; commit 012345678-dirty" in text
    assert "quality_news" not in text and "not the paper's own" in text


def test_without_results_every_number_of_ours_is_a_dash(tmp_path):
    text = tables.tables(tables.Results(tmp_path, tmp_path / "page.md"))
    assert "](" not in text
    ours = [line for line in text.splitlines() if line.startswith("|") and "**ours**" in line]
    assert len(ours) == 14 and all(set(line.split("**ours**")[1]) == set(" |–") for line in ours)
    assert all(
        f"{entry.bleu2:.2f}/{entry.bleu4:.2f}" in text for data in paper.TABLE.values() for entry in data.values()
    )


def test_a_summary_has_what_was_measured_alone(tmp_path):
    store(tmp_path, "quality_yelp", bleu2=19.456, bleu4=5.5)
    page = f"a\n{tables.BEGIN_SUMMARY}\n{tables.END}\nb\n"
    text = tables.filled(page, tables.Results(tmp_path, tmp_path / "page.md"))
    assert text.startswith(f"a\n{tables.BEGIN_SUMMARY}\n\n") and text.endswith(f"{tables.END}\nb\n")
    assert text.count("| InsNet, one by one, our decoding |") == 2 and "not the paper's own" in text
    assert not any(f"| {name}" in text for name in ("NMSTG", "InsNet-Dinic", "full", "left to right"))


def test_only_what_stands_between_the_two_lines_is_written(tmp_path, capsys):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text(f"before\n{tables.BEGIN}\nOUTDATED\n{tables.END}\nafter\n")
    other.write_text("no tables\n")
    assert tables.main([str(page), str(other), "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{page}\n" and other.read_text() == "no tables\n"
    text = page.read_text()
    assert text.startswith(f"before\n{tables.BEGIN}\n\n") and text.endswith(f"\n\n{tables.END}\nafter\n")
    assert "OUTDATED" not in text and "| noglobal | paper | 2.56 | 17.83/4.81 |" in text
    assert tables.main([str(page), "--results", str(tmp_path)]) == 0 and page.read_text() == text
    page.write_text(f"{tables.BEGIN}\n")
    assert tables.main([str(page)]) == 1 and "only one of the two lines" in capsys.readouterr().err


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_the_committed_tables_are_those_of_the_committed_results(page):
    text = page.read_text(encoding="utf-8")
    assert tables.filled(text, tables.Results(tables.RESULTS, page)) == text


def commands() -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("insnet ")]


@pytest.mark.parametrize("line", commands(), ids=lambda line: line[:60])
def test_every_command_of_the_page_can_be_given(line):
    """Its options are known and its recipe is there; what it asks for takes a GPU and is not run."""
    words = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    context = command.make_context("insnet", words)
    recipe = context.params.get("recipe")
    assert recipe is None or (ROOT / recipe).is_file()
