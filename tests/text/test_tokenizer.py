import json
import os
import subprocess
import sys
import unicodedata

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.text.specials import BOS, EOS, PAD, SEP, SPECIALS, UNK
from insnet.text.tokenizer import load_tokenizer
from insnet.text.words import MARK, Literal

LINES = [
    "The day started well, and (as usual) I decided to focus.",
    'She said: "We started on the day we decided."',
    "Well-known places don't cost 1,000 a day; do they?",
    "the day the day the day, well... well!",
] * 5

BPE = MarkedTokenizer.learn(LINES, TokenizerConfig("bpe", 400, lower_case=False))
WORD = MarkedTokenizer.learn(LINES, TokenizerConfig("word", 100, lower_case=False))


def expected_text(text):
    return " ".join(unicodedata.normalize("NFC", text).replace(MARK, "■").split())


def id_of(tokenizer, surface):
    (found,) = [token for token in range(tokenizer.size) if tokenizer._surfaces[token] == surface]
    return found


@given(st.text() | st.text(alphabet="theday Ġ.,()'-<unk>é😀\u0301\u200d\x00\x1c\u3000￭■"))
@settings(max_examples=300, deadline=None)
def test_bpe_gives_any_text_back(text):
    assert BPE.decode(BPE.encode(text)) == expected_text(text)
    assert UNK not in BPE.encode(text)
    assert all(token >= len(SPECIALS) for token in BPE.encode(text)), "text must not become special tokens"


@given(st.lists(st.sampled_from([word for line in LINES for word in line.split()])))
@settings(max_examples=100, deadline=None)
def test_word_kind_gives_known_text_back(chunks):
    text = " ".join(chunks)
    ids = WORD.encode(text)
    assert UNK not in ids
    assert WORD.decode(ids) == text


def test_special_tokens_have_the_fixed_ids_in_both_kinds():
    for tokenizer in (BPE, WORD):
        assert [tokenizer.piece(token) for token in (PAD, BOS, EOS, SEP, UNK)] == list(SPECIALS)


def test_specials_leave_no_trace_except_unk():
    ids = WORD.encode("the day")
    assert WORD.decode([BOS, *ids, UNK, EOS, PAD]) == "the day <unk>"
    assert WORD.encode("the zebra") == [ids[0], UNK]


def test_the_name_of_a_special_token_in_a_text_is_only_text():
    assert UNK not in BPE.encode("<unk> <pad>") and PAD not in WORD.encode("<pad>")
    assert BPE.decode(BPE.encode("<unk><pad>")) == "<unk><pad>"


def test_lower_casing_happens_in_training_and_encoding():
    tokenizer = MarkedTokenizer.learn(LINES, TokenizerConfig("word", 100, lower_case=True))
    assert tokenizer.decode(tokenizer.encode("THE Day")) == "the day"
    assert not any(tokenizer.piece(token) != tokenizer.piece(token).lower() for token in range(tokenizer.size))


def test_word_vocabulary_is_sorted_by_frequency_then_alphabet():
    tokenizer = MarkedTokenizer.learn(["b b a a c d"], TokenizerConfig("word", 8, lower_case=False))
    assert [tokenizer.piece(token) for token in range(5, tokenizer.size)] == ["a", "b", "c"]
    rare_left_out = MarkedTokenizer.learn(
        ["b b a a c d"], TokenizerConfig("word", 99, lower_case=False, minimum_count=2)
    )
    assert rare_left_out.size == 7


def test_encode_batch_equals_encode_of_each():
    for tokenizer in (BPE, WORD):
        assert tokenizer.encode_batch([*LINES, ""]) == [tokenizer.encode(line) for line in [*LINES, ""]]


def test_every_word_begins_with_a_word_start_and_groups_come_back():
    ids = BPE.encode("unheard-of zebras, well...")
    starts = BPE.lexicon()["starts_word"]
    groups = BPE.words(ids)
    assert [token for group in groups for token in group] == ids
    assert all(starts[group[0]] and not starts[group[1:]].any() for group in groups)
    assert [BPE.decode(group) for group in groups] == ["unheard-of", "zebras", ",", "well", "..."]


def test_frequent_symbols_with_their_joiner_are_single_pieces():
    assert len(BPE.encode("day, day")) == len(BPE.words(BPE.encode("day, day"))) == 3


def test_literals_are_never_glued_to_pieces():
    continuation = BPE.encode("zebra")[1]
    assert not BPE.lexicon()["starts_word"][continuation]
    rest = BPE.piece(continuation)
    assert BPE.render([Literal("New  York"), continuation]) == f"New  York {rest}"
    assert BPE.render([*BPE.encode("the ("), Literal("x"), *BPE.encode("a, b")[1:]]) == "the ( x, b"
    comma = id_of(WORD, "￭,")
    assert WORD.render([Literal("Zoë"), comma, UNK, Literal("Ω")]) == "Zoë, <unk> Ω"
    with pytest.raises(ValueError, match="outside the vocabulary"):
        WORD.decode([WORD.size])


def test_pieces_are_readable():
    assert [BPE.piece(token) for token in BPE.encode("the day, well")] == ["the", "day", ",", "well"]
    assert BPE.piece(id_of(BPE, "ï")) == "\\xef"


def test_saved_and_loaded_is_the_same(tmp_path):
    for tokenizer in (BPE, WORD):
        tokenizer.save(tmp_path)
        loaded = load_tokenizer(tmp_path)
        assert loaded.config == tokenizer.config and loaded.fingerprint == tokenizer.fingerprint
        assert loaded.encode_batch(LINES) == tokenizer.encode_batch(LINES)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]


def test_different_tokenizers_have_different_fingerprints():
    lower = MarkedTokenizer.learn(["a b"], TokenizerConfig("word", 9, lower_case=True))
    cased = MarkedTokenizer.learn(["a b"], TokenizerConfig("word", 9, lower_case=False))
    other = MarkedTokenizer.learn(["a c"], TokenizerConfig("word", 9, lower_case=False))
    assert len({lower.fingerprint, cased.fingerprint, other.fingerprint}) == 3


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "foreign", "binary"])
def test_damaged_files_are_refused_in_one_sentence(tmp_path, name, damage):
    WORD.save(tmp_path)
    path = tmp_path / name
    if damage == "missing":
        path.unlink()
    elif damage == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    else:
        path.write_text(path.read_text()[:-20] if damage == "truncated" else json.dumps({"kind": "word"}))
    with pytest.raises(ValueError, match=name):
        load_tokenizer(tmp_path)


def test_a_vocabulary_of_the_other_kind_or_without_our_specials_is_refused(tmp_path):
    WORD.save(tmp_path)
    settings_file = tmp_path / "tokenizer_config.json"
    settings_file.write_text(settings_file.read_text().replace('"word"', '"bpe"').replace("100", "400"))
    with pytest.raises(ValueError, match="bpe"):
        load_tokenizer(tmp_path)
    WORD.save(tmp_path)
    foreign = tokenizers.Tokenizer(models.WordLevel({"[PAD]": 0, "a": 1, "<unk>": 2}, unk_token="<unk>"))
    foreign.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match="special tokens"):
        load_tokenizer(tmp_path)


def test_training_is_the_same_in_every_process():
    script = (
        "from insnet.text.marked import *; import sys; lines = sys.stdin.read().splitlines();"
        "print(MarkedTokenizer.learn(lines, TokenizerConfig('bpe', 500, lower_case=False)).fingerprint)"
    )
    text = "\n".join(
        LINES + ["".join(chr(97 + (i * j) % 26) + " " * (j % 5 == 0) for j in range(60)) for i in range(40)]
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", script]
    runs = [subprocess.Popen(command, env=environment, stdin=-1, stdout=-1, text=True) for _ in range(2)]
    assert len({run.communicate(text)[0] for run in runs}) == 1
    assert all(run.returncode == 0 for run in runs)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (("char", 400), "unknown"),
        (("bpe", 260), "too small"),
        (("word", 5), "too small"),
        (("word", 9, False, 0), "below"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        TokenizerConfig(*settings, *([False] if len(settings) == 2 else []))


def test_an_empty_corpus_is_refused_by_the_word_kind():
    with pytest.raises(ValueError, match="no word"):
        MarkedTokenizer.learn(["", " "], TokenizerConfig("word", 100, lower_case=False))


def facts(tokenizer, surface):
    token = id_of(tokenizer, surface)
    return {name for name, table in tokenizer.lexicon().items() if table[token]}


def word_tokenizer(*words):
    vocabulary = {word: token for token, word in enumerate([*SPECIALS, *words])}
    library = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return MarkedTokenizer(library, TokenizerConfig("word", 999, lower_case=False))


FREE = {"starts_word", "may_follow_required", "may_precede_required", "generatable"}


def test_lexicon_of_words():
    tokenizer = word_tokenizer("day", ",", "￭,", "(￭", "￭-", "-￭", "￭-￭", "￭.￭", "￭(￭", '￭"￭', "￭")
    assert facts(tokenizer, "day") == FREE | {"is_word"}
    assert facts(tokenizer, ",") == FREE
    assert facts(tokenizer, "￭,") == FREE | {"joins_left"}
    assert facts(tokenizer, "(￭") == FREE | {"joins_right"}
    assert facts(tokenizer, "￭-") == FREE - {"may_follow_required"} | {"joins_left"}
    assert facts(tokenizer, "-￭") == FREE - {"may_precede_required"} | {"joins_right"}
    assert facts(tokenizer, "￭-￭") == {"starts_word", "generatable", "joins_left", "joins_right"}
    assert facts(tokenizer, "￭.￭") == {"starts_word", "generatable", "joins_left", "joins_right"}
    assert facts(tokenizer, "￭(￭") == FREE - {"may_follow_required"} | {"joins_left", "joins_right"}
    assert "may_precede_required" in facts(tokenizer, '￭"￭') and "may_follow_required" not in facts(tokenizer, '￭"￭')
    assert not facts(tokenizer, "￭") & {"generatable", "may_follow_required"}
    for special in SPECIALS:
        assert facts(tokenizer, special) == FREE - {"generatable"}


def byte_pieces(text):
    ((piece, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return piece


def test_lexicon_of_pieces():
    surfaces = {text: byte_pieces(text) for text in ["day", " day", " ￭,", " (￭", "￭", " ￭", ".￭", "-￭", " ", "é"]}
    half = byte_pieces("é")[:1]
    vocabulary = {piece: token for token, piece in enumerate([*SPECIALS, *surfaces.values(), half])}
    tokenizer = MarkedTokenizer(
        tokenizers.Tokenizer(models.BPE(vocabulary, [])), TokenizerConfig("bpe", 999, lower_case=False)
    )
    assert facts(tokenizer, surfaces[" day"]) == FREE | {"is_word"}
    assert facts(tokenizer, surfaces["day"]) == {"may_precede_required", "generatable"}
    assert facts(tokenizer, surfaces["é"]) == {"may_precede_required", "generatable"}
    assert facts(tokenizer, surfaces[" ￭,"]) == FREE | {"joins_left"}
    assert facts(tokenizer, surfaces[" (￭"]) == FREE | {"joins_right"}
    assert facts(tokenizer, surfaces["￭"]) == {"joins_right"}
    assert facts(tokenizer, surfaces[" ￭"]) == {"starts_word", "joins_left", "may_precede_required"}
    assert facts(tokenizer, surfaces[".￭"]) == {"joins_right", "generatable"}
    assert facts(tokenizer, surfaces["-￭"]) == {"joins_right", "generatable"}
    assert not facts(tokenizer, surfaces[" "]) & {"generatable"}
    assert facts(tokenizer, half) == set()
