"""A run: what it learns, what it leaves on disk, when it stops, and which folders it refuses."""

import json
import os
import re
import signal
from dataclasses import replace

import pytest
import torch

from insnet.families import FAMILIES
from insnet.families.losses import LossTerm
from insnet.families.storage import load_model
from insnet.text.tokenizer import load_tokenizer
from insnet.training.checkpoint import newest_checkpoint
from insnet.training.events import Ended, Evaluated, Notice, Saved, Started, Updated, console, text_of_event
from insnet.training.metrics import read_metrics
from insnet.training.recipe import load_recipe
from insnet.training.run_folder import RunFolder
from insnet.training.schedule import learning_rate_share
from insnet.training.trainer import train


def quietly(event):
    """A listener that says nothing."""


def run(recipe, output, **options):
    return train(recipe, output=output, **{"on_event": quietly, **options})


def with_train(recipe, **changes):
    return replace(recipe, train=replace(recipe.train, **changes))


def learned(folder):
    return [line for line in read_metrics(folder) if "loss" in line]


def validated(folder):
    return [line for line in read_metrics(folder) if "valid_loss" in line]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_learns_and_leaves_a_model_folder(recipe_path, tmp_path, family):
    settings = [
        f"model.family={family}",
        "train.updates=60",
        "train.evaluate_every=20",
        "train.learning_rate=0.02",
        "generation.top_k=3",
    ]
    recipe = load_recipe(recipe_path, settings)
    summary = run(recipe, tmp_path / "run")
    lines, valid = learned(tmp_path / "run"), validated(tmp_path / "run")
    assert [line["update"] for line in lines] == list(range(1, 61))
    assert valid[-1]["valid_loss"] < 0.9 * lines[0]["loss"]
    assert summary.status == "finished" and summary.update == 60
    assert summary.best_loss == min(line["valid_loss"] for line in valid)
    assert summary.tokens == lines[-1]["tokens"] > 0
    shares = [learning_rate_share(update, warmup=3, total=60) for update in range(60)]
    assert [line["learning_rate"] for line in lines] == [0.02 * share for share in shares]
    model, tokenizer = load_model(tmp_path / "run", "cpu"), load_tokenizer(tmp_path / "run")
    assert model.config.vocabulary_size == tokenizer.size
    assert json.loads((tmp_path / "run" / "generation_config.json").read_text()) == {"top_k": 3}
    assert load_recipe(tmp_path / "run" / "recipe.toml").to_toml() == recipe.to_toml()
    assert f"| valid_loss | {summary.best_loss:.4g} |" in (tmp_path / "run" / "README.md").read_text()


def test_training_stops_early_when_the_valid_loss_no_longer_falls_and_the_best_model_is_kept(recipe, tmp_path):
    best = {}

    def remember(event):
        if isinstance(event, Evaluated) and event.is_best:
            best["weights"] = (tmp_path / "run" / "model.safetensors").read_bytes()

    recipe = with_train(recipe, learning_rate=1.0, clip=0.0, updates=500, evaluate_every=1, patience=3)
    summary = run(recipe, tmp_path / "run", on_event=remember)
    losses = [line["valid_loss"] for line in validated(tmp_path / "run")]
    assert summary.status == "stopped early" and summary.update == len(losses) < 500
    assert min(losses[-3:]) >= min(losses[:-3]) and summary.best_update == len(losses) - 3
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == best["weights"]
    again = run(recipe, tmp_path / "run", resume=True)
    assert (again.status, again.update) == ("stopped early", summary.update)


def test_dropout_and_orders_differ_by_seed_and_repeat_with_it(recipe, tmp_path):
    recipe = with_train(recipe, updates=3)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(with_train(recipe, seed=seed), tmp_path / name)
    first, same, other = (read_metrics(tmp_path / name) for name in "abc")
    assert first == same
    assert all(a["loss"] != b["loss"] for a, b in zip(learned(tmp_path / "a"), learned(tmp_path / "c"), strict=True))
    assert len(other) == len(first)


def test_layers_are_learned_from_a_sequential_model_and_the_same_after_an_interruption(recipe_path, tmp_path):
    sequential = tmp_path / "one_by_one"
    run(load_recipe(recipe_path, ["train.updates=40", "train.learning_rate=0.02"]), sequential)
    settings = ["objective.tau=[-inf, 0.5]", "train.epochs=2", "train.updates=1000", "train.learning_rate=0.01"]
    recipe = load_recipe(recipe_path, settings)

    def interrupt(event):
        if isinstance(event, Updated) and event.update == 4:
            os.kill(os.getpid(), signal.SIGINT)

    assert run(recipe, tmp_path / "halved", start_from=sequential, on_event=interrupt).status == "interrupted"
    for name, resume in (("halved", True), ("straight", False)):
        summary = run(recipe, tmp_path / name, start_from=sequential, resume=resume)
        assert summary.status == "finished" and summary.update == len(learned(tmp_path / name)) < 40  # two epochs
    assert read_metrics(tmp_path / "halved") == read_metrics(tmp_path / "straight")
    lines = learned(tmp_path / "straight")
    assert lines[0]["sequential_loss"] < learned(sequential)[0]["loss"]
    ratios = [line["layers_per_insertion"] for line in lines if "layers_per_insertion" in line]
    assert len(ratios) > len(lines) / 2 and all(0 < ratio < 1 for ratio in ratios)
    figures = {"valid_layers_per_insertion", "valid_layered_loss", "valid_sequential_loss"}
    assert figures <= set(validated(tmp_path / "straight")[-1])


def test_a_finished_run_can_be_prolonged_if_its_optimizer_was_kept(recipe, tmp_path):
    run(with_train(recipe, keep_optimizer=True), tmp_path / "run")
    summary = run(with_train(recipe, updates=15), tmp_path / "run", resume=True)
    assert summary.status == "finished"
    [checkpoint] = (tmp_path / "run" / "checkpoints").iterdir()
    assert {path.name for path in checkpoint.iterdir()} == {"model.safetensors", "state.json"}
    with pytest.raises(ValueError, match=r"kept no optimizer state .* needs train\.keep_optimizer = true"):
        run(with_train(recipe, updates=20), tmp_path / "run", resume=True)
    again = run(with_train(recipe, updates=15), tmp_path / "run", resume=True)
    assert (again.status, again.update) == ("finished", 15)
    assert [line["update"] for line in learned(tmp_path / "run")] == list(range(1, 16))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_interrupting_finishes_the_update_and_resuming_gives_the_same_curve(recipe, tmp_path, optimizer):
    recipe = with_train(recipe, optimizer=optimizer)
    told = []

    def interrupt(event):
        told.append(event)
        if isinstance(event, Updated) and event.update == 6:
            os.kill(os.getpid(), signal.SIGINT)

    recipe = with_train(recipe, checkpoint_every=100)
    summary = run(recipe, tmp_path / "run", on_event=interrupt)
    assert summary.status == "interrupted" and summary.update == 7
    assert newest_checkpoint(tmp_path / "run" / "checkpoints").name == "step-00000007"
    assert "--resume" in told[-1].text
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = run(recipe, tmp_path / "run", resume=True)
    straight = run(recipe, tmp_path / "straight")
    assert read_metrics(tmp_path / "run") == read_metrics(tmp_path / "straight")
    assert replace(resumed, output=None, seconds=0) == replace(straight, output=None, seconds=0)


def test_a_folder_that_is_taken_is_refused(recipe, tmp_path):
    run(recipe, tmp_path / "run")
    with pytest.raises(ValueError, match="that finished at update 12: go on with --resume"):
        run(recipe, tmp_path / "run")
    with pytest.raises(ValueError, match=r"train.learning_rate was 0.005 and is 0.5 now"):
        run(with_train(recipe, learning_rate=0.5), tmp_path / "run", resume=True)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(ValueError, match="something else than a training run"):
            run(recipe, foreign, resume=resume)
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]


def test_two_processes_cannot_train_in_one_folder(recipe, tmp_path):
    run(with_train(recipe, keep_optimizer=True), tmp_path / "run")
    longer = with_train(recipe, updates=15)
    with RunFolder(tmp_path / "run").locked():
        before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
        with pytest.raises(ValueError, match=r"another process is training in .*run: wait until it ends"):
            run(longer, tmp_path / "run", resume=True)
        assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before
    assert run(longer, tmp_path / "run", resume=True).update == 15, "and it is free again"


def test_changed_text_is_refused_on_resuming(recipe, tmp_path):
    run(recipe, tmp_path / "run")
    with (tmp_path / "corpus" / "train.txt").open("a") as file:
        file.write("the cat likes the cat .\n")
    with pytest.raises(ValueError, match="another text or tokenizer"):
        run(with_train(recipe, updates=20), tmp_path / "run", resume=True)


def test_another_number_of_batches_an_update_is_refused_on_resuming(recipe, tmp_path):
    run(recipe, tmp_path / "run")
    with pytest.raises(ValueError, match="saw 1 batches per update"):
        run(with_train(recipe, updates=20, accumulate=2), tmp_path / "run", resume=True)


def test_a_damaged_newest_checkpoint_is_not_passed_over_silently(recipe, tmp_path):
    run(with_train(recipe, keep_optimizer=True), tmp_path / "run")
    newest = newest_checkpoint(tmp_path / "run" / "checkpoints")
    (newest / "model.safetensors").write_bytes(b"half")
    with pytest.raises(ValueError, match="step-00000012 is damaged"):
        run(with_train(recipe, updates=15), tmp_path / "run", resume=True)


def test_a_loss_that_is_no_number_ends_the_run_with_advice(recipe, tmp_path, monkeypatch):
    original = FAMILIES["insnet"].losses

    def spoilt(self, batch, objective, context):
        terms = original(self, batch, objective, context)
        return {name: LossTerm(term.nats * float("nan"), term.count) for name, term in terms.items()}

    monkeypatch.setattr(FAMILIES["insnet"], "losses", spoilt)
    told = []
    with pytest.raises(ValueError, match=r"diverged: the loss of update 1 is nan.*learning_rate"):
        run(recipe, tmp_path / "run", on_event=told.append)
    assert told[-1].status == "failed"
    assert newest_checkpoint(tmp_path / "run" / "checkpoints") is None


def test_training_starts_from_another_model(recipe, tmp_path):
    run(recipe, tmp_path / "first")
    changed = with_train(recipe, updates=1, learning_rate=1e-12)
    run(changed, tmp_path / "second", start_from=tmp_path / "first")
    first, second = (load_model(tmp_path / name, "cpu") for name in ("first", "second"))
    assert torch.allclose(first.embedding.weight, second.embedding.weight, atol=1e-9)
    fresh = run(changed, tmp_path / "fresh")
    assert fresh.best_loss > validated(tmp_path / "second")[0]["valid_loss"]


def test_a_start_shares_whole_parts_and_tells_what_differs(recipe_path, recipe, tmp_path):
    run(load_recipe(recipe_path, ["train.updates=2", "model.slot_layers=1"]), tmp_path / "first")
    counting = ["train.updates=1", "train.learning_rate=1e-12", "model.count_head=9", "model.length_conditioned=true"]
    told = []
    with pytest.raises(ValueError, match=r"holds stop_head.weight of shape \(1, .*of its own family and size"):
        run(load_recipe(recipe_path, counting), tmp_path / "second", start_from=tmp_path / "first")
    with pytest.raises(
        ValueError, match=r"train\.fresh names 'stop_heat', which the model does not have; its parts are c"
    ):
        unknown = load_recipe(recipe_path, [*counting, 'train.fresh=["stop_heat"]'])
        run(unknown, tmp_path / "another", start_from=tmp_path / "first")
    afresh = load_recipe(recipe_path, [*counting, 'train.fresh=["stop_head"]'])
    run(afresh, tmp_path / "afresh", start_from=tmp_path / "first", on_event=told.append)
    assert Notice("new: count_embedding, stop_head") in told
    run(with_train(recipe, updates=1, learning_rate=1e-12), tmp_path / "third", start_from=tmp_path / "first",
        on_event=told.append)  # fmt: skip
    assert Notice("left behind: reader") in told
    first, third = (load_model(tmp_path / name, "cpu").state_dict() for name in ("first", "third"))
    assert all(torch.allclose(third[name], first[name], atol=1e-9) for name in third)
    run(load_recipe(recipe_path, ["train.updates=1", "model.slot_layers=1"]), tmp_path / "fourth",
        start_from=tmp_path / "third", on_event=told.append)  # fmt: skip
    assert Notice("new: reader") in told
    with pytest.raises(ValueError, match="is of the family 'insnet', the recipe of 'autoregressive'"):
        other = load_recipe(recipe_path, ["model.family=autoregressive"])
        run(other, tmp_path / "fifth", start_from=tmp_path / "third")


def test_prepared_data_is_enough_where_the_text_is_not(recipe, tmp_path):
    run(recipe, tmp_path / "here")
    moved = replace(recipe, data=replace(recipe.data, prepared=str(tmp_path / "moved"), folder=str(tmp_path / "gone")))
    (tmp_path / "corpus" / "prepared").rename(tmp_path / "moved")
    run(moved, tmp_path / "there")
    assert read_metrics(tmp_path / "here") == read_metrics(tmp_path / "there")


def test_what_happens_is_told_in_order_and_in_plain_lines(recipe, tmp_path, capsys):
    told = []
    run(recipe, tmp_path / "run", on_event=told.append)
    kinds = [type(event) for event in told if not isinstance(event, Notice)]
    assert kinds[0] is Started and kinds[-1] is Ended
    assert [event.update for event in told if isinstance(event, Saved)] == [3, 6, 9, 12]
    assert [event.update for event in told if isinstance(event, Evaluated)] == [4, 8, 12]
    listen = console()  # not a terminal: plain lines
    for event in told:
        listen(event)
    printed = capsys.readouterr().err.splitlines()
    assert printed == [text for event in told if (text := text_of_event(event)) is not None]
    assert printed[-1].startswith("finished after 12 updates")
    line = r"update 4/12  loss \d+\.\d{3}  [\d,]+ insertions/s  0:\d\d:\d\d left"
    [told] = [text for text in printed if text.startswith("update 4/")]
    assert re.fullmatch(line, told)


def test_a_terminal_gets_a_bar(recipe, tmp_path):
    class Terminal:
        def __init__(self):
            self.text = ""

        def write(self, text):
            self.text += text

        def flush(self): ...

        def isatty(self):
            return True

    terminal = Terminal()
    run(with_train(recipe, updates=4), tmp_path / "run", on_event=console(terminal))
    assert "4/4" in terminal.text and "finished after 4 updates" in terminal.text


def test_only_the_named_parts_learn(recipe_path, tmp_path):
    run(load_recipe(recipe_path, ["train.updates=2"]), tmp_path / "first")
    recipe = load_recipe(recipe_path, ["train.updates=3", 'train.only=["stop_head"]'])
    summary = run(recipe, tmp_path / "second", start_from=tmp_path / "first")
    before, after = (load_model(tmp_path / name, "cpu").state_dict() for name in ("first", "second"))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert summary.update == 3 and changed == {"stop_head.weight", "stop_head.bias"}
    with pytest.raises(ValueError, match="names 'stop_heat', which the model does not have; its parts are embedding"):
        run(load_recipe(recipe_path, ['train.only=["stop_heat"]']), tmp_path / "third")
