"""Recipes: what is wrong is told by name, and a resolved recipe reads back as itself."""

import math
import tomllib

import pytest

from insnet.training.recipe import load_recipe, recipe_of_tables
from insnet.training.tables import toml_text


def test_the_resolved_recipe_reads_back_as_itself(recipe_path, tmp_path):
    settings = [
        'generation.note="a \\"quoted\\" ü\\nline"',
        "generation.length=[3, 4.5]",
        "objective.tau=[inf, 3, -inf]",
    ]
    recipe = load_recipe(recipe_path, settings)
    (tmp_path / "resolved.toml").write_text(recipe.to_toml(), encoding="utf-8")
    again = load_recipe(tmp_path / "resolved.toml")
    assert again.to_toml() == recipe.to_toml()
    assert again.generation == {"note": 'a "quoted" ü\nline', "length": [3, 4.5]}
    assert again.train == recipe.train and again.objective == recipe.objective
    assert again.fingerprint() == recipe.fingerprint()


def test_overrides_change_single_values(recipe_path):
    recipe = load_recipe(recipe_path, ["train.updates=7", "train.clip=2", "model.width=32", "data.folder=some/where"])
    assert (recipe.train.updates, recipe.train.clip, recipe.data.folder) == (7, 2.0, "some/where")
    assert recipe.model.for_vocabulary(50).width == 32
    assert recipe.model.for_vocabulary(50).vocabulary_size == 50


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("train.learning_rat=1", "did you mean 'learning_rate'?"),
        ("model.widht=32", "did you mean 'width'?"),
        ("given.fractoin=0.1", "did you mean 'fraction'?"),
        ("tokenizer.knid=1", "did you mean 'kind'?"),
        ("trian.updates=3", "did you mean 'train'?"),
        ("model.family=inset", "did you mean 'insnet'?"),
        ("train.updates=many", "train.updates is 'many'; expected a whole number"),
        ("train.updates=1.5", "expected a whole number"),
        ("train.updates=true", "expected a whole number"),
        ("train.compile=1", "expected true or false"),
        ("train.precision=fp8", "expected one of 'auto', 'float32', 'bf16'"),
        ("train.updates=0", "expected 1 or more"),
        ("train.learning_rate=0", "expected more than 0"),
        ("model.heads=5", "multiple"),
        ("model.vocabulary_size=5", "may not set 'vocabulary_size'"),
        ("model.width=wide", "model.width is 'wide'"),
        ("given.none=3", "not a share"),
        ("train.epochs=-1", "expected 0 or more"),
        ("train.label_smoothing=-0.1", "label_smoothing is -0.1; expected 0 or more, and less than 1"),
        ("train.length_shares=5", "train.length_shares is 5; expected a list"),
        ("train.length_shares=[0, 0]", "length_shares is [0.0, 0.0]; expected shares of 0 or more, not all 0"),
        ("train.length_shares=[1, -1]", "expected shares of 0 or more"),
        ("train.padded_lengths=[8, 0]", "padded_lengths is [8, 0]; expected lengths of 1 or more"),
        ("objective.tau=3.0", "objective.tau is 3.0; expected a list"),
        ("objective.tau=[]", "tau is []; expected one or more numbers"),
        ("objective.tau=[nan]", "tau is [nan]; expected one or more numbers"),
        ("objective.tao=[1]", "did you mean 'tau'?"),
        ("nonsense", "TABLE.KEY=VALUE"),
    ],
)
def test_a_mistake_is_named(recipe_path, setting, told):
    with pytest.raises(ValueError, match=r"tiny\.toml") as caught:
        load_recipe(recipe_path, [setting])
    assert told in str(caught.value)


@pytest.mark.parametrize("table", ["data", "model", "train"])
def test_a_missing_table_is_named(recipe_path, table):
    tables = tomllib.loads(recipe_path.read_text())
    del tables[table]
    with pytest.raises(ValueError, match=rf"lacks the table \[{table}\]"):
        recipe_of_tables(tables)


def test_a_missing_key_without_default_is_named(recipe_path):
    tables = tomllib.loads(recipe_path.read_text())
    del tables["train"]["updates"]
    with pytest.raises(ValueError, match="lacks 'updates'"):
        recipe_of_tables(tables)


@pytest.mark.parametrize("content", [None, "train = 3", "[train\n", "x = 1\n"])
def test_a_file_that_is_no_recipe_is_named(tmp_path, content):
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=r"bad\.toml"):
        load_recipe(path)


def test_what_changes_the_model_changes_the_fingerprint(recipe_path):
    base = load_recipe(recipe_path).fingerprint()
    for setting in (
        "train.learning_rate=1e-3",
        "model.layers=2",
        "given.none=0.2",
        "data.max_tokens=19",
        "train.label_smoothing=0.1",
    ):
        assert load_recipe(recipe_path, [setting]).fingerprint() != base
    layered = load_recipe(recipe_path, ["objective.tau=[3, inf, -inf]"])
    assert layered.fingerprint() != base and layered.objective.tau == (3.0, math.inf, -math.inf)
    free = ("train.updates=99", "train.epochs=3", "train.log_every=1", "train.patience=1", "data.folder=elsewhere")
    for setting in (*free, "objective.tau=[-inf]", "train.length_shares=[]"):
        assert load_recipe(recipe_path, [setting]).fingerprint() == base


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_recipe_says_only_what_differs_from_its_base(recipe_path, tmp_path):
    middle = write(tmp_path / "middle.toml", 'base = "tiny.toml"\n[train]\nupdates = 99\nclip = 2.0\n')
    top = write(tmp_path / "top.toml", 'base = "middle.toml"\n[train]\nclip = 3.0\n[objective]\ntau = [3.0]\n')
    by_hand = ["train.updates=99", "train.clip=3.0", "objective.tau=[3.0]"]
    assert load_recipe(top).to_toml() == load_recipe(recipe_path, by_hand).to_toml()
    assert load_recipe(middle, ["train.clip=4.0"]).train.clip == 4.0


def test_another_family_has_no_model_settings_from_the_base(recipe_path, tmp_path):
    base = write(
        tmp_path / "counting.toml", recipe_path.read_text().replace("layers = 1", "layers = 1\ncount_head = 20")
    )
    other = write(tmp_path / "other.toml", f'base = "{base.name}"\n[model]\nfamily = "autoregressive"\nwidth = 24\n')
    with base.open("a") as file:
        file.write("[objective]\ntau = [3.0]\n")
    model = load_recipe(other).model
    assert model.family == "autoregressive" and dict(model.settings) == {"width": 24}
    same = write(tmp_path / "same.toml", f'base = "{base.name}"\n[model]\nfamily = "insnet"\nwidth = 32\n')
    assert load_recipe(same).model.for_vocabulary(50).count_head == 20


def test_a_base_that_leads_nowhere_is_named(recipe_path, tmp_path):
    with pytest.raises(ValueError, match=r"no recipe .*gone\.toml, which .*a\.toml names as its base"):
        load_recipe(write(tmp_path / "a.toml", 'base = "gone.toml"\n'))
    with pytest.raises(ValueError, match=r"b\.toml: base is 3; expected the name of a recipe"):
        load_recipe(write(tmp_path / "b.toml", "base = 3\n"))
    write(tmp_path / "c.toml", 'base = "d.toml"\n')
    with pytest.raises(ValueError, match=r"c\.toml is its own base, by way of .*d\.toml"):
        load_recipe(write(tmp_path / "d.toml", 'base = "c.toml"\n').parent / "c.toml")


def test_a_family_knows_its_own_objective_only(recipe_path):
    with pytest.raises(ValueError, match=r"unknown \[objective\] key 'tau': expected none"):
        load_recipe(recipe_path, ["model.family=autoregressive", "objective.tau=[10.0]"])
    assert load_recipe(recipe_path, ["model.family=autoregressive"]).tables()["objective"] == {}


def test_toml_writes_what_tomllib_reads():
    tables = {"a": {"x": True, "y": [1, 2.0, "z"], "odd key": {"in": {"deep": 1e-05}}, "big": 1e300, "del": "\x7f\t"}}
    assert tomllib.loads(toml_text(tables)) == tables
