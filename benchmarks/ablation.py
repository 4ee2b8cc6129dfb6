"""The paper's ablation: what offsets and the newest token's encoding are good for, above all for stopping in time.

`full` is the whole model, `truncated` sees of an offset only its direction, `noglobal` chooses and fills slots without
the newest token.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from benchmarks import command
from benchmarks.decodings import PAPER_DECODING, SCORES, Decoding, Drawn, check_stops_by_itself, draw
from benchmarks.drawing import Drawing
from benchmarks.stop_nll import sentence_nats
from insnet.cli import options
from insnet.cli.benchmark import ResultOption, numbers
from insnet.evaluation.task import Task, read_task
from insnet.model import Model
from insnet.shelf import load

SWITCHES = {
    "full": {"truncated": False, "noglobal": False},
    "truncated": {"truncated": True, "noglobal": False},
    "noglobal": {"truncated": False, "noglobal": True},
}
"""How the config of each model is set."""
_FIXED = ("stopping",)


def measure(
    models: Mapping[str, Model],
    task: Task,
    drawing: Drawing,
    *,
    settings: Mapping[str, Any] | None = None,
    orders: int = 4,
) -> tuple[dict[str, float], dict[str, Any], dict[str, list[str]]]:
    """The headline (stop_nll_full, bleu2_full, nonterminating_full, ...), the detail behind it, and each model's texts
    of the first seed.

    All decode as the paper does; `settings` change that, but for how it stops.
    """
    ways = {name: _way(name, model, settings or {}) for name, model in models.items()}
    figures: dict[str, float] = {}
    detail: dict[str, Any] = {"split": task.split, "sentences": len(task.references), "orders": orders}
    texts: dict[str, list[str]] = {}
    for name, way in ways.items():
        nats = sentence_nats(way.model, task, orders=orders, seed=drawing.seeds[0])
        drawn = draw(way, task, drawing)
        figures |= {f"stop_nll_{name}": nats.stop, **_figures(name, drawn)}
        detail[name] = {**drawn.detail(), "nats_per_sentence": asdict(nats)}
        texts[name] = drawn.texts
    return figures, detail, texts


def _figures(name: str, drawn: Drawn) -> dict[str, float]:
    return {**drawn.scores(SCORES, f"{{}}_{name}"), f"nonterminating_{name}": drawn.nonterminating}


def _way(name: str, model: Model, settings: Mapping[str, Any]) -> Decoding:
    """How a model decodes; refused if it is not the one its name says, or cannot stop as the paper's do."""
    config = getattr(model.family, "config", None)
    for switch, wanted in SWITCHES[name].items():
        if getattr(config, switch, None) is not wanted:
            raise ValueError(
                f"the model given as {name} has {switch} = {getattr(config, switch, None)}; expected {wanted}: "
                "give an InsNet trained with the recipe of that name"
            )
    check_stops_by_itself(model, f"the model given as {name}")
    for setting in _FIXED:
        if settings.get(setting, PAPER_DECODING[setting]) != PAPER_DECODING[setting]:
            raise ValueError(f"{setting} is {settings[setting]!r}; the ablation stops as the paper does: leave it out")
    way = Decoding(model, {**PAPER_DECODING, **settings})
    way.all_settings()
    return way


def main(
    full: Annotated[str, typer.Option(metavar="RUN", help="The whole model (recipes/yelp_full.toml).")],
    truncated: Annotated[str, typer.Option(metavar="RUN", help="The one that sees only directions.")],
    noglobal: Annotated[str, typer.Option(metavar="RUN", help="The one without the newest token.")],
    data: command.DataOption,
    split: command.SplitOption = "test",
    seeds: command.SeedsOption = "0,1,2",
    settings: Annotated[
        str, typer.Option(metavar="TEXT", help='What changes the paper\'s decoding, as in "max_words=143".')
    ] = "",
    orders: Annotated[int, typer.Option(min=1, help="Orders per sentence that stop terms are averaged over.")] = 4,
    limit: command.LimitOption = None,
    keywords_per_line: command.KeywordsOption = 7,
    batch_size: options.BatchSizeOption = 64,
    keep: command.KeepOption = None,
    device: options.DeviceOption = options.Device.auto,
    output: ResultOption = None,
) -> None:
    """Stop NLL, BLEU and texts without end of a model and its two ablations, which stop as the paper's do.

    python -m benchmarks.ablation --full runs/full --truncated runs/truncated --noglobal runs/noglobal --data data/yelp
    """
    all_seeds, chosen = numbers(seeds), command.one_setting(settings)
    task = read_task(data, split, limit=limit, keywords_per_line=keywords_per_line)
    folders = {"full": full, "truncated": truncated, "noglobal": noglobal}
    models = {name: load(folder, device=device) for name, folder in folders.items()}
    with command.with_bar(Drawing(all_seeds, batch_size, keep), models, task) as drawing:
        found = measure(models, task, drawing, settings=chosen, orders=orders)
    command.report_on(task, all_seeds, output, *found, main="full")


if __name__ == "__main__":
    command.run(main)
