"""The default model's text, made from raw corpora: plain sentences of many kinds, mixed as the notebook found best.

    python -m scripts.make_everyday CORPORA --output data/everyday

CORPORA has the folders everyday, wikipedia and common_voice, one sentence per line, in NAME.txt or NAME.txt.xz. Written
are train.txt, valid.txt and, beside valid.txt, the register of each of its lines. A line is kept if it is one plain
sentence that may stand alone: no speech in quotes, no years, few names, no words that only old books have, nothing
indecent or violent. The same input gives the same output.
"""

import argparse
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from insnet.files import write_atomically
from insnet.text.decency import unfit_words
from insnet.text.stop_words import is_stop_word
from scripts.everyday_names import renamed

SHORTEST, LONGEST = 5, 24  # words
VALID_LINES = 130  # per register
TELLING_WORDS = 3  # content words of a line that has something to say
OTHERS_KEPT = 0.4
FAMILIAR = 2  # how often Tatoeba has a word that other sources may use

_PLAIN = re.compile(r"[A-Z][A-Za-z0-9 ,'’$%&éèçñüöá-]*[.!?]")
_WORD = re.compile(r"[A-Za-z'’éèçñüöá]+(?:-[A-Za-z]+)*|\d[\d,.:]*")
_LONG_NUMBER = re.compile(r"\d{3}")
_ODD = re.compile(r" [,.!?]|,,|,[A-Za-z]|--| -|- |'s's|\bi\b|\b(?:[A-Z]\.?){2,}\b|\d[A-Za-z]| '|' |''|’’|\bna\b|\bta\b")
_POINTS_OUTSIDE = re.compile(
    r"(?i)\b(?:aforesaid|above|below|click|figure|see also|this (?:page|post|section|article|tutorial|guide)|"
    r"thou|thee|thy|hath|doth|whence|hither|thither|wikinews|wikipedia|tatoeba|posthog|sentence|esperanto)\b"
)
_LIGHT_WORDS = """
    think know want need like go going went come came get make made do say said tell told see look thing things one good
    time people way really sure lot let try never always yes yeah okay please thanks oh maybe
"""
_LIGHT = frozenset(_LIGHT_WORDS.split())
_FRAGMENTS = (
    "and ",
    "but ",
    "or ",
    "which ",
    "because ",
    "also ",
    "however",
    "therefore",
    "thus",
    "so ",
    "such ",
    "by the ",
)


@dataclass(frozen=True)
class Register:
    """A kind of text."""

    file: str
    lines: int
    """At most so many are learned from."""
    names: int
    """At most so many words with a capital behind the first."""
    must_be_familiar: bool
    """Whether every word has to be one that Tatoeba uses."""
    is_talk: bool = False
    """Whether lines that begin like half a sentence are natural."""


REGISTERS = {
    "tatoeba": Register("everyday/tatoeba", 340_000, 2, False, is_talk=True),
    "novels": Register("everyday/pg_fiction_third", 300_000, 1, True),
    "wikipedia": Register("wikipedia/train", 150_000, 2, True),
    "news": Register("everyday/wikinews", 45_000, 3, True),
    "voice": Register("common_voice/train", 45_000, 1, False),
    "chat": Register("everyday/dialog_star_self", 60_000, 1, True, is_talk=True),
    "government": Register("everyday/digitalgov", 18_000, 1, True),
    "bookings": Register("everyday/dialog_sgd_tm4", 45_000, 1, True, is_talk=True),
    "health": Register("everyday/medquad", 26_000, 0, True),
    "company": Register("everyday/posthog", 16_000, 1, True),
    "travel": Register("everyday/wikivoyage_part", 9_000, 2, True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--output", type=Path, default=Path("data/everyday"))
    options = parser.parse_args()
    familiar = familiar_words(options.corpora)
    train: list[str] = []
    valid: list[tuple[str, str]] = []
    seen: set[str] = set()
    for name, register in REGISTERS.items():
        lines = list(kept(options.corpora, register, familiar, seen, random.Random(name)))
        random.Random(name).shuffle(lines)
        valid += [(line, name) for line in lines[:VALID_LINES]]
        train += lines[VALID_LINES : VALID_LINES + register.lines]
        print(f"{name}: {len(lines):,} lines fit, {min(len(lines) - VALID_LINES, register.lines):,} learned from")
    random.Random(0).shuffle(train)
    random.Random(1).shuffle(valid)
    write(options.output / "train.txt", train)
    write(options.output / "valid.txt", [line for line, _ in valid])
    write(options.output / "valid.register.txt", [name for _, name in valid])


def kept(
    corpora: Path, register: Register, familiar: frozenset[str], seen: set[str], dice: random.Random
) -> Iterator[str]:
    """A register's lines that fit, each once; of those that have little to say, only a share."""
    for line in read(corpora / f"{register.file}.txt"):
        named = renamed(" ".join(line.replace("’", "'").split()), dice)
        if named is None or not is_plain(named, register):
            continue
        words = _WORD.findall(named)
        if register.must_be_familiar and not all(is_familiar(word, familiar) for word in words[1:]):
            continue
        if not is_telling(words) and dice.random() > OTHERS_KEPT:
            continue
        key = " ".join(words).lower()
        if key not in seen and not unfit_words(named):
            seen.add(key)
            yield named


def is_plain(line: str, register: Register) -> bool:
    """Whether a line is one sentence that can stand alone."""
    words = _WORD.findall(line)
    if not SHORTEST <= len(words) <= LONGEST or not _PLAIN.fullmatch(line):
        return False
    if _LONG_NUMBER.search(line) or _ODD.search(line.replace("I'", "").replace(" I ", " ")) or line.count(",") > 2:
        return False
    if _POINTS_OUTSIDE.search(line) or (not register.is_talk and line.lower().startswith(_FRAGMENTS)):
        return False
    if sum(word[0].isupper() and not word.startswith("I") for word in words[1:]) > register.names:
        return False
    return max(Counter(map(str.lower, words)).values()) <= 4


def is_telling(words: list[str]) -> bool:
    """Whether a line holds enough words that somebody would ask for."""
    content = {word.lower() for word in words if not is_stop_word(word.lower())} - _LIGHT
    return len(content) >= TELLING_WORDS


def is_familiar(word: str, familiar: frozenset[str]) -> bool:
    """Whether a word is one that people use today; names and numbers are let through."""
    return not word[0].islower() or word in familiar


def familiar_words(corpora: Path) -> frozenset[str]:
    """Words that Tatoeba has several times."""
    counts: Counter[str] = Counter()
    for line in read(corpora / "everyday/tatoeba.txt"):
        counts.update(_WORD.findall(line.replace("’", "'").lower()))
    return frozenset(word for word, count in counts.items() if count >= FAMILIAR)


def read(path: Path) -> Iterator[str]:
    """The lines of a file, packed or not."""
    if path.exists():
        yield from map(str.strip, path.read_text(encoding="utf-8").splitlines())
    else:
        with lzma.open(f"{path}.xz", "rt", encoding="utf-8") as file:
            yield from map(str.strip, file)


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(f"{line}\n" for line in lines))
    print(f"{path}: {len(lines):,} lines")


if __name__ == "__main__":
    main()
