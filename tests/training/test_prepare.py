"""Preparing: only what changed is done again, and a killed run leaves nothing half."""

from dataclasses import replace

import pytest

from insnet.text.marked import MarkedTokenizer
from insnet.text.shards import TokenShards
from insnet.training import prepare as module
from insnet.training.prepare import load_prepared, prepare


def prepared_lines(recipe, **options):
    told = []
    return prepare(recipe, say=told.append, **options), told


def test_what_is_prepared_is_the_corpus(recipe, tmp_path):
    prepared, told = prepared_lines(recipe)
    lines = (tmp_path / "corpus" / "train.txt").read_text().splitlines()
    assert [prepared.tokenizer.decode(prepared.train.tokens(row)) for row in range(50)] == lines
    assert len(prepared.valid) == 10 and prepared.unknown_share() == 0
    assert prepared.train.summary.keyword_tokens > 0
    assert told[1].startswith("train: 50 sentences")


def test_a_second_time_nothing_is_done_and_it_says_so(recipe, monkeypatch):
    first, _ = prepared_lines(recipe)
    monkeypatch.setattr(module, "write_shards", None)
    monkeypatch.setattr(MarkedTokenizer, "learn", None)
    second, told = prepared_lines(recipe)
    assert all("unchanged" in line for line in told) and len(told) == 3
    assert second.fingerprint == first.fingerprint


@pytest.mark.parametrize(
    ("change", "redone"),
    [
        (lambda recipe: replace(recipe, data=replace(recipe.data, max_tokens=19)), ["train", "valid"]),
        (lambda recipe: replace(recipe, data=replace(recipe.data, keywords=2)), ["train", "valid"]),
        (lambda recipe: replace(recipe, data=replace(recipe.data, keyword_method="none")), ["train", "valid"]),
        (
            lambda recipe: replace(recipe, tokenizer=replace(recipe.tokenizer, vocabulary_size=10)),
            ["tokenizer", "train", "valid"],
        ),
    ],
)
def test_what_a_setting_touches_is_done_again(recipe, change, redone):
    first, _ = prepared_lines(recipe)
    second, told = prepared_lines(change(recipe))
    assert [line.split(":")[0] for line in told if "unchanged" not in line] == redone
    assert second.fingerprint != first.fingerprint
    with pytest.raises(ValueError, match=r"other .* settings"):
        load_prepared(recipe)


def test_a_tokenizer_that_was_given_stays_as_long_as_it_is_what_the_recipe_describes(recipe):
    """A recipe that starts from nothing must not spoil the text for those that start from a model."""
    given = MarkedTokenizer.learn(["one two three four five"], recipe.tokenizer)
    prepared_lines(recipe)
    first, told = prepared_lines(recipe, tokenizer=given)
    assert "unchanged" not in " ".join(told)
    again, told = prepared_lines(recipe)
    assert all("unchanged" in line for line in told) and again.fingerprint == first.fingerprint
    assert again.tokenizer.fingerprint == given.fingerprint
    smaller = replace(recipe, tokenizer=replace(recipe.tokenizer, vocabulary_size=10))
    assert prepared_lines(smaller)[0].tokenizer.size == 10
    own, _ = prepared_lines(recipe)  # what was given is gone
    assert own.tokenizer.fingerprint not in (given.fingerprint, first.fingerprint) and own.unknown_share() == 0


def test_another_valid_text_is_prepared_alone(recipe, tmp_path):
    prepared_lines(recipe)
    (tmp_path / "corpus" / "valid.txt").write_text("the cat sees the dog .\n")
    prepared, told = prepared_lines(recipe)
    assert [line.split(":")[0] for line in told if "unchanged" not in line] == ["valid"]
    assert len(prepared.valid) == 1


@pytest.mark.parametrize("fatal_split", ["train", "valid"])
def test_a_killed_preparation_goes_on_with_its_stage(recipe, monkeypatch, fatal_split):
    write = module.write_shards

    def killed(folder, *arguments, **options):
        if folder.name == fatal_split:
            raise KeyboardInterrupt
        return write(folder, *arguments, **options)

    monkeypatch.setattr(module, "write_shards", killed)
    with pytest.raises(KeyboardInterrupt):
        prepared_lines(recipe)
    with pytest.raises(ValueError, match="run prepare first"):
        load_prepared(recipe)
    monkeypatch.setattr(module, "write_shards", write)
    prepared, told = prepared_lines(recipe)
    assert "tokenizer: unchanged" in told[0] and len(prepared.train) == 50
    assert ("train: unchanged" in told[1]) == (fatal_split == "valid")


def test_spoilt_shards_are_made_again(recipe, tmp_path):
    prepared_lines(recipe)
    (tmp_path / "corpus" / "prepared" / "train" / "lengths.npy").write_bytes(b"spoilt")
    prepared, told = prepared_lines(recipe)
    assert "unchanged" not in told[1] and len(TokenShards(prepared.train.folder)) == 50


def test_many_lines_are_flagged_by_several_processes_alike(recipe, monkeypatch):
    class Pool:
        """Runs jobs here: what matters is that lines are cut and put together again."""

        def __init__(self, *arguments, **options): ...

        def __enter__(self):
            return self

        def __exit__(self, *arguments): ...

        def map(self, function, jobs):
            jobs = list(jobs)
            assert len(jobs) > 1
            return [function(job) for job in jobs]

    data = replace(recipe.data, keyword_method="yake")
    alone, _ = prepared_lines(replace(recipe, data=data))
    monkeypatch.setattr(module, "_LINES_WORTH_A_POOL", 5)
    monkeypatch.setattr(module, "_LINES_PER_JOB", 3)
    monkeypatch.setattr(module, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    pooled_data = replace(data, prepared=data.prepared + "2")
    pooled, _ = prepared_lines(replace(recipe, data=pooled_data))
    flags = [[shards.importance(row).tolist() for row in range(50)] for shards in (alone.train, pooled.train)]
    assert flags[0] == flags[1] and any(map(any, flags[0]))


def test_a_missing_corpus_is_named(recipe, tmp_path):
    (tmp_path / "corpus" / "valid.txt").unlink()
    with pytest.raises(ValueError, match=r"has no valid\.txt"):
        prepared_lines(recipe)
