"""What the README and the docs show is what happens: their console blocks are run, and their output compared."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import insnet
from insnet.text.words import contains_in_order

ROOT = Path(__file__).parents[2]
_specification = importlib.util.spec_from_file_location("write_console", ROOT / "docs" / "write_console.py")
console = sys.modules["write_console"] = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(console)


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
            pattern = "\n".join(".*" if line == console.ANYTHING else re.escape(line) for line in expected)
            assert re.fullmatch(pattern, ran.stdout.rstrip("\n"), re.DOTALL), f"{command}\n{ran.stdout}"


def test_what_a_page_shows_is_brought_up_to_date_and_what_it_leaves_out_is_not(tmp_path: Path) -> None:
    block = "$ echo a; echo b\nold\n$ echo c\n$ echo d\n...\n"
    assert console.commands_of_block(block)[0] == ("echo a; echo b", ["old"])
    assert console.refreshed(block, tmp_path) == "$ echo a; echo b\na\nb\n$ echo c\n$ echo d\n...\n"
    with pytest.raises(ValueError, match="false failed"):
        console.refreshed("$ false\n", tmp_path)


PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_readmes_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for match in PYTHON.finditer((ROOT / "README.md").read_text(encoding="utf-8")):
        exec(compile(match[1], "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    keywords = ["captain", "ship", "harbour"]
    assert contains_in_order(printed[0], keywords)
    assert printed[-1] == insnet.load().generate(keywords, seed=7, candidates=1).text  # streamed to its end
