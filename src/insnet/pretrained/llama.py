"""A pretrained Llama as a gaps model: its size in our words, its tensors under our names.

Names of a Llama's tensors are those of transformers. Its queries and keys are turned in pairs i and i + W/2, as ours.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from insnet.families.gaps import Gaps, GapsConfig
from insnet.families.storage import check_tensors
from insnet.text.byte_level import ByteLevelTokenizer

EMBEDDING, NORM, OUTPUT = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"
BETWEEN_DOCUMENTS = "<|endoftext|>"


@dataclass(frozen=True)
class Base:
    """A pretrained language model."""

    config: GapsConfig
    weights: Mapping[str, Tensor]
    """Under the names of `Gaps`, of the parts that a Llama has."""
    tokenizer: ByteLevelTokenizer

    def gaps(self, *, longest_told: int = 0) -> Gaps:
        """The model as it was pretrained: with nothing given, its logits are the Llama's. The parts that a Llama lacks
        are fresh: it has not learned when to close a gap. It shares the memory of `weights`."""
        model = Gaps(replace(self.config, longest_told=longest_told))
        model.load_state_dict(self.weights, strict=False, assign=True)
        model.read_vocabulary(self.tokenizer)
        return model.eval()


def base_of(config: GapsConfig, tensor: Callable[[str], Tensor], tokenizer: ByteLevelTokenizer, source: str) -> Base:
    """A base whose embedding ends with the vocabulary: some have rows to spare. `tensor` gives a Llama's tensors by
    their names, `source` is what holds them."""
    rows, tokens = config.vocabulary_size, tokenizer.size
    if rows < tokens:
        raise ValueError(f"{source} has {rows} rows for a vocabulary of {tokens} tokens: its files do not fit together")
    weights = _weights(config, tensor, source)
    for name in {"embedding.weight", "output.weight"} & weights.keys():
        weights[name] = weights[name][:tokens]
    return Base(replace(config, vocabulary_size=tokens), weights, tokenizer)


def layer_name(layer: int, part: str) -> str:
    """The name of one of a layer's tensors."""
    return f"model.layers.{layer}.{part}.weight"


QUERY, KEY, VALUE, OUT = (f"self_attn.{part}_proj" for part in "qkvo")
GATE, UP, DOWN = (f"mlp.{part}_proj" for part in ("gate", "up", "down"))
NORMS = {"attention_norm": "input_layernorm", "feed_forward_norm": "post_attention_layernorm"}
PARTS = (QUERY, KEY, VALUE, OUT, GATE, UP, DOWN, *NORMS.values())


def names(config: GapsConfig) -> set[str]:
    """Those of all tensors of a Llama of this size."""
    layers = {layer_name(layer, part) for layer in range(config.layers) for part in PARTS}
    return layers | {EMBEDDING, NORM} | (set() if config.tied else {OUTPUT})


def _weights(config: GapsConfig, tensor: Callable[[str], Tensor], source: str) -> dict[str, Tensor]:
    """Tensors under our names, in float32."""
    with torch.device("meta"):
        shapes = {name: tuple(value.shape) for name, value in Gaps(config).state_dict().items()}
    weights = {}
    try:
        for name, value in _parts(config, tensor):
            check_tensors({name: value}, {name: shapes[name]}, source, "its tensors do not have the sizes that it says")
            weights[name] = value.float().contiguous()
    except RuntimeError:
        raise ValueError(f"{source} holds tensors of other sizes than it says: get it again") from None
    return weights


def _parts(config: GapsConfig, tensor: Callable[[str], Tensor]) -> Iterator[tuple[str, Tensor]]:
    yield "embedding.weight", tensor(EMBEDDING)
    if not config.tied:
        yield "output.weight", tensor(OUTPUT)
    yield "decoder.norm.weight", tensor(NORM)
    for layer in range(config.layers):

        def fused(*parts: str, layer: int = layer) -> Tensor:
            return torch.cat([tensor(layer_name(layer, part)) for part in parts])

        block = f"decoder.blocks.{layer}"
        yield f"{block}.attention.projections.query_key_value.weight", fused(QUERY, KEY, VALUE)
        yield f"{block}.attention.projections.output.weight", fused(OUT)
        yield f"{block}.expand.weight", fused(GATE, UP)
        yield f"{block}.contract.weight", fused(DOWN)
        for ours, theirs in NORMS.items():
            yield f"{block}.{ours}.weight", fused(theirs)
