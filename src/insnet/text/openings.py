"""How a pretrained vocabulary writes a word at the beginning of a text, and how people type it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.text.pieces import text_or_none
from insnet.text.tokenizer import Tokenizer
from insnet.text.words import capitalised


@dataclass(frozen=True)
class Openings:
    """Two tables over a vocabulary (V,); a token that neither speaks of stands for itself."""

    typed: Tensor
    """How a token that begins a text is written inside one: with a space, and in lower case unless it is a name."""
    opening: Tensor
    """What a token with a space becomes at the beginning of a text: without it, and with a capital."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Openings":
        """Those of a byte-level vocabulary. A word is a name if its form with a capital was merged earlier, so is more
        frequent, than the one without."""
        texts = [
            None if token in tokenizer.specials.ids else _word(tokenizer, token) for token in range(tokenizer.size)
        ]
        spaced: dict[str, int] = {}
        bare: dict[str, int] = {}
        for token, text in enumerate(texts):
            if text is not None:
                facts = tokenizer.facts(token)
                (spaced if facts.starts_word and not facts.joins_left else bare).setdefault(text, token)
        typed, opening = list(range(tokenizer.size)), list(range(tokenizer.size))
        for text, token in bare.items():
            forms = {text, text[:1].lower() + text[1:]} & spaced.keys()
            typed[token] = min((spaced[form] for form in forms), default=token)
        for text, token in spaced.items():
            opening[token] = bare.get(capitalised(text), bare.get(text, token))
        return cls(torch.tensor(typed), torch.tensor(opening))


def _word(tokenizer: Tokenizer, token: int) -> str | None:
    """The letters of a token that begins with one."""
    text = text_or_none(tokenizer.bytes_of_token[token])
    return text if text and text[0].isalpha() else None
