import json
import pickle

import numpy as np
import pytest

from insnet.text import shards as shards_module
from insnet.text.keywords import flagger
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.text.shards import TokenShards, write_shards

LINES = [
    "A quick test of the zebra, (really).",
    "",
    "The unfathomable noodles!",
    "word " * 50,
    "short",
    "One more line; the last of them.",
] * 3
BPE = MarkedTokenizer.learn(LINES, TokenizerConfig("bpe", 300, lower_case=False))


def flag_long_words(lines):
    return [[len(BPE.decode(group)) > 4 for group in BPE.words(BPE.encode(line))] for line in lines]


def write(folder, **changes):
    options = {"importance": flag_long_words, "max_tokens": 40, "sentences_per_shard": 5, **changes}
    return write_shards(folder, iter(LINES), BPE, **options)


def kept_lines():
    return [line for line in LINES if 1 <= len(BPE.encode(line)) <= 40]


def test_every_sentence_comes_back_with_its_flags(tmp_path, monkeypatch):
    monkeypatch.setattr(shards_module, "LINES_AT_A_TIME", 4)  # several chunks a shard, several shards
    heard = []
    summary = write(tmp_path / "train", on_progress=heard.append)
    kept, stored = kept_lines(), TokenShards(tmp_path / "train")
    assert len(stored) == summary.sentences == len(kept) == 12 and summary.left_out == 6 and summary.shards == 3
    for index, line in enumerate(kept):
        assert stored.tokens(index).tolist() == BPE.encode(line)
        by_word = [
            [flag] * len(group)
            for flag, group in zip(flag_long_words([line])[0], BPE.words(BPE.encode(line)), strict=True)
        ]
        assert stored.importance(index).tolist() == [flag for group in by_word for flag in group]
    assert stored.lengths.tolist() == [len(BPE.encode(line)) for line in kept]
    assert summary.tokens == stored.lengths.sum() and heard[-1] == len(LINES) and heard == sorted(heard)
    assert summary.keyword_tokens == sum(stored.importance(index).sum() for index in range(len(stored))) > 0
    assert stored.tokens(0).dtype == np.uint16 and isinstance(stored.lengths, np.memmap)
    assert stored.summary == summary and stored.vocabulary_size == BPE.size
    with pytest.raises(IndexError):
        stored.tokens(12)


def test_gathered_sentences_equal_those_read_one_by_one(tmp_path):
    write(tmp_path / "train")
    stored = TokenShards(tmp_path / "train")
    assert stored.summary.shards == 3
    wanted = np.array([11, 0, 5, 5, 10, 3])  # across shards, not in order, one twice
    rows = stored.gather(wanted)
    assert rows.tokens.tolist() == [token for row in wanted for token in stored.tokens(row).tolist()]
    assert rows.importance.tolist() == [flag for row in wanted for flag in stored.importance(row).tolist()]
    assert rows.lengths.tolist() == stored.lengths[wanted].tolist()
    assert len(stored.gather(np.array([], dtype=np.int64)).tokens) == 0


def test_flags_of_the_keyword_flagger_fit(tmp_path):
    write(tmp_path / "a", importance=flagger("tfidf", 3, LINES))
    stored = TokenShards(tmp_path / "a")
    first = stored.tokens(0)[stored.importance(0).astype(bool)]
    assert set(BPE.decode(first.tolist()).split()) == {"quick", "test", "zebra"}
    write(tmp_path / "b", importance=None)
    assert TokenShards(tmp_path / "b").importance(0).sum() == 0


def test_the_corpus_is_streamed(tmp_path, monkeypatch):
    monkeypatch.setattr(shards_module, "LINES_AT_A_TIME", 10)
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield "short"

    seen_when_written = []
    original = shards_module._write_shard

    def stop_after_three(folder, number, sentences, dtype):
        written = original(folder, number, sentences, dtype)
        seen_when_written.append(taken)
        if number == 3:
            raise KeyboardInterrupt
        return written

    monkeypatch.setattr(shards_module, "_write_shard", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        write_shards(tmp_path / "x", endless(), BPE, importance=None, max_tokens=9, sentences_per_shard=20)
    assert seen_when_written == [20, 40, 60, 80]
    assert list(tmp_path.iterdir()) == [], "an interrupted run leaves nothing"


def test_what_a_killed_run_left_is_cleared_and_old_shards_are_replaced(tmp_path):
    (tmp_path / ".train.partial").mkdir()
    (tmp_path / ".train.partial" / "tokens-00009.npy").touch()
    write(tmp_path / "train")
    summary = write(tmp_path / "train", max_tokens=200)
    assert summary.sentences == 15 == len(TokenShards(tmp_path / "train"))
    assert [path.name for path in tmp_path.iterdir()] == ["train"]
    assert not list((tmp_path / "train").glob("*-00009.npy"))


def test_somebody_elses_folder_is_not_replaced(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match="holds no token shards"):
        write(tmp_path)


def test_nothing_to_write_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no sentence"):
        write_shards(tmp_path / "x", ["", " "], BPE, importance=None, max_tokens=9)
    with pytest.raises(ValueError, match="at least 1"):
        write(tmp_path / "x", max_tokens=0)
    with pytest.raises(ValueError, match="2 numbers for 1 words"):
        write_shards(tmp_path / "x", ["short"], BPE, importance=lambda lines: [[True, True]], max_tokens=9)


def test_the_tokenizer_is_checked(tmp_path):
    write(tmp_path / "x")
    stored = TokenShards(tmp_path / "x")
    stored.check(BPE)
    with pytest.raises(ValueError, match="another tokenizer"):
        stored.check(MarkedTokenizer.learn(LINES, TokenizerConfig("bpe", 300, lower_case=True)))


@pytest.mark.parametrize("name", ["tokens-00001.npy", "offsets-00000.npy", "flags-00002.npy", "lengths.npy"])
def test_damaged_arrays_are_refused_by_name(tmp_path, name):
    write(tmp_path / "x")
    path = tmp_path / "x" / name
    whole = path.read_bytes()
    for content in (whole[:-3], whole[:10], b"", b"not an array"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=name):
            TokenShards(tmp_path / "x")
    path.unlink()
    with pytest.raises(ValueError, match=name):
        TokenShards(tmp_path / "x")


def test_pickled_arrays_and_wrong_dtypes_are_refused(tmp_path):
    write(tmp_path / "x")
    np.save(tmp_path / "x" / "lengths.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"lengths\.npy"):
        TokenShards(tmp_path / "x")
    np.save(tmp_path / "x" / "lengths.npy", np.zeros(12))
    with pytest.raises(ValueError, match="int32 was expected"):
        TokenShards(tmp_path / "x")


@pytest.mark.parametrize("change", [{"format": "other"}, {"dtype": "object"}, {"extra": 1}])
def test_foreign_folders_are_refused(tmp_path, change):
    write(tmp_path / "x")
    index = tmp_path / "x" / "index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | change))
    with pytest.raises(ValueError, match=r"index\.json"):
        TokenShards(tmp_path / "x")
    with pytest.raises(ValueError, match="does not exist"):
        TokenShards(tmp_path / "nowhere")


def test_shards_reach_another_process_as_a_path(tmp_path):
    write(tmp_path / "x")
    sent = pickle.dumps(TokenShards(tmp_path / "x"))
    assert len(sent) < 500
    assert pickle.loads(sent).tokens(3).tolist() == TokenShards(tmp_path / "x").tokens(3).tolist()


def test_a_large_vocabulary_is_stored_in_32_bits(tmp_path):
    words = [f"w{number}" for number in range(66_000)]
    tokenizer = MarkedTokenizer.learn([" ".join(words)], TokenizerConfig("word", 70_000, lower_case=False))
    write_shards(tmp_path / "x", words[-3:], tokenizer, importance=None, max_tokens=5)
    stored = TokenShards(tmp_path / "x")
    assert [tokenizer.decode(stored.tokens(index)) for index in range(3)] == words[-3:]
    assert stored.tokens(0).dtype == np.uint32
