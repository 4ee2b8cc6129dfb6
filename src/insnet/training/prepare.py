"""From text files to a tokenizer and token shards, once: what is already there and unchanged is kept."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from insnet.files import read_json_object, write_atomically
from insnet.text.content_words import ContentWords
from insnet.text.corpus import find_split, read_lines
from insnet.text.keywords import KeywordFlagger, flagger
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.text.shards import Importance, TokenShards, write_shards
from insnet.text.tokenizer import Tokenizer, load_tokenizer
from insnet.training.recipe import DataConfig, Recipe

SPLITS = ("train", "valid")
_STAMPS_FILE = "prepared.json"
_FORMAT = "insnet-prepared-1"
_GIVEN = "given"  # the stamp of a tokenizer that was not learned here
_LINES_WORTH_A_POOL = 20_000  # below that, starting other processes takes longer than they save
_LINES_PER_JOB = 256
Say = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """A corpus ready for training."""

    tokenizer: Tokenizer
    train: TokenShards
    valid: TokenShards
    fingerprint: str
    """The same for the same text and settings."""

    def unknown_share(self) -> float:
        """The share of <unk> among the tokens of the train split."""
        if (unk := self.tokenizer.specials.unk) is None:
            return 0.0
        unknown = sum(int((self.train.tokens(row) == unk).sum()) for row in range(len(self.train)))
        return unknown / max(self.train.summary.tokens, 1)


def prepare(recipe: Recipe, *, tokenizer: Tokenizer | None = None, say: Say = print) -> Prepared:
    """The recipe's corpus as token shards, written into its `prepared` folder unless they are there already.

    Another model's tokenizer can be given; else one is learned from the train split. A killed run goes on with the
    stage it was in.
    """
    folder = Path(recipe.data.prepared)
    folder.mkdir(parents=True, exist_ok=True)
    stamps = _Stamps(folder / _STAMPS_FILE)
    files = {split: find_split(recipe.data.folder, split) for split in SPLITS}
    content = {split: _hash_of_file(path) for split, path in files.items()}
    tokenizer = _tokenizer(recipe, files["train"], content["train"], tokenizer, stamps, say)
    with ExitStack() as stack:
        flags = cache(lambda: stack.enter_context(_flag_keywords(recipe.data, files["train"])))
        for split in SPLITS:
            settings = {**_settings(recipe.data), "train": content["train"], "tokenizer": tokenizer.fingerprint}
            stamp = _hash_of_object({"text": content[split], **settings})
            if stamps.has(split, stamp) and _is_readable(folder / split, tokenizer):
                say(f"{split}: unchanged, {_summary(TokenShards(folder / split))}")
                continue
            stamps.forget(split)
            _write_split(folder / split, files[split], split, recipe.data, tokenizer, flags(), say)
            stamps.put(split, stamp)
    stamps.put("settings", _settings_stamp(recipe))
    return load_prepared(recipe)


def load_prepared(recipe: Recipe) -> Prepared:
    """What `prepare` wrote, without looking at the text again: it may be on another machine."""
    folder = Path(recipe.data.prepared)
    stamps = _Stamps(folder / _STAMPS_FILE)
    if missing := [name for name in ("tokenizer", *SPLITS) if name not in stamps.content]:
        raise ValueError(f"{folder} holds no prepared {missing[0]}: run prepare first")
    if not stamps.has("settings", _settings_stamp(recipe)):
        raise ValueError(f"{folder} was prepared with other [data] or [tokenizer] settings: run prepare again")
    tokenizer = load_tokenizer(folder)
    train, valid = (TokenShards(folder / split) for split in SPLITS)
    for shards in (train, valid):
        shards.check(tokenizer)
    made_from = {name: stamps.content[name] for name in ("tokenizer", *SPLITS)}
    return Prepared(tokenizer, train, valid, _hash_of_object(made_from))


def is_prepared(recipe: Recipe) -> bool:
    """Whether the text is not here, but what was made of it is."""
    has_text = any(Path(recipe.data.folder).glob("train.txt*"))
    return not has_text and (Path(recipe.data.prepared) / _STAMPS_FILE).is_file()


def _tokenizer(
    recipe: Recipe, path: Path, content: str, given: Tokenizer | None, stamps: "_Stamps", say: Say
) -> Tokenizer:
    """The tokenizer in the prepared folder: the given one, the one that is there, or a new one.

    One that was given before stays, if it is what the recipe describes: others have learned with it.
    """
    folder = Path(recipe.data.prepared)
    given = given or _given_before(recipe, folder, stamps)
    origin: dict[str, Any] = {"text": content, "config": _config_of_tokenizer(recipe)}
    stamp = _hash_of_object({_GIVEN: given.fingerprint} if given is not None else origin)
    if stamps.has("tokenizer", stamp) and (folder / "tokenizer.json").is_file():
        tokenizer = load_tokenizer(folder)
        if given is not None:
            stamps.put(_GIVEN, given.fingerprint)
        say(f"tokenizer: unchanged, {tokenizer.size:,} tokens")
        return tokenizer
    stamps.forget("tokenizer")
    stamps.forget(_GIVEN)
    tokenizer = given if given is not None else _learned(recipe.tokenizer, path)
    tokenizer.save(folder)
    stamps.put("tokenizer", stamp)
    if given is not None:
        stamps.put(_GIVEN, given.fingerprint)
    say(f"tokenizer: {tokenizer.size:,} tokens")
    return tokenizer


def _learned(config: TokenizerConfig | None, path: Path) -> Tokenizer:
    if config is None:
        raise ValueError("the recipe has no [tokenizer] table: name the model whose tokenizer it needs with --from")
    return MarkedTokenizer.learn(read_lines(path, skip_empty=True), config)


def _given_before(recipe: Recipe, folder: Path, stamps: "_Stamps") -> Tokenizer | None:
    """The tokenizer of the folder, if it was given by somebody and is what the recipe describes."""
    if _GIVEN not in stamps.content or not (folder / "tokenizer.json").is_file():
        return None
    found = load_tokenizer(folder)
    is_the_same = found.fingerprint == stamps.content[_GIVEN] and _is_described(found, recipe)
    return found if is_the_same else None


def _is_described(tokenizer: Tokenizer, recipe: Recipe) -> bool:
    return (tokenizer.config if isinstance(tokenizer, MarkedTokenizer) else None) == recipe.tokenizer


def _config_of_tokenizer(recipe: Recipe) -> dict[str, Any] | None:
    return None if recipe.tokenizer is None else dataclasses.asdict(recipe.tokenizer)


def _write_split(
    folder: Path,
    path: Path,
    split: str,
    config: DataConfig,
    tokenizer: Tokenizer,
    importance: Importance | None,
    say: Say,
) -> None:
    write_shards(
        folder,
        read_lines(path),
        tokenizer,
        importance=importance,
        max_tokens=config.max_tokens,
        on_progress=_progress(split, say),
    )
    say(f"{split}: {_summary(TokenShards(folder))}")


def _progress(split: str, say: Say) -> Callable[[int], None]:
    """Reports progress each time the number of lines has doubled: few lines, however large the corpus."""
    next_report = 1 << 14

    def on_progress(lines: int) -> None:
        nonlocal next_report
        if lines >= next_report:
            say(f"{split}: {lines:,} lines read")
            while next_report <= lines:
                next_report *= 2

    return on_progress


@contextmanager
def _flag_keywords(config: DataConfig, train: Path) -> Iterator[Importance | None]:
    """What marks keyword candidates; YAKE takes milliseconds per line, so that a large corpus goes to all cores."""
    if config.keyword_method == "none":
        yield None
        return
    if config.keyword_method == "content":
        yield ContentWords.learn(read_lines(train, skip_empty=True))
        return
    flags = flagger(config.keyword_method, config.keywords, read_lines(train, skip_empty=True))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    is_large = len(list(islice(read_lines(train), _LINES_WORTH_A_POOL))) == _LINES_WORTH_A_POOL
    if flags.method != "yake" or not is_large or cores == 1:
        yield flags
        return
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        yield lambda lines: _in_parallel(pool, flags, lines)


def _in_parallel(pool: ProcessPoolExecutor, flags: KeywordFlagger, lines: list[str]) -> list[list[bool]]:
    jobs = [lines[start : start + _LINES_PER_JOB] for start in range(0, len(lines), _LINES_PER_JOB)]
    return [row for rows in pool.map(flags, jobs) for row in rows]


def _summary(shards: TokenShards) -> str:
    summary = shards.summary
    left_out = f", {summary.left_out:,} lines left out (empty or too long)" if summary.left_out else ""
    return f"{summary.sentences:,} sentences, {summary.tokens:,} tokens{left_out}"


def _settings(config: DataConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in ("max_tokens", "keyword_method", "keywords")}


def _settings_stamp(recipe: Recipe) -> str:
    return _hash_of_object({**_settings(recipe.data), "tokenizer": _config_of_tokenizer(recipe)})


def _is_readable(folder: Path, tokenizer: Tokenizer) -> bool:
    try:
        TokenShards(folder).check(tokenizer)
    except ValueError:
        return False
    return True


def _hash_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_of_object(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


class _Stamps:
    """Which stages are done, and from what: prepared.json."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.content: dict[str, str] = {}
        if path.is_file():
            stored = read_json_object(path)
            if stored.pop("format", None) != _FORMAT:
                raise ValueError(f"{path} was not written by this version: choose another `prepared` folder")
            self.content = stored

    def has(self, stage: str, stamp: str) -> bool:
        return self.content.get(stage) == stamp

    def put(self, stage: str, stamp: str) -> None:
        self.content[stage] = stamp
        self._write()

    def forget(self, stage: str) -> None:
        """Before a stage's files change, so that no stamp ever vouches for files of another making."""
        if self.content.pop(stage, None) is not None:
            self._write()

    def _write(self) -> None:
        write_atomically(self._path, json.dumps({"format": _FORMAT, **self.content}, indent=2) + "\n")
