"""Whether texts are sentences of English, judged by a parser that no model had a part in: Link Grammar.

The parser is a program, `link-parser` (Debian: link-grammar). It knows nothing of sense: a text that parses may still
be nonsense.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence

from insnet.evaluation.aligned import check_texts

_PROGRAM = "link-parser"
_SECONDS_PER_TEXT = 10
_OPTIONS = ("en", "-verbosity=1", "-graphics=0", "-null=0", "-panic=0", "-spell=0", f"-timeout={_SECONDS_PER_TEXT}")
# Parses that all break a rule are counted, too, once it is said that none is complete.
_NONE = r"No complete linkages found\.(?:\nFound \d+ linkages? \(0 of .*)?"
_VERDICT = re.compile(rf"^(?:{_NONE}|(Found \d+ linkages?))", re.MULTILINE)
_COMMANDS = ("!", "*", "%")  # a line that begins so is none to parse


def has_parser() -> bool:
    """Whether the parser is installed."""
    return shutil.which(_PROGRAM) is not None


def parsed(texts: Sequence[str]) -> list[bool]:
    """Of each text, whether every word of it finds its place in one parse; line breaks count as spaces."""
    check_texts(texts)
    if not has_parser():
        raise ValueError(f"{_PROGRAM} is not installed: on Debian and Ubuntu, apt install link-grammar")
    lines = [" ".join(text.split()) for text in texts]
    asked = [line for line in dict.fromkeys(lines) if line and not line.startswith(_COMMANDS)]
    verdict_of = dict(zip(asked, _verdicts(asked), strict=True)) if asked else {}
    return [verdict_of.get(line, False) for line in lines]


def complete_parses(texts: Sequence[str]) -> float:
    """The share of texts that the parser parses whole."""
    return sum(parsed(texts)) / len(texts)


def _verdicts(lines: Sequence[str]) -> list[bool]:
    """The parser's, one for each line."""
    program = subprocess.run(
        [_PROGRAM, *_OPTIONS], input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, check=False
    )
    verdicts = [bool(found) for found in _VERDICT.findall(program.stdout)]
    if program.returncode or len(verdicts) != len(lines):
        said = (program.stderr or program.stdout).strip().splitlines()[-1:] or ["nothing"]
        raise ValueError(f"{_PROGRAM} gave {len(verdicts)} verdicts on {len(lines)} texts; its last line: {said[0]}")
    return verdicts
