"""A corpus of 60 lines and a recipe for a tiny model."""

import random

import pytest

from insnet.training.recipe import Recipe, load_recipe

RECIPE = """
[data]
folder = "{folder}"
prepared = "{folder}/prepared"
max_tokens = 20
keyword_method = "tfidf"
keywords = 3
[tokenizer]
kind = "word"
vocabulary_size = 60
lower_case = true
[model]
family = "{family}"
width = 16
layers = 1
heads = 2
dropout = 0.1
[given]
unknown = 0.02
[train]
updates = 12
token_budget = 128
learning_rate = 5e-3
warmup_updates = 3
evaluate_every = 4
checkpoint_every = 3
log_every = 2
device = "cpu"
"""


def write_corpus(folder, lines=60):
    dice = random.Random(7)
    nouns, verbs = ["cat", "dog", "bird", "fish", "fox"], ["sees", "likes", "hears", "meets"]
    sentences = []
    for _ in range(lines):
        objects = " and the ".join(dice.choices(nouns, k=dice.randint(1, 4)))
        sentences.append(f"the {dice.choice(nouns)} {dice.choice(verbs)} the {objects} .")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.txt").write_text("\n".join(sentences[:-10]) + "\n", encoding="utf-8")
    (folder / "valid.txt").write_text("\n".join(sentences[-10:]) + "\n", encoding="utf-8")


@pytest.fixture
def recipe_path(tmp_path):
    """A recipe file for a corpus beside it."""
    write_corpus(tmp_path / "corpus")
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE.format(folder=tmp_path / "corpus", family="insnet"), encoding="utf-8")
    return path


@pytest.fixture
def recipe(recipe_path) -> Recipe:
    return load_recipe(recipe_path)
