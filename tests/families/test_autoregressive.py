"""The left-to-right family: where plan and sentence stand, what carries loss, and plain language modelling."""

import pytest
import torch
from loss_terms import losses_of
from small_models import LINES, batch_of, offers, prompt_of, small_model

from insnet.families.autoregressive import _plan
from insnet.text.specials import BOS, EOS, SEP

ATOL = 1e-9


def test_plan_holds_the_keywords_in_reading_order_between_bos_and_sep():
    tokens = torch.tensor([[BOS, 10, 11, 12, EOS, 0], [BOS, 20, EOS, 0, 0, 0], [BOS, 30, 31, 32, 33, EOS]])
    keyword = torch.tensor([[0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0]]).bool()
    plan = _plan(tokens, keyword)
    assert [[t for t in row if t] for row in plan.tolist()] == [
        [BOS, 10, 12, SEP],
        [BOS, SEP],
        [BOS, 30, 31, 32, 33, SEP],
    ]
    assert all(row[len([t for t in row if t]) :] == [0] * row.count(0) for row in plan.tolist())  # padding behind only
    assert plan.shape[1] == 10  # eight keywords' room, so that few shapes occur


def test_sequence_is_plan_then_sentence_and_only_the_sentence_is_a_target():
    model = small_model("autoregressive", "word")
    batch = batch_of(model.tokenizer, [[10, 11, 12], [20, 21, 22, 23, 24]], [[False, True, False], [False] * 5])
    sequence, is_target = model.family._planned(batch)
    rows = [[t for t in row if t] for row in sequence.tolist()]
    assert rows == [[BOS, 11, SEP, 10, 11, 12, EOS], [BOS, SEP, 20, 21, 22, 23, 24, EOS]]
    targets = [s[t].tolist() for s, t in zip(sequence, is_target, strict=True)]
    assert targets == [[10, 11, 12, EOS], [20, 21, 22, 23, 24, EOS]]
    assert int(losses_of(model.family, batch)["token"].count) == 4 + 6


@torch.no_grad()
def test_plan_carries_no_loss_but_is_seen():
    model = small_model("autoregressive", "word")
    lists = [model.tokenizer.encode(LINES[3])]
    flags = [[index == 1 for index in range(len(lists[0]))]]
    with_plan, without = (
        losses_of(model.family, batch_of(model.tokenizer, lists, given))["token"] for given in (flags, None)
    )
    assert int(with_plan.count) == int(without.count)
    assert abs(float(with_plan.nats - without.nats)) > 1e-6
    keyword = lists[0][1]
    hidden = model.family.decoder(model.family.embedding(torch.tensor([[BOS, keyword, SEP, *lists[0]]])))[0]
    log_probs = model.family.token_head(hidden, model.family.embedding.weight).log_softmax(-1)
    by_hand = -sum(log_probs[2 + i, token] for i, token in enumerate([*lists[0], EOS]))
    assert float(with_plan.nats) == pytest.approx(float(by_hand), rel=0, abs=ATOL)


@torch.no_grad()
def test_plain_language_modelling_equals_a_loss_written_by_hand():
    """plan=False: -log p of every token given those before it, re-encoding every prefix; given words change nothing."""
    model = small_model("autoregressive", "word", plan=False)
    lists = [model.tokenizer.encode(line) for line in LINES[:3]]
    by_hand = []
    for tokens in lists:
        nats, prefix = 0.0, [BOS]
        for token in [*tokens, EOS]:
            hidden = model.family.decoder(model.family.embedding(torch.tensor([prefix])))[0, -1]
            logits = model.family.embedding.weight @ hidden + model.family.token_head.bias
            logits[[0, 1, 3]] = -torch.inf
            nats -= float(logits.log_softmax(0)[token])
            prefix.append(token)
        by_hand.append(-nats)
    for given in (None, [[True] * len(tokens) for tokens in lists]):
        batch = batch_of(model.tokenizer, lists, given)
        assert model.family.log_likelihood(batch).total.tolist() == pytest.approx(by_hand, rel=0, abs=ATOL)
        assert float(losses_of(model.family, batch)["token"].nats) == pytest.approx(-sum(by_hand), rel=0, abs=ATOL)


@torch.no_grad()
def test_stop_and_tokens_share_all_probability():
    model = small_model("autoregressive", "bpe")
    state = model.family.start(prompt_of(model, [["baker"], []]))
    offered = offers(model.family, state)
    total = offered["stop"].exp() + (1 - offered["stop"].exp()) * offered["tokens"].exp().sum(dim=(1, 2))
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-12)
    assert offered["tokens"][:, 0, EOS].eq(-torch.inf).all()


def test_texts_keep_to_the_most_words_whatever_the_keywords_are():
    """Unknown keywords print more words than their tokens seem to make; a plan prints none of them."""
    model = small_model("autoregressive", "word")
    keywords = [["🙂 ☃", "a b c d e f", "C++"]] * 30
    for result in model.generate_batch(keywords, seed=3, max_words=12, min_words=12, max_tokens=60, stopping="sampled"):
        assert len(result.text.split()) == 12


def test_a_left_to_right_model_refuses_blanks_in_a_sentence():
    with pytest.raises(ValueError, match="writes left to right; it fills no blanks"):
        small_model("autoregressive", "word").infill("The ___ sat.")
