"""What the README and the docs show is what happens: their console blocks are run, and their output compared."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANYTHING = "..."  # a line that stands for any lines


def commands_of_block(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a console block with the lines it is said to print."""
    commands: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def blocks() -> list[object]:
    found = [
        (page, number, match[1]) for page in PAGES for number, match in enumerate(BLOCK.finditer(page.read_text()))
    ]
    return [pytest.param(block, id=f"{page.name}-{number}") for page, number, block in found]


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder that looks like a checkout to the commands, in which they may write."""
    for name in ("recipes", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", blocks())
def test_console_blocks_print_what_they_show(block: str, workplace: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }
    for command, expected in commands_of_block(block):
        ran = subprocess.run(command, shell=True, cwd=workplace, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        if expected and expected != [ANYTHING]:
            pattern = "\n".join(".*" if line == ANYTHING else re.escape(line) for line in expected)
            assert re.fullmatch(pattern, ran.stdout.rstrip("\n"), re.DOTALL), f"{command}\n{ran.stdout}"


def test_a_block_is_read_as_commands_with_their_output() -> None:
    block = "$ one\na\nb\n$ two\n"
    assert commands_of_block(block) == [("one", ["a", "b"]), ("two", [])]


PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_readmes_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for match in PYTHON.finditer((ROOT / "README.md").read_text(encoding="utf-8")):
        exec(compile(match[1], "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed and printed[-1] == printed[0].rsplit(" ", 2)[0]  # the last step's text is the result's
