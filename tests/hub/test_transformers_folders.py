"""Folders of ours and of transformers are the same folders: same names, same weights, same numbers, both ways."""

import copy
import json
import shutil

import pytest
import torch
from loss_terms import losses_of

import insnet
from insnet.families import FAMILIES
from insnet.families.insnet import InsNet
from insnet.families.insnet_config import InsNetConfig
from insnet.families.quantize import SCALE_SUFFIX, quantized, restored
from insnet.families.storage import load_model, save_model, write_tensors
from insnet.files import WEIGHTS_FILE
from insnet.text.batching import TokenBatch
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.tour import sentences

transformers = pytest.importorskip("transformers")
hub = pytest.importorskip("insnet.hub")

TEXTS = torch.tensor([[1, 10, 11, 12, 13, 2], [1, 20, 21, 2, 0, 0]])


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = MarkedTokenizer.learn(sentences(200, 0), TokenizerConfig("bpe", 400, lower_case=False))
    kind = FAMILIES[request.param]
    torch.manual_seed(0)
    model = kind(kind.Config(vocabulary_size=tokenizer.size, width=16, layers=2, heads=2))
    for parameter in model.parameters():  # nothing may look right because it is 0, as fresh biases are
        torch.nn.init.normal_(parameter, std=0.1)
    save_model(folder, model)
    tokenizer.save(folder)
    (folder / "generation_config.json").write_text(json.dumps({"max_tokens": 12, "rehearsals": 2}))
    return folder


@pytest.fixture
def hub_model(folder):
    return transformers.AutoModel.from_pretrained(folder)


@pytest.fixture
def word_by_word(tmp_path):
    """A model of two orders, in one of which the pieces of a word go in one after the other; and a batch of texts."""
    tokenizer = MarkedTokenizer.learn(sentences(200, 0), TokenizerConfig("bpe", 400, lower_case=False))
    tokenizer.save(tmp_path)
    config = InsNetConfig(tokenizer.size, width=16, layers=1, heads=2, dropout=0.0, order="left_to_right+random_words")
    torch.manual_seed(0)
    save_model(tmp_path, InsNet(config))
    starts_word = tokenizer.lexicon()["starts_word"]
    batch = TokenBatch.of(tokenizer.encode_batch(sentences(12, 9)), starts_word=starts_word)
    assert int(batch.starts_word.sum()) < int(batch.lengths.sum()) - 8, "words of several pieces"
    return transformers.AutoModel.from_pretrained(tmp_path), batch


def test_figures_are_no_part_of_the_loss_and_words_begin_where_the_tokenizer_says(word_by_word):
    model, batch = word_by_word
    terms = losses_of(model.family, batch)
    assert any(term.is_figure for term in terms.values())
    output = model(batch.tokens, seeds=batch.seeds)
    wanted = sum(terms[name].nats for name in ("token", "slot", "stop")) / terms["token"].count
    torch.testing.assert_close(output.loss, wanted)
    pieces = model(batch.tokens, seeds=batch.seeds, starts_word=torch.ones_like(batch.starts_word))
    assert not torch.allclose(output.loss, pieces.loss)
    bare = transformers.AutoModel.from_config(hub.InsNetHubConfig(**model.family.config.__dict__))
    with pytest.raises(ValueError, match="give starts_word: there is no tokenizer"):
        bare(batch.tokens)


def test_without_seeds_orders_are_new_at_every_visit_and_a_texts_own_in_evaluation(word_by_word):
    model, batch = word_by_word
    model.train()
    assert len({float(model(batch.tokens).loss.detach()) for _ in range(4)}) == 4
    model.eval()
    again = [model(batch.tokens[rows]).loss for rows in (slice(None), list(range(11, -1, -1)))]
    torch.testing.assert_close(*again)
    padded = torch.nn.functional.pad(batch.tokens, (0, 5))
    torch.testing.assert_close(model(padded).loss, again[0])


def same_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return list(a) == list(b) and all(torch.equal(a[name], b[name]) for name in a)


def test_the_config_is_read_and_speaks_both_languages(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    written = json.loads((folder / "config.json").read_text())
    assert isinstance(config, hub.InsNetHubConfig)
    assert (config.hidden_size, config.num_hidden_layers, config.vocab_size) == (16, 2, written["vocabulary_size"])
    assert config.family == written["family"]


def test_weights_are_the_same_under_the_same_names(folder, hub_model):
    ours = load_model(folder, "cpu")
    assert type(hub_model.family) is type(ours)
    assert same_weights(hub_model, ours)
    assert same_weights(hub_model.family, ours)


def test_a_forward_pass_gives_our_own_loss(folder, hub_model):
    lengths = (TEXTS != 0).sum(dim=1)
    border = (TEXTS == 1) | (TEXTS == 2)
    batch = TokenBatch(TEXTS, lengths, border, torch.ones_like(border), torch.arange(2))
    terms = losses_of(load_model(folder, "cpu"), batch)
    output = hub_model(TEXTS, labels=TEXTS, seeds=torch.arange(2))
    assert output.terms.keys() == terms.keys()
    assert torch.equal(output.loss, sum(term.nats for term in terms.values()) / terms["token"].count)


def test_given_words_carry_no_loss_and_a_mask_hides_padding(hub_model):
    given = torch.zeros_like(TEXTS, dtype=torch.bool)
    given[:, 1] = True
    junk = TEXTS.masked_fill(TEXTS == 0, 33)
    whole, some = hub_model(TEXTS), hub_model(TEXTS, given=given)
    assert torch.equal(hub_model(junk, attention_mask=TEXTS != 0).loss, whole.loss)
    assert not torch.equal(some.loss, whole.loss)


def test_texts_without_a_beginning_are_refused(hub_model):
    with pytest.raises(ValueError, match="do not begin with <bos>"):
        hub_model(TEXTS[:, 1:])


def test_what_transformers_saves_our_own_load_reads(folder, hub_model, tmp_path):
    hub_model.save_pretrained(tmp_path)
    ours, again = insnet.load(folder, device="cpu"), insnet.load(tmp_path, device="cpu")
    assert same_weights(ours.family, again.family)
    assert ours.generate(["captain", "ship"], seed=1) == again.generate(["captain", "ship"], seed=1)


def test_shards_are_read_by_both(hub_model, tmp_path):
    hub_model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    assert same_weights(load_model(tmp_path, "cpu"), hub_model)
    assert same_weights(transformers.AutoModel.from_pretrained(tmp_path), hub_model)


def test_training_reaches_every_parameter_and_switches_dropout_in_both(hub_model):
    hub_model.train()
    assert all(module.training for module in hub_model.family.modules())
    hub_model(TEXTS).loss.backward()
    assert [name for name, parameter in hub_model.named_parameters() if parameter.grad is None] == []
    hub_model.eval()
    assert not any(module.training for module in hub_model.family.modules())


def test_a_copy_and_a_cast_stay_one_model(hub_model):
    twin = copy.deepcopy(hub_model).double()
    assert twin.family is not hub_model.family
    assert all(parameter.dtype == torch.float64 for parameter in twin.family.parameters())
    assert all(parameter.dtype == torch.float32 for parameter in hub_model.family.parameters())


def test_what_a_file_lacks_starts_as_in_a_fresh_model(folder, hub_model, tmp_path):
    head = "close_head" if hasattr(hub_model.family, "close_head") else "token_head"
    weights = {name: tensor for name, tensor in hub_model.state_dict().items() if head not in name}
    assert len(weights) < len(hub_model.state_dict())
    hub_model.save_pretrained(tmp_path, state_dict=weights)
    partial = transformers.AutoModel.from_pretrained(tmp_path)
    bias = getattr(partial.family, head).bias
    assert torch.equal(bias, torch.zeros_like(bias))
    assert all(torch.equal(buffer, dict(hub_model.named_buffers())[name]) for name, buffer in partial.named_buffers())
    assert torch.equal(partial.family.embedding.weight, hub_model.family.embedding.weight)


def test_a_model_from_a_config_alone_can_learn(folder):
    model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(folder))
    assert model(TEXTS).loss.isfinite()
    assert model.get_input_embeddings() is model.family.embedding


def test_weights_in_eight_bits_are_restored_and_saved_in_full(folder, hub_model, tmp_path):
    shutil.copytree(folder, tmp_path / "small")
    stored = quantized(hub_model.state_dict())
    assert any(name.endswith(SCALE_SUFFIX) for name in stored)
    write_tensors(tmp_path / "small" / WEIGHTS_FILE, stored)
    model = transformers.AutoModel.from_pretrained(tmp_path / "small")
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in restored(stored).items())
    model.save_pretrained(tmp_path / "full")
    assert same_weights(insnet.load(tmp_path / "full", device="cpu", precision="float32").family, model)
