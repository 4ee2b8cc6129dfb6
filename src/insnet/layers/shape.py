"""The size of a stack of blocks and the parts that its blocks are made of."""

from dataclasses import dataclass
from typing import Literal

from torch import nn


@dataclass(frozen=True)
class TransformerShape:
    """What a stack is made of; the defaults are the paper's. A Llama has `norm="rms"`, `feed_forward="swiglu"` and no
    biases."""

    width: int
    """Size of a token's vector."""
    layers: int
    """Blocks."""
    heads: int
    """Heads of queries per block."""
    dropout: float
    """Share of activations dropped while training."""
    key_heads: int | None = None
    """Heads of keys and values per block, each shared by a group of query heads; None for as many as these."""
    norm: Literal["layer", "rms"] = "layer"
    """LayerNorm or RMSNorm."""
    norm_epsilon: float = 1e-5
    """What a norm adds to the variance."""
    feed_forward: Literal["gelu", "swiglu"] = "gelu"
    """GELU, or SiLU of one half times the other."""
    inner: int | None = None
    """Width inside the feed-forward part; None for four times `width`."""
    biases: bool = True
    """Whether linear maps add a bias."""
    rotary_base: float = 10_000.0
    """The base of rotary frequencies."""

    def __post_init__(self) -> None:
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise ValueError(f"width {self.width} must be an even multiple of heads {self.heads}")
        if self.layers < 1:
            raise ValueError(f"layers is {self.layers}; expected at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; expected a share from 0 up to 1")
        if self.cached_heads < 1 or self.heads % self.cached_heads:
            raise ValueError(f"key_heads is {self.key_heads}; expected a divisor of heads {self.heads}")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def cached_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.key_heads is None else self.key_heads

    @property
    def inner_width(self) -> int:
        return 4 * self.width if self.inner is None else self.inner

    def make_norm(self) -> nn.Module:
        make = nn.LayerNorm if self.norm == "layer" else nn.RMSNorm
        return make(self.width, eps=self.norm_epsilon)
