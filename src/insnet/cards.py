"""Model cards: the README.md of a model folder, as the hub shows it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from insnet.files import write_atomically

_OF_PUBLIC_TEXT = """\
The model has learned from sentences that many people wrote (see Data) and nobody chose for the purpose. What it writes
can be false, biased or offensive, and it invents facts, also about real people, places and events. Read its texts
before anybody else does, say that a machine wrote them, and never take them for information."""
_OF_OWN_TEXT = """\
All sentences the model has learned from are of our own making: its own words speak of nobody real and insult nobody.
Required words are printed as given, whatever they are."""
_FILTERS = """\
- `--ban WORD` (in Python `banned=[...]`): a word or phrase that is never written.
- `--reject FILE`, words one per line (in Python `accept=function`, from a text to true or false): finished texts that
  are refused and drawn anew with other seeds. What was refused is never returned; after 20 refusals there is an error.
- A word that is both required and banned or rejected is an error too, before anything is written; a function of your
  own is shown the whole text, required words included."""


def write_card(
    folder: Path,
    *,
    name: str,
    family: str,
    facts: Mapping[str, str],
    scores: Mapping[str, float],
    sources: Mapping[str, Path] | None = None,
    limits: Sequence[str] = (),
    attributions: Sequence[str] = (),
    from_public_text: bool | None = None,
) -> None:
    """Writes the card of the model in a folder, which `--model NAME` finds.

    A score with a source links to that file. `from_public_text` warns of what texts by many people teach, or says that
    none were learned from; None where the text is not known.
    """
    links = {score: _link(path, folder) for score, path in (sources or {}).items()}
    sections = [
        f"""---
library_name: insnet
pipeline_tag: text-generation
language: en
tags: [{", ".join(dict.fromkeys(("insnet", family, "lexically-constrained-generation")))}]
---
# {name}

Writes a text around the words it is given: `insnet generate --model {name} word word ...`.
""",
        "".join(f"- **{fact}**: {text}.\n" for fact, text in facts.items()),
        "| measured | | |\n|---|---|---|\n"
        + "".join(f"| {score} | {value:.4g} | {links.get(score, '')} |\n" for score, value in scores.items()),
    ]
    if limits:
        sections += ["## Limits\n", "".join(f"- {limit}\n" for limit in limits)]
    if attributions:
        sections += ["## Whose texts it has learned from\n", "".join(f"- {source}\n" for source in attributions)]
    if from_public_text is not None:
        warning = _OF_PUBLIC_TEXT if from_public_text else _OF_OWN_TEXT
        sections += ["## Unpleasant outputs\n", f"{warning}\n", f"{_FILTERS}\n"]
    write_atomically(folder / "README.md", "\n".join(sections))


def _link(path: Path, folder: Path) -> str:
    address = os.path.relpath(path.resolve(), folder.resolve())
    return f"[{path.name}]({Path(address).as_posix()})"
