"""The tour's sentences as files: three splits, and keywords for the two that a model is judged on."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from insnet.tour.dice import Dice
from insnet.tour.function_words import content_words
from insnet.tour.grammar import sentences

FEWEST_KEYWORDS, MOST_KEYWORDS = 2, 4


def write_corpus(
    folder: str | Path, *, train: int = 6000, valid: int = 400, test: int = 400, seed: int = 0
) -> list[Path]:
    """The files written: train.txt, valid.txt and test.txt, and valid.keywords.txt and test.keywords.txt.

    One sentence per line; line n of a keywords file belongs to sentence n, its words separated by tabs. No sentence
    comes twice, neither in one split nor in two.
    """
    for name, count in (("train", train), ("valid", valid), ("test", test)):
        if count < 0:
            raise ValueError(f"{name} is {count} sentences: give 0 or more")
    drawn = sentences(train + valid + test, seed)
    lines_of_split = {"train": drawn[:train], "valid": drawn[train : train + valid], "test": drawn[train + valid :]}
    dice = Dice(seed)
    lines_of_file = {f"{split}.txt": lines for split, lines in lines_of_split.items()}
    for split in ("valid", "test"):
        keyword_lists = [keywords_of(sentence, dice) for sentence in lines_of_split[split]]
        lines_of_file[f"{split}.keywords.txt"] = ["\t".join(words) for words in keyword_lists]
    return [write_lines(Path(folder) / name, lines) for name, lines in lines_of_file.items()]


def keywords_of(sentence: str, dice: Dice) -> list[str]:
    """Two to four content words of a sentence, drawn at random, in text order and cased as in the text."""
    size = dice.pick(range(FEWEST_KEYWORDS, MOST_KEYWORDS + 1))
    return dice.subset(content_words(sentence), size)


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    """The path, once it holds the lines: under a temporary name first, so that nobody ever reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        os.chmod(temporary, 0o644)  # mkstemp gives a file that only its owner may read
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path
