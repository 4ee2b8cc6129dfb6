"""The public surface cannot change unnoticed: commands, options, names, and how fast help comes."""

import subprocess
import sys
import time
from dataclasses import fields
from functools import cached_property
from pathlib import Path

import pytest
import typer

import insnet
from insnet.cli.app import app

GOLDEN = Path(__file__).with_name("surface.txt")
SOURCE = Path(__file__).parents[2] / "src"
COMMANDS = [[], ["generate"], ["train"], ["evaluate"], ["benchmark"], ["benchmark", "decode-speed"]]


def surface(command, path: str = "insnet") -> list[str]:
    """One line for every parameter of every command: where, its names, its default."""
    lines = []
    for parameter in command.params:
        names = " ".join(parameter.opts) if parameter.param_type_name == "option" else parameter.name.upper()
        lines.append(f"{path} {names} = {parameter.default}")
    for name, child in getattr(command, "commands", {}).items():
        lines.extend(surface(child, f"{path} {name}"))
    return lines


def test_commands_and_options_are_those_of_the_committed_list():
    """After a change on purpose: python tests/cli/test_surface.py rewrites the list."""
    assert surface(typer.main.get_command(app)) == GOLDEN.read_text().splitlines()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_imports_nothing_heavy_and_is_instant(command):
    code = (
        "import sys\n"
        f"sys.argv = ['insnet', *{command!r}, '--help']\n"
        "from insnet.cli import main\n"
        "try:\n    main()\n"
        "finally:\n"
        "    heavy = {'torch', 'numpy', 'transformers', 'tokenizers', 'sacrebleu'} & sys.modules.keys()\n"
        "    assert not heavy, heavy\n"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True)
    seconds = time.monotonic() - start
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: insnet" in done.stdout
    assert seconds < 3  # 0.2 to 0.3 seconds on a quiet machine; torch alone would take longer than this on a busy one


def test_public_names():
    assert insnet.__all__ == ["Draft", "Model", "Result", "Score", "load", "models"]
    assert all(getattr(insnet, name) for name in insnet.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = insnet.nothing


def test_fields_of_what_comes_back():
    assert isinstance(insnet.Result.trace, cached_property)
    named = {kind.__name__: [field.name for field in fields(kind)] for kind in (insnet.Result, insnet.Score)}
    assert named == {
        "Result": ["keywords", "text", "tokens", "steps", "log_prob", "finished", "seed", "model", "replay", "locate"],
        "Score": ["text", "log_prob", "tokens", "nats_per_token", "is_exact", "unknown_tokens"],
    }


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(surface(typer.main.get_command(app))) + "\n")
