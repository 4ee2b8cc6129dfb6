"""What the tour's files promise: splits that share nothing, and keywords that are in their sentence."""

import pytest

from insnet.tour import write_corpus
from insnet.tour.__main__ import main
from insnet.tour.corpus import keywords_of, write_lines
from insnet.tour.dice import Dice
from insnet.tour.function_words import FUNCTION_WORDS, bare_words

FILES = ["test.keywords.txt", "test.txt", "train.txt", "valid.keywords.txt", "valid.txt"]


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def is_subsequence(words, text):
    rest = iter(text)
    return all(word in rest for word in words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour")
    write_corpus(folder)
    return folder


def test_corpus_has_the_stated_files_and_sizes(folder):
    assert sorted(path.name for path in folder.iterdir()) == FILES
    sizes = {name: len(lines(folder / name)) for name in FILES}
    assert sizes == {name: 6000 if name == "train.txt" else 400 for name in FILES}


def test_no_valid_or_test_sentence_is_a_training_sentence(folder):
    train, valid, test = (set(lines(folder / f"{split}.txt")) for split in ("train", "valid", "test"))
    assert not train & valid
    assert not train & test
    assert not valid & test


@pytest.mark.parametrize("split", ["valid", "test"])
def test_keywords_are_two_to_four_content_words_in_text_order(folder, split):
    sizes = set()
    for sentence, line in zip(lines(folder / f"{split}.txt"), lines(folder / f"{split}.keywords.txt"), strict=True):
        keywords = line.split("\t")
        sizes.add(len(keywords))
        assert is_subsequence(keywords, bare_words(sentence))
        assert not FUNCTION_WORDS & {word.lower() for word in keywords}
    assert sizes == {2, 3, 4}


def test_every_content_word_is_drawn_equally_often():
    dice = Dice(0)
    drawn = [word for _ in range(6000) for word in keywords_of("The old baker sold fresh bread at the market.", dice)]
    for word in ("old", "baker", "sold", "fresh", "bread", "market"):
        assert drawn.count(word) == pytest.approx(3000, rel=0.06)


def test_same_seed_same_files(folder, tmp_path):
    write_corpus(tmp_path / "again")
    write_corpus(tmp_path / "other", seed=1)
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
        assert (tmp_path / "other" / name).read_bytes() != (folder / name).read_bytes()


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = write_lines(tmp_path / "lines.txt", ["old"])

    def failing_lines():
        yield "new"
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError):
        write_lines(path, failing_lines())
    assert lines(path) == ["old"]
    assert list(tmp_path.iterdir()) == [path]


def test_command_writes_the_corpus_and_names_its_files(tmp_path, capsys):
    assert main([str(tmp_path), "--train", "30", "--valid", "4", "--test", "5"]) == 0
    assert len(lines(tmp_path / "train.txt")) == 30
    assert capsys.readouterr().out.splitlines()[0] == str(tmp_path / "train.txt")


def test_command_says_what_is_wrong_in_one_line(tmp_path, capsys):
    assert main([str(tmp_path), "--valid", "-4"]) == 1
    assert capsys.readouterr().err == "error: valid is -4 sentences: give 0 or more\n"
