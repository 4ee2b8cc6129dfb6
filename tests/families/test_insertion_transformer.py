"""The Insertion Transformer: its teacher and its loss against lists, its distribution, both ways to end."""

import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from loss_terms import losses_of
from small_models import LINES, batch_of, decider, offers, prompt_of, small_model

from insnet.families.generator import sentence_of_batch
from insnet.families.losses import LossContext
from insnet.insertion.order import Sentence
from insnet.insertion.subsets import Subset, draw_subset, open_places
from insnet.text.specials import BOS, EOS

ATOL = 1e-9
ORDERS = ("uniform", "balanced_tree", "left_to_right")
SWITCHES = [
    {},
    {"distribution": "factorised"},
    {"vocabulary_bias": True},
    {"finalisation": "sequence"},
    {"finalisation": "sequence", "distribution": "factorised", "vocabulary_bias": True},
]


@pytest.fixture(params=SWITCHES, ids=lambda switch: "-".join(map(str, switch)) or "plain")
def model(request):
    return small_model("insertion_transformer", "word", **request.param)


# ---- the teacher, in lists ----


def spans_of(length, present):
    """The missing places of every slot of the canvas that the present places make."""
    return [list(range(left + 1, right)) for left, right in itertools.pairwise(sorted(present)) if right < length]


def weights_of(spans, order, tau):
    """For every slot the weight of each missing place, in the words of section 4."""
    if order == "left_to_right":
        first = next((slot for slot, span in enumerate(spans) if span), None)
        return [{span[0]: 1.0} if slot == first else {} for slot, span in enumerate(spans)]
    weights = []
    for span in spans:
        distance = {place: abs((span[0] + span[-1]) / 2 - place) if order == "balanced_tree" else 0 for place in span}
        share = {place: math.exp(-distance[place] / tau) for place in span}
        weights.append({place: share[place] / sum(share.values()) for place in span})
    return weights


def texts(seed, rows=12, width=19):
    """Random texts with some tokens given, as a sentence and as lists (length, given places)."""
    rng = random.Random(seed)
    lengths = [rng.randint(2, width - rng.randint(0, 3)) for _ in range(rows)]
    tokens = torch.zeros(rows, width, dtype=torch.int64)
    given = torch.zeros(rows, width, dtype=torch.bool)
    for row, length in enumerate(lengths):
        tokens[row, :length] = torch.tensor([BOS, *(rng.randint(5, 99) for _ in range(length - 2)), EOS])
        given[row, :length] = torch.tensor([True, *(rng.random() < 0.3 for _ in range(length - 2)), True])
    seeds = torch.arange(rows) + 100 * seed
    return Sentence(tokens, torch.tensor(lengths), given, given, seeds)


def present_of(subset, sentence):
    """The places whose tokens are on the canvas, by row."""
    return [
        [place for place in range(int(length)) if not missing[place]]
        for missing, length in zip(subset.is_missing.tolist(), sentence.lengths, strict=True)
    ]


@pytest.mark.parametrize("order", ORDERS)
def test_spans_and_weights_are_those_of_lists(order):
    for seed in range(20):
        sentence, tau = texts(seed), (0.05, 0.5, 1.0, 30.0)[seed % 4]
        subset = draw_subset(sentence, is_prefix=order == "left_to_right")
        weights = subset.weights(order, tau)
        for row, present in enumerate(present_of(subset, sentence)):
            length = int(sentence.lengths[row])
            canvas = sentence.tokens[row, present].tolist()
            assert subset.tokens[row].tolist() == [*canvas, *[0] * (sentence.tokens.shape[1] - len(canvas))]
            assert int(subset.length[row]) == len(canvas)
            spans = spans_of(length, present)
            found = {place: int(subset.slot[row, place]) for place in range(length) if subset.is_missing[row, place]}
            assert found == {place: slot for slot, span in enumerate(spans) for place in span}
            expected = {place: weight for own in weights_of(spans, order, tau) for place, weight in own.items()}
            for place, weight in enumerate(weights[row].tolist()):
                assert weight == pytest.approx(expected.get(place, 0.0), rel=0, abs=1e-12)


def test_a_canvas_has_what_is_given_and_any_number_of_the_other_tokens_as_often():
    """Each subset of a size as often, too; a prefix has the first ones."""
    rows = 6000
    one = texts(3, rows=1)
    sentence = Sentence(
        torch.tensor([[BOS, 7, 8, 9, EOS, 0]]).expand(rows, -1),
        torch.full((rows,), 5),
        torch.tensor([[True, False, True, False, True, False]]).expand(rows, -1),
        one.starts_word[:, :6].expand(rows, -1),
        torch.arange(rows),
    )
    counts = {}
    for present in present_of(draw_subset(sentence, is_prefix=False), sentence):
        counts[tuple(present)] = counts.get(tuple(present), 0) + 1
    shares = {(0, 2, 4): 1 / 3, (0, 1, 2, 4): 1 / 6, (0, 2, 3, 4): 1 / 6, (0, 1, 2, 3, 4): 1 / 3}
    assert counts.keys() == shares.keys()
    assert all(abs(counts[key] / rows - share) < 0.025 for key, share in shares.items())
    prefixes = {tuple(present) for present in present_of(draw_subset(sentence, is_prefix=True), sentence)}
    assert prefixes == {(0, 2, 4), (0, 1, 2, 4), (0, 1, 2, 3, 4)}


def test_a_draw_does_not_depend_on_the_batch_or_its_padding():
    sentence = texts(5)
    together = draw_subset(sentence, is_prefix=False)
    for row, length in enumerate(sentence.lengths.tolist()):
        alone = Sentence(
            sentence.tokens[row : row + 1, :length],
            sentence.lengths[row : row + 1],
            sentence.given[row : row + 1, :length],
            sentence.starts_word[row : row + 1, :length],
            sentence.seeds[row : row + 1],
        )
        assert torch.equal(draw_subset(alone, is_prefix=False).is_missing[0], together.is_missing[row, :length])


# ---- the loss, pair by pair ----


def joint_of(family, canvas):
    """log p (S, V + 1) of all pairs on one canvas, as in section 3."""
    encoded = family.encoder(family.embedding(torch.tensor([canvas])), hides=torch.zeros(1, 1, len(canvas)).bool())[0]
    slots = [family.join(torch.cat(pair)) for pair in itertools.pairwise(encoded)]
    logits = [torch.cat([family.token_head(h, family.embedding.weight), family.end_head(h)]) for h in slots]
    if family.config.vocabulary_bias:
        bias = family.bias_head(torch.stack(slots).amax(dim=0))
        logits = [own + bias for own in logits]
    if family.config.distribution == "joint":
        return torch.cat(logits).log_softmax(dim=0).view(len(slots), -1)
    of_slots = torch.stack([family.slot_head(h)[0] for h in slots]).log_softmax(dim=0)
    return torch.stack([p + own.log_softmax(dim=0) for p, own in zip(of_slots, logits, strict=True)])


def losses_of_canvas(family, tokens, present, order, tau):
    """What one canvas costs: of missing tokens, and of what says the end; the mean over slots that have a target."""
    joint = joint_of(family, [tokens[place] for place in present])
    spans = spans_of(len(tokens), present)
    weights = weights_of(spans, order, tau)
    token = sum(
        -weight * joint[slot, tokens[place]] for slot, own in enumerate(weights) for place, weight in own.items()
    )
    empty = [slot for slot, span in enumerate(spans) if not span]
    if family.config.finalisation == "slot":
        return token / len(spans), -sum(joint[slot, -1] for slot in empty) / len(spans)
    if len(empty) == len(spans):
        return 0.0, -joint[:, -1].logsumexp(dim=0)
    return token / sum(bool(own) for own in weights), 0.0


def orders_of(family):
    return ORDERS if family.config.finalisation == "sequence" else ORDERS[:2]


@torch.no_grad()
def test_losses_are_those_written_by_hand_for_each_canvas(model):
    lists = [model.tokenizer.encode(line) for line in LINES[:6]]
    rng = random.Random(0)
    given = [[rng.random() < 0.4 for _ in tokens] for tokens in lists]
    given[5] = [True] * len(lists[5])
    ending = "nothing" if model.family.config.finalisation == "slot" else "stop"
    for seed, order in enumerate(orders_of(model.family)):
        batch = batch_of(model.tokenizer, lists, given, seeds=range(10 * seed, 10 * seed + 6))
        sentence = sentence_of_batch(batch)
        subset = draw_subset(sentence, is_prefix=order == "left_to_right")
        expected = {"token": 0.0, ending: 0.0}
        for row, present in enumerate(present_of(subset, sentence)):
            tokens = batch.tokens[row, : int(batch.lengths[row])].tolist()
            costs = losses_of_canvas(model.family, tokens, present, order, 0.7)
            canvases = 1 + len(lists[row]) - sum(given[row])
            expected = {
                name: expected[name] + canvases * float(cost) for name, cost in zip(expected, costs, strict=True)
            }
        found = losses_of(model.family, batch, order=order, tau_tree=0.7)
        assert {name: float(term.nats) for name, term in found.items()} == pytest.approx(expected, rel=0, abs=1e-8)


@torch.no_grad()
def test_the_mean_over_draws_is_the_sum_over_all_canvases_on_the_way(model):
    """So that a loss per insertion means the same as where a whole trajectory is seen."""
    tokens = model.tokenizer.encode(LINES[0])[:3]
    draws, framed = 2000, [BOS, *tokens, EOS]
    open_to_draw = (1, 3)
    expected = 0.0
    for size in range(3):
        subsets = list(itertools.combinations(open_to_draw, size))
        for drawn in subsets:
            present = sorted([0, 2, 4, *drawn])
            expected += sum(map(float, losses_of_canvas(model.family, framed, present, "uniform", 1.0))) / len(subsets)
    batch = batch_of(model.tokenizer, [tokens] * draws, [[False, True, False]] * draws)
    found = losses_of(model.family, batch, order="uniform")
    assert sum(float(term.nats) for term in found.values()) / draws == pytest.approx(
        expected, rel=0.06
    )  # 4 standard deviations
    assert {int(term.count) for term in found.values()} == {2 * draws, 3 * draws}


@torch.no_grad()
def test_label_smoothing_spreads_a_share_over_the_tokens_of_the_slot(model):
    batch = batch_of(model.tokenizer, [model.tokenizer.encode(LINES[1])], seeds=[4])
    family, objective = model.family, model.family.Objective(order="uniform")
    subset = draw_subset(sentence_of_batch(batch), is_prefix=False)
    joint = joint_of(family, subset.tokens[0, : int(subset.length[0])].tolist())
    weights = subset.weights("uniform", 1.0)[0]
    smooth, plain = 0.0, 0.0
    for place in subset.is_missing[0].nonzero()[:, 0].tolist():
        log_probs = joint[subset.slot[0, place]]
        likely = log_probs[:-1][family.token_head.never == 0]
        target = log_probs[batch.tokens[0, place]]
        plain -= float(weights[place] * target)
        smooth -= float(weights[place] * (0.8 * target + 0.2 * likely.mean()))
    found = [float(family.losses(batch, objective, LossContext(0.0, s))["token"].nats) for s in (0.0, 0.2)]
    assert plain > 0 and found[1] / found[0] == pytest.approx(smooth / plain, rel=1e-9)


def test_left_to_right_with_slots_that_say_nothing_is_refused():
    family = small_model("insertion_transformer", "word").family
    batch = batch_of(small_model("insertion_transformer", "word").tokenizer, [[10, 11]])
    with pytest.raises(ValueError, match="'left_to_right', which never says that a slot stays empty"):
        losses_of(family, batch, order="left_to_right")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"distribution": "both"}, "distribution is 'both'; expected one of joint, factorised"),
        ({"finalisation": "none"}, "finalisation is 'none'; expected one of slot, sequence"),
    ],
)
def test_an_unknown_switch_is_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        small_model("insertion_transformer", "word", **settings)


@pytest.mark.parametrize("settings", [{"order": "random"}, {"tau_tree": 0.0}])
def test_an_unknown_objective_is_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        small_model("insertion_transformer", "word").family.Objective(**settings)


def test_gradients_reach_every_parameter(model):
    lists = [model.tokenizer.encode(line) for line in LINES[:5]]
    sum(term.nats for term in losses_of(model.family, batch_of(model.tokenizer, lists)).values()).backward()
    for name, parameter in model.family.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


# ---- offers and decoding ----

KEYWORDS = [["baker", "bread"], [], ["the", "the", "harbour"], ["old ship", "rain", "boat", "garden"]]


@torch.no_grad()
def test_all_pairs_and_the_end_share_all_probability(model):
    state = model.family.start(prompt_of(model, [["baker", "bread"], [], ["ship"]]))
    offered = offers(model.family, state)
    pairs = (offered["slots"][:, :, None] + offered["tokens"]).exp().nan_to_num(0.0).sum(dim=(1, 2))
    if "stop" in offered:
        pairs = offered["stop"].exp() + offered["go"].exp() * pairs
    torch.testing.assert_close(pairs, torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-12)


@torch.no_grad()
def test_offers_are_the_joint_distribution(model):
    state = model.family.start(prompt_of(model, [["baker", "bread"], ["ship"]]))
    offered = offers(model.family, state)
    by_slot = model.family.config.finalisation == "slot"
    for row, length in enumerate(state.canvas.length.tolist()):
        joint = joint_of(model.family, state.canvas.tokens[row, :length].tolist())
        found = (offered["slots"][row, :, None] + offered["tokens"][row])[: length - 1]
        if not by_slot:
            found = found + offered["go"][row]
            torch.testing.assert_close(offered["stop"][row], joint[:, -1].logsumexp(dim=0), rtol=0, atol=ATOL)
        torch.testing.assert_close(found, joint if by_slot else joint[:, :-1], rtol=0, atol=ATOL)


@torch.no_grad()
@pytest.mark.parametrize("stopping", ["threshold", "sampled"])
def test_greedy_takes_the_likeliest_of_all_pairs(model, stopping):
    """The arg max over the flattened distribution; of slots that say nothing, none. In the paper (section 5) these are
    the slots where nothing is the likeliest choice, with `threshold` those where it is likelier than all tokens."""
    greedy = {"top_k": 1, "slot_mass": 1e-9, "no_repeat_ngram": 0, "stopping": stopping}
    decide, never = decider(model, **greedy), ~model.scribe.lexicon.generatable
    by_slot = model.family.config.finalisation == "slot"
    state = model.family.start(prompt_of(model, [[]] * 12, max_tokens=30, min_words=0))
    rng = torch.Generator().manual_seed(0)
    found = {True: 0, False: 0}
    for end in torch.linspace(-8, -1, 8) if by_slot else torch.linspace(-4, 6, 8):
        model.family.end_head.bias.fill_(9.0 + end if by_slot else 7.0 + end)  # ever more slots say nothing
        edits = decide(model.family.offer(state), state)
        for row, length in enumerate(state.canvas.length.tolist()):
            joint = joint_of(model.family, state.canvas.tokens[row, :length].tolist())
            share = joint.log_softmax(dim=1).exp()[:, -1]  # of nothing, in each slot
            joint[:, :-1].masked_fill_(never, -math.inf)
            if by_slot:
                is_likeliest = joint.argmax(dim=1) == joint.shape[1] - 1
                joint[is_likeliest if stopping == "sampled" else share > 0.5] = -math.inf
                ends = bool((joint == -math.inf).all())
            elif stopping == "sampled":
                ends = bool(edits.finished[row])  # as it was drawn
            else:
                ends = float(joint[:, -1].exp().sum()) > 0.5
            assert bool(edits.finished[row]) == ends
            found[ends] += 1
            if not ends:
                slot, token = divmod(int(joint[:, :-1].argmax()), joint.shape[1] - 1)
                assert (edits.slot[row, 0].item(), edits.token[row, 0].item()) == (slot, token)
                torch.testing.assert_close(
                    edits.log_prob[row, 0] + edits.stop_log_prob[row], joint[slot, token], rtol=0, atol=ATOL
                )
        slot = (torch.rand(12, 1, generator=rng) * (state.canvas.length - 1)[:, None]).long()
        token = torch.randint(5, 200, (12, 1), generator=rng)
        edits = replace(edits, slot=slot, token=token, finished=torch.zeros(12, dtype=torch.bool))
        state = model.family.advance(state, edits)
    assert found[False] > 20, found
    assert found[True], found


def test_texts_are_written_alike_alone_and_in_a_batch_in_both_modes(model):
    for mode in ("sequential", "parallel"):
        options = {"seed": 2, "mode": mode, "stopping": "sampled", "min_words": 6, "max_tokens": 12, "top_k": 3}
        together = model.generate_batch(KEYWORDS, **options)
        for keywords, result in zip(KEYWORDS, together, strict=True):
            alone = model.generate(keywords, **options)
            assert (alone.text, alone.steps, alone.finished) == (result.text, result.steps, result.finished)
            assert len(result.text.split()) >= 6 or not result.finished
        if mode == "parallel":
            assert any(result.steps < result.tokens - len(result.keywords) for result in together)


def test_blanks_are_filled_in_both_modes(model):
    for mode in ("sequential", "parallel"):
        result = model.infill("The ___ sat on ___ today.", seed=1, mode=mode, max_tokens=12)
        first, second = result.text.removeprefix("The ").removesuffix(" today.").split(" sat on ")
        assert first.strip() and second.strip()


def test_what_needs_a_likelihood_is_refused(model):
    for options in ({"revise": 1}, {"candidates": 2, "candidate_choice": "both"}):
        with pytest.raises(ValueError, match="cannot say how likely a text is"):
            model.generate(["baker"], **options)
    with pytest.raises(ValueError, match="cannot say how likely a text is"):
        model.score("The baker sat.")


def test_open_places_are_neither_given_nor_padding():
    sentence = texts(1)
    is_open = open_places(sentence)
    for row, length in enumerate(sentence.lengths.tolist()):
        expected = [place for place in range(1, length - 1) if not sentence.given[row, place]]
        assert is_open[row].nonzero()[:, 0].tolist() == expected
    assert isinstance(Subset.of(sentence, sentence.given), Subset)
