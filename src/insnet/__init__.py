"""Text generation by insertion: words that must appear become fluent text."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insnet.drafts.draft import Draft
    from insnet.model import Model, Result, Score
    from insnet.shelf import load, models

__all__ = ["Draft", "Model", "Result", "Score", "load", "models"]

_HOME = {
    "Draft": "drafts.draft",
    "Model": "model",
    "Result": "model",
    "Score": "model",
    "load": "shelf",
    "models": "shelf",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when first used, so that `import insnet` and `insnet --help` are instant."""
    if name not in _HOME:
        raise AttributeError(f"module 'insnet' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"insnet.{_HOME[name]}"), name)
