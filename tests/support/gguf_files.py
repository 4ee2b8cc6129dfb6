"""Writes GGUF files, and small random Llamas as such files and as folders."""

import json
import struct
from pathlib import Path

import torch
from safetensors.torch import save_file
from small_tokenizers import CONTENT, END, TOKENIZERS

F32, F16, Q4_0, Q4_1, Q8_0, BF16 = 0, 1, 2, 3, 8, 30
_UINT32, _FLOAT32, _BOOL, _TEXT, _LIST = 4, 6, 7, 8, 9
VOCABULARY = CONTENT["smollm"]
SIZES = {
    "vocab_size": len(TOKENIZERS["smollm"].bytes_of_token),
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
}
ROTARY_BASE, EPSILON = 100_000.0, 1e-5


def write_gguf(path, facts, tensors, *, version=3):
    """`tensors` are (name, encoding, shape with rows first, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(facts))
    head += b"".join(_text(name) + _fact(value) for name, value in facts.items())
    data = b""
    for name, encoding, shape, content in tensors:
        sizes = [*reversed(shape)]
        head += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, encoding, len(data))
        data += content + bytes(-len(content) % 32)
    Path(path).write_bytes(head + bytes(-len(head) % 32) + data)
    return Path(path)


def _text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _fact(value):
    return struct.pack("<I", _kind(value)) + _content(value)


def _kind(value):
    kinds = {bool: _BOOL, int: _UINT32, float: _FLOAT32, str: _TEXT, list: _LIST}
    return kinds[type(value)]


def _content(value):
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return struct.pack("<IQ", _kind(value[0]), len(value)) + b"".join(map(_content, value))
    return struct.pack({bool: "<?", int: "<I", float: "<f"}[type(value)], value)


def random_llama(*, tied=True, std=0.2, seed=5, rows=SIZES["vocab_size"]):
    """The tensors of a small Llama, by their names in transformers; `rows` of its embedding."""
    generator = torch.Generator().manual_seed(seed)
    width, inner = SIZES["hidden_size"], SIZES["intermediate_size"]
    keys = SIZES["num_key_value_heads"] * width // SIZES["num_attention_heads"]
    shapes = {"model.embed_tokens": (rows, width), "model.norm": (width,)}
    for layer in range(SIZES["num_hidden_layers"]):
        parts = {"q_proj": (width, width), "k_proj": (keys, width), "v_proj": (keys, width), "o_proj": (width, width)}
        shapes |= {f"model.layers.{layer}.self_attn.{name}": shape for name, shape in parts.items()}
        parts = {"gate_proj": (inner, width), "up_proj": (inner, width), "down_proj": (width, inner)}
        shapes |= {f"model.layers.{layer}.mlp.{name}": shape for name, shape in parts.items()}
        norms = ("input_layernorm", "post_attention_layernorm")
        shapes |= {f"model.layers.{layer}.{name}": (width,) for name in norms}
    shapes |= {} if tied else {"lm_head": (rows, width)}
    return {
        f"{name}.weight": torch.randn(shape, generator=generator) * std + (len(shape) == 1)
        for name, shape in shapes.items()
    }


def config_of(tensors):
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        **SIZES,
        "vocab_size": len(tensors["model.embed_tokens.weight"]),
        "rms_norm_eps": EPSILON,
        "rope_theta": ROTARY_BASE,
        "rope_scaling": None,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        "max_position_embeddings": 256,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def write_folder(folder, tensors, *, shards=1, **changes):
    """A Hugging Face folder; `changes` are to its config."""
    folder = Path(folder)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**config_of(tensors), **changes}))
    (folder / "tokenizer.json").write_text(json.dumps(VOCABULARY))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<|im_start|>", "eos_token": "<|pad|>"}))
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return folder
    place = {name: f"model-{number % shards + 1:05}-of-{shards:05}.safetensors" for number, name in enumerate(tensors)}
    for file in set(place.values()):
        save_file({name: tensor for name, tensor in tensors.items() if place[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))
    return folder


def gguf_facts():
    """What a GGUF file says of `random_llama`."""
    added = {token["id"]: token["content"] for token in VOCABULARY["added_tokens"]}
    pieces = {token: name for name, token in VOCABULARY["model"]["vocab"].items()} | added
    return {
        "general.architecture": "llama",
        "general.languages": ["en"],
        "llama.block_count": SIZES["num_hidden_layers"],
        "llama.embedding_length": SIZES["hidden_size"],
        "llama.feed_forward_length": SIZES["intermediate_size"],
        "llama.attention.head_count": SIZES["num_attention_heads"],
        "llama.attention.head_count_kv": SIZES["num_key_value_heads"],
        "llama.rope.freq_base": ROTARY_BASE,
        "llama.attention.layer_norm_rms_epsilon": EPSILON,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [pieces[token] for token in range(len(pieces))],
        "tokenizer.ggml.token_type": [3 if token in added else 1 for token in range(len(pieces))],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in VOCABULARY["model"]["merges"]],
        "tokenizer.ggml.bos_token_id": pieces_id(pieces, "<|im_start|>"),
        "tokenizer.ggml.eos_token_id": pieces_id(pieces, END),
    }


def pieces_id(pieces, name):
    return next(token for token, piece in pieces.items() if piece == name)


_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.layers": "blk",
}


def write_llama_gguf(path, tensors, *, more=(), without=(), **changes):
    """`random_llama` as llama.cpp's converter writes it, in float32; `more` tensors, `changes` to the facts, where __
    stands for a dot, `without` some of them."""
    listed = []
    for name, tensor in tensors.items():
        heads = {"q_proj": SIZES["num_attention_heads"], "k_proj": SIZES["num_key_value_heads"]}
        count = next((count for part, count in heads.items() if part in name), None)
        listed.append((gguf_name(name), F32, tuple(tensor.shape), _interleaved(tensor, count).numpy().tobytes()))
    facts = gguf_facts() | {name.replace("__", "."): value for name, value in changes.items()}
    return write_gguf(path, {name: facts[name] for name in facts if name not in without}, [*listed, *more])


def gguf_name(name):
    for theirs, own in _NAMES.items():
        name = name.replace(theirs, own)
    return name


def _interleaved(tensor, heads):
    """Row i of a head's first half becomes row 2i, of its second half row 2i + 1."""
    if heads is None:
        return tensor
    rows, width = [], len(tensor) // heads
    for head in range(heads):
        for row in range(width // 2):
            rows += [head * width + row, head * width + row + width // 2]
    return tensor[rows].contiguous()
