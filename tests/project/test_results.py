"""A published number can be traced: its file says how it was measured, and the link that quotes it leads there."""

import json
import math
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
COMPLETE = {
    "command": "c",
    "commit": "abc",
    "hardware": "h",
    "date": "2022-11-28",
    "seeds": [1],
    "headline": {"a": 1.5},
}


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def missing_from(report: dict) -> list[str]:
    """The names of what a results file has to say and does not."""
    missing = [name for name in ("command", "commit", "hardware", "date") if not isinstance(report.get(name), str)]
    missing += [name for name in ("command", "commit", "hardware", "date") if report.get(name) == ""]
    seeds, headline = report.get("seeds"), report.get("headline")
    if not (isinstance(seeds, list) and seeds and all(type(seed) is int for seed in seeds)):
        missing.append("seeds")
    if not (isinstance(headline, dict) and headline and all(is_number(value) for value in headline.values())):
        missing.append("headline")
    return missing


def local_links(markdown: str) -> list[str]:
    """The files a document links to, without web addresses and places within the document."""
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL))
    return [link for link in links if "://" not in link and not link.startswith("mailto:")]


def test_every_results_file_says_how_it_was_measured():
    reports = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")}
    assert {name: missing for name, report in reports.items() if (missing := missing_from(report))} == {}


def test_every_results_file_the_readme_names_exists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"benchmarks/results/[\w.-]*\w", readme))
    assert {name for name in named if not (ROOT / name).is_file()} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_local_link_leads_to_a_file(document):
    links = local_links(document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_a_complete_report_lacks_nothing():
    assert missing_from(COMPLETE) == []


@pytest.mark.parametrize("name", COMPLETE)
@pytest.mark.parametrize("value", [None, "", [], {}, {"a": "1.5"}, {"a": float("nan")}, ["1"]])
def test_an_incomplete_report_is_noticed(name, value):
    assert missing_from({**COMPLETE, name: value}) == [name]


def test_links_are_found_and_addresses_are_not():
    text = "[a](docs/a.md#part) ![b](b.png) [c](https://example.org/c) [d](#d)\n```\n[e](e.md)\n```"
    assert local_links(text) == ["docs/a.md", "b.png"]
