"""What the decider makes of offers that no shipped family makes yet: slots that say nothing, and slots that close."""

import math
from types import SimpleNamespace

import pytest
import torch

from insnet.decoding.choose import Chooser
from insnet.decoding.config import GenerationConfig
from insnet.decoding.decide import Decider
from insnet.decoding.loop import decode
from insnet.decoding.trace import Recorder, Replay
from insnet.families.generator import Prompt, State
from insnet.families.offers import Insertions
from insnet.insertion.canvas import CLOSE, INSERTED, NOTHING, Canvas, apply
from insnet.insertion.constraints import FREE, Lexicon, Limits

BOS, EOS, VOCABULARY = 1, 2, 30
MODES = ["sequential", "parallel"]


class Scripted:
    """A family that says of every slot, by its two neighbours, which token goes there, if any."""

    config = SimpleNamespace(longest=None)

    def __init__(self, script, empty):
        self.script, self.empty = script, empty

    def start(self, prompt):
        return State.first(prompt, None)

    def offer(self, state):
        is_slot = state.canvas.is_slot()[:, : state.longest - 1]
        slots = torch.zeros(is_slot.shape, dtype=torch.float64).masked_fill(~is_slot, -math.inf).log_softmax(dim=1)

        def tokens(chosen):
            log_probs = torch.full((len(chosen.row), VOCABULARY + 1), -math.inf, dtype=torch.float64)
            for number, (row, slot) in enumerate(zip(chosen.row.tolist(), chosen.flat().tolist(), strict=True)):
                token = self.script(*state.canvas.tokens[row, slot : slot + 2].tolist(), int(state.step[row]))
                log_probs[number, VOCABULARY if token is None else token] = 0.0
            return log_probs

        return Insertions(slots, tokens, empty=self.empty)

    def advance(self, state, edits):
        return state.after(edits, apply(state.canvas, edits)[0])


def prompt_of(texts, closed=(), **limits):
    """Texts between <bos> and <eos>; `closed` names slots of the first."""
    rows, width = len(texts), max(map(len, texts)) + 22
    tokens = torch.tensor([[BOS, *text, EOS, *[0] * (width - len(text) - 2)] for text in texts])
    is_closed = torch.zeros_like(tokens, dtype=torch.bool)
    is_closed[0, list(closed)] = True
    length = torch.tensor([len(text) + 2 for text in texts])
    canvas = Canvas(tokens, torch.full_like(tokens, INSERTED), is_closed, length)
    zeros = torch.zeros(rows, dtype=torch.int64)
    numbers = {"min_words": 0, "max_words": 99, "max_tokens": 20, "insertions": FREE, "slack": 0, "word_correction": 0}
    tables = {name: zeros + number for name, number in {**numbers, **limits}.items()}
    nothing = torch.zeros(rows, 0, 1, dtype=torch.int64)
    free = {"fills_blanks": zeros.bool(), "has_blanks": False, "given_words": zeros}
    bounds = Limits(**tables, forbidden=nothing, least_in_gap=nothing[:, :, 0], most_in_gap=nothing[:, :, 0], **free)
    return Prompt(canvas, bounds, zeros, longest=int(length.max()), order=zeros)


def decided(script, empty, texts, mode, closed=(), **limits):
    """Every row's text once it has ended, and all steps."""
    yes, no = torch.ones(VOCABULARY, dtype=torch.bool), torch.zeros(VOCABULARY, dtype=torch.bool)
    lexicon = Lexicon(yes, no, no, yes, yes, yes, is_word=yes)
    config = GenerationConfig.of(mode=mode, parallel_mass=1.0, slot_mass=1.0, no_repeat_ngram=0)
    recorder = Recorder(len(texts))
    family = Scripted(script, empty)
    recorder.steps.extend(decode(family, prompt_of(texts, closed, **limits), Decider(Chooser(config, lexicon))))
    starts = [Replay((), [(token, INSERTED) for token in text]) for text in texts]
    ends = [start.after(steps).tokens for start, steps in zip(starts, recorder.traces(), strict=True)]
    return [[token for token, _ in end] for end in ends], recorder


def grows(left, right, step):
    """<bos> 7 <eos> becomes 8 9 7 10, an empty text the same."""
    return {(BOS, 7): 8, (8, 7): 9, (7, EOS): 10, (BOS, EOS): 7}.get((left, right))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("empty", [NOTHING, CLOSE])
def test_rows_end_when_no_slot_has_anything_more_to_say(mode, empty):
    texts, recorder = decided(grows, empty, [[7], [], [20, 21], [7, 7]], mode)
    assert texts == [[8, 9, 7, 10], [8, 9, 7, 10], [20, 21], [8, 9, 7, 7, 10]]
    for steps in recorder.traces():
        assert steps[-1].is_last and not steps[-1].is_cut and not steps[-1].inserts
        assert steps[-1].stop_log_prob == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("empty", [NOTHING, CLOSE])
def test_a_closed_slot_is_never_filled(mode, empty):
    assert decided(grows, empty, [[7], [7]], mode, closed=[0])[0] == [[7, 10], [8, 9, 7, 10]]
    assert decided(grows, empty, [[7], []], mode, closed=[0, 1])[0] == [[7], [8, 9, 7, 10]]
    assert decided(grows, empty, [[]], mode, closed=[0])[0] == [[]]


@pytest.mark.parametrize(("empty", "expected"), [(CLOSE, [7, 8, 8, 8]), (NOTHING, [6, 7, 8, 8, 8])])
def test_what_closed_a_slot_holds_for_good_and_nothing_only_for_a_round(empty, expected):
    """Left of the 7 nothing goes in the first round, and a 6 would go in any later one."""

    def script(left, right, step):
        if right == EOS:
            return 8 if step < 3 else None
        return 6 if (left, right) == (BOS, 7) and step > 0 else None

    assert decided(script, empty, [[7]], "parallel")[0] == [expected]


def test_one_by_one_means_one_edit_per_step():
    for empty in (NOTHING, CLOSE):
        _, recorder = decided(grows, empty, [[7], [7, 7]], "sequential")
        assert all((step.edits.token != NOTHING).sum(dim=1).max() <= 1 for step in recorder.steps)
    _, recorder = decided(grows, NOTHING, [[7]], "parallel")
    assert [len(step.inserts) for step in recorder.traces()[0]] == [2, 1, 0]


@pytest.mark.parametrize("mode", MODES)
def test_bounds_end_a_row_whose_slots_would_go_on_for_ever(mode):
    for limits, is_cut in (({"max_tokens": 4}, True), ({"max_words": 4}, False), ({"insertions": 4}, False)):
        texts, recorder = decided(lambda *slot: 5, CLOSE, [[], []], mode, **limits)
        assert texts == [[5] * 4] * 2
        assert [steps[-1].is_cut for steps in recorder.traces()] == [is_cut] * 2
