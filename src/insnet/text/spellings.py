"""All the ways in which a vocabulary can write a word, so that a ban can't be evaded by another one."""

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import product

import torch
from torch import Tensor

from insnet.text.tokenizer import Tokenizer
from insnet.text.words import MARK, split

_MOST_SPELLINGS = 1 << 14  # of "distinguishing" there are ten thousand


def spellings_of_all(tokenizer: Tokenizer, phrases: Iterable[str]) -> list[list[int]]:
    """Every token sequence that prints one of the phrases, but for those that begin with another one: where that never
    stands, they do not either. Of the forms of a word, few are left."""
    known: dict[tuple[int, ...], None] = {}
    for phrase in sorted(dict.fromkeys(phrases), key=len):
        known |= dict.fromkeys(map(tuple, spellings(tokenizer, phrase, known)))
    return list(map(list, known))


def spellings(tokenizer: Tokenizer, phrase: str, known: Collection[tuple[int, ...]] = frozenset()) -> list[list[int]]:
    """Every token sequence that prints `phrase`, with or without joiners at symbols; case is left aside, and what
    begins with a `known` sequence, too.

    The ids are those of `same_letters`: one stands for all tokens with the same letters in whatever case.
    """
    bos = tokenizer.specials.bos
    words = [part.strip(MARK) for part in split(phrase)]
    if not words:
        raise ValueError(f"cannot ban {phrase!r}: it holds no word")
    initial, further = _tables(tokenizer)
    ways = [[way for form in _forms(word) for way in _ways(form, initial, further)] for word in words[1:]]
    first = [way for form in _forms(words[0]) for way in _ways(form, initial, further, (), known)]
    # At the start of a text, behind <bos>, further pieces alone print a word, too; and so they do behind a bracket.
    first += [way for form in _forms(words[0]) for way in _ways(form, further, further, (bos,), known)]
    ways = [first, *ways]
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


def _ways(
    form: str,
    initial: dict[bytes, int],
    further: dict[bytes, int],
    opening: tuple[int, ...] = (),
    known: Collection[tuple[int, ...]] = frozenset(),
) -> Iterator[list[int]]:
    """Every way to build one word, behind an `opening`, from a word-initial token and further pieces, none of which
    begins with a known one."""
    encoded = form.encode()

    def build(start: int, way: tuple[int, ...]) -> Iterator[list[int]]:
        if way in known:
            return
        if start == len(encoded):
            yield list(way)
            return
        table = initial if start == 0 else further
        for end in range(start + 1, len(encoded) + 1):
            token = table.get(encoded[start:end])
            if token is not None:
                yield from build(end, (*way, token))

    for number, way in enumerate(build(0, opening)):
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
