"""What the README and the docs show is what happens, and what they link to is there."""

import json
import re
from pathlib import Path

import pytest

import insnet
from insnet.shelf import SMALL
from insnet.text.corpus import read_keyword_lists
from insnet.text.words import contains_in_order
from scripts import write_appendix as appendix
from scripts import write_console as console
from scripts import write_finetune as finetune
from scripts import write_samples as samples

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True, scope="module")
def commands_find_the_default_model(default_model: Path) -> None:
    """Pages show what the default model writes."""


def blocks() -> list[object]:
    found = [
        (page, number, match[1])
        for page in console.PAGES
        for number, match in enumerate(console.BLOCK.finditer(page.read_text()))
    ]
    return [pytest.param(block, id=f"{page.name}-{number}") for page, number, block in found]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", blocks())
def test_console_blocks_print_what_they_show(block: str, tmp_path: Path) -> None:
    workplace = console.workplace(tmp_path)
    for command, expected in console.commands_of_block(block):
        ran = console.run(command, workplace)
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        if expected and expected != [console.ANYTHING]:
            pattern = "\n".join(pattern_of(command, line) for line in expected)
            assert re.fullmatch(pattern, ran.stdout.rstrip("\n"), re.DOTALL), f"{command}\n{ran.stdout}"


def pattern_of(command: str, line: str) -> str:
    """What a line may be that a command prints. What the default model writes differs from processor to processor, as
    its bfloat16 does; that it keeps the words is tested elsewhere."""
    if line == console.ANYTHING:
        return ".*"
    is_by_default_model = re.match("insnet (generate|infill|edit|score)", command) and "--mod" not in command
    return "[^\n]+" if is_by_default_model else re.escape(line)


def test_the_readmes_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for match in PYTHON.finditer((ROOT / "README.md").read_text(encoding="utf-8")):
        exec(compile(match[1], "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    keywords = ["captain", "ship", "harbour"]
    assert contains_in_order(printed[0], keywords)
    assert printed[-1] == insnet.load().generate(keywords, seed=7, candidates=1).text  # streamed to its end


def test_the_readme_can_be_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def anchors(markdown: str) -> set[str]:
    """The places of a page that a link can lead to, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_local_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for link, anchor in re.findall(r"\]\((?!\w+:)([^)\s#]*)#?([^)\s]*)\)", text):
        target = page.parent / link if link else page
        known = anchors(target.read_text(encoding="utf-8")) if target.suffix == ".md" and target.is_file() else set()
        if not target.exists() or (anchor and anchor not in known):
            broken.append(f"{link}#{anchor}")
    assert broken == []


def test_the_pages_show_every_figure_and_no_other() -> None:
    shown = {name for page in PAGES for name in re.findall(r"!\[[^\]]+\]\([^)]*figures/([^)]+)\)", page.read_text())}
    assert shown == {path.name for path in (DOCS / "figures").iterdir()}


def rows_of(page: str) -> list[list[str]]:
    """The cells of all rows of all tables, as they are printed."""
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [[re.sub(r"\\(.)", r"\1", cell.replace("**", "")).strip() for cell in row] for row in rows]


def test_the_samples_are_what_the_default_model_writes() -> None:
    page = (DOCS / "samples.md").read_text(encoding="utf-8")
    assert f"Written by the model `{SMALL}`" in page
    lists, rows = read_keyword_lists(samples.KEYWORDS), rows_of(page)
    assert len(lists) == 60 and {len(keywords) for keywords in lists} == set(range(1, 11))
    for number, result in enumerate(insnet.load(SMALL, device="cpu").generate_batch(lists[:5], seed=0), start=1):
        assert [str(number), ", ".join(lists[number - 1]), result.text] in rows


def test_another_model_gives_another_page_of_samples() -> None:
    model, order = insnet.load("tour", device="cpu"), json.loads(samples.ORDER.read_text(encoding="utf-8"))
    page = samples.page(model, "tour", order, "order.json")
    lists = read_keyword_lists(samples.KEYWORDS)
    texts = {row[0]: row[2] for row in rows_of(page) if len(row) == 3 and row[0].isdigit()}
    assert list(texts) == [str(number) for number in range(1, 61)]
    for text, keywords in zip(texts.values(), lists, strict=True):
        assert contains_in_order(text, keywords)


def test_a_small_tuning_gives_a_page_and_its_figures(tmp_path: Path) -> None:
    tuning = finetune.tune("tour", tmp_path, sentences=40, held_out=4)
    figures = finetune.headline(tuning)
    assert figures["held_out_nats_per_token_after"] < figures["held_out_nats_per_token_before"]
    page = finetune.page(tuning, "tour", "../benchmarks/results/finetune_domain.json")
    rows = rows_of(page)
    assert str(tmp_path) not in page
    for words, before, after in zip(finetune.KEYWORDS, tuning.before.texts, tuning.after.texts, strict=True):
        assert [", ".join(words), before, after] in rows


def test_the_page_on_fine_tuning_shows_the_committed_figures() -> None:
    page = (DOCS / "finetune.md").read_text(encoding="utf-8")
    result = json.loads(finetune.RESULT.read_text(encoding="utf-8"))
    shown = [f"{result['headline'][f'held_out_nats_per_token_{when}']:.2f}" for when in ("before", "after")]
    assert result["model"] == SMALL and any(row[1:3] == shown for row in rows_of(page))
    assert all(any(after == row[-1] for row in rows_of(page)) for after in result["after"]["texts"])


def test_the_appendix_refuses_a_model_that_cannot_stop_as_the_papers(tmp_path: Path, capsys) -> None:
    folders = [word for name in (*appendix.TITLES, "news") for word in (f"--{name}", "tour")]
    assert appendix.main([*folders, "--output", str(tmp_path / "samples.md")]) == 1
    assert "the model given as full was given its length" in capsys.readouterr().err
