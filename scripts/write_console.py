"""Runs the console blocks of README.md and docs, and writes what they print: python -m scripts.write_console [PAGE...].

After a change of the model that ships. Output that a page leaves out (a line "...", or none at all) stays left out. The
commands run in a folder of their own, in the order of the page.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANYTHING = "..."  # a line that stands for any lines


def commands_of_block(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a console block with the lines it is said to print.

    >>> commands_of_block("$ one\\na\\nb\\n$ two\\n")
    [('one', ['a', 'b']), ('two', [])]
    """
    commands: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def workplace(folder: Path) -> Path:
    """A folder that looks like a checkout to the commands, in which they may write."""
    for name in ("recipes", "scripts", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a command prints on a terminal of 120 columns without colours."""
    own = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "COLUMNS": "120", "NO_COLOR": "1"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **own, "PATH": path}
    return subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)


def refreshed(block: str, folder: Path) -> str:
    """A block with what its commands print now."""
    lines: list[str] = []
    for command, shown in commands_of_block(block):
        ran = run(command, folder)
        if ran.returncode:
            raise ValueError(f"{command} failed: {ran.stderr.strip()}")
        is_whole = shown and ANYTHING not in shown
        lines += [f"$ {command}", *(ran.stdout.rstrip("\n").split("\n") if is_whole else shown)]
    return "".join(f"{line}\n" for line in lines)


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 done, 1 failed."""
    for page in map(Path, arguments or PAGES):
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            place = workplace(Path(folder))
            try:
                new = BLOCK.sub(lambda match: f"```console\n{refreshed(match[1], place)}```", text)  # noqa: B023
            except ValueError as error:
                print(f"error: {error}", file=sys.stderr)
                return 1
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
