"""A Llama in a GGUF file."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from insnet.families.gaps import GapsConfig
from insnet.pretrained import llama
from insnet.pretrained.gguf import GgufFile
from insnet.pretrained.llama import BETWEEN_DOCUMENTS, Base, base_of
from insnet.text.byte_level import ByteLevelTokenizer

_PART_OF_PART = {
    llama.QUERY: "attn_q",
    llama.KEY: "attn_k",
    llama.VALUE: "attn_v",
    llama.OUT: "attn_output",
    llama.GATE: "ffn_gate",
    llama.UP: "ffn_up",
    llama.DOWN: "ffn_down",
    llama.NORMS["attention_norm"]: "attn_norm",
    llama.NORMS["feed_forward_norm"]: "ffn_norm",
}
_ORDINARY = 1  # the type of a token that is a piece of text
_HAS_SINGLE_DIGITS = {"smollm": True, "gpt-2": False}


def base_of_gguf(file: GgufFile) -> Base:
    """The model in a file; any other than a plain Llama with a byte-level vocabulary is a ValueError."""
    facts = _Facts(file)
    config = _config(facts, file)
    names = _names(config)
    if strange := sorted(file.names - set(names.values())):
        raise ValueError(f"{file.name} has a tensor {strange[0]!r}, which a plain Llama lacks: use a base without it")

    def tensor(name: str) -> Tensor:
        stored = file.tensor(names[name])
        if llama.QUERY in name:
            return _in_halves(stored, config.heads)
        return _in_halves(stored, config.key_heads or config.heads) if llama.KEY in name else stored

    return base_of(config, tensor, _tokenizer(facts), file.name)


def _in_halves(stored: Tensor, heads: int) -> Tensor:
    """Queries or keys (H * W, D) of a file, whose rotations pair coordinates 2i and 2i + 1, as pairs i and i + W/2."""
    pairs = stored.view(heads, -1, 2, stored.shape[1])  # (H, W/2, 2, D)
    return pairs.transpose(1, 2).reshape(stored.shape)


class _Facts:
    """What a file says, each fact with a message where it lacks."""

    def __init__(self, file: GgufFile) -> None:
        self.name = file.name
        self._facts: Mapping[str, Any] = file.facts

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self._facts and default is None:
            raise ValueError(f"{self.name} does not say {name}: this is another kind of model")
        return self._facts.get(name, default)


def _config(facts: _Facts, file: GgufFile) -> GapsConfig:
    kind = facts.get("general.architecture")
    if kind != "llama":
        raise ValueError(f"{file.name} is of the architecture {kind!r}; only 'llama' can be a base")
    scaling = facts.get("llama.rope.scaling.type", "none")
    if scaling != "none":
        raise ValueError(f"{file.name} scales its rotary positions ({scaling}): use a base that does not")
    if (experts := facts.get("llama.expert_count", 0)) > 0:
        raise ValueError(f"{file.name} has {experts} experts per layer: use a base without")
    vocabulary_size, width = file.shape("token_embd.weight")
    heads = facts.get("llama.attention.head_count")
    turned = facts.get("llama.rope.dimension_count", width // heads)
    if turned * heads != width:
        raise ValueError(f"{file.name} turns {turned} of {width // heads} coordinates of a head: use another base")
    return GapsConfig(
        vocabulary_size=vocabulary_size,
        width=width,
        layers=facts.get("llama.block_count"),
        heads=heads,
        dropout=0.0,
        key_heads=facts.get("llama.attention.head_count_kv", heads),
        inner=facts.get("llama.feed_forward_length"),
        norm_epsilon=_short(facts.get("llama.attention.layer_norm_rms_epsilon")),
        rotary_base=_short(facts.get("llama.rope.freq_base", 10_000.0)),
        tied="output.weight" not in file.names,
    )


def _short(number: float) -> float:
    """The number that was meant, of its float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(number)))


def _names(config: GapsConfig) -> dict[str, str]:
    """The name in a file of each of a Llama's tensors."""
    names = {llama.EMBEDDING: "token_embd.weight", llama.NORM: "output_norm.weight"}
    if not config.tied:
        names[llama.OUTPUT] = "output.weight"
    for layer in range(config.layers):
        names |= {llama.layer_name(layer, part): f"blk.{layer}.{own}.weight" for part, own in _PART_OF_PART.items()}
    return names


def _tokenizer(facts: _Facts) -> ByteLevelTokenizer:
    kind, splitting = facts.get("tokenizer.ggml.model"), facts.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or splitting not in _HAS_SINGLE_DIGITS:
        raise ValueError(
            f"{facts.name} has a vocabulary of the kind {kind!r} that splits text as {splitting!r}; from GGUF files "
            f"only byte-level ones of {', '.join(_HAS_SINGLE_DIGITS)} are read: use the model's folder instead"
        )
    pieces, types = facts.get("tokenizer.ggml.tokens"), facts.get("tokenizer.ggml.token_type")
    specials = [token for token, of_token in enumerate(types) if of_token != _ORDINARY]
    if BETWEEN_DOCUMENTS in pieces:
        bos = eos = BETWEEN_DOCUMENTS
    else:
        bos, eos = (pieces[facts.get(f"tokenizer.ggml.{end}_token_id")] for end in ("bos", "eos"))
    merges = facts.get("tokenizer.ggml.merges")
    single_digits = _HAS_SINGLE_DIGITS[splitting]
    return ByteLevelTokenizer.of_pieces(pieces, merges, specials, bos=bos, eos=eos, single_digits=single_digits)
