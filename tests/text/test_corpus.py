import gzip
import lzma

import pytest

from insnet.text.corpus import find_split, read_keyword_lists, read_lines, read_pairs

TEXT = "first  line\n\n  zweite Zeile ü \nthird\u2028still third\n"


@pytest.mark.parametrize(("name", "opener"), [("a.txt", open), ("a.txt.gz", gzip.open), ("a.txt.xz", lzma.open)])
def test_plain_and_compressed_files_give_the_same_lines(tmp_path, name, opener):
    with opener(tmp_path / name, "wt", encoding="utf-8") as file:
        file.write(TEXT)
    expected = ["first  line", "", "zweite Zeile ü", "third\u2028still third"]
    assert list(read_lines(tmp_path / name)) == expected
    assert list(read_lines(tmp_path / name, skip_empty=True)) == [line for line in expected if line]


def test_a_byte_order_mark_is_not_text(tmp_path):
    (tmp_path / "a.txt").write_text("\ufeffword\n", encoding="utf-8")
    assert list(read_lines(tmp_path / "a.txt")) == ["word"]


def test_unreadable_files_are_named_with_their_line(tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"fine\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"bad\.txt, line 2, is not UTF-8"):
        list(read_lines(tmp_path / "bad.txt"))
    with pytest.raises(ValueError, match=r"none\.txt does not exist"):
        list(read_lines(tmp_path / "none.txt"))
    whole = lzma.compress(b"many different lines\n" * 1000)
    (tmp_path / "cut.txt.xz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"abc\n" * 9)[:15])
    for name in ("cut.txt.xz", "cut.txt.gz"):
        with pytest.raises(ValueError, match=name):
            list(read_lines(tmp_path / name))
    with pytest.raises(ValueError, match="cannot be read"):
        list(read_lines(tmp_path))


def test_splits_are_found_compressed_or_not_and_what_is_there_is_listed(tmp_path):
    (tmp_path / "train.txt.xz").touch()
    (tmp_path / "valid.txt").touch()
    assert find_split(tmp_path, "train").name == "train.txt.xz"
    assert find_split(tmp_path, "valid").name == "valid.txt"
    with pytest.raises(ValueError, match=r"there is: train\.txt\.xz, valid\.txt"):
        find_split(tmp_path, "test")
    with pytest.raises(ValueError, match="does not exist"):
        find_split(tmp_path / "nowhere", "test")


def test_keyword_lists_are_parted_by_tabs_or_else_by_spaces(tmp_path):
    (tmp_path / "k.txt").write_text("new york\tpizza\nnew york\n\n\tlone phrase \n")
    assert read_keyword_lists(tmp_path / "k.txt") == [["new york", "pizza"], ["new", "york"], [], ["lone phrase"]]


def test_pairs_must_be_parallel(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("eins\nzwei\n")
    (tmp_path / "c").write_text("eins\n")
    assert list(read_pairs(tmp_path / "a", tmp_path / "b")) == [("one", "eins"), ("two", "zwei")]
    for pair in (("a", "c"), ("c", "a")):
        with pytest.raises(ValueError, match="c ends after line 1"):
            list(read_pairs(*[tmp_path / name for name in pair]))
