"""All the ways in which a vocabulary can write a word, so that a ban can't be evaded by another one."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from insnet.text.tokenizer import BOS, SPECIALS, Tokenizer
from insnet.text.words import MARK, split

_MOST_SPELLINGS = 4096


def spellings(tokenizer: Tokenizer, phrase: str) -> list[list[int]]:
    """Every token sequence that prints `phrase`, in any of the usual cases, with or without joiners at symbols."""
    words = [part.strip(MARK) for part in split(phrase)]
    if not words:
        raise ValueError(f"cannot ban {phrase!r}: it holds no word")
    ways = [[way for form in _forms(word) for way in _ways(tokenizer, form)] for word in words]
    ways[0] += [way for form in _forms(words[0]) for way in _ways(tokenizer, form, at_start=True)]
    count = 1
    for ways_of_word in ways:
        count *= len(ways_of_word)
    if count > _MOST_SPELLINGS:
        raise ValueError(
            f"cannot ban {phrase!r}: it can be written in more than {_MOST_SPELLINGS} ways; ban a shorter part"
        )
    return [[token for word in combination for token in word] for combination in product(*ways)]


def _forms(word: str) -> list[str]:
    """The word in lower, title, upper and its own case; a symbol with its joiners."""
    if any(character.isalnum() for character in word):
        return list(dict.fromkeys([word, word.lower(), word.capitalize(), word.upper()]))
    return [left + word + right for left, right in product(("", MARK), repeat=2)]


def _ways(tokenizer: Tokenizer, form: str, *, at_start: bool = False) -> Iterator[list[int]]:
    """Every way to build one word from a word-initial token and further pieces.

    At the start of a text, behind <bos>, further pieces alone print a word, too: the ways `at_start` are those.
    """
    initial, further = _tables(tokenizer)
    initial = further if at_start else initial
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
        yield [BOS, *way] if at_start else way


@lru_cache(maxsize=4)
def _tables(tokenizer: Tokenizer) -> tuple[dict[bytes, int], dict[bytes, int]]:
    """Word-initial tokens and further pieces, by their bytes."""
    initial: dict[bytes, int] = {}
    further: dict[bytes, int] = {}
    for token in range(len(SPECIALS), tokenizer.size):
        (initial if tokenizer.starts_word[token] else further)[tokenizer.bytes_of_token[token]] = token
    return initial, further
