"""`insnet generate` and `insnet infill`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from insnet.cli import options, terminal
from insnet.cli.decoding_options import as_settings, takes_decoding_options
from insnet.cli.writer import load_writer

if TYPE_CHECKING:
    from insnet.model import Model, Result


@takes_decoding_options
def generate(
    keywords: Annotated[
        list[str] | None,
        typer.Argument(
            help="Words that must appear, in this order; a quoted phrase stays whole, 'run*' may be ran or running."
        ),
    ] = None,
    samples: options.SamplesOption = 1,
    seed: options.SeedOption = None,
    watch: options.WatchOption = False,
    as_json: options.JsonOption = False,
    trace: options.TraceOption = False,
    length: options.LengthOption = None,
    ban: options.BanOption = None,
    reject: options.RejectOption = None,
    any_order: Annotated[
        bool, typer.Option("--any-order", help="Let the keywords come in whatever order reads best.")
    ] = False,
    mode: options.ModeOption = None,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="FILE",
            help="One keyword list per line, parted by tabs or else by spaces; a blank line stays blank.",
        ),
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="With --input: JSON lines, or plain text for a name in .txt. Run again, it goes on where it was.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="With --output: start anew.")] = False,
    batch_size: options.BatchSizeOption = 64,
    model: options.ModelOption = None,
    device: options.DeviceOption = options.Device.auto,
    offline: options.OfflineOption = False,
    *,
    decoding: dict[str, Any],
) -> None:
    """Write a sentence that holds every keyword, in the given order.

    insnet generate "new york" pizza -n 5 --seed 7
    """
    _check_usage(keywords, input_file, output_file, watch=watch, as_json=as_json, trace=trace, overwrite=overwrite)
    settings = {**_bounds(length, ban, mode), "any_order": any_order, **decoding}
    refused = options.read_refused(reject)
    if input_file is not None:
        from insnet.cli.keyword_file import FileJob, write_file

        job = FileJob(
            input_file, output_file, samples, seed, batch_size, settings, refused, as_json=as_json, trace=trace
        )
        write_file(job, lambda: load_writer(model, device, offline=offline, mode=mode), overwrite=overwrite)
        return
    if refused is not None:
        refused.check_required(keywords or [])
    settings = {**settings, "seed": seed, "batch_size": batch_size, "accept": refused}
    writer = load_writer(model, device, offline=offline, mode=mode)
    if watch:
        _watch(writer, keywords or [], samples, settings)
    else:
        _print(writer.generate(keywords or [], num_samples=samples, **settings), as_json=as_json, trace=trace)


@takes_decoding_options
def infill(
    text: Annotated[
        str,
        typer.Argument(
            help="Text with blanks: ___ for a word or more; ___{2,5}, ___{3,}, ___{,4} or ___{1} for so many."
        ),
    ],
    watch: options.WatchOption = False,
    samples: options.SamplesOption = 1,
    seed: options.SeedOption = None,
    as_json: options.JsonOption = False,
    trace: options.TraceOption = False,
    length: options.LengthOption = None,
    ban: options.BanOption = None,
    reject: options.RejectOption = None,
    mode: options.ModeOption = None,
    model: options.ModelOption = None,
    device: options.DeviceOption = options.Device.auto,
    offline: options.OfflineOption = False,
    *,
    decoding: dict[str, Any],
) -> None:
    """Fill the blanks (___) of a text and keep all else word for word.

    insnet infill "The river flows through ___ into the ___{1} Sea." -n 5

    Words are what spaces part, and --length counts those of the whole text. Blanks may stand in several sentences and
    paragraphs, of about 1000 tokens in all. A brace that is meant behind a blank is written ___\\{.
    """
    if trace and not as_json:
        raise typer.BadParameter("--trace is part of the JSON output: add --json")
    if watch and as_json:
        raise typer.BadParameter("--watch is for a person: leave out --json")
    settings = {**_bounds(length, ban, mode), **decoding}
    refused = options.read_refused(reject)
    if refused is not None:
        refused.check_required([text])
    writer = load_writer(model, device, offline=offline, mode=mode)
    results = writer.infill(text, num_samples=samples, seed=seed, accept=refused, **settings)
    if watch:
        _replay(results)
    else:
        _print(results, as_json=as_json, trace=trace)


def _bounds(length: str | None, ban: list[str] | None, mode: options.Mode | None) -> dict[str, Any]:
    """What a text must keep to, as `Model.generate` takes it."""
    return as_settings({"length": options.parse_length(length), "banned": tuple(ban or ()), "mode": mode})


def _check_usage(
    keywords: list[str] | None,
    input_file: Path | None,
    output_file: Path | None,
    *,
    watch: bool,
    as_json: bool,
    trace: bool,
    overwrite: bool,
) -> None:
    """Refuses options that contradict each other."""
    if input_file is not None and keywords:
        raise typer.BadParameter("give keywords or --input, not both")
    if input_file is None and output_file is not None:
        raise typer.BadParameter("--output goes with --input; without it the text is printed")
    if input_file is not None and output_file is not None and input_file.resolve() == output_file.resolve():
        raise typer.BadParameter("--input and --output are the same file")
    if overwrite and output_file is None:
        raise typer.BadParameter("--overwrite goes with --output")
    if watch and (as_json or input_file is not None):
        raise typer.BadParameter("--watch is for one keyword list and a person: leave out --json and --input")
    writes_json = as_json or (output_file is not None and output_file.suffix != ".txt")
    if trace and not writes_json:
        raise typer.BadParameter("--trace is part of the JSON output: add --json")


def _watch(model: "Model", keywords: list[str], samples: int, settings: dict[str, Any]) -> None:
    from insnet.cli.watch import watch
    from insnet.text.inflection import choices_of

    forms = [choices_of(" ".join(keyword.split())) for keyword in keywords]
    if samples == 1 and not model.job(**settings).choices() and all(len(own) == 1 for own in forms):
        watch(model.stream(keywords, **settings), [own for [own] in forms])
        return
    _replay(model.generate(keywords, num_samples=samples, **settings))


def _replay(results: "list[Result]") -> None:
    from insnet.cli.watch import watch

    for result in results:
        watch(result.trace, result.keywords)


def _print(results: "list[Result]", *, as_json: bool, trace: bool) -> None:
    different = list({result.text: result for result in results}.values())
    for result in different:
        if as_json:
            terminal.print_json(result.as_dict(trace=trace))
        else:
            terminal.print_text(result.text, result.keywords)
    if len(different) < len(results):
        terminal.note(f"{len(different)} instead of {len(results)} texts: the model found no others that differ")
