"""The command line: parses, calls, prints. Whatever takes long to import is imported inside the commands."""

from insnet.cli.app import main

__all__ = ["main"]
