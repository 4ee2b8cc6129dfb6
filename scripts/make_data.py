"""The recipes' text, made from raw corpora: data/general, data/wikipedia, data/tune; data/yelp, data/news, data/both.

    python -m scripts.make_data CORPORA

CORPORA has the folders wikipedia, common_voice, yelp and news (those that are missing are left out), each with its
splits as SPLIT.txt or SPLIT.txt.xz, one text per line, and keyword lists of some splits as SPLIT.keywords.txt.

The general model learns from Wikipedia and Common Voice. Of Wikipedia's valid split the first 1,000 sentences are kept
for the report (data/wikipedia), the next 2,000, with 150 of Common Voice, are the valid split of training, mixed as
its text is, and the 400 after them are for choosing settings (data/tune). The two to write from get four keywords a
sentence, drawn with YAKE.
"""

import lzma
import random
import sys
from pathlib import Path

from insnet.files import write_atomically
from insnet.text.keywords import draw_keyword_lists

REPORT, VALID, TUNE = slice(0, 1000), slice(1000, 3000), slice(3000, 3400)
COMMON_VOICE_VALID = 150
KEYWORDS = 4


def general(corpora: Path) -> None:
    """Natural cased text; what is shipped learns from it alone, because its licences allow that."""
    train, valid = read(corpora / "wikipedia/train.txt"), read(corpora / "wikipedia/valid.txt")
    spoken = read(corpora / "common_voice/train.txt")
    write("general/train", train + spoken[:-COMMON_VOICE_VALID])
    held_out = valid[VALID] + spoken[-COMMON_VOICE_VALID:]
    random.Random(0).shuffle(held_out)  # so that its first sentences are a fair sample, too
    write("general/valid", held_out)
    for name, part in (("wikipedia", REPORT), ("tune", TUNE)):
        write(f"{name}/valid", valid[part])
        lists = draw_keyword_lists(valid[part], method="yake", k=KEYWORDS)
        write(f"{name}/valid.keywords", [" ".join(keywords) for keywords in lists])


def yelp(corpora: Path) -> None:
    """POINTER's test reviews, and passages like them; lower case as they come."""
    copy(corpora / "yelp", "train", "valid", "valid.keywords", "test", "test.keywords")


def news(corpora: Path) -> None:
    """Sentences of the EMNLP2017 WMT News test set and others like them, in lower case, as the paper's."""
    copy(corpora / "news", "train", "test", "test.keywords")
    keywords = read(corpora / "news/valid.keywords.txt")
    write("news/valid.keywords", [line.lower() for line in keywords])
    write("news/valid", [line.lower() for line in read(corpora / "news/valid.txt")[: len(keywords)]])


def both() -> None:
    """Reviews and news together, to learn English from before a model turns to one of them."""
    for split in ("train", "valid"):
        write(f"both/{split}", [line for name in ("yelp", "news") for line in read(Path(f"data/{name}/{split}.txt"))])


def copy(folder: Path, *splits: str) -> None:
    for split in splits:
        write(f"{folder.name}/{split}", [line.lower() for line in read(folder / f"{split}.txt")])


def read(path: Path) -> list[str]:
    if path.exists():
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    with lzma.open(f"{path}.xz", "rt", encoding="utf-8") as file:
        return [line.strip() for line in file]


def write(name: str, lines: list[str]) -> None:
    write_atomically(Path(f"data/{name}.txt"), "".join(f"{line}\n" for line in lines))
    print(f"data/{name}.txt: {len(lines):,} lines")


def main(folder: str) -> None:
    for name, make in {"wikipedia": general, "yelp": yelp, "news": news}.items():
        if (Path(folder) / name).exists():
            make(Path(folder))
    if (Path(folder) / "yelp").exists() and (Path(folder) / "news").exists():
        both()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m scripts.make_data CORPORA, the folder with wikipedia, common_voice, yelp and news")
    main(sys.argv[1])
