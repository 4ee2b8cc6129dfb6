"""`python -m benchmarks`: what can be measured, one line each."""

import ast
from pathlib import Path

from insnet.cli import terminal


def commands() -> dict[str, str]:
    """The first line of the help of every module that is a command, by the module's name."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == "main":
                found[path.stem] = (ast.get_docstring(node) or "").partition("\n")[0]
    return found


if __name__ == "__main__":
    for name, text in commands().items():
        print(f"python -m benchmarks.{name:<16} {text}")
    terminal.note("each has --help; speed: insnet benchmark train-speed and decode-speed")
