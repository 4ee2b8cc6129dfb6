"""TOML tables to frozen dataclasses and back, with faults named in the reader's words."""

import dataclasses
import difflib
import json
import math
import tomllib
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Config = TypeVar("Config")


def from_table(
    kind: type[Config], table: Mapping[str, Any], where: str, *, given: Mapping[str, Any] | None = None
) -> Config:
    """A dataclass filled from the table [where]; `given` fields come from elsewhere and may not be in the table."""
    given = given or {}
    fields = {field.name: field for field in dataclasses.fields(kind) if field.name not in given}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    for name in table:
        if name in given:
            raise ValueError(f"[{where}] may not set {name!r}: it follows from the rest of the recipe")
        refuse_unknown(name, fields, f"[{where}] key")
    values = {name: checked_value(value, hints[name], f"{where}.{name}") for name, value in table.items()}
    for name, field in fields.items():
        if name not in values and _has_no_default(field):
            raise ValueError(f"[{where}] lacks {name!r}, which has no default: add it")
    try:
        return kind(**values, **given)
    except ValueError as error:
        raise ValueError(f"[{where}] {error}") from None


def refuse_unknown(name: str, known: Iterable[str], what: str) -> None:
    """A ValueError that names the nearest known name, unless the name is known."""
    known = list(known)
    if name in known:
        return
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    expected = f"one of {', '.join(known)}" if known else "none"
    advice = f"did you mean {nearest[0]!r}?" if nearest else f"expected {expected}"
    raise ValueError(f"unknown {what} {name!r}: {advice}")


def checked_value(value: Any, hint: Any, where: str) -> Any:
    """The value as its field wants it (whole numbers for floats, tuples for lists), or a ValueError."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(choice for choice in get_args(hint) if choice is not type(None))  # TOML knows no null: just absent
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{where} is {value!r}; expected one of {', '.join(map(repr, get_args(hint)))}")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is {value!r}; expected a list")
        return tuple(checked_value(item, get_args(hint)[0], where) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{where} is {value!r}; expected {_NAME_OF_TYPE.get(hint, hint.__name__)}")
    return value


def parse_override(text: str) -> tuple[str, str, Any]:
    """Table, key and value of "train.updates=100"; what is no TOML value is taken as a string.

    >>> parse_override("train.device=cpu"), parse_override("train.updates = 100")
    (('train', 'device', 'cpu'), ('train', 'updates', 100))
    """
    name, equals, value = text.partition("=")
    table, dot, key = name.strip().partition(".")
    if not (equals and dot and table and key):
        raise ValueError(f"cannot read the setting {text!r}: expected TABLE.KEY=VALUE, as in train.updates=100")
    try:
        return table, key, tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return table, key, value.strip()


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """TOML of one level of tables; tables inside them are written inline, absent values left out."""
    return "\n".join(_section(name, table) for name, table in tables.items())


def _section(name: str, table: Mapping[str, Any]) -> str:
    lines = [f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if value is not None]
    return f"[{_key(name)}]\n{''.join(lines)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"{value}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    raise ValueError(f"{value!r} cannot be written as TOML")


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _value(name)


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


_NAME_OF_TYPE = {int: "a whole number", float: "a number", bool: "true or false", str: "a string (in quotes)"}
