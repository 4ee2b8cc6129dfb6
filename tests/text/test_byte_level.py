"""The tokenizer of a pretrained vocabulary: small ones of the same making, learned here."""

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import CONTENT, END, LINES, START, TOKENIZERS

from insnet.text.byte_level import ByteLevelTokenizer
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.text.spellings import same_letters, spellings
from insnet.text.tokenizer import load_tokenizer
from insnet.text.words import Literal, contains_in_order, split

SMALL = TOKENIZERS["smollm"]
every_kind = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)


def id_of(tokenizer, printed):
    (found,) = [token for token in range(tokenizer.size) if tokenizer._printed[token] == printed.encode()]
    return found


def facts(tokenizer, printed):
    token = id_of(tokenizer, printed)
    return {name for name, table in tokenizer.lexicon().items() if table[token]}


@every_kind
@given(text=st.text() | st.text(alphabet="the king'-.,()“”\"’ 07é🙂\u0301\u200d\n\t" + END))
@settings(max_examples=150, deadline=None)
def test_any_text_comes_back_in_single_spaces(tokenizer, text):
    ids = tokenizer.encode(text)
    expected = " ".join(part for part in unicodedata.normalize("NFC", text).split(" ") if part)
    assert tokenizer.decode(ids) == expected
    assert not tokenizer.specials.ids & set(ids), "text must not become special tokens"
    assert [token for group in tokenizer.words(ids) for token in group] == ids
    assert tokenizer.encode_batch([text, "x"])[0] == ids


@every_kind
def test_real_looking_text_comes_back(tokenizer):
    for text in [*LINES, f"A name {END} in a text\nand a second line.", "(x) 1,000.50 'tis «oui» ¿qué? 🙂🙂 नमस्ते"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_words_begin_at_spaces_and_behind_symbols():
    def words(text):
        return [SMALL.decode(group) for group in SMALL.words(SMALL.encode(text))]

    quoted = ["The", "king", ",", '"', "well-known", '"', "(", "don't", "!", ")", "in", "1876", "."]
    assert words('The king, "well-known" (don\'t!) in 1876.') == quoted
    assert words("🙂 你好 café") == ["🙂", "你好", "café"]


@every_kind
def test_pieces_are_spread_over_the_parts_that_keywords_are_drawn_from(tokenizer):
    for text in [*LINES, "e\u0301te\u0301 3.14, (1,000)!", "a  b\u00a0c", "x"]:
        parts, ids = split(text), tokenizer.encode(text)
        of_token = tokenizer.part_of_token(text, ids)
        assert of_token == sorted(of_token) and {*of_token} <= {*range(len(parts))}
        for number in set(of_token):
            pieces = [token for token, part in zip(ids, of_token, strict=True) if part == number]
            printed = tokenizer.decode(pieces)
            core = parts[number].strip("￭")
            assert core in printed or printed in core or len(set(core)) == 1


def test_the_facts_about_pieces():
    free = {"starts_word", "may_follow_required", "may_precede_required", "generatable"}
    assert facts(SMALL, " king") == free | {"is_word"}
    assert facts(SMALL, "king") == {"may_precede_required", "generatable"}
    assert facts(SMALL, ",") == free | {"joins_left"}
    assert facts(SMALL, " (") == free | {"joins_right"}
    assert facts(SMALL, ' "') == free | {"joins_right"}
    assert facts(SMALL, '"') == free | {"joins_left"}
    assert facts(SMALL, "(") == free - {"may_follow_required"} | {"joins_left", "joins_right"}
    assert facts(SMALL, "-") == {"generatable"}
    assert facts(SMALL, "7") == {"may_precede_required", "generatable"}
    assert facts(SMALL, " ") == free, "a number is a space and its digits"
    assert facts(TOKENIZERS["gpt2"], " ") == free - {"generatable"}
    assert facts(SMALL, "\n") == {"starts_word", "joins_left", "may_precede_required"}
    half = next(token for token in range(SMALL.size) if SMALL._printed[token] == b"\xf0")
    assert not any(table[half] for table in SMALL.lexicon().values())
    for special in SMALL.specials.ids:
        assert not SMALL.lexicon()["generatable"][special] and SMALL.lexicon()["starts_word"][special]
    for name in ("'s", "-", "s", "7", "'", "’", "é", "_", "\u0301"):
        tokens = [token for token in range(SMALL.size) if SMALL._printed[token] == name.encode()]
        assert not SMALL.lexicon()["may_follow_required"][tokens].any(), name


def test_required_words_are_printed_as_typed_with_the_spaces_of_a_text():
    def render(*parts):
        return SMALL.render([part if isinstance(part, Literal) else id_of(SMALL, part) for part in parts])

    castle, king = Literal("Old  Castle"), Literal("king")
    assert render(castle, ",", king, ".") == "Old  Castle, king."
    assert render(" the", " (", castle, ")", ' "', king, '"') == 'the (Old  Castle) "king"'
    assert render('"', king, '"') == '"king"'
    assert render(king, "s", "'") == "king s'", "no piece continues a required word"
    assert render(" ", king, " ", " ", " the", " ") == "king the"
    assert render(" the", Literal(".", joins_left=True)) == "the."
    assert render(Literal('He said: "', joins_right=True), " the", '"') == 'He said: "the"'
    assert SMALL.render([SMALL.specials.bos, id_of(SMALL, " king"), SMALL.specials.eos]) == "king"


def test_required_words_are_encoded_as_they_are_inside_a_text():
    def pieces(literal, **options):
        return [SMALL._printed[token].decode() for token in SMALL.encode_literal(literal, **options)]

    assert pieces(Literal("king")) == [" king"]
    assert "".join(pieces(Literal("king"), stands_first=True)) == "king"
    assert pieces(Literal(", the king", joins_left=True)) == [",", " the", " king"]


_REQUIRED = ["king", "Old Castle", "3", "don't", "x-", "'tis", "é", "\u0301x", "🙂", "(", '"', "...", "-", "你", "_"]


@every_kind
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_no_insertion_ever_glues_itself_to_a_required_word(tokenizer, data):
    lexicon = {name: table.tolist() for name, table in tokenizer.lexicon().items()}
    required = data.draw(st.lists(st.sampled_from(_REQUIRED), min_size=1, max_size=4))
    parts: list = [Literal(text) for text in required]
    generatable = [token for token in range(tokenizer.size) if lexicon["generatable"][token]]
    for _ in range(data.draw(st.integers(1, 25))):
        slot = data.draw(st.integers(0, len(parts)))
        token = data.draw(st.sampled_from(generatable))
        behind_required = slot > 0 and isinstance(parts[slot - 1], Literal)
        before_required = slot < len(parts) and isinstance(parts[slot], Literal)
        if behind_required and not lexicon["may_follow_required"][token]:
            continue
        if before_required and not lexicon["may_precede_required"][token]:
            continue
        parts.insert(slot, token)
    text = tokenizer.render(parts)
    assert contains_in_order(text, required), text
    end = 0
    for phrase in required:
        end = text.index(phrase, end) + len(phrase)


@every_kind
def test_a_ban_knows_every_way_to_write_a_word(tokenizer):
    same = same_letters(tokenizer).tolist()
    banned = [tuple(way) for way in spellings(tokenizer, "king")]

    def holds_banned(text):
        ids = [same[token] for token in [tokenizer.specials.bos, *tokenizer.encode(text)]]
        return any(tuple(ids[at : at + len(way)]) == way for way in banned for at in range(len(ids)))

    for text in ["King and", "the king", "The KING.", 'he said "king" twice', "(king)", "so “King”"]:
        assert holds_banned(text), text
    for text in ["The castle", "joking", "the kin g"]:
        assert not holds_banned(text), text


def test_saved_and_loaded_is_the_same(tmp_path):
    for name, tokenizer in TOKENIZERS.items():
        tokenizer.save(tmp_path / name)
        loaded = load_tokenizer(tmp_path / name)
        assert isinstance(loaded, ByteLevelTokenizer)
        assert (loaded.fingerprint, loaded.specials) == (tokenizer.fingerprint, tokenizer.specials)
        assert loaded.encode_batch(LINES) == tokenizer.encode_batch(LINES)
    assert len({tokenizer.fingerprint for tokenizer in TOKENIZERS.values()}) == 3
    assert ByteLevelTokenizer(CONTENT["gpt2"], START, END).fingerprint != TOKENIZERS["gpt2"].fingerprint


def test_a_folder_says_which_kind_it_holds(tmp_path):
    marked = MarkedTokenizer.learn(LINES, TokenizerConfig("bpe", 400, lower_case=False))
    marked.save(tmp_path)
    assert isinstance(load_tokenizer(tmp_path), MarkedTokenizer)


def test_specials_may_stand_anywhere():
    assert SMALL.specials.ids == {0, 1, SMALL.size - 1} and SMALL.specials.unk is None
    assert (SMALL.specials.bos, SMALL.specials.eos) == (0, 0)
    assert SMALL.piece(SMALL.size - 1) == "<|pad|>"


def test_a_vocabulary_in_lists_is_that_of_the_file():
    model = CONTENT["smollm"]["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    merges = [" ".join(pair) for pair in model["merges"]]
    listed = ByteLevelTokenizer.of_pieces(
        [*pieces, "<|pad|>"], merges, SMALL.specials.ids, bos=END, eos=END, single_digits=True
    )
    assert listed.encode_batch(LINES) == SMALL.encode_batch(LINES)
    assert listed.lexicon().keys() == SMALL.lexicon().keys()
    assert all((listed.lexicon()[name] == table).all() for name, table in SMALL.lexicon().items())


def test_characters_that_a_vocabulary_has_no_bytes_for_become_the_replacement_character():
    model = CONTENT["smollm"]["model"]
    lacking = {piece for piece, token in model["vocab"].items() if piece in (chr(0x100 + 4), "ñ")}  # \x04 and \xf1
    vocabulary = {piece: token for piece, token in model["vocab"].items() if piece not in lacking}
    tokenizer = ByteLevelTokenizer(
        {**CONTENT["smollm"], "model": {**model, "vocab": vocabulary, "merges": []}}, END, END
    )
    assert tokenizer.decode(tokenizer.encode("a\x04b \U00040000 🙂 \ud800")) == "a\ufffdb \ufffd 🙂 \ufffd"
    without_continuation = {piece: token for piece, token in vocabulary.items() if piece != "ĭ"}
    with pytest.raises(ValueError, match="lacks the bytes"):
        ByteLevelTokenizer(
            {**CONTENT["smollm"], "model": {**model, "vocab": without_continuation, "merges": []}}, END, END
        )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"pre_tokenizer": {"type": "Whitespace"}}, "no byte-level BPE"),
        ({"model": {"type": "WordLevel", "vocab": {}, "unk_token": "x"}}, "no byte-level BPE"),
        ({"model": 3}, "no byte-level BPE"),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "not a readable tokenizer"),
    ],
)
def test_what_is_no_byte_level_vocabulary_is_refused(tmp_path, change, complaint):
    (tmp_path / "tokenizer.json").write_text(json.dumps({**CONTENT["gpt2"], **change}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": END}}))
    with pytest.raises(ValueError, match=complaint):
        load_tokenizer(tmp_path)


def test_the_ends_must_be_special_tokens(tmp_path):
    with pytest.raises(ValueError, match="'king' is no special token"):
        ByteLevelTokenizer(CONTENT["gpt2"], "king", END)
    SMALL.save(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ValueError, match="names no bos_token"):
        load_tokenizer(tmp_path)
    assert ByteLevelTokenizer.load(tmp_path, bos=START).specials.bos == 1
