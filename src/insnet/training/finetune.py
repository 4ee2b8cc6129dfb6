"""A model's further training on somebody's own sentences, with defaults that suit a small file and a CPU."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from insnet.families.storage import load_model, read_generation
from insnet.files import RECIPE_FILE, write_atomically
from insnet.text.batching import Batches, BatchingConfig
from insnet.text.corpus import read_lines
from insnet.text.marked import MarkedTokenizer
from insnet.text.shards import TokenShards
from insnet.text.tokenizer import Tokenizer, load_tokenizer
from insnet.training.devices import make_accelerator
from insnet.training.events import Evaluated, Listener, Notice, console
from insnet.training.prepare import Prepared, prepare
from insnet.training.recipe import Recipe, TrainConfig, load_recipe
from insnet.training.run_folder import RunFolder
from insnet.training.trainer import TrainingSummary, train
from insnet.training.updates import SummedLosses, evaluate

_TEXT_FOLDER = ".text"  # begins with a dot: until training starts, the run folder counts as untouched
_LINES_FOR_ONE_VALID, _MOST_VALID = 20, 500
_FEWEST_LINES = 2
_TOKEN_BUDGET = 512  # small batches learn more from a small file: at 8 epochs of 600 lines, far more than 2,048 do
_SHARE_OF_PEAK = 0.2  # of the learning rate the model was trained with: most is known already
_EPOCHS = 3.0  # unless another number is given
_ENOUGH_UPDATES, _MOST_EPOCHS = 200, 20.0  # a small file is gone through more often: till there are so many updates
_EVALUATIONS = 10
_MUCH_UNKNOWN = 0.05


def finetune(
    text_file: str | Path,
    *,
    model_folder: str | Path,
    output: str | Path,
    epochs: float | None = None,
    updates: int | None = None,
    minutes: float = 0.0,
    learning_rate: float | None = None,
    seed: int = 0,
    device: str = "auto",
    resume: bool = False,
    on_event: Listener | None = None,
) -> TrainingSummary:
    """The model of a folder, trained on the sentences of a text file (one per line) into the run folder `output`.

    One line in 20 (at least 1, at most 500) is set aside: the model is judged on these before the first update and
    while it learns, and the best update is kept. `updates` overrules `epochs`; without either there are 3 epochs, or
    more (up to 20) where 3 make fewer than 200 updates. `minutes` ends training earlier; 0 sets no such limit.
    """
    model_folder, output = Path(model_folder), Path(output)
    report = on_event or console()
    tokenizer = load_tokenizer(model_folder)
    text_folder = output / _TEXT_FOLDER
    original = load_recipe(model_folder / RECIPE_FILE, [f"train.device={device}"])
    recipe = _recipe_for(original, tokenizer, text_folder, read_generation(model_folder))
    rate = learning_rate if learning_rate is not None else recipe.train.learning_rate
    chosen = replace(recipe.train, learning_rate=rate, seed=seed, minutes=minutes)
    recipe = replace(recipe, train=chosen)
    RunFolder(output).refuse_if_taken(recipe, resume=resume)
    _split(Path(text_file), text_folder)
    prepared = prepare(recipe, tokenizer=tokenizer, say=lambda text: report(Notice(text)))
    _report_unknown(prepared, report)
    before = _valid_losses(model_folder, recipe, prepared)
    report(Evaluated(0, before, is_best=False))
    total = updates if updates is not None else _updates(_batches(prepared.train, recipe, prepared), epochs)
    pace = max(total // _EVALUATIONS, 1)
    recipe = replace(recipe, train=replace(recipe.train, updates=total, evaluate_every=pace, checkpoint_every=pace))
    summary = train(recipe, output=output, resume=resume, start_from=model_folder, on_event=_without_unchanged(report))
    _report_gain(before["loss"], summary, report)
    if summary.status != "interrupted":
        RunFolder(output).drop_checkpoints()
    return summary


def _recipe_for(original: Recipe, tokenizer: Tokenizer, folder: Path, generation: Mapping[str, Any]) -> Recipe:
    """The model's own recipe, but for the text and the pace; how many updates it takes depends on the text.

    It writes as the model does: settings may have been chosen after it was trained, by what it wrote."""
    longest = original.data.max_tokens
    data = replace(original.data, folder=str(folder), prepared=str(folder / "prepared"))
    config = TrainConfig(
        updates=1,
        token_budget=max(min(_TOKEN_BUDGET, original.train.token_budget), 2 * (longest + 8)),
        learning_rate=original.train.learning_rate * _SHARE_OF_PEAK,
        warmup_updates=10,
        weight_decay=original.train.weight_decay,
        rank=original.train.rank,
        targets=original.train.targets,
        log_every=10,
        # A model that was trained in bf16 on a GPU can be tuned on a CPU, which trains in float32 only.
        precision="float32" if original.train.precision == "float32" else "auto",
        max_shapes=original.train.max_shapes,
        patience=3,
        device=original.train.device,
    )
    learned = tokenizer.config if isinstance(tokenizer, MarkedTokenizer) else original.tokenizer
    return replace(original, data=data, tokenizer=learned, train=config, generation=generation)


def _split(text_file: Path, folder: Path) -> None:
    """Writes train.txt and valid.txt: every 20th line is set aside, so that both halves of a file are seen."""
    lines = list(read_lines(text_file, skip_empty=True))
    if len(lines) < _FEWEST_LINES:
        raise ValueError(f"{text_file} has {len(lines)} sentences: give at least {_FEWEST_LINES}, one per line")
    valid_lines = min(-(-len(lines) // _LINES_FOR_ONE_VALID), _MOST_VALID)
    set_aside = {round((number + 1) * len(lines) / valid_lines) - 1 for number in range(valid_lines)}
    for split, is_valid in (("train", False), ("valid", True)):
        chosen = [line for number, line in enumerate(lines) if (number in set_aside) == is_valid]
        write_atomically(folder / f"{split}.txt", "".join(f"{line}\n" for line in chosen))


def _batches(shards: TokenShards, recipe: Recipe, prepared: Prepared) -> Batches:
    batching = BatchingConfig(recipe.train.token_budget, recipe.train.max_shapes, recipe.train.seed)
    return Batches(shards, batching, recipe.given, prepared.tokenizer.lexicon()["starts_word"])


def _updates(batches: Batches, epochs: float | None) -> int:
    """Updates to make."""
    per_epoch = batches.updates_per_epoch
    if epochs is None:
        epochs = max(_EPOCHS, min(_ENOUGH_UPDATES / per_epoch, _MOST_EPOCHS))
    return max(round(epochs * per_epoch), 1)


def _valid_losses(model_folder: Path, recipe: Recipe, prepared: Prepared) -> dict[str, float]:
    """The losses of the model as it is, on the lines that were set aside."""
    accelerator = make_accelerator(recipe.train)
    losses = SummedLosses(load_model(model_folder, accelerator.device), objective=recipe.objective)
    return evaluate(accelerator, losses, _batches(prepared.valid, recipe, prepared).in_order(), progress=0.0)


def _without_unchanged(report: Listener) -> Listener:
    """A listener that does not receive again what was prepared and reported a moment ago."""
    return lambda event: None if isinstance(event, Notice) and ": unchanged, " in event.text else report(event)


def _report_gain(before: float, summary: TrainingSummary, report: Listener) -> None:
    if summary.best_loss is None:
        return
    text = f"valid loss {before:.3f} before, {summary.best_loss:.3f} after update {summary.best_update}"
    advice = "; it did not help: try a lower learning rate, or more text" if summary.best_loss >= before else ""
    report(Notice(text + advice))


def _report_unknown(prepared: Prepared, report: Listener) -> None:
    share = prepared.unknown_share()
    if share > 0:
        advice = "; the model can copy them as keywords, but never write them itself" if share > _MUCH_UNKNOWN else ""
        report(Notice(f"{share:.1%} of the words are unknown to the model's vocabulary{advice}"))
