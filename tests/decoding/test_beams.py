"""Rows may go on from another row: a beam search, decided in a few lines, finds the likeliest of all texts."""

import itertools
import math
from dataclasses import dataclass

import pytest
import torch
from small_models import batch_of, edits_of, prompt_of, small_model

from insnet.decoding.loop import decode
from insnet.decoding.trace import Recorder
from insnet.families.offers import ChosenSlots
from insnet.insertion.canvas import NOTHING, Edits

WORDS = [20, 21, 22]
LENGTH = 3


@dataclass
class Beam:
    """Keeps the likeliest few of all ways to go on with the rows by some words, and none of those that end early."""

    total: torch.Tensor
    """(B,) the log-probability of each row; -inf for rows that have no text of their own yet."""

    def begin(self, family, state):
        return state

    def __call__(self, offer, state):
        rows = len(self.total)
        is_end = bool(state.step[0] == LENGTH)
        last = state.canvas.length[:, None] - 2
        if is_end:
            self.total = self.total + offer.stop
            nothing = torch.full_like(last, NOTHING)
            zeros = torch.zeros_like(self.total)
            return Edits(last, nothing, zeros[:, None], offer.stop, torch.ones_like(zeros, dtype=torch.bool))
        log_probs = offer.tokens(ChosenSlots.of(last))[:, WORDS]  # (B, W)
        totals = (self.total[:, None] + offer.go[:, None] + log_probs).flatten()
        self.total, best = totals.topk(rows)
        parent, word = best // len(WORDS), best % len(WORDS)
        return Edits(
            slot=last[parent],
            token=torch.tensor(WORDS)[word][:, None],
            log_prob=log_probs[parent, word][:, None],
            stop_log_prob=offer.go[parent],
            finished=torch.zeros(rows, dtype=torch.bool),
            parent=parent,
        )


def searched(model, width):
    """Texts and log-probabilities of a beam, the likeliest first."""
    beam = Beam(torch.tensor([0.0, *[-math.inf] * (width - 1)], dtype=torch.float64))
    recorder = Recorder(width)
    recorder.steps.extend(decode(model.family, prompt_of(model, [["baker"]] * width, seeds=[0] * width), beam))
    traces = recorder.traces()
    texts = [tuple(token for step in steps for _, token, _ in step.inserts) for steps in traces]
    parts = [sum(s.stop_log_prob + sum(part for _, _, part in s.inserts) for s in steps) for steps in traces]
    assert parts == pytest.approx(beam.total.tolist())  # the trace of a row is that of its parents
    return sorted(zip(beam.total.tolist(), texts, strict=True), reverse=True)


@torch.no_grad()
def all_texts(model):
    """Every text of that length and its exact log-likelihood, the likeliest first: the slow twin."""
    texts = list(itertools.product(WORDS, repeat=LENGTH))
    batch = batch_of(model.tokenizer, [list(text) for text in texts])
    return sorted(zip(model.family.log_likelihood(batch).total.tolist(), texts, strict=True), reverse=True)


@torch.no_grad()
def slow_beam(model, width):
    """The texts that a beam keeps, every prefix decoded anew."""

    def score(prefix):
        state, total = model.family.start(prompt_of(model, [["baker"]])), 0.0
        for slot, token in enumerate(prefix):
            offer = model.family.offer(state)
            total += float(offer.go + offer.tokens(ChosenSlots.of(torch.tensor([[slot]])))[0, token])
            state = model.family.advance(state, edits_of([[(slot, token)]]))
        return total

    kept = [()]
    for _ in range(LENGTH):
        kept = sorted(((*prefix, word) for prefix in kept for word in WORDS), key=score, reverse=True)[:width]
    return set(kept)


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_that_keeps_everything_finds_the_likeliest_of_all_texts(seed):
    model = small_model("autoregressive", "word", seed=seed, plan=False)
    exact, found = all_texts(model), searched(model, len(WORDS) ** LENGTH)
    assert [text for _, text in found] == [text for _, text in exact]
    assert [score for score, _ in found] == pytest.approx([score for score, _ in exact])


def test_a_beam_of_two_keeps_what_a_slow_one_keeps_and_mostly_the_likeliest_of_all():
    best = 0
    for seed in range(8):
        model = small_model("autoregressive", "word", seed=seed, plan=False)
        found = searched(model, 2)
        assert {text for _, text in found} == slow_beam(model, 2)
        best += found[0][1] == all_texts(model)[0][1]
    assert best >= 5
