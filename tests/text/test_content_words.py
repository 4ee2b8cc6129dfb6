"""Which words people ask for, and which of them are nouns, told from where they stand."""

import pickle

from insnet.text.content_words import CONTENT, NOUN, ContentWords
from insnet.text.words import split

LINES = [
    "The dog barked at the mailman.",
    "A dog and the mailman met in Paris.",
    "They walk to the park in 1999.",
    "I walk my dog, and you walk the cat.",
    "We barked.",
]


def importance(line):
    return dict(zip(split(line), ContentWords.learn(LINES).of_line(line), strict=True))


def test_nouns_stand_behind_determiners_and_before_function_words_or_marks():
    learned = ContentWords.learn(LINES)
    assert learned.nouns == {"dog", "mailman", "park", "cat"}
    assert pickle.loads(pickle.dumps(learned)) == learned


def test_names_and_nouns_are_nouns_numbers_and_verbs_are_content_and_the_rest_is_nothing():
    found = importance("Yesterday Anna took the dog to Rome in 1999, and walked.")
    assert {word for word, value in found.items() if value == NOUN} == {"Anna", "dog", "Rome"}
    assert {word for word, value in found.items() if value == CONTENT} == {"Yesterday", "took", "1999", "walked"}


def test_parts_of_longer_words_are_nothing():
    assert importance("the dog- park")["dog"] == 0


def test_lines_are_judged_one_by_one():
    learned = ContentWords.learn(LINES)
    assert learned(LINES) == [learned.of_line(line) for line in LINES]
