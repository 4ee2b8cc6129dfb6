"""The pages that scripts write: every claim on them follows from the model or from a results file."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import insnet
from insnet.shelf import DEFAULT
from insnet.text.corpus import read_keyword_lists
from insnet.text.words import contains_in_order

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def script(name: str):
    """A script of docs/ as a module."""
    specification = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


samples = script("write_samples")
appendix = script("write_appendix")
finetune = script("write_finetune")


@pytest.fixture(scope="module")
def model() -> insnet.Model:
    return insnet.load("tour", device="cpu")


def entry(rank: float, function: float, punctuation: float) -> dict:
    return {"insertions": 1000, "rank": rank, "function_share": function, "punctuation_share": punctuation}


def measured(first: float, untruncated: float, chance: float = 0.5) -> dict:
    """A results file in which such shares of the first tenth are function words or punctuation."""

    def tenths(share: float) -> dict:
        return {"by_tenth": [entry(9, share - 0.1, 0.1), *[entry(99, chance - 0.1, 0.1)] * 9]}

    names = {"decoded": first, "untruncated": untruncated}
    return {
        "data": "d/valid, 7 keyword lists",
        "settings": {"model": "tour", "texts": 7, "generation": {"slot_mass": 0.7, "top_k": 5, "top_p": 1.0}},
        **{name: tenths(share) for name, share in names.items()},
        **{f"{name}_in_random_order": tenths(chance) for name in names},
    }


def rows_of(page: str) -> list[list[str]]:
    """The cells of all rows of all tables, as they are printed."""
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [[printed(cell) for cell in row] for row in rows]


def printed(markdown: str) -> str:
    return re.sub(r"\\(.)", r"\1", markdown.replace("**", "")).strip()


# ---- docs/samples.md ----


def test_the_keyword_lists_are_forty_of_one_to_ten_words_with_names_and_phrases():
    lists = read_keyword_lists(samples.KEYWORDS)
    words = [keyword for keywords in lists for keyword in keywords]
    assert len(lists) == 40
    assert {len(keywords) for keywords in lists} == set(range(1, 11))
    assert len(words) > 0.9 * len(set(words)) > 100
    assert any(" " in word for word in words)
    assert any(word[0].isupper() for word in words)


def test_the_page_holds_forty_texts_two_of_them_step_by_step(model):
    page = samples.page(model, "tour", measured(0.9, 0.5), "../benchmarks/results/insertion_order.json")
    lists, rows = read_keyword_lists(samples.KEYWORDS), rows_of(page)
    texts = {row[0]: row[2] for row in rows if len(row) == 3 and row[0].isdigit()}
    assert list(texts) == [str(number) for number in range(1, 41)]
    for text, keywords in zip(texts.values(), lists, strict=True):
        assert contains_in_order(text, keywords)
    assert [model.generate(lists[number - 1], seed=0).text for number in (1, 40)] == [texts["1"], texts["40"]]
    for number in samples.STEP_BY_STEP:
        steps = model.generate(lists[number - 1], seed=0).trace
        start = rows.index(["0", " ".join(lists[number - 1])])
        shown = rows[start + 1 : start + 1 + len(steps)]
        assert shown == [[str(step["step"]), step["text"]] for step in steps]
    for text in samples.BLANKS:
        assert f"`{text}`" in page


def test_some_lists_are_shown_from_one_word_a_round_to_many(model):
    lists = read_keyword_lists(samples.KEYWORDS)
    section = samples.degrees_section(model, "tour", lists, {})
    rows = [row for row in rows_of(section) if row[0] != "how"]
    labels = ["one by one", "parallel_mass 0.5", "parallel_mass 0.7", "parallel_mass 0.9"]
    assert [row[0] for row in rows] == labels * len(samples.SEVERAL_A_ROUND)
    written = model.generate(lists[samples.SEVERAL_A_ROUND[1] - 1], seed=0, mode="parallel", parallel_mass=0.9)
    assert rows[-1][1:] == [str(written.steps), printed(samples.with_rounds(written))]
    assert re.sub(r"<sup>\d+</sup>", "", rows[-1][2]) == written.text
    assert int(rows[-1][1]) < int(rows[-4][1])


def test_the_number_behind_a_word_is_its_round():
    texts = ["the goat a hat", "the old goat ate a hat.", "the old goat ate a red hat."]
    result = SimpleNamespace(keywords=["goat", "hat"], trace=[{"text": text} for text in texts])
    wanted = (
        "the<sup>1</sup> old<sup>2</sup> **goat** ate<sup>2</sup> a<sup>1</sup> red<sup>3</sup> **hat**.<sup>2</sup>"
    )
    assert samples.with_rounds(result) == wanted


def test_a_model_for_each_tolerance_is_shown_with_the_papers_settings(model, monkeypatch):
    lists = read_keyword_lists(samples.KEYWORDS)
    asked = []
    monkeypatch.setattr(samples.insnet, "load", lambda folder, device: asked.append(folder) or model)
    section = samples.degrees_section(model, "tour", lists, {10.0: "runs/ten", float("-inf"): "runs/one"})
    labels = [row[0] for row in rows_of(section) if row[0] != "how"]
    assert labels[:3] == ["one by one", "τ = -inf, top_k 5", "τ = 10, top_k 1"] and asked == ["runs/ten", "runs/one"]
    one_by_one = SimpleNamespace(family=SimpleNamespace(traits=SimpleNamespace(inserts_in_layers=False)))
    assert samples.degrees_section(one_by_one, "other", lists, {}) == ""


def test_bold_are_required_words_new_words_and_fillings():
    assert samples.with_bold_keywords("A goat * ate a hat", ["goat", "hat"]) == r"A **goat** \* ate a **hat**"
    assert samples.with_bold_news("the big goat.", "the goat") == "the **big** goat**.**"
    kept = ["The", "sat in", "."]
    assert samples.with_bold_fillings("The old cat sat in it.", kept) == "The **old cat** sat in **it**."
    assert samples.with_bold_fillings("The cat sat in 50 B.C.", kept) == "The **cat** sat in **50 B.C**."


@pytest.mark.parametrize(
    ("first", "untruncated", "told"),
    [
        (0.9, 0.52, "The remark holds.*the work of truncation"),
        (0.9, 0.88, "The remark holds.*Truncation is not the cause"),
        (0.52, 0.5, "does not hold"),
        (0.3, 0.5, "does not hold"),
    ],
)
def test_the_verdict_on_the_papers_remark_follows_from_the_numbers(first, untruncated, told):
    section = samples.order_section(measured(first, untruncated), "../benchmarks/results/insertion_order.json")
    section = " ".join(section.split())
    assert re.search(told, section)
    assert f"{first:.0%} of the first" in section


def test_another_models_order_is_not_shown(tmp_path):
    path = tmp_path / "order.json"
    with pytest.raises(ValueError, match="measure first: python -m benchmarks"):
        samples.read_order(path, "tour")
    path.write_text(json.dumps(measured(0.9, 0.5)))
    assert samples.read_order(path, "tour")["settings"]["texts"] == 7
    with pytest.raises(ValueError, match="tells of 'tour', not of 'other'"):
        samples.read_order(path, "other")


def test_the_committed_samples_are_what_the_default_model_writes():
    page = (DOCS / "samples.md").read_text(encoding="utf-8")
    assert f"Written by the model `{DEFAULT}`" in page
    lists, rows = read_keyword_lists(samples.KEYWORDS), rows_of(page)
    for number, result in enumerate(insnet.load(device="cpu").generate_batch(lists[:5], seed=0), start=1):
        assert [str(number), ", ".join(lists[number - 1]), result.text] in rows


# ---- docs/finetune.md ----


def test_a_small_tuning_gives_a_page_and_its_figures(tmp_path):
    tuning = finetune.tune("tour", tmp_path, sentences=40, held_out=4)
    figures = finetune.headline(tuning)
    assert figures["held_out_nats_per_token_after"] < figures["held_out_nats_per_token_before"]
    assert figures["valid_loss_after"] == tuning.summary.best_loss < figures["valid_loss_before"]
    page = finetune.page(tuning, "tour", "../benchmarks/results/finetune_domain.json")
    assert str(tmp_path) not in page
    rows = rows_of(page)
    for words, before, after in zip(finetune.KEYWORDS, tuning.before.texts, tuning.after.texts, strict=True):
        assert [", ".join(words), before, after] in rows
        assert contains_in_order(before, words)
        assert contains_in_order(after, words)


def test_the_committed_page_shows_the_committed_figures():
    page = (DOCS / "finetune.md").read_text(encoding="utf-8")
    result = json.loads((ROOT / "benchmarks" / "results" / "finetune_domain.json").read_text(encoding="utf-8"))
    headline = result["headline"]
    assert f"the model is `{result['model']}`" in " ".join(page.split())
    assert result["model"] == DEFAULT
    shown = [f"{headline[f'held_out_nats_per_token_{when}']:.2f}" for when in ("before", "after")]
    assert any(row[1:3] == shown for row in rows_of(page))
    assert all(any(after == row[-1] for row in rows_of(page)) for after in result["after"]["texts"])


def test_the_pages_show_every_figure_and_no_other() -> None:
    shown = [
        name
        for page in DOCS.glob("*.md")
        for name in re.findall(r"!\[[^\]]+\]\(figures/([^)]+)\)", page.read_text(encoding="utf-8"))
    ]
    assert sorted(set(shown)) == sorted(path.name for path in (DOCS / "figures").iterdir())


# ---- the paper's appendix, at the end of docs/samples.md ----


class PapersModel:
    """Writes its keywords and then either a full stop or words without end."""

    def __init__(self, ends: bool) -> None:
        self.ends, self.asked = ends, []

    def generate_batch(self, lists, seed, **settings):
        self.asked.append(settings)
        start = " ".join(lists[0])
        texts = [f"so {start}", f"so {start} ."] if self.ends else [start + " and on" * 100]
        trace = [{"step": number, "text": text} for number, text in enumerate(texts, start=1)]
        return [SimpleNamespace(text=texts[-1], keywords=lists[0], trace=trace, finished=self.ends)]


def test_the_appendix_sets_ablations_side_by_side_and_shows_a_trajectory(monkeypatch):
    monkeypatch.setattr(appendix.Decoding, "all_settings", lambda self: {"max_words": 200})
    models = {"full": PapersModel(True), "truncated": PapersModel(False), "noglobal": PapersModel(True)}
    part = appendix.appendix(models, PapersModel(True))
    rows, first = rows_of(part), " ".join(appendix.REVIEWS[0])
    assert part.startswith(samples.APPENDIX) and ["InsNet", f"so {first} ."] in rows
    cut = next(row[1] for row in rows if row[0] == "InsNet-truncated")
    assert cut.endswith("... (non-terminating)") and len(cut.split()) == appendix.SHOWN + 2
    start = rows.index(["0", " ".join(appendix.NEWS[0])])
    assert [row[0] for row in rows[start : start + 3]] == ["0", "1", "2"] and rows[start + 2][1].endswith(" .")
    assert models["full"].asked[0] == appendix.PAPER_DECODING


def test_the_appendix_replaces_itself_alone_and_outlives_the_page(tmp_path, monkeypatch, capsys):
    page = tmp_path / "samples.md"
    page.write_text("# What it writes\n\nold\n")
    folders = [word for name in (*appendix.TITLES, "news") for word in (f"--{name}", "tour")]
    monkeypatch.setattr(appendix, "check_stops_by_itself", lambda model, name: None)
    for text in ("first", "second"):
        monkeypatch.setattr(appendix, "appendix", lambda models, news, text=text: f"{samples.APPENDIX}\n\n{text}\n")
        assert appendix.main([*folders, "--output", str(page)]) == 0
    assert page.read_text() == f"# What it writes\n\nold\n\n{samples.APPENDIX}\n\nsecond\n"
    monkeypatch.setattr(samples, "read_order", lambda path, name: {})
    monkeypatch.setattr(samples, "page", lambda *details: "# What it writes\n\nnew\n")
    assert samples.main(["--model", "tour", "--output", str(page)]) == 0
    assert page.read_text() == f"# What it writes\n\nnew\n\n{samples.APPENDIX}\n\nsecond\n"


def test_the_appendix_refuses_a_model_that_cannot_stop_as_the_papers(tmp_path, capsys):
    folders = [word for name in (*appendix.TITLES, "news") for word in (f"--{name}", "tour")]
    assert appendix.main([*folders, "--output", str(tmp_path / "samples.md")]) == 1
    assert "the model given as full was told its length" in capsys.readouterr().err
