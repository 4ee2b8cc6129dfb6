"""Tokens that are no text: which they are, and what the vocabularies of our own call them."""

from dataclasses import dataclass

SPECIALS = ("<pad>", "<bos>", "<eos>", "<sep>", "<unk>")
PAD, BOS, EOS, SEP, UNK = range(5)


@dataclass(frozen=True)
class Specials:
    """The special tokens of one vocabulary."""

    ids: frozenset[int]
    """All of them; no text is ever encoded as one."""
    bos: int
    """What stands before every text."""
    eos: int
    """What stands behind every text; a pretrained vocabulary may have one token for both."""
    pad: int
    """What fills a batch behind a text. It may be one of the others: lengths say where a text ends."""
    unk: int | None
    """What an unknown word becomes; None where nothing is ever unknown."""


OURS = Specials(frozenset(range(len(SPECIALS))), BOS, EOS, PAD, UNK)
"""Those of the vocabularies that `MarkedTokenizer` learns."""
