"""Which words come first: trajectories are read off correctly, and the figures are what a reader would count."""

import json
import random
import re
from collections import Counter

import pytest
from small_models import KINDS, LINES, small_model

from benchmarks.insertion_order import WordRanks, describe, in_random_order, measure, trajectory_of
from insnet.decoding.request import Request, required_words
from insnet.evaluation.task import Task
from insnet.text.words import MARK, split

LISTS = [["captain", "new york"], [], ["bread"], ["goat", "hat", "garden"]] * 5
LONG = {"min_words": 6, "max_tokens": 24, "stopping": "sampled"}


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return small_model("insnet", request.param, generation=LONG)


@pytest.fixture(scope="module")
def written(model):
    requests = [Request(required_words(words), bounds=model.generation.bounds) for words in LISTS]
    return model.scribe.write(requests, list(range(len(LISTS))), model.generation)


def test_a_trajectory_lists_the_inserted_pieces_in_their_order(model, written):
    for text in written:
        trajectory = trajectory_of(text, model.tokenizer)
        pieces = [model.tokenizer.piece(token) for step in text.steps for _, token, _ in step.inserts]
        assert len(trajectory) == len(pieces) > 0
        for (_, word), piece in zip(trajectory, pieces, strict=True):
            assert piece in word or "\\x" in piece  # half a character is no part of a printed word


def test_a_trajectory_names_the_words_of_the_printed_text(model, written):
    for text in written:
        words = [word for _, word in sorted(set(trajectory_of(text, model.tokenizer)))]
        printed = "".join(text.text.split())
        for phrase in text.request.phrases():
            required = "".join(phrase.split())  # as it was given, or with a capital where a sentence begins
            printed = re.sub(f"{re.escape(required)}|{re.escape(required.capitalize())}", "", printed, count=1)
        assert Counter("".join("".join(words).split())) == Counter(printed)


def test_ranks_are_those_of_counting_every_word():
    ranks = WordRanks.count(LINES)
    words = [part.strip(MARK).lower() for line in LINES for part in split(line)]
    counts = Counter(words)
    for word in ("the", ".", "captain", "ship"):
        commoner = sum(count > counts[word] for count in counts.values())
        equal = sum(count == counts[word] for count in counts.values())
        assert commoner < ranks.rank(word.upper()) <= commoner + equal
    assert ranks.rank("xylophonist") == len(counts) + 1
    assert ranks.words == len(words)


def test_a_random_order_keeps_words_whole_and_is_uniform():
    trajectory = [(0, "a"), (1, "break"), (2, "."), (1, "break")]
    firsts = Counter()
    for seed in range(600):
        drawn = in_random_order(trajectory, random.Random(seed))
        assert Counter(drawn) == Counter(trajectory)
        assert abs(drawn.index((1, "break")) - (3 - drawn[::-1].index((1, "break")))) == 1
        firsts[drawn[0][0]] += 1
    assert all(150 < firsts[number] < 250 for number in range(3))


def test_the_description_is_what_one_counts_by_hand():
    ranks = WordRanks.count(["the the the cat cat ."])  # the 1, cat 2, . 3
    first = [(1, "The"), (2, "."), (0, "cat")]
    second = [(0, "."), (1, "dog")]
    described = describe([first, second], ranks)
    by_tenth = described["by_tenth"]
    assert [entry["insertions"] for entry in by_tenth] == [2, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert by_tenth[0] == {
        "insertions": 2,
        "rank": 2,
        "typical_rank": pytest.approx(3**0.5),
        "function_share": 0.5,
        "punctuation_share": 0.5,
    }
    assert by_tenth[9]["rank"] == 3  # cat is 2, dog was never seen and is 4
    assert [entry["insertions"] for entry in described["by_step"]] == [2, 2, 1, 0, 0, 0, 0, 0, 0, 0]


def test_a_preference_shows_and_a_random_order_shows_none():
    """Texts written with every function word first, as the paper saw it."""
    words = ["the", "of", "and", "goat", "garden", "hat", "ship", "bread", "rope", "song"]
    trajectories = [list(enumerate(words))] * 200
    ranks = WordRanks.count(["the of and"] * 9 + LINES)
    shuffled = [in_random_order(trajectory, random.Random(seed)) for seed, trajectory in enumerate(trajectories)]
    preferred, null = (describe(each, ranks)["by_tenth"] for each in (trajectories, shuffled))
    assert (preferred[0]["function_share"], preferred[-1]["function_share"]) == (1, 0)
    assert null[0]["function_share"] == pytest.approx(0.3, abs=0.12)
    assert null[-1]["function_share"] == pytest.approx(0.3, abs=0.12)


def test_the_headline_is_the_first_and_last_tenth_of_the_detail(model):
    task = Task("tour", "valid", ["-"] * len(LISTS), LISTS)
    headline, detail = measure(model, task, WordRanks.count(LINES), seed=3)
    for prefix, name in (("", "decoded"), ("random_", "decoded_in_random_order"), ("untruncated_", "untruncated")):
        tenths = detail[name]["by_tenth"]
        assert headline[f"{prefix}rank_first_tenth"] == tenths[0]["rank"]
        assert headline[f"{prefix}punctuation_share_last_tenth"] == tenths[-1]["punctuation_share"]
    decoded, shuffled = (
        sum(entry["insertions"] for entry in detail[name]["by_tenth"])
        for name in ("decoded", "decoded_in_random_order")
    )
    assert shuffled == detail["settings"]["shuffles"] * decoded
    assert json.loads(json.dumps(headline)) == headline == measure(model, task, WordRanks.count(LINES), seed=3)[0]


def test_the_order_of_a_model_that_has_learned_several_can_be_chosen():
    model = small_model("insnet", "word", order="left_to_right+random")
    task = Task("tour", "valid", LINES[:3], [["captain"], ["bread"], []])
    ranks = WordRanks.count(LINES)
    first, second = (measure(model, task, ranks, order=order) for order in ("", "random"))
    assert first[0] != second[0]
    assert second[1]["settings"]["generation"]["order"] == "random"
