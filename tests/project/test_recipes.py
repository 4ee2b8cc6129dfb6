"""The recipes that come with the project: each can be read, and those that are compared differ in what they say."""

import re
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.decodings import read_settings
from insnet.decoding.config import GenerationConfig
from insnet.families import FAMILIES
from insnet.families.storage import save_model
from insnet.training.recipe import Recipe, load_recipe

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"
NAMES = [path.stem for path in sorted(RECIPES.glob("*.toml"))]


def recipe(name: str) -> Recipe:
    return load_recipe(RECIPES / f"{name}.toml")


def base_of(name: str) -> str | None:
    return tomllib.loads((RECIPES / name).read_text(encoding="utf-8")).get("base")


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_can_be_read_and_its_texts_fit(name: str) -> None:
    found = recipe(name)
    GenerationConfig.of(found.generation)
    config = found.model.for_vocabulary(found.tokenizer.vocabulary_size if found.tokenizer else 50_000)
    if getattr(config, "count_head", 0):
        assert config.count_head >= found.data.max_tokens, "every text can be counted"


def test_recipes_are_toml_alone_and_a_base_has_no_base() -> None:
    assert {path.suffix for path in RECIPES.iterdir()} == {".toml"}
    bases = {base for name in NAMES if (base := base_of(f"{name}.toml"))}
    assert bases and {base: base_of(base) for base in bases if base_of(base)} == {}


@pytest.mark.parametrize("kind", ["layered", "plan_and_write", "base"])
@pytest.mark.parametrize("name", ["yelp", "news"])
def test_what_starts_from_a_model_of_both_texts_has_its_tokens_and_weights(name: str, kind: str) -> None:
    start, own = recipe(f"both_{kind}"), recipe(f"{name}_{kind}")
    assert own.tokenizer == start.tokenizer and own.train.padded_lengths == start.train.padded_lengths
    models = [asdict(each.model.for_vocabulary(own.tokenizer.vocabulary_size)) for each in (start, own)]
    assert models[0] == {**models[1], "dropout": models[0]["dropout"]}


def test_layers_are_learned_by_the_same_model_on_the_same_tokens() -> None:
    sequential, layered = recipe("general"), recipe("general_layered")
    assert layered.objective.merges_rounds and not sequential.objective.merges_rounds
    assert float("-inf") in layered.objective.tau, "and stays sequential where asked"
    for table in ("data", "tokenizer", "model", "given"):
        assert layered.tables()[table] == sequential.tables()[table]


def test_the_small_model_is_given_words_as_its_teacher_was_and_stays_small(tmp_path: Path) -> None:
    small, teacher = recipe("small"), recipe("everyday")
    assert small.given == teacher.given and small.data.keyword_method == teacher.data.keyword_method
    assert {float("-inf"), float("inf")} == {*small.objective.tau}, "it writes one by one and in rounds"
    model = FAMILIES["insnet"](small.model.for_vocabulary(small.tokenizer.vocabulary_size))
    save_model(tmp_path, model, eight_bits=True)
    assert (tmp_path / "model.safetensors").stat().st_size <= 20 * 2**20


@pytest.mark.parametrize("name", ["yelp", "news"])
def test_what_is_decoded_as_in_the_paper_differs_in_its_stop_head_alone(name: str) -> None:
    ours, theirs = (recipe(f"{name}_{kind}").model.for_vocabulary(20000) for kind in ("layered", "threshold"))
    assert asdict(theirs) == {**asdict(ours), "count_head": 0, "length_conditioned": False}


@pytest.mark.parametrize("name", ["both", "yelp", "news"])
def test_what_is_compared_has_the_same_text_size_and_budget(name: str) -> None:
    ours, theirs = recipe(f"{name}_layered"), recipe(f"{name}_plan_and_write")
    assert (theirs.data, theirs.tokenizer) == (ours.data, ours.tokenizer)
    if name == "both":
        assert theirs.train == ours.train
    else:  # it learns a set by heart at once, and is at its best after a few updates at a falling rate
        assert theirs.train.updates * theirs.train.token_budget < ours.train.updates * ours.train.token_budget
        assert (theirs.train.length_shares, theirs.train.optimizer) == (ours.train.length_shares, ours.train.optimizer)
    assert replace(theirs.given, fraction=ours.given.fraction) == ours.given
    sizes = [asdict(each.model.for_vocabulary(20000)) for each in (ours, theirs)]
    assert all(sizes[0][key] == sizes[1][key] for key in ("width", "heads", "dropout"))
    assert sizes[0]["layers"] + sizes[0]["slot_layers"] == sizes[1]["layers"]


@pytest.mark.parametrize("ablation", ["truncated", "noglobal"])
def test_an_ablation_changes_one_switch_of_the_papers_model(ablation: str) -> None:
    paper, ablated = recipe("yelp_full").tables(), recipe(f"yelp_{ablation}").tables()
    assert not paper["model"][ablation] and ablated["model"].pop(ablation)
    del paper["model"][ablation]
    assert paper == ablated and paper["model"]["count_head"] == 0, "a stop head that is asked at every step"


def test_the_script_of_the_main_table_names_recipes_that_exist_and_settings_that_are_known() -> None:
    script = (ROOT / "scripts" / "tables.sh").read_text(encoding="utf-8")
    recipes = re.findall(r"recipes/(\S+?\.toml)", script)
    named = [
        re.sub(r"\$\{set\}|SET", data, name).replace("$start", "layered")
        for name in recipes
        for data in ("yelp", "news")
    ]
    assert len(set(recipes)) == 9 and all((RECIPES / name).is_file() for name in named)
    ways = dict(re.findall(r'^((?:yelp|news)_\w+)="(.*)"$', script, flags=re.MULTILINE))
    shared = dict(re.findall(r'^(of_\d+)="(.*)"$', script, flags=re.MULTILINE))
    candidates = {}

    def read(text: str) -> list[GenerationConfig]:
        settings = read_settings(re.sub(r"\$(of_\d+)", lambda found: shared[found[1]], text))
        return [GenerationConfig.of(each) for each in settings]

    for name, text in ways.items():
        (config,) = read(text)
        candidates[name] = config.selection.candidates
    assert len(ways) == 6 and min(candidates.values()) == 16
    for data in ("yelp", "news"):  # the rival gets as many as ours, and many tries
        assert candidates[f"{data}_plan_and_write"] == candidates[f"{data}_one_by_one"]
        lines = re.search(rf"^{data}_tries=\((.*?)\)$", script, flags=re.MULTILINE | re.DOTALL)
        tries = [config for line in re.findall(r'"(.+?)"', lines[1] if lines else "") for config in read(line)]
        assert len(tries) == 11 and {each.selection.candidates for each in tries} == {candidates[f"{data}_one_by_one"]}
