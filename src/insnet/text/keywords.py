"""Keywords of a text, drawn the way the public test lists were (POINTER's way).

A ranking (YAKE, or tf-idf where YAKE is not installed) names the k + 2 best words of the lower-cased line; every
occurrence of one of them that is a whole word, no number and no stop word is a candidate; at most k candidates are
drawn at random and stay in text order, spelt as in the text.

`python -m insnet.text.keywords data/NAME/valid.txt` writes those of a file beside it; a line without any stays empty.
"""

import argparse
import importlib.util
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch

from insnet import randomness
from insnet.files import read_json_object, write_atomically
from insnet.text.corpus import read_lines
from insnet.text.stop_words import is_stop_word
from insnet.text.words import MARK, split

Method = Literal["auto", "yake", "tfidf"]
_MORE_THAN_K = 2  # candidates beyond k, so that the draw has a choice
_TOUCHES_LEFT = frozenset(symbol + MARK for symbol in "-'’")
_TOUCHES_RIGHT = frozenset(MARK + symbol for symbol in "-'’")
_FORMAT = "insnet-document-frequency-1"


@dataclass(frozen=True)
class DocumentFrequency:
    """In how many lines of a corpus each word occurs, lower-cased."""

    documents: int
    """How many lines were counted."""
    counts: dict[str, int]
    """The lines each word occurs in; a word that is not there counts as never seen."""

    @classmethod
    def learn(cls, lines: Iterable[str], *, limit: int = 200_000) -> "DocumentFrequency":
        """The counts of a corpus, read once; the `limit` most frequent words are kept."""
        counts: Counter[str] = Counter()
        documents = 0
        for line in lines:
            counts.update({word for word in split(line, lower_case=True) if _is_content_word(word)})
            documents += 1
        kept = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]
        return cls(documents, dict(kept))

    def inverse(self, word: str) -> float:
        """How telling a word is: the logarithm of how rarely lines contain it."""
        return math.log((1 + self.documents) / (1 + self.counts.get(word, 0)))

    def save(self, path: str | Path) -> None:
        """Write the counts as JSON."""
        content = {"format": _FORMAT, "documents": self.documents, "counts": self.counts}
        write_atomically(Path(path), json.dumps(content, ensure_ascii=False))

    @classmethod
    def load(cls, path: str | Path) -> "DocumentFrequency":
        """The counts that `save` wrote."""
        content = read_json_object(Path(path))
        if content.get("format") != _FORMAT:
            raise ValueError(f"{path} holds no document frequencies: 'format' is not {_FORMAT!r}")
        return cls(int(content["documents"]), {str(word): int(count) for word, count in content["counts"].items()})


@dataclass(frozen=True)
class KeywordFlagger:
    """Marks the keyword candidates of lines; can be sent to other processes."""

    method: Literal["yake", "tfidf"]
    """How words are ranked."""
    k: int
    """How many keywords a text has at most."""
    document_frequency: DocumentFrequency | None = None
    """What tf-idf knows of the corpus; YAKE needs none."""

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"k {self.k} is negative: it is the largest number of keywords")
        if self.method == "tfidf" and self.document_frequency is None:
            raise ValueError(
                "ranking words by tf-idf needs document frequencies of a corpus: "
                "learn them with DocumentFrequency.learn(lines), or install insnet[keywords] to rank with YAKE"
            )

    def __call__(self, lines: list[str]) -> list[list[bool]]:
        """For each line, whether each part of `split(line)` is a candidate."""
        return [self.flags(line) for line in lines]

    def flags(self, line: str) -> list[bool]:
        """Whether each part of `split(line)` is a candidate."""
        parts = split(line)
        words = [part.lower() for part in parts]
        chosen = self._best_words(words)
        padded = ["", *parts, ""]
        whole = map(stands_alone, padded, padded[2:])
        return [word in chosen and alone for word, alone in zip(words, whole, strict=True)]

    def _best_words(self, words: list[str]) -> frozenset[str]:
        top = self.k + _MORE_THAN_K
        if self.method == "yake":
            text = " ".join(word.strip(MARK) for word in words)
            ranked = [str(word).lower() for word, _ in _yake_extractor(top).extract_keywords(text)]
        else:
            assert self.document_frequency is not None
            ranked = _rank_by_tfidf(words, self.document_frequency)[:top]
        return frozenset(word for word in ranked if _is_content_word(word))


def flagger(method: Method, k: int, lines_for_df: Iterable[str] | None = None) -> KeywordFlagger:
    """What marks keyword candidates, for `write_shards`; the lines are read only if tf-idf needs them."""
    resolved = _resolve(method)
    needs_counts = resolved == "tfidf" and lines_for_df is not None
    return KeywordFlagger(resolved, k, DocumentFrequency.learn(lines_for_df or ()) if needs_counts else None)


def keyword_candidates(
    line: str, *, method: Method = "auto", k: int, document_frequency: DocumentFrequency | None = None
) -> list[str]:
    """Every occurrence of a candidate word in the line, as it is spelt there: in text order, repeats included."""
    flags = KeywordFlagger(_resolve(method), k, document_frequency).flags(line)
    return [part for part, is_candidate in zip(split(line), flags, strict=True) if is_candidate]


def extract_keywords(
    line: str, *, method: Method = "auto", k: int, document_frequency: DocumentFrequency | None = None, seed: int = 0
) -> list[str]:
    """At most k keywords per line, as they are spelt there, drawn at random from its candidates, in text order."""
    candidates = keyword_candidates(line, method=method, k=k, document_frequency=document_frequency)
    noise = randomness.uniform(seed, torch.arange(len(candidates)))
    drawn = sorted(noise.argsort()[:k].tolist())
    return [candidates[index] for index in drawn]


def draw_keyword_lists(
    lines: Sequence[str], *, method: Method = "auto", k: int, lines_for_df: Iterable[str] | None = None
) -> list[list[str]]:
    """Keywords of every line, its number being the seed; tf-idf, if it is used, counts `lines_for_df` or the lines."""
    ranking = flagger(method, k, lines if lines_for_df is None else lines_for_df)
    return [
        extract_keywords(line, method=ranking.method, k=k, document_frequency=ranking.document_frequency, seed=number)
        for number, line in enumerate(lines)
    ]


def _resolve(method: Method) -> Literal["yake", "tfidf"]:
    has_yake = importlib.util.find_spec("yake") is not None
    if method == "auto":
        return "yake" if has_yake else "tfidf"
    if method == "yake" and not has_yake:
        raise ValueError("YAKE is not installed: pip install 'insnet[keywords]', or choose method 'tfidf'")
    if method not in ("yake", "tfidf"):
        raise ValueError(f"keyword method {method!r} is unknown: choose 'auto', 'yake' or 'tfidf'")
    return method


def _is_content_word(word: str) -> bool:
    """Whether a lower-cased part may be a keyword: it has a letter and is no stop word."""
    return any(character.isalpha() for character in word) and not is_stop_word(word)


def stands_alone(left: str, right: str) -> bool:
    """Whether a word between these parts is a whole word: one that a hyphen or an apostrophe touches is not.

    >>> stands_alone("all", "￭,"), stands_alone("all", "￭'"), stands_alone("'￭", "name")
    (True, False, False)
    """
    return left[-2:] not in _TOUCHES_LEFT and right[:2] not in _TOUCHES_RIGHT


def _rank_by_tfidf(words: list[str], document_frequency: DocumentFrequency) -> list[str]:
    counts = Counter(word for word in words if _is_content_word(word))  # in text order, which decides ties
    weight = {word: count * document_frequency.inverse(word) for word, count in counts.items()}
    return sorted(weight, key=lambda word: -weight[word])


@lru_cache(maxsize=8)
def _yake_extractor(top: int) -> Any:
    import yake  # copyleft, hence optional and only ever called from here

    return yake.KeywordExtractor(lan="en", n=1, dedup_lim=0.9, dedup_func="seqm", window_size=1, top=top)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(prog="python -m insnet.text.keywords", description="Draw keywords of each line.")
    parser.add_argument("file", type=Path, help="sentences, one per line: NAME.txt, .txt.xz or .txt.gz")
    parser.add_argument("--most", type=int, default=4, help="keywords per line at most (%(default)s)")
    parser.add_argument("--method", default="yake", choices=["yake", "tfidf"], help="the ranking (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        lists = draw_keyword_lists(list(read_lines(options.file)), method=options.method, k=options.most)
        path = options.file.with_name(options.file.name.partition(".txt")[0] + ".keywords.txt")
        write_atomically(path, "".join(" ".join(keywords) + "\n" for keywords in lists))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
