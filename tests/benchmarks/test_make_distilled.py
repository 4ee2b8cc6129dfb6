"""The small model's text: what lists are drawn, what is written for them, and what of it is kept."""

import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_models import small_model

from insnet.families.adapters import adapt, adapter_of, save_adapter
from insnet.families.storage import save_model, write_generation
from insnet.model import load_folder
from insnet.text.content_words import ContentWords
from insnet.text.corpus import read_keyword_lists
from insnet.text.given import GivenPolicy
from insnet.text.words import contains_in_order, split
from insnet.tour.grammar import sentences
from insnet.training.recipe import load_recipe
from scripts import make_distilled
from scripts.distilled_filters import OF_ONE, Sample, different, likely, passing, varied
from scripts.distilled_lists import SHUFFLED, Drawing, different_lists

ROOT = Path(__file__).parents[2]
LINES = sentences(400, 0)
POLICY = load_recipe(ROOT / "recipes/everyday.toml").given
GOOD = Sample("The old baker sold warm bread to us.", ("baker", "warm bread"), True, -1.0)


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["make_distilled", *map(str, words)])
    make_distilled.main()


# ---- lists ----


def test_a_list_stands_in_its_sentence_and_each_keyword_begins_and_ends_with_a_content_word() -> None:
    content, drawing = ContentWords.learn(LINES), Drawing.of(LINES, replace(POLICY, phrases=1.0))
    lists = list(drawing.lists(LINES))
    assert len(lists) == len(LINES) and any(" " in keyword for keywords in lists for keyword in keywords)
    for line, keywords in zip(LINES, lists, strict=True):
        assert 1 <= len(keywords) <= 5 and contains_in_order(line, keywords, ignore_case=True)
        worth = dict(zip(map(str.lower, split(line)), content.of_line(line), strict=True))
        assert all(worth[keyword.lower().split()[end]] > 0 for keyword in keywords for end in (0, -1))


def test_sizes_are_those_of_the_policy_where_a_sentence_has_words_enough() -> None:
    line = "Bakers, farmers, doctors, painters, sailors, teachers and miners met."
    lists = list(Drawing.of([line], POLICY).lists([line] * 5000))
    sizes = Counter(map(len, lists))
    for size, expected in enumerate(POLICY.keyword_shares, start=1):
        assert sizes[size] / len(lists) == pytest.approx(expected, abs=0.02)


def test_only_what_is_no_name_loses_its_capital() -> None:
    lines = ["Bread and Rome", "Rome and bread"]
    lists = list(Drawing.of(lines, GivenPolicy(keyword_shares=(0, 1))).lists(lines))
    assert lists == [["bread", "Rome"], ["Rome", "bread"]]


def test_no_list_comes_twice_and_a_share_is_in_no_order() -> None:
    drawing = Drawing.of(LINES, POLICY)
    lists = different_lists(drawing, LINES, 600)
    assert len({frozenset(map(str.lower, keywords)) for keywords in lists}) == len(lists) == 600
    several = [keywords for keywords in lists if len(keywords) == 3]
    kept = [any(contains_in_order(line, own, ignore_case=True) for line in LINES) for own in several]
    assert 1 - sum(kept) / len(kept) == pytest.approx(SHUFFLED * 5 / 6, abs=0.1), "one shuffle of six changes nothing"


def test_a_text_that_holds_no_more_lists_ends_the_draw() -> None:
    assert 0 < len(different_lists(Drawing.of(LINES[:3], POLICY), LINES[:3], 10_000)) < 200


# ---- texts ----


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with random weights, and lists for it."""
    model = small_model(
        "gaps", "bpe", generation={"stopping": "sampled", "candidates": 4, "candidate_choice": "fluency"}
    )
    path = tmp_path / "model"
    save_model(path, model.family)
    model.tokenizer.save(path)
    write_generation(path, model.generation.flat())
    lists = different_lists(Drawing.of(LINES, POLICY), LINES, 50)
    make_distilled.write_lines(tmp_path / "lists.txt", map(make_distilled.line_of_keywords, lists))
    assert read_keyword_lists(tmp_path / "lists.txt") == lists
    return tmp_path


def parts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("part_*.txt"))}


def test_every_list_gets_one_single_sample_that_it_also_gets_alone(folder: Path, monkeypatch) -> None:
    how = (folder / "model", folder / "lists.txt", "--lines", 20, "--batch-size", 7, "--device", "cpu")
    run(monkeypatch, "write", *how, "--output", folder / "whole")
    lines = "".join(parts(folder / "whole").values()).splitlines()
    samples, lists = list(map(Sample.of_line, lines)), read_keyword_lists(folder / "lists.txt")
    model = load_folder(folder / "model", "cpu", "float32")
    assert [list(sample.keywords) for sample in samples] == lists
    for sample in samples[::9]:
        alone = model.generate(sample.keywords, seed=0, candidates=1, max_tokens=make_distilled.MOST_TOKENS)
        assert (sample.text, sample.finished) == (" ".join(alone.text.split()), alone.finished)
        insertions = sum(len(step["insert"]) for step in alone.trace)
        assert sample.score == pytest.approx(alone.log_prob / max(insertions, 1), abs=1e-3)


def test_processes_share_the_parts_and_a_killed_one_goes_on_with_what_is_missing(folder: Path, monkeypatch) -> None:
    how = (folder / "model", folder / "lists.txt", "--lines", 20, "--batch-size", 16, "--device", "cpu")
    run(monkeypatch, "write", *how, "--output", folder / "whole")
    run(monkeypatch, "write", *how, "--output", folder / "shared", "--part", "2/2")
    assert list(parts(folder / "shared")) == ["part_0001.txt"]
    run(monkeypatch, "write", *how, "--output", folder / "shared", "--part", "1/2")
    assert parts(folder / "shared") == parts(folder / "whole") and len(parts(folder / "whole")) == 3
    (folder / "shared" / "part_0001.txt").unlink()
    (folder / "shared" / "part_0000.txt").write_text("as it was", encoding="utf-8")
    run(monkeypatch, "write", *how, "--output", folder / "shared")
    assert parts(folder / "shared") == {**parts(folder / "whole"), "part_0000.txt": "as it was"}
    with pytest.raises(SystemExit, match="begun with other lines"):
        run(monkeypatch, "write", *how[:2], "--lines", 30, "--output", folder / "shared")


def test_a_list_that_cannot_be_written_for_costs_no_other_its_text(folder: Path, capsys) -> None:
    model = load_folder(folder / "model", "cpu", "float32")
    samples = make_distilled.written(model, [["baker"], ["x" * 5000], ["bread"]], batch_size=2)
    assert [sample.keywords for sample in samples] == [("baker",), ("bread",)]
    assert "left out: the required words take" in capsys.readouterr().out


def test_an_adapter_beside_its_base_writes_what_the_merged_model_writes(folder: Path) -> None:
    family = load_folder(folder / "model", "cpu", "float32").family
    adapt(family, 2)
    with torch.no_grad():
        for number, learned in enumerate(adapter_of(family).values()):
            learned += torch.randn(learned.shape, generator=torch.Generator().manual_seed(number)) / 4
    save_adapter(folder / "adapter", family, {"path": "model"}, eight_bits=False)
    shutil.copytree(folder / "model", folder / "merged")
    save_model(folder / "merged", family)
    shutil.copyfile(folder / "model/generation_config.json", folder / "adapter/generation_config.json")
    lists = read_keyword_lists(folder / "lists.txt")
    models = [(folder / "model", None), (folder / "merged", None), (folder / "adapter", folder / "model")]
    base, merged, adapted = (make_distilled.written(make_distilled.writer(*each, "cpu"), lists, 64) for each in models)
    assert [sample.text for sample in adapted] == [sample.text for sample in merged]
    assert [sample.score for sample in adapted] == pytest.approx([sample.score for sample in merged], abs=0.002)
    assert all(abs(ours.score - theirs.score) > 0.01 for ours, theirs in zip(adapted, base, strict=True))


# ---- what is kept ----


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("finished", GOOD._replace(finished=False)),
        ("sentence", GOOD._replace(text="the old baker sold warm bread.")),
        ("sentence", GOOD._replace(text="The old baker sold warm bread")),
        ("sentence", GOOD._replace(text="The old baker sold warm bread. Money is all.")),
        ("length", GOOD._replace(text="The baker sold bread.")),
        ("length", GOOD._replace(text="Bread " * 24 + "again.")),
        ("fit", GOOD._replace(text="The old baker strangled the man with bread.")),
        ("no loop", GOOD._replace(text="He sold warm bread and he sold warm bread and he sold warm bread.")),
        ("no list", GOOD._replace(text="There were baker, bread, oven in town.", keywords=("baker", "bread", "oven"))),
    ],
)
def test_each_filter_drops_what_it_is_for_and_is_counted(name: str, bad: Sample) -> None:
    assert passing([GOOD, bad]) == ([GOOD], Counter({name: 1}))
    assert name in OF_ONE


def test_the_least_likely_go() -> None:
    samples = [GOOD._replace(score=-float(number)) for number in random.Random(0).sample(range(100), 100)]
    assert {sample.score for sample in likely(samples, 10)} == {-float(number) for number in range(90)}
    assert likely(samples, 0) == samples


def test_texts_that_differ_in_marks_and_case_alone_are_one() -> None:
    other = GOOD._replace(text="The old baker sold warm bread.")
    assert different([GOOD, GOOD._replace(text="The OLD baker sold, warm bread to us!"), other]) == [GOOD, other]


def test_no_opening_is_used_by_more_than_its_share() -> None:
    samples = [
        GOOD._replace(text=f"{'The old baker' if n % 2 else f'Baker number {n}'} sold bread.") for n in range(100)
    ]
    kept = varied(samples, 0.03)
    assert sum(sample.text.startswith("The old baker") for sample in kept) == 3 and len(kept) == 53


def test_what_is_gathered_keeps_each_text_beside_its_keywords(tmp_path: Path, monkeypatch, capsys) -> None:
    lines = list(dict.fromkeys(LINES))
    lists = list(Drawing.of(LINES, POLICY).lists(lines))
    samples = [Sample(line, tuple(own), True, -1.0) for line, own in zip(lines, lists, strict=True)]
    for number, some in enumerate((samples[:200], [*samples[200:], samples[0], samples[1]._replace(finished=False)])):
        content = "".join(f"{sample.line()}\n" for sample in some)
        make_distilled.write_atomically(tmp_path / f"parts/part_{number:04}.txt", content)
    run(monkeypatch, "gather", tmp_path / "parts", "--output", tmp_path, "--valid", 30, "--unlikely", 0, "--alike", 1)
    texts = {
        split: (tmp_path / f"{split}.txt").read_text(encoding="utf-8").splitlines() for split in ("train", "valid")
    }
    assert len(texts["valid"]) == 30 and not {*texts["valid"]} & {*texts["train"]}
    passed, _ = passing(samples)
    assert sorted(texts["valid"] + texts["train"]) == sorted(sample.text for sample in passed)
    given = dict(zip(lines, lists, strict=True))
    for split_name, own in texts.items():
        assert read_keyword_lists(tmp_path / f"{split_name}.keywords.txt") == [given[text] for text in own]
    said = capsys.readouterr().out
    assert "finished 1" in said and "dropped by different: 1" in said and f"{len(samples) + 2:,} texts" in said
    with pytest.raises(SystemExit, match="write some first"):
        run(monkeypatch, "gather", tmp_path / "nowhere", "--output", tmp_path)
