"""The decoding options of all commands that write texts: the settings of insnet.decoding.config, with their docs."""

import ast
import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from insnet.decoding import config as settings

_OWN_OPTION = {"min_words", "max_words", "mode"}  # --length and --mode say these
_KIND_OF: dict[str, Any] = {
    "stopping": StrEnum("stopping", [(rule, rule) for rule in settings.STOPPING_RULES]),
    "candidate_choice": StrEnum("candidate_choice", [(rule, rule) for rule in settings.CANDIDATE_CHOICES]),
}


def docs_of_fields(table: type) -> dict[str, str]:
    """The docstring under each field of a dataclass."""
    definition = ast.parse(inspect.getsource(table)).body[0]
    assert isinstance(definition, ast.ClassDef)
    return {
        str(getattr(field.target, "id", "")): inspect.cleandoc(str(doc.value.value))
        for field, doc in itertools.pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
    }


def _options_of(table: type) -> dict[str, Any]:
    docs = docs_of_fields(table)
    panel = f"{(inspect.getdoc(table) or '').rstrip('.')} (left out: the model's own settings)"
    options = {}
    for field in dataclasses.fields(table):
        if field.name not in _OWN_OPTION:
            option = typer.Option(help=docs[field.name], rich_help_panel=panel)
            options[field.name] = Annotated[_KIND_OF.get(field.name, type(field.default)) | None, option]
    return options


DECODING_OPTIONS: dict[str, Any] = {
    name: option
    for table in dataclasses.fields(settings.GenerationConfig)
    for name, option in _options_of(table.default_factory).items()  # type: ignore[arg-type]
}
"""By the setting that each one sets."""


def takes_decoding_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with all these options behind its own; those that are given reach it as one mapping, `decoding`."""
    own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "decoding"]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in DECODING_OPTIONS.items()
    ]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        decoding = as_settings({name: options.pop(name) for name in DECODING_OPTIONS})
        command(**options, decoding=decoding)

    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *shared]}
    return run


def as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, words instead of choices."""
    return {
        name: str(value) if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if value is not None
    }
