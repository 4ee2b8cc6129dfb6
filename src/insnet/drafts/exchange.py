"""Drafts as JSON: what travels between a page and a service that keeps nothing."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from insnet.drafts.words import Place, Word, check_characters

FORMAT = "insnet draft"
VERSION = 1
_KEYS = ("format", "version", "words", "places", "banned")
_SHOWN = 40  # characters of what is wrong that a refusal repeats


def described(words: Sequence[Word], places: Sequence[Place], banned: Sequence[str]) -> dict[str, Any]:
    """A draft's parts as plain values."""
    values = [[asdict(word) for word in words], [str(place) for place in places], list(banned)]
    return dict(zip(_KEYS, [FORMAT, VERSION, *values], strict=True))


def written(values: dict[str, Any]) -> str:
    """Plain values as one line."""
    return json.dumps(values, ensure_ascii=False)


def parsed(content: str | bytes) -> object:
    """Plain values from JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError, TypeError) as error:
        raise ValueError(f"this is no JSON: {error}") from None


def checked(values: object) -> tuple[tuple[Word, ...], tuple[Place, ...], tuple[str, ...]]:
    """The words, the places and the bans that plain values describe; everything else is refused."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError(f"this is no draft: expected an object whose 'format' is {FORMAT!r}")
    if values.get("version") != VERSION or isinstance(values["version"], bool):
        raise ValueError(f"the draft has version {values.get('version')!r}; this program reads version {VERSION}")
    _check_keys(values, _KEYS, "the draft")
    words, places, banned = (_list(values, key) for key in _KEYS[2:])
    return tuple(map(_word, words)), tuple(map(_place, places)), tuple(map(_ban, banned))


def _word(values: object) -> Word:
    if not isinstance(values, dict):
        raise ValueError(f"a word of the draft is {_short(values)}; expected an object")
    _check_keys(values, [each.name for each in fields(Word)], "a word of the draft")
    return Word(**values)


def _place(value: object) -> Place:
    if value not in tuple(Place):
        raise ValueError(f"a place of the draft is {_short(value)}; expected {', '.join(Place)}")
    return Place(str(value))


def _ban(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"what the draft bans is {_short(value)}; expected a word or a phrase")
    check_characters(value)
    return value


def _list(values: dict[str, Any], key: str) -> list[object]:
    if not isinstance(values[key], list):
        raise ValueError(f"{key} of the draft is {_short(values[key])}; expected a list")
    return list(values[key])


def _check_keys(values: dict[str, Any], expected: Sequence[str], what: str) -> None:
    if set(values) != set(expected):
        raise ValueError(f"{what} has {_short(sorted(values))}; expected {', '.join(expected)}")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
