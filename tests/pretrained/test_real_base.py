"""The base that we build on, itself: with nothing given, an untrained gaps model is that language model."""

import pytest
import torch
from gguf_files import gguf_name

from insnet.layers.gaps import Standing
from insnet.pretrained.base import gguf_of_wheel, read_base
from insnet.pretrained.gguf import GgufFile

TEXT = 'The old king\'s castle, built in 1876, stood by the river. "Nobody lives here," she said.'


def in_halves(tensor, heads):
    """Rows 2i of a head become its first half, rows 2i + 1 its second."""
    rows, width = [], len(tensor) // heads
    for head in range(heads):
        rows += [head * width + row for start in (0, 1) for row in range(start, width, 2)]
    return tensor[rows]


@torch.no_grad()
def their_logits(path, tokens):
    """Those of transformers, which takes its sizes from the file's own facts and its tensors one by one."""
    transformers = pytest.importorskip("transformers")
    file = GgufFile(gguf_of_wheel(path)[1], "the base")
    facts = {name.removeprefix("llama."): value for name, value in file.facts.items()}
    heads = {"q_proj": facts["attention.head_count"], "k_proj": facts["attention.head_count_kv"]}
    config = transformers.LlamaConfig(
        vocab_size=file.shape("token_embd.weight")[0],
        hidden_size=facts["embedding_length"],
        num_hidden_layers=facts["block_count"],
        num_attention_heads=heads["q_proj"],
        num_key_value_heads=heads["k_proj"],
        intermediate_size=facts["feed_forward_length"],
        rms_norm_eps=facts["attention.layer_norm_rms_epsilon"],
        rope_theta=facts["rope.freq_base"],
        tie_word_embeddings=True,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        stored = file.tensor(gguf_name(name))
        count = next((count for part, count in heads.items() if part in name), None)
        parameter.copy_(stored if count is None else in_halves(stored, count))
    return model(input_ids=tokens).logits


@pytest.mark.slow
def test_with_nothing_given_the_real_base_has_the_logits_of_transformers(real_base):
    base = read_base(real_base)
    tokens = torch.tensor([[base.tokenizer.specials.bos, *base.tokenizer.encode(TEXT)]])
    expected = their_logits(real_base, tokens)
    model = base.gaps(longest_told=16)
    place = torch.arange(tokens.shape[1])[None]
    standing = Standing(torch.zeros_like(place, dtype=torch.bool), place, torch.zeros_like(place))
    with torch.no_grad():
        ours = model.logits(model.decoder(model.embedding(tokens), standing, has_ahead=True))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-4)
    nats = -ours.log_softmax(dim=2)[0, :-1].gather(1, tokens[0, 1:, None]).mean()
    assert 2 < nats < 4.5  # it has learned English; a base read wrongly is off by far more
