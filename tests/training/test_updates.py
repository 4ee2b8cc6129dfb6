"""An update is one sum, however its sentences are spread over batches, and every sentence weighs the same."""

import math
from functools import partial

import pytest
import torch
from loss_terms import losses_of
from torch._dynamo.testing import CompileCounter

from insnet.families import FAMILIES
from insnet.families.insnet_config import InsNetObjective
from insnet.layers.heads import TokenHead
from insnet.text.batching import TokenBatch
from insnet.text.specials import SPECIALS, UNK
from insnet.training.devices import make_accelerator
from insnet.training.recipe import TrainConfig
from insnet.training.updates import SummedLosses, compute_gradients, evaluate

SENTENCES = [[5, 6, 7, 8], [9, 10], [11, 12, 13, 14, 15, 16], [8, 7, 6]]


def batch_of(rows):
    given = [[token % 3 == 0 for token in SENTENCES[row]] for row in rows]
    starts_word = torch.ones(20, dtype=torch.bool)
    return TokenBatch.of([SENTENCES[row] for row in rows], starts_word=starts_word, given=given, seeds=rows, pad_to=10)


def double_model(family, **options):
    torch.manual_seed(0)
    kind = FAMILIES[family]
    return kind(kind.Config(vocabulary_size=20, width=16, layers=1, heads=2, dropout=0.0, **options)).double()


def gradients(family, groups):
    accelerator = make_accelerator(TrainConfig(updates=1, device="cpu"))
    module = accelerator.prepare(SummedLosses(double_model(family)))
    batches = [(index, batch_of(rows)) for index, rows in enumerate(groups)]
    totals = compute_gradients(accelerator, module, batches, mean_tokens=12.0, seed=0, progress=0.0)
    return totals, [parameter.grad for parameter in module.parameters()]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_update_of_several_batches_is_the_update_of_one_large_batch(family):
    totals, together = gradients(family, [[0, 1, 2, 3]])
    for groups in ([[0, 1], [2, 3]], [[0], [1, 2, 3]], [[3], [2], [1], [0]]):
        apart_totals, apart = gradients(family, groups)
        assert torch.allclose(apart_totals, totals)
        assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(apart, together, strict=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_is_that_of_all_nats_over_the_mean_tokens_of_an_update(family):
    totals, found = gradients(family, [[0, 1], [2, 3]])
    model = double_model(family)
    terms = losses_of(model, batch_of([0, 1, 2, 3]))
    loss = sum(term.nats for term in terms.values()) / 12.0
    loss.backward()
    assert all(torch.allclose(a, p.grad, atol=1e-12) for a, p in zip(found, model.parameters(), strict=True))
    assert totals[list(terms).index("token"), 1] == terms["token"].count


@pytest.mark.parametrize("family", FAMILIES)
def test_short_and_long_sentences_weigh_the_same_in_whatever_update(family):
    """The gradients of one update a sentence add up to those of all in one update."""
    _, together = gradients(family, [[0, 1, 2, 3]])
    alone = [gradients(family, [[row]])[1] for row in range(4)]
    for number, expected in enumerate(together):
        assert torch.allclose(sum(each[number] for each in alone), expected, atol=1e-12)


def test_evaluation_weights_batches_by_their_decisions_and_leaves_the_mode_alone():
    accelerator = make_accelerator(TrainConfig(updates=1, device="cpu"))
    losses = SummedLosses(double_model("insnet")).train()
    together = evaluate(accelerator, losses, [batch_of([0, 1, 2, 3])], progress=0.0)
    apart = evaluate(accelerator, losses, [batch_of([0]), batch_of([1, 2, 3])], progress=0.0)
    assert losses.training
    assert apart == pytest.approx(together)
    assert set(together) == {"loss", "token", "slot", "stop"}
    assert together["loss"] > together["token"] > 0


def test_figures_are_measured_but_not_learned_from():
    accelerator = make_accelerator(TrainConfig(updates=1, device="cpu"))
    batch = batch_of([0, 1, 2, 3])
    for objective, told in (
        (LAYERED, {"layers_per_insertion", "layered_loss", "sequential_loss"}),
        (InsNetObjective((math.inf,)), {"layers_per_insertion", "layered_loss"}),
        (None, set()),
    ):
        losses = SummedLosses(double_model("insnet"), objective=objective)
        total, totals = losses(batch, 0.0)
        means = evaluate(accelerator, losses, [batch], progress=0.0)
        assert set(means) == {"loss", "token", "slot", "stop"} | told
        nats = {name: float(value) for name, value in zip(losses.names, totals[:, 0], strict=True)}
        assert float(total.detach()) == pytest.approx(nats["token"] + nats["slot"] + nats["stop"])
        assert means["loss"] == pytest.approx(float(total.detach()) / float(losses.token_count(totals)))
    assert means == evaluate(accelerator, SummedLosses(double_model("insnet")), [batch], progress=0.0)


def test_every_row_draws_its_own_tolerance_whatever_its_batch():
    seeds = torch.arange(3000)
    tau = InsNetObjective((-math.inf, 3.0, 3.0, 10.0)).tau_of_rows(seeds)
    shares = [(tau == value).double().mean().item() for value in (-math.inf, 3.0, 10.0)]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.03)
    assert torch.equal(InsNetObjective((-math.inf, 3.0, 3.0, 10.0)).tau_of_rows(seeds[7:9]), tau[7:9])
    assert InsNetObjective((-math.inf, -math.inf)).tau_of_rows(seeds) is None


LAYERED = InsNetObjective((1.0, -math.inf, math.inf))
TOLD = {"count_head": 9, "length_conditioned": True, "slot_layers": 1}


@pytest.mark.parametrize(
    ("family", "objective", "options", "label_smoothing"),
    [*((name, None, {}, 0.1) for name in FAMILIES), ("insnet", LAYERED, {}, 0.0), ("insnet", LAYERED, TOLD, 0.1)],
)
def test_compiling_changes_no_loss(family, objective, options, label_smoothing, monkeypatch):
    """The backend traces forward and backward as inductor would, without its minutes of code generation."""
    model, other = double_model(family, **options), double_model(family, **options)
    monkeypatch.setattr(model, "compile", partial(model.compile, backend="aot_eager"))
    compiled = SummedLosses(model, objective=objective, label_smoothing=label_smoothing, compile_losses=True, shapes=40)
    plain = SummedLosses(other, objective=objective, label_smoothing=label_smoothing)
    assert torch._dynamo.config.recompile_limit >= 80
    losses = [module(batch_of([0, 1]), 0.0)[0] for module in (compiled, plain)]
    for loss in losses:
        loss.backward()
    assert torch.allclose(*losses, rtol=1e-12)
    for (name, one), two in zip(model.named_parameters(), other.parameters(), strict=True):
        assert torch.allclose(one.grad, two.grad, rtol=1e-9, atol=1e-12), name


@pytest.mark.parametrize("objective", [None, LAYERED])
def test_nothing_is_compiled_again_while_training_goes_on(objective, monkeypatch):
    """Progress changes with every update, and evaluation comes between: neither may cost a minute each time."""
    model = double_model("insnet")
    compiled = CompileCounter()
    monkeypatch.setattr(model, "compile", partial(model.compile, backend=compiled))
    losses = SummedLosses(model, objective=objective, label_smoothing=0.1, compile_losses=True)
    accelerator = make_accelerator(TrainConfig(updates=1, device="cpu"))
    counts = []
    for update in range(4):
        losses(batch_of([0, 1, 2, 3]), update / 4)[0].backward()
        counts.append(compiled.frame_count)
        evaluate(accelerator, losses, [batch_of([update])], progress=update / 4)
    assert counts[0] > 2 and counts[1:] == counts[:1] * 3


@pytest.mark.parametrize("family", FAMILIES)
def test_labels_are_smoothed_while_training_and_never_on_the_valid_split(family):
    """Smoothed: the token's nats and the mean nats of all tokens that can be predicted, weighted."""
    accelerator = make_accelerator(TrainConfig(updates=1, device="cpu"))
    batch = batch_of([0, 1, 2, 3])
    plain, smoothed, uniform = (SummedLosses(double_model(family), label_smoothing=s) for s in (0.0, 0.3, 1.0))
    nats = [float(losses(batch, 0.0)[0].detach()) for losses in (plain, smoothed, uniform)]
    assert nats[1] == pytest.approx(0.7 * nats[0] + 0.3 * nats[2]) and abs(nats[2] - nats[0]) > 1e-3
    for losses in (smoothed, uniform):
        assert evaluate(accelerator, losses, [batch], progress=0.0) == evaluate(
            accelerator, plain, [batch], progress=0.0
        )


def test_smoothing_equals_the_mean_over_all_logits():
    torch.manual_seed(0)
    head = TokenHead(12, (UNK,), len(SPECIALS)).double()
    embedding = torch.randn(12, 6, dtype=torch.float64, requires_grad=True)
    vectors = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    torch.nn.init.normal_(head.bias)
    target = torch.randint(UNK, 12, (2, 3))
    log_probs = head(vectors, embedding).log_softmax(dim=-1)
    slow = torch.zeros(2, 3, dtype=torch.float64)
    for row in range(2):
        for place in range(3):
            values = log_probs[row, place].tolist()
            slow[row, place] = -0.8 * values[target[row, place]] - 0.2 * sum(values[UNK:]) / len(values[UNK:])
    assert torch.allclose(head.nats(vectors, embedding, target, 0.2), slow, rtol=1e-12)
    through_all = -0.8 * log_probs.gather(2, target[..., None])[..., 0] - 0.2 * log_probs[..., UNK:].mean(dim=-1)
    inputs = (vectors, embedding, head.bias)
    expected = torch.autograd.grad(through_all.sum(), inputs)
    found = torch.autograd.grad(head.nats(vectors, embedding, target, 0.2).sum(), inputs)
    assert all(torch.allclose(one, two, atol=1e-12) for one, two in zip(found, expected, strict=True))


def test_the_gpu_is_refused_where_there_is_none():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ValueError, match="no usable GPU"):
        make_accelerator(TrainConfig(updates=1, device="cuda"))


@pytest.mark.parametrize("has_bf16", [True, False])
def test_bf16_is_for_gpus_and_for_processors_that_compute_in_it(has_bf16, monkeypatch):
    monkeypatch.setattr("insnet.training.devices.cpu_has_bf16", lambda: has_bf16)
    config = TrainConfig(updates=1, precision="bf16", device="cpu")
    if has_bf16:
        assert make_accelerator(config).mixed_precision == "bf16"
    else:
        with pytest.raises(ValueError, match="needs a GPU, or a CPU that computes in it"):
            make_accelerator(config)
    assert make_accelerator(TrainConfig(updates=1, device="cpu")).mixed_precision == "no"
