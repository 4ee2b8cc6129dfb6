"""The program `insnet`: its commands, and how it ends: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""

import errno
import os
import sys
from typing import Annotated, NoReturn

import typer

from insnet.cli.benchmark import app as benchmark
from insnet.cli.edit import edit
from insnet.cli.evaluate import evaluate
from insnet.cli.generate import generate, infill
from insnet.cli.models import app as models
from insnet.cli.score import score
from insnet.cli.serve import serve
from insnet.cli.train import finetune, prepare, retrofit, train
from insnet.threads import set_threads

_EXTRA_OF_PACKAGE = {
    "accelerate": "train",
    "fastapi": "serve",
    "matplotlib": "plot",
    "prometheus_client": "serve",
    "pydantic": "serve",
    "tensorboard": "train",
    "transformers": "hf",
    "uvicorn": "serve",
    "yake": "keywords",
}

# training has its own processes and devices
_COMPUTES_AT_ONCE = ("generate", "infill", "edit", "score", "evaluate", "serve")

app = typer.Typer(
    help="Insertion-based text generation: keywords in, a sentence that holds every one of them out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(generate)
app.command()(infill)
app.command()(edit)
app.command()(score)
app.command()(prepare)
app.command()(train)
app.command()(retrofit)
app.command()(finetune)
app.command()(evaluate)
app.command()(serve)
app.add_typer(benchmark, name="benchmark")
app.add_typer(models, name="models")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"insnet {version('insnet')}")
        except PackageNotFoundError:
            typer.echo("insnet, run from its source tree")
        raise typer.Exit


@app.callback()
def insnet(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Insertion-based text generation: keywords in, a sentence that holds every one of them out."""
    if context.invoked_subcommand in _COMPUTES_AT_ONCE:
        set_threads()


def main() -> NoReturn:
    """Runs `insnet`."""
    run(app, "insnet")


def run(program: typer.Typer, name: str) -> NoReturn:
    """Runs a command line and leaves with its exit code; a user's mistake is reported in one line."""
    try:
        code = _run(program, name)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _leave_quietly()
    sys.exit(code)


def _run(program: typer.Typer, name: str) -> int | str | None:
    try:
        program(prog_name=name)
    except SystemExit as end:
        return end.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise
    except ModuleNotFoundError as error:
        extra = _EXTRA_OF_PACKAGE.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        return _fail(f"this needs the package {error.name}: pip install 'insnet[{extra}]'")
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise BrokenPipeError from None
        name = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{name}{error.strerror or error}")
    except ValueError as error:
        return _fail(str(error))
    return 0


def _fail(reason: str) -> int:
    print(f"error: {' '.join(reason.split())}", file=sys.stderr)
    return 1


def _leave_quietly() -> int:
    """The reader of our output is gone: what is still buffered goes nowhere, so that leaving says nothing either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
