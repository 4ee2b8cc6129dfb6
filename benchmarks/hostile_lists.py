"""Keyword lists as nobody should type them: words of any kind and script, marks, emoji, numbers, phrases, repeats."""

import random
import re
from collections.abc import Iterator

from insnet.tour.grammar import sentences

KNOWN = sorted({word for line in sentences(300, 0) for word in re.findall(r"[\w'-]+", line)})
_EMOJI = ["🙂", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "☃", "🙂🙂🙂", "e🙂"]
_SCRIPTS = [
    *(
        "Привет мир ёжик Щука",
        "مرحبا بالعالم السَّلامُ",
        "你好 世界 一二三四五六七八",
        "こんにちは ｶﾀｶﾅ",
        "한국어 각",
        "नमस्ते क्षत्रिय",
    ),
    *("שָׁלוֹם עולם", "ไทยแลนด์", "Ελληνικά ΆΈ", "Việt Nam ngữ", "Ærøskøbing Łódź ſtraße İstanbul ǅ"),
]
_MARKS = [
    "e\u0301",
    "a\u0308\u0323b",
    "\u0301x",
    "n\u0303",
    "क\u093f",
    "\u200d",
    "x\u200dy",
    "a\u200cb",
    "\u200b",
    "\u00ad",
]
_SYMBOLS = [
    *"!?.,;:()[]{}\"'«»“”’-–—…%$£€#@&*+=/\\|<>~^_`",
    "C++",
    "...",
    "?!",
    "--",
    "--x",
    "'",
    "''",
    "-a-",
    "(a)",
    "a.b",
]
_SHAPES = [
    "well-known",
    "don't",
    "rock’n’roll",
    "O'Neill",
    "e-mail",
    "x-",
    "-x",
    "'tis",
    "jazz'",
    "U.S.A.",
    "a/b",
    "foo_bar",
]
_DIGITS = ["3", "3.14", "1,000", "007", "42nd", "12:30", "-5", "50%", "$5", "٣", "½", "²", "1e9", "192.168.0.1"]
_HOSTILE = [
    "<unk>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<sep>",
    "￭",
    "￭.",
    "a￭b",
    "Ġ",
    "\u00a0x",
    "x\u2028y",
    "\ufeff",
    "\ufffd",
    "\ue000",
]
_REFUSED = ["", "   ", "a\x00b", "\x1b[31m", "\ud800"]
POOLS: list[list[str]] = [
    KNOWN,
    KNOWN,
    _EMOJI,
    " ".join(_SCRIPTS).split(),
    _SCRIPTS,
    _MARKS,
    _SYMBOLS,
    _SHAPES,
    _DIGITS,
    _HOSTILE,
]


def _keyword(rng: random.Random) -> str:
    choice = rng.random()
    if choice < 0.72:
        word = rng.choice(rng.choice(POOLS))
    elif choice < 0.80:
        word = " ".join(rng.choice(rng.choice(POOLS)) for _ in range(rng.randint(2, 4)))  # a phrase
    elif choice < 0.88:
        word = "".join(rng.choice("abcdefgXYZ0189'-.é") for _ in range(rng.randint(1, 12)))
    elif choice < 0.985:
        word = "".join(
            chr(rng.choice([rng.randint(0xA1, 0x24F), rng.randint(0x370, 0xD7FF), rng.randint(0xE000, 0xFFFF)]))
            for _ in range(rng.randint(1, 4))
        )
    else:
        word = rng.choice("ax漢") * rng.choice([30, 30, 30, 300])
    cased: str = rng.choice([word, word, word, word.upper(), word.title(), word.swapcase()])
    return cased


def hostile_lists(seed: int, count: int = 1000) -> Iterator[list[str]]:
    """So many lists of 0 to 60 words and phrases, the same for a seed; a few hold a keyword that is to be refused."""
    rng = random.Random(seed)
    for number in range(count):
        words = 60 if number % 100 == 0 else rng.randint(0, 9)
        keywords = [_keyword(rng) for _ in range(words)]
        if keywords and rng.random() < 0.2:
            keywords += [rng.choice(keywords) for _ in range(rng.randint(1, 3))]  # repeated, side by side or apart
        if rng.random() < 0.02:
            keywords.insert(rng.randint(0, len(keywords)), rng.choice(_REFUSED))
        yield keywords
