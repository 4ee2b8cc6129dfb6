"""What the tour's sentences promise: the same every time, well formed, long and short, and hardly ever alike."""

import re
import subprocess
import sys
from collections import Counter
from statistics import mean, pstdev

import pytest

from insnet.tour import domain_sentences, sentences
from insnet.tour.dice import Dice
from insnet.tour.english import gerund, past, third_person
from insnet.tour.function_words import FUNCTION_WORDS, bare_words, content_words
from insnet.tour.grammar import ONGOING_VERBS, SHAPES, is_well_formed, sentence
from insnet.tour.townsfolk import ANIMALS, CHILDREN, NAMED, NEIGHBOURS
from insnet.tour.trades import TRADES

MANY = sentences(5000, seed=11)
LENGTHS = [len(text.split()) for text in MANY]
GOLDEN = [
    "Who visited the neighbour on Sunday?",
    "After the sun came out, the painter's father bought ten cherries in the square.",
    "On Saturday, the baker baked some bread for the whole town.",
]


def test_first_three_sentences_are_those_of_every_python_version():
    assert sentences(3, seed=0) == GOLDEN


def test_same_seed_same_sentences_and_fewer_are_their_beginning():
    assert sentences(200, seed=5) == sentences(300, seed=5)[:200]
    assert sentences(50, seed=5) != sentences(50, seed=6)


def test_count_is_kept():
    assert [len(sentences(count, seed=3)) for count in (0, 1, 77)] == [0, 1, 77]


@pytest.mark.parametrize("count, seed", [(-1, 0), (1, -1)])
def test_negative_count_or_seed_is_refused_in_one_sentence(count, seed):
    with pytest.raises(ValueError, match="is negative: give 0 or more"):
        sentences(count, seed)


def test_lengths_spread_from_five_to_eighteen_words_around_ten_and_a_half():
    assert min(LENGTHS) == 5
    assert max(LENGTHS) == 18
    assert mean(LENGTHS) == pytest.approx(10.5, abs=0.3)
    assert pstdev(LENGTHS) > 2.5


def test_vocabulary_is_small_enough_to_learn():
    words = Counter(re.sub("'s$", "", word.lower()) for text in MANY for word in bare_words(text))
    assert 500 <= len(words) <= 710
    assert sum(count for count in words.values() if count < 5) < 0.003 * sum(words.values())


def test_a_stands_before_consonants_and_an_before_vowels():
    articles = [match.groups() for text in MANY for match in re.finditer(r"\b(an?) (\w)", text, re.IGNORECASE)]
    assert len(articles) > 1000
    assert all((article.lower() == "an") == (letter in "aeiou") for article, letter in articles)


def test_was_and_were_agree_with_their_subject():
    plural = re.compile(r"\b(children|sailors|fishermen|farmers|boys|girls|cats|dogs|horses|they) was\b")
    singular = re.compile(rf"\b({'|'.join(actor.noun for actor in TRADES)}|he|she|it) were\b")
    assert not [text for text in MANY if plural.search(text) or singular.search(text)]


def test_sentences_are_cased_and_closed_like_english():
    assert all(re.match(r'"?[A-Z]', text) for text in MANY)
    assert all(re.search(r'[.?!]"?$', text) for text in MANY)
    assert all(text.count('"') % 2 == 0 for text in MANY)


def test_nothing_of_the_notation_is_left_over():
    assert not [text for text in MANY if re.search(r"[\[\]{}@/_]|  |^ | $| [.,?!]", text)]


def test_no_sentence_comes_twice_and_few_would():
    assert len(set(MANY)) == len(MANY)
    dice = Dice(23)
    drawn = [text for text in (sentence(dice) for _ in range(5000)) if is_well_formed(text)]
    assert len(set(drawn)) > 0.95 * len(drawn)


def test_every_shape_of_sentence_occurs():
    dice = Dice(1)
    for _, shape in SHAPES:
        assert any(is_well_formed(shape(dice)) for _ in range(50)), shape.__name__


@pytest.mark.parametrize(
    "pattern",
    [r"^Did .*\?$", r'^".*," said ', " because ", ", but ", "^While ", r"\bdon't\b", "well-known", "'s daughter", "!$"],
)
def test_the_promised_patterns_occur(pattern):
    assert any(re.search(pattern, text) for text in MANY)


def test_everybody_has_something_to_be_doing():
    for actor in (*TRADES, *NAMED, *NEIGHBOURS, *CHILDREN, *ANIMALS):
        assert any(deed.split()[0] in ONGOING_VERBS for deed in actor.deeds), actor.noun


def test_every_sentence_has_two_content_words_and_repeats_none():
    for text in MANY:
        words = [word.lower() for word in content_words(text)]
        assert len(words) >= 2
        assert len(set(words)) == len(words)
        assert not FUNCTION_WORDS & set(words)


@pytest.mark.parametrize(
    "verb, forms",
    [
        ("bake", ("baked", "bakes", "baking")),
        ("carry", ("carried", "carries", "carrying")),
        ("play", ("played", "plays", "playing")),
        ("sit", ("sat", "sits", "sitting")),
        ("watch", ("watched", "watches", "watching")),
        ("stop", ("stopped", "stops", "stopping")),
    ],
)
def test_verb_forms(verb, forms):
    assert (past(verb), third_person(verb), gerund(verb)) == forms


def test_notices_sound_different_in_words_the_town_knows():
    notices = domain_sentences(300, seed=0)
    assert len(set(notices)) == 300
    assert not set(notices) & set(MANY)
    known = {word for text in sentences(6000, seed=0) for word in bare_words(text)}
    assert {word for text in notices for word in bare_words(text)} <= known


def test_more_notices_than_there_are_is_refused_instead_of_searched_for_without_end():
    with pytest.raises(ValueError, match="ask for fewer"):
        domain_sentences(20_000, seed=0)


def test_grammar_needs_no_torch():
    code = "import sys, insnet.tour; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
