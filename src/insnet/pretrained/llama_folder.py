"""A Llama in a Hugging Face folder: config.json, safetensors (sharded or not), tokenizer.json."""

from pathlib import Path
from typing import Any

from torch import Tensor

from insnet.families.gaps import GapsConfig
from insnet.families.storage import read_weights
from insnet.files import CONFIG_FILE, read_json_object
from insnet.pretrained import llama
from insnet.pretrained.llama import BETWEEN_DOCUMENTS, Base, base_of
from insnet.text.byte_level import ByteLevelTokenizer

_KINDS = ("llama", "mistral")
_BUFFER = "rotary_emb.inv_freq"  # some old folders store what follows from the config
_OF_NO_CONSEQUENCE: tuple[Any, ...] = (None, False, 0, 0.0, {}, [])
_REFUSED = ("attention_bias", "mlp_bias", "sliding_window", "quantization_config", "partial_rotary_factor")


def base_of_folder(folder: Path) -> Base:
    """The model in a folder; any other than a plain Llama with a byte-level vocabulary is a ValueError."""
    path = folder / CONFIG_FILE
    config = _config(read_json_object(path), path)
    stored, source = read_weights(folder)
    stored = {name: value for name, value in stored.items() if not name.endswith(_BUFFER)}
    if config.tied:
        stored.pop(llama.OUTPUT, None)
    if strange := sorted(stored.keys() - llama.names(config)):
        raise ValueError(f"{source} has a tensor {strange[0]!r}, which a plain Llama lacks: use a base without it")

    def tensor(name: str) -> Tensor:
        if name not in stored:
            raise ValueError(f"{source} has no tensor {name!r}: the folder is incomplete, copy it again")
        return stored[name]

    return base_of(config, tensor, _tokenizer(folder), str(source))


def _config(facts: dict[str, Any], path: Path) -> GapsConfig:
    _check_kind(facts, path)
    needed = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    if missing := [name for name in needed if not isinstance(facts.get(name), int)]:
        raise ValueError(f"{path} does not say {missing[0]}: copy the folder again")
    heads, width = facts["num_attention_heads"], facts["hidden_size"]
    if (head_width := facts.get("head_dim") or width // heads) * heads != width:
        raise ValueError(f"{path} has {heads} heads of {head_width}, which do not make {width}: use another base")
    return GapsConfig(
        vocabulary_size=facts["vocab_size"],
        width=width,
        layers=facts["num_hidden_layers"],
        heads=heads,
        dropout=0.0,
        key_heads=facts.get("num_key_value_heads") or heads,
        inner=facts["intermediate_size"],
        norm_epsilon=facts.get("rms_norm_eps", 1e-6),
        rotary_base=_rotary_base(facts, path),
        tied=bool(facts.get("tie_word_embeddings", False)),
    )


def _check_kind(facts: dict[str, Any], path: Path) -> None:
    """Refuses what our blocks are not made of."""
    kind = facts.get("model_type")
    if kind not in _KINDS:
        raise ValueError(f"{path} describes a model of the type {kind!r}; a base is one of {', '.join(_KINDS)}")
    if kind == "mistral" and "sliding_window" not in facts:
        facts = {**facts, "sliding_window": 4096}  # what its absence means
    for name in _REFUSED:
        if facts.get(name) not in _OF_NO_CONSEQUENCE:
            raise ValueError(f"{path} has {name} = {facts[name]!r}, which our layers do not: use another base")
    if (activation := facts.get("hidden_act", "silu")) not in ("silu", "swish"):
        raise ValueError(f"{path} has hidden_act = {activation!r}; a base has silu")


def _rotary_base(facts: dict[str, Any], path: Path) -> float:
    """Written beside the size, or in one of two tables, which may also ask for a scaling."""
    base = facts.get("rope_theta", 10_000.0)
    for name in ("rope_scaling", "rope_parameters"):
        table = facts.get(name) or {}
        kind = table.get("rope_type", table.get("type", "default"))
        if kind != "default":
            raise ValueError(f"{path} scales its rotary positions ({name}: {kind}): use a base that does not")
        base = table.get("rope_theta", base)
    return float(base)


def _tokenizer(folder: Path) -> ByteLevelTokenizer:
    """Texts begin and end with what stood between documents, where the vocabulary has that."""
    content = read_json_object(folder / "tokenizer.json")
    added = {token.get("content") for token in content.get("added_tokens") or ()}
    name = BETWEEN_DOCUMENTS if BETWEEN_DOCUMENTS in added else None
    return ByteLevelTokenizer.load(folder, bos=name, eos=name)
