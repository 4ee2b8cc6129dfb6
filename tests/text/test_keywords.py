import gzip
import importlib.util
import pickle

import pytest

from insnet.text import keywords
from insnet.text.corpus import read_keyword_lists
from insnet.text.keywords import (
    DocumentFrequency,
    KeywordFlagger,
    draw_keyword_lists,
    extract_keywords,
    flagger,
    keyword_candidates,
)
from insnet.text.stop_words import is_stop_word
from insnet.text.words import contains_in_order, split

CORPUS = ["The soup was hot.", "The soup was cold.", "The waiter brought soup.", "A zebra ate 12 noodles."]
LINE = "The Zebra brought 12 noodles, and the waiter saw the zebra eat soup."

methods = pytest.mark.parametrize(
    "method",
    [
        "tfidf",
        pytest.param("yake", marks=pytest.mark.skipif(not importlib.util.find_spec("yake"), reason="no yake here")),
    ],
)


def frequency():
    return DocumentFrequency.learn(CORPUS)


@methods
@pytest.mark.parametrize("k", [0, 1, 3, 20])
def test_keywords_are_words_of_the_line_in_order_and_no_more_than_k(method, k):
    for seed in range(20):
        drawn = extract_keywords(LINE, method=method, k=k, document_frequency=frequency(), seed=seed)
        rest = iter(split(LINE))
        assert all(word in rest for word in drawn), "not in text order"
        assert len(drawn) <= k
        assert not any(is_stop_word(word.lower()) or word.isdigit() for word in drawn)


@methods
def test_repeated_words_are_candidates_each_time(method):
    candidates = keyword_candidates(LINE, method=method, k=7, document_frequency=frequency())
    assert "Zebra" in candidates and "zebra" in candidates and "noodles" in candidates


@methods
def test_every_keyword_is_a_whole_word_of_the_line(method):
    line = "All parties' waiters saw the 'zebra' of a soup- and noodle-free kitchen, parties’ zebra (kitchen)."
    candidates = keyword_candidates(line, method=method, k=9, document_frequency=frequency())
    assert contains_in_order(line, candidates)
    assert candidates.count("zebra") == 1 and "parties" not in candidates and candidates.count("kitchen") == 2


@methods
def test_the_draw_depends_on_the_seed_alone(method):
    draws = {
        tuple(extract_keywords(LINE, method=method, k=2, document_frequency=frequency(), seed=seed))
        for seed in [*range(12), *range(12)]
    }
    assert 2 <= len(draws) <= 12


def test_tfidf_prefers_rare_words():
    assert keyword_candidates("soup zebra noodles waiter", method="tfidf", k=0, document_frequency=frequency()) == [
        "zebra",
        "noodles",
    ]


@methods
def test_flags_run_parallel_to_the_parts_of_each_line(method):
    mark = flagger(method, 3, CORPUS)
    assert pickle.loads(pickle.dumps(mark)) == mark
    lines = [LINE, "", "42 !!!", "(Soup's) good-bye"]
    flags = mark(lines)
    assert [len(row) for row in flags] == [len(split(line)) for line in lines]
    assert any(flags[0]) and not any(flags[1] + flags[2])
    marked = [part for part, is_marked in zip(split(LINE), flags[0], strict=True) if is_marked]
    assert marked == keyword_candidates(LINE, method=method, k=3, document_frequency=frequency())


@methods
def test_the_command_writes_the_lists_of_a_file_beside_it(method, tmp_path, capsys):
    lines = [*CORPUS, "", "42 !!!", "«Soup's» (Good-bye), Zürich!"]
    with gzip.open(tmp_path / "valid.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    assert keywords.main([str(tmp_path / "valid.txt.gz"), "--most", "2", "--method", method]) == 0
    path = tmp_path / "valid.keywords.txt"
    assert capsys.readouterr().out == f"{path}\n"
    lists = read_keyword_lists(path)
    assert lists == draw_keyword_lists(lines, method=method, k=2)
    assert [len(words) for words in lists[4:6]] == [0, 0] and set() != {*lists[6]} <= {"Soup's", "Good-bye", "Zürich"}
    assert all(contains_in_order(line, words) for line, words in zip(lines, lists, strict=True))
    assert keywords.main([str(tmp_path / "nowhere.txt")]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_without_yake_auto_is_tfidf_and_asking_for_yake_is_explained(monkeypatch):
    monkeypatch.setattr(keywords.importlib.util, "find_spec", lambda name: None)
    assert flagger("auto", 3, CORPUS).method == "tfidf"
    with pytest.raises(ValueError, match=r"insnet\[keywords\]"):
        flagger("yake", 3, CORPUS)
    with pytest.raises(ValueError, match="document frequencies"):
        flagger("auto", 3)
    with pytest.raises(ValueError, match="unknown"):
        flagger("rake", 3)
    with pytest.raises(ValueError, match="negative"):
        KeywordFlagger("yake", -1)


def test_document_frequencies_survive_saving(tmp_path):
    counted = frequency()
    assert counted.documents == 4 and counted.counts["soup"] == 3 and "the" not in counted.counts
    counted.save(tmp_path / "df.json")
    assert DocumentFrequency.load(tmp_path / "df.json") == counted
    (tmp_path / "df.json").write_text("{}")
    with pytest.raises(ValueError, match="format"):
        DocumentFrequency.load(tmp_path / "df.json")
