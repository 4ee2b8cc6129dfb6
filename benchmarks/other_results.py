"""Figures of other results files, copied with where they come from: one machine's beside another's, never by hand."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insnet.files import read_json_object

_PROVENANCE = ("command", "commit", "hardware", "date", "seeds", "data")


@dataclass(frozen=True)
class OtherFigure:
    """A figure that was measured before."""

    name: str
    """What it shall be called here."""
    file: str
    """The name of its results file."""
    name_there: str
    """What the headline there calls it."""
    result: Mapping[str, Any]
    """All that the file says."""

    @classmethod
    def of(cls, text: str) -> "OtherFigure":
        """From FILE.json:NAME, or FILE.json:NAME=OTHER_NAME to call it something else here."""
        path, _, names = text.rpartition(":")
        name_there, _, name = names.partition("=")
        if not path.endswith(".json") or not name_there:
            raise ValueError(f"cannot read {text!r}; expected FILE.json:NAME or FILE.json:NAME=OTHER_NAME")
        result = read_json_object(Path(path))
        known = result.get("headline", {})
        if name_there not in known:
            raise ValueError(f"{path} has no figure {name_there!r}; it has {', '.join(known) or 'none'}")
        return cls(name or name_there, Path(path).name, name_there, result)

    @property
    def value(self) -> float:
        return float(self.result["headline"][self.name_there])

    @property
    def source(self) -> dict[str, Any]:
        """How it was measured."""
        known = {name: self.result[name] for name in _PROVENANCE if name in self.result}
        return {"file": self.file, "name": self.name_there, **known}


def check_comparable(
    figures: Sequence[OtherFigure], *, model: str, generation: Mapping[str, Any], own_names: Collection[str]
) -> None:
    """Refuses figures of another model or another way to decode, and those with the name of one of our own."""
    names = [*own_names, *(figure.name for figure in figures)]
    for figure in figures:
        other = figure.result.get("model", model)
        if other != model:
            raise ValueError(f"{figure.file} is about the model {other!r}, not of {model!r}; measure it again")
        if figure.result.get("settings", {}).get("generation", generation) != generation:
            raise ValueError(f"{figure.file} has other decoding settings; measure it again with these")
        if names.count(figure.name) > 1:
            raise ValueError(f"{figure.name} would be there twice; give one another name, as in FILE.json:NAME=OTHER")


def with_other_figures(
    headline: Mapping[str, float], detail: Mapping[str, Any], figures: Sequence[OtherFigure]
) -> tuple[dict[str, float], dict[str, Any]]:
    """The headline with other files' figures in front, and the detail with how each of them was measured."""
    if not figures:
        return dict(headline), dict(detail)
    values = {figure.name: figure.value for figure in figures}
    return {**values, **headline}, {**detail, "taken_from": {figure.name: figure.source for figure in figures}}
