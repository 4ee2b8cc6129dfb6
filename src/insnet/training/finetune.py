"""A model's further training on somebody's own sentences, with defaults that suit a small file and a CPU."""

from dataclasses import replace
from pathlib import Path

from insnet.files import write_atomically
from insnet.text.batching import Batches, BatchingConfig
from insnet.text.corpus import read_lines
from insnet.text.tokenizer import Tokenizer
from insnet.training.events import Listener, Notice, console
from insnet.training.prepare import Prepared, prepare
from insnet.training.recipe import Recipe, TrainConfig, load_recipe
from insnet.training.run_folder import RECIPE_FILE, RunFolder
from insnet.training.trainer import TrainingSummary, train

_TEXT_FOLDER = ".text"  # begins with a dot: until training starts, the run folder counts as untouched
_LINES_FOR_ONE_VALID, _MOST_VALID = 20, 500
_FEWEST_LINES = 2
_TOKEN_BUDGET = 2048  # small batches learn more from a small file
_SHARE_OF_PEAK = 0.2  # of the learning rate the model was trained with: most is known already
_EVALUATIONS = 10
_MUCH_UNKNOWN = 0.05


def finetune(
    text_file: str | Path,
    *,
    model_folder: str | Path,
    output: str | Path,
    epochs: float = 3.0,
    updates: int | None = None,
    learning_rate: float | None = None,
    seed: int = 0,
    resume: bool = False,
    on_event: Listener | None = None,
) -> TrainingSummary:
    """The model of a folder, trained on the sentences of a text file (one a line) into the run folder `output`.

    One line in 20 (at least 1, at most 500) is set aside to see which update was best. `updates` overrules `epochs`.
    """
    model_folder, output = Path(model_folder), Path(output)
    tell = on_event or console()
    tokenizer = Tokenizer.load(model_folder)
    text_folder = output / _TEXT_FOLDER
    original = load_recipe(model_folder / RECIPE_FILE)
    rate = learning_rate if learning_rate is not None else original.train.learning_rate * _SHARE_OF_PEAK
    recipe = _recipe_for(original, tokenizer, text_folder, learning_rate=rate, seed=seed)
    RunFolder(output).refuse_if_taken(recipe, resume=resume)
    _split(Path(text_file), text_folder)
    prepared = prepare(recipe, tokenizer=tokenizer, say=lambda text: tell(Notice(text)))
    _tell_unknown(prepared, tell)
    total = updates if updates is not None else max(round(epochs * _updates_per_epoch(recipe, prepared)), 1)
    pace = max(total // _EVALUATIONS, 1)
    recipe = replace(recipe, train=replace(recipe.train, updates=total, evaluate_every=pace, checkpoint_every=pace))
    return train(recipe, output=output, resume=resume, start_from=model_folder, on_event=tell)


def _recipe_for(original: Recipe, tokenizer: Tokenizer, folder: Path, *, learning_rate: float, seed: int) -> Recipe:
    """The model's own recipe, but for the text and the pace; how many updates it takes depends on the text."""
    longest = original.data.max_tokens
    data = replace(original.data, folder=str(folder), prepared=str(folder / "prepared"))
    config = TrainConfig(
        updates=1,
        token_budget=max(min(_TOKEN_BUDGET, original.train.token_budget), 2 * (longest + 8)),
        learning_rate=learning_rate,
        warmup_updates=10,
        weight_decay=original.train.weight_decay,
        log_every=10,
        seed=seed,
        precision=original.train.precision,
        max_shapes=original.train.max_shapes,
        patience=3,
    )
    return replace(original, data=data, tokenizer=tokenizer.config, train=config)


def _split(text_file: Path, folder: Path) -> None:
    """Writes train.txt and valid.txt: every 20th line is set aside, so that both halves of a file are seen."""
    lines = list(read_lines(text_file, skip_empty=True))
    if len(lines) < _FEWEST_LINES:
        raise ValueError(f"{text_file} has {len(lines)} sentences: give at least {_FEWEST_LINES}, one a line")
    valid_lines = min(-(-len(lines) // _LINES_FOR_ONE_VALID), _MOST_VALID)
    set_aside = {round((number + 1) * len(lines) / valid_lines) - 1 for number in range(valid_lines)}
    for split, is_valid in (("train", False), ("valid", True)):
        chosen = [line for number, line in enumerate(lines) if (number in set_aside) == is_valid]
        write_atomically(folder / f"{split}.txt", "".join(f"{line}\n" for line in chosen))


def _updates_per_epoch(recipe: Recipe, prepared: Prepared) -> int:
    batching = BatchingConfig(recipe.train.token_budget, recipe.train.max_shapes, recipe.train.seed)
    starts_word = prepared.tokenizer.lexicon()["starts_word"]
    return Batches(prepared.train, batching, recipe.given, starts_word).updates_per_epoch


def _tell_unknown(prepared: Prepared, tell: Listener) -> None:
    share = prepared.unknown_share()
    if share > 0:
        advice = "; the model can copy them as keywords, but never write them itself" if share > _MUCH_UNKNOWN else ""
        tell(Notice(f"{share:.1%} of the words are unknown to the model's vocabulary{advice}"))
