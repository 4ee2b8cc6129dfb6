"""All the ways in which a vocabulary can write a word, so that a ban can't be evaded by another one."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

import torch
from torch import Tensor

from insnet.text.tokenizer import Tokenizer
from insnet.text.words import MARK, split

_MOST_SPELLINGS = 4096


def spellings(tokenizer: Tokenizer, phrase: str) -> list[list[int]]:
    """Every token sequence that prints `phrase`, with or without joiners at symbols; case is left aside.

    The ids are those of `same_letters`: one stands for all tokens with the same letters in whatever case.
    """
    bos = tokenizer.specials.bos
    words = [part.strip(MARK) for part in split(phrase)]
    if not words:
        raise ValueError(f"cannot ban {phrase!r}: it holds no word")
    initial, further = _tables(tokenizer)
    ways = [[way for form in _forms(word) for way in _ways(form, initial, further)] for word in words]
    # At the start of a text, behind <bos>, further pieces alone print a word, too; and so they do behind a bracket.
    ways[0] += [[bos, *way] for form in _forms(words[0]) for way in _ways(form, further, further)]
    count = 1
    for ways_of_word in ways:
        count *= len(ways_of_word)
    if count > _MOST_SPELLINGS:
        raise ValueError(
            f"cannot ban {phrase!r}: it can be written in more than {_MOST_SPELLINGS} ways; ban a shorter part"
        )
    return [[token for word in combination for token in word] for combination in product(*ways)]


def _forms(word: str) -> list[str]:
    """The word in lower case; a symbol with its joiners."""
    if any(character.isalnum() for character in word):
        return [word.lower()]
    return [left + word + right for left, right in product(("", MARK), repeat=2)]


def _ways(form: str, initial: dict[bytes, int], further: dict[bytes, int]) -> Iterator[list[int]]:
    """Every way to build one word from a word-initial token and further pieces."""
    encoded = form.encode()

    def build(start: int) -> Iterator[list[int]]:
        if start == len(encoded):
            yield []
            return
        table = initial if start == 0 else further
        for end in range(start + 1, len(encoded) + 1):
            token = table.get(encoded[start:end])
            if token is not None:
                for rest in build(end):
                    yield [token, *rest]

    for number, way in enumerate(build(0)):
        if number > _MOST_SPELLINGS:
            raise ValueError(f"cannot ban {form!r}: it can be written in too many ways; ban a shorter part")
        yield way


@lru_cache(maxsize=4)
def _tables(tokenizer: Tokenizer) -> tuple[dict[bytes, int], dict[bytes, int]]:
    """The first word-initial token and the first further piece of all letters, by their bytes in lower case."""
    initial: dict[bytes, int] = {}
    further: dict[bytes, int] = {}
    for token in sorted(set(range(tokenizer.size)) - tokenizer.specials.ids):
        (initial if tokenizer.starts_word[token] else further).setdefault(_lowered(tokenizer, token), token)
    return initial, further


def same_letters(tokenizer: Tokenizer) -> Tensor:
    """The first token (V,) with each token's letters in whatever case; specials stand for themselves.

    Opening brackets and quotes behind which a word goes on without a mark are all like <bos>: a word begins there.
    """
    initial, further = _tables(tokenizer)
    same = list(range(tokenizer.size))
    for token in set(same) - tokenizer.specials.ids:
        table = initial if tokenizer.starts_word[token] else further
        same[token] = tokenizer.specials.bos if token in tokenizer.openers else table[_lowered(tokenizer, token)]
    return torch.tensor(same)


def _lowered(tokenizer: Tokenizer, token: int) -> bytes:
    """A token's bytes in lower case; half a character stays as it is."""
    encoded = tokenizer.bytes_of_token[token]
    try:
        return encoded.decode().lower().encode()
    except UnicodeDecodeError:
        return encoded.lower()
