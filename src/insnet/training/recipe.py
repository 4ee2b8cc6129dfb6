"""A recipe: one TOML file that says everything a training run depends on.

It may begin with `base = "other.toml"`, a recipe beside it, and then says only what differs from that one.

Other relative paths are relative to the current directory, as everything else on a command line is.
"""

import dataclasses
import hashlib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from insnet.families import FAMILIES
from insnet.families.losses import FamilyObjective
from insnet.files import CONFIG_FILE, read_json_object
from insnet.text.given import GivenPolicy
from insnet.text.marked import TokenizerConfig
from insnet.training.optimizer import OptimizerName
from insnet.training.tables import from_table, parse_override, refuse_unknown, toml_text


@dataclass(frozen=True)
class DataConfig:
    """Where the text is, and what is made of it."""

    folder: str
    """The folder with train.txt and valid.txt (or .txt.xz, .txt.gz)."""
    prepared: str
    """The folder for the tokenizer and the token shards that `prepare` makes."""
    max_tokens: int = 128
    """Sentences with more tokens are left out."""
    keyword_method: Literal["auto", "yake", "tfidf", "content", "none"] = "auto"
    """How keyword candidates are found: the best of a line by YAKE or tf-idf (`auto`: by the former, where it is
    installed), or all words that people may ask for, nouns as the most important (`content`); `none` flags nothing, so
    that given words are drawn from all words."""
    keywords: int = 7
    """How many keywords a text has at most."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "max_tokens")
        _at_least(self, 0, "keywords")


@dataclass(frozen=True)
class ModelConfig:
    """Which model is trained."""

    family: str
    """One of insnet.families.FAMILIES."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of that family's Config; the vocabulary's size comes from the tokenizer."""

    def __post_init__(self) -> None:
        refuse_unknown(self.family, FAMILIES, "family")
        self.for_vocabulary(_ANY_VOCABULARY)

    def for_vocabulary(self, size: int) -> Any:
        """The family's Config."""
        kind: type[Any] = FAMILIES[self.family].Config
        return from_table(kind, self.settings, "model", given={"vocabulary_size": size})


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained."""

    updates: int
    """Updates until the learning rate has fallen to 0."""
    minutes: float = 0.0
    """A budget of time: training ends, its learning rate at 0, when this or `updates` is used up; 0 sets none. The rate
    falls in the last two thirds of it. A run with such a budget can be resumed, but not repeated to the last digit."""
    epochs: float = 0.0
    """A budget of passes through the text, besides `updates`; 0 sets none."""
    token_budget: int = 16384
    """Tokens of a batch, padding included; an update sees `accumulate` batches on every process."""
    optimizer: OptimizerName = "adamw"
    """`muon` steps as far in all directions of a matrix: far fewer updates for the same loss, each a little dearer."""
    learning_rate: float = 2e-4
    """The peak, reached after the warm-up."""
    warmup_updates: int = 1000
    """Updates over which the learning rate rises."""
    weight_decay: float = 0.02
    """What a step takes off matrices and embeddings, times the learning rate; biases and norms are left alone."""
    clip: float = 1.0
    """Gradients with a larger norm are scaled down to it; 0 switches clipping off."""
    label_smoothing: float = 0.0
    """The share of each token's target that is spread over all tokens while training; valid losses stay true nats."""
    length_shares: tuple[float, ...] = ()
    """How often to learn from texts of 0 to 9 tokens, of 10 to 19, and so on: the share of each class among all visits,
    to the same sum whatever it is. Texts of rare classes are visited again and again, those of longer ones than are
    named never. None named: every text once an epoch."""
    only: tuple[str, ...] = ()
    """Parts of the model that learn, by the beginning of their parameters' names; the others stay as they are. None
    named: all learn."""
    rank: int = 0
    """Learn an adapter: all that is small, and a low-rank term of this rank beside each large matrix, which stays as it
    is; 0 learns all weights. For a model that has learned much already."""
    targets: tuple[str, ...] = ()
    """The matrices that get such a term, by the last part of their names; none named: all of the blocks."""
    fresh: tuple[str, ...] = ()
    """Parts of the model that begin anew though training starts from another model, which has them too: a stop head of
    another size, say."""
    accumulate: int = 1
    """Batches whose gradients are summed before an update."""
    evaluate_every: int = 1000
    """Updates between two evaluations on the valid split."""
    checkpoint_every: int = 1000
    """Updates between two checkpoints: what a killed run loses at most."""
    keep_optimizer: bool = False
    """Keep the optimizer's state once a run has finished, so that --resume can add updates; twice the model's size."""
    patience: int = 5
    """Evaluations without a better valid loss before training ends early; 0 never ends early."""
    seed: int = 0
    """Where all randomness of a run comes from."""
    compile: bool = False
    """Compile the losses with torch.compile: slow to start, faster on a GPU."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Of activations: `auto` is bf16 on CUDA and float32 elsewhere. Weights are always float32."""
    max_shapes: int = 6
    """Padded lengths that may occur: fewer compile faster, more waste less padding."""
    padded_lengths: tuple[int, ...] = ()
    """These padded lengths, <bos> and <eos> counted, instead of the best `max_shapes`: recipes that name the same ones
    share what is compiled."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; `auto` takes a GPU if there is one."""
    log_every: int = 50
    """Updates between two lines of progress."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "updates", "token_budget", "accumulate", "evaluate_every", "checkpoint_every")
        _at_least(self, 1, "max_shapes", "log_every")
        _at_least(self, 0, "minutes", "epochs", "warmup_updates", "weight_decay", "clip", "patience", "seed", "rank")
        if self.rank and self.only:
            raise ValueError("rank and only exclude each other: an adapter says itself what learns; leave out one")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is {self.learning_rate}; expected more than 0")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing is {self.label_smoothing}; expected 0 or more, and less than 1")
        if self.length_shares and not (min(self.length_shares) >= 0 < sum(self.length_shares) < math.inf):
            raise ValueError(f"length_shares is {list(self.length_shares)}; expected shares of 0 or more, not all 0")
        if any(length < 1 for length in self.padded_lengths):
            raise ValueError(f"padded_lengths is {list(self.padded_lengths)}; expected lengths of 1 or more")


@dataclass(frozen=True)
class Recipe:
    """All tables of a recipe."""

    data: DataConfig
    tokenizer: TokenizerConfig | None
    """None where a model is trained that starts from another, and so has its tokenizer."""
    model: ModelConfig
    given: GivenPolicy
    train: TrainConfig
    objective: FamilyObjective
    """Of the model's family's own kind."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Defaults for generating with the trained model, written as generation_config.json."""

    def tables(self) -> dict[str, dict[str, Any]]:
        """The recipe as plain tables, every default spelt out."""
        return {
            "data": dataclasses.asdict(self.data),
            **({} if self.tokenizer is None else {"tokenizer": dataclasses.asdict(self.tokenizer)}),
            "model": {"family": self.model.family, **self._model_fields()},
            "given": dataclasses.asdict(self.given),
            "train": dataclasses.asdict(self.train),
            "objective": dataclasses.asdict(self.objective),
            "generation": dict(self.generation),
        }

    def to_toml(self) -> str:
        """The recipe as a TOML file that `load_recipe` reads back."""
        return toml_text(self.tables())

    def fingerprint(self) -> str:
        """The same for runs that learn the same thing: what may change on resuming is left out."""
        return hashlib.sha256(toml_text(self.binding_tables()).encode()).hexdigest()[:32]

    def binding_tables(self) -> dict[str, dict[str, Any]]:
        """What a resumed run may not change."""
        return {
            name: {key: value for key, value in table.items() if (name, key) not in _FREE_ON_RESUME}
            for name, table in self.tables().items()
            if name != "generation"
        }

    def with_size_of(self, folder: Path) -> "Recipe":
        """The same recipe; if it names no width, it leaves all that it does not say of its model to the one in a folder
        that it starts from."""
        if "width" in self.model.settings:
            return self
        there = read_json_object(folder / CONFIG_FILE)
        known = {name: there[name] for name in self._model_fields() if there.get(name) is not None}
        known = known if there.get("family") == self.model.family else {}
        return replace(self, model=replace(self.model, settings={**known, **self.model.settings}))

    def _model_fields(self) -> dict[str, Any]:
        fields = dataclasses.asdict(self.model.for_vocabulary(_ANY_VOCABULARY))
        return {name: value for name, value in fields.items() if name != "vocabulary_size"}


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of a TOML file, changed by settings such as "train.updates=100"."""
    tables = _read_tables(Path(path))
    try:
        return recipe_of_tables(tables, overrides)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read_tables(path: Path, on_top: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The tables of a recipe, laid over those of its base; `on_top` are the recipes that have led here."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        named_by = f", which {on_top[-1]} names as its base" if on_top else ""
        raise ValueError(f"there is no recipe {path}{named_by}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} cannot be read as TOML: {error}") from None
    base = tables.pop("base", None)
    if base is None:
        return tables
    if not isinstance(base, str):
        raise ValueError(f"{path}: base is {base!r}; expected the name of a recipe beside it, in quotes")
    if path.resolve() in [other.resolve() for other in on_top]:
        raise ValueError(f"{path} is its own base, by way of {on_top[-1]}: remove one of the two lines")
    return _laid_over(_read_tables(path.parent / base, (*on_top, path)), tables)


def _laid_over(base: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Both, key by key, the base where nothing else is said; another family has no [model] and [objective] from it."""
    if _family(tables) not in (None, _family(base)):
        base = {name: table for name, table in base.items() if name not in ("model", "objective")}
    merged = dict(base)
    for name, table in tables.items():
        under = base.get(name)
        merged[name] = {**under, **table} if isinstance(table, dict) and isinstance(under, dict) else table
    return merged


def _family(tables: Mapping[str, Any]) -> Any:
    model = tables.get("model")
    return model.get("family") if isinstance(model, dict) else None


def recipe_of_tables(tables: Mapping[str, Any], overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of parsed TOML."""
    names = [table.name for table in dataclasses.fields(Recipe)]
    tables = {name: _table(name, content) for name, content in tables.items()}
    for table, key, value in map(parse_override, overrides):
        tables.setdefault(table, {})[key] = value
    for name in tables:
        refuse_unknown(name, names, "table")
    for name in ("data", "model", "train"):
        if name not in tables:
            raise ValueError(f"the recipe lacks the table [{name}]: add it")
    model = tables["model"]
    if not isinstance(model.get("family"), str):
        raise ValueError(f"[model] needs a family, one of {', '.join(FAMILIES)}")
    settings = {key: value for key, value in model.items() if key != "family"}
    return Recipe(
        data=from_table(DataConfig, tables["data"], "data"),
        tokenizer=from_table(TokenizerConfig, tables["tokenizer"], "tokenizer") if "tokenizer" in tables else None,
        model=ModelConfig(model["family"], settings),
        given=from_table(GivenPolicy, tables.get("given", {}), "given"),
        train=from_table(TrainConfig, tables["train"], "train"),
        objective=from_table(FAMILIES[model["family"]].Objective, tables.get("objective", {}), "objective"),
        generation=tables.get("generation", {}),
    )


def _table(name: str, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{name!r} stands outside a table: put it under a heading such as [train]")
    return dict(content)


def _at_least(config: Any, smallest: int, *names: str) -> None:
    for name in names:
        if getattr(config, name) < smallest:
            raise ValueError(f"{name} is {getattr(config, name)}; expected {smallest} or more")


_ANY_VOCABULARY = 1 << 20  # settings are checked before a tokenizer exists
_FREE_ON_RESUME = {
    ("data", "folder"),  # content is compared instead
    ("data", "prepared"),
    *(("train", name) for name in ("updates", "epochs", "patience", "evaluate_every", "checkpoint_every", "log_every")),
    ("train", "keep_optimizer"),
    *(("train", name) for name in ("device", "compile", "precision", "accumulate")),  # see the trainer for the last
}
