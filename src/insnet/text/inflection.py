"""The forms of English words, keywords that leave the choice among them open, `run*` for run, runs, ran or running, and
bans of all of them.

Irregular words and common verbs and adjectives are listed; of whatever else is not known to stay as it is, a noun's
plural is made.
"""

import math
import re
from collections.abc import Iterable
from functools import cache
from itertools import product, takewhile

from insnet.text import inflected_words as lists
from insnet.text.stop_words import STOP_WORDS

ANY_FORM = "*"  # behind a keyword
_KEYWORD = re.compile(r"(?P<before>(?:.*[\s-])?)(?P<word>[^\W\d_]{2,})\*")
_LITERAL = re.compile(r"(?P<before>.*)\\\*")
_ENDS_IN_SHORT_SYLLABLE = re.compile("(?:[^aeiou]|qu)*[aeiou][^aeiouwxy]")
_POSSESSIVES = ("", "'s", "’s")
_MOST_BANNED_FORMS = 256  # of a phrase: what is looked for at every step
_WITHOUT_FORMS = ("able", "ed", "ful", "ible", "ical", "ional", "less", "ly", "ness", "ous")  # unless listed


def choices_of(keyword: str) -> tuple[str, ...]:
    r"""What a keyword may be printed as: itself, or behind an asterisk its last word in every form. An asterisk that is
    meant is written \*, and so may be any that follows no word.

    >>> choices_of("ice cream*"), choices_of("Run*"), choices_of("5*"), choices_of(r"run\*")
    (('ice cream', 'ice creams'), ('Run', 'Runs', 'Ran', 'Running'), ('5*',), ('run*',))
    """
    if found := _KEYWORD.fullmatch(keyword):
        return tuple(found["before"] + form for form in forms(found["word"]))
    escaped = _LITERAL.fullmatch(keyword)
    return (escaped["before"] + ANY_FORM if escaped else keyword,)


def banned_forms(phrase: str) -> tuple[str, ...]:
    r"""What a banned word or phrase stands for: itself, or each word with an asterisk behind it in every form and as a
    possessive. As in keywords, an asterisk that is meant is \*.

    >>> banned_forms("red apple*")
    ('red apple', "red apple's", 'red apple’s', 'red apples', "red apples's", 'red apples’s')
    >>> banned_forms("5*"), banned_forms(r"run\*")
    (('5*',), ('run*',))
    """
    of_words = [_banned_forms_of_word(word) for word in phrase.split()]
    count = math.prod(map(len, of_words))
    if not of_words:
        raise ValueError("a banned word is empty; give at least one character that is no space")
    if count > _MOST_BANNED_FORMS:
        raise ValueError(f"cannot ban {phrase!r}: it stands for {count} phrases; put an asterisk behind fewer words")
    return tuple(map(" ".join, product(*of_words)))


def _banned_forms_of_word(word: str) -> tuple[str, ...]:
    choices = choices_of(word)
    if not _KEYWORD.fullmatch(word):
        return choices
    return tuple(form + ending for form in choices for ending in _POSSESSIVES)


def forms(word: str) -> tuple[str, ...]:
    """The word and then its other forms, in its case; the word alone where no other is known.

    >>> [forms(word) for word in ("child", "carry", "big", "quickly")]
    [('child', 'children'), ('carry', 'carries', 'carried', 'carrying'), ('big', 'bigger', 'biggest'), ('quickly',)]
    """
    lowered = word.lower()
    others = _known_forms().get(lowered) or _regular_forms(lowered)
    return tuple(dict.fromkeys([word, *(_in_case_of(word, form) for form in others)]))


def with_s(word: str) -> str:
    """The regular plural of a noun, and the third person of a verb.

    >>> [with_s(word) for word in ("dog", "dish", "cherry", "day", "potato")]
    ['dogs', 'dishes', 'cherries', 'days', 'potatoes']
    """
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in _words(lists.IN_OES):
        return word + "es"
    return word[:-1] + "ies" if re.search("[^aeiou]y$", word) else word + "s"


def with_ending(word: str, ending: str) -> str:
    """The word with -ing, or with an ending in e-: -ed, -er, -est.

    >>> [with_ending(word, "ing") for word in ("dance", "stop", "lie", "see", "panic")]
    ['dancing', 'stopping', 'lying', 'seeing', 'panicking']
    >>> with_ending("try", "ed"), with_ending("agree", "ed"), with_ending("big", "er"), with_ending("prefer", "ed")
    ('tried', 'agreed', 'bigger', 'preferred')
    """
    if word.endswith("e"):
        if ending == "ing" and word.endswith("ie"):
            return word[:-2] + "ying"
        is_whole = ending == "ing" and word.endswith(("ee", "oe", "ye"))
        return (word if is_whole else word[:-1]) + ending
    if ending != "ing" and re.search("[^aeiou]y$", word):
        return word[:-1] + "i" + ending
    if word.endswith("c"):
        return word + "k" + ending
    doubles = _ENDS_IN_SHORT_SYLLABLE.fullmatch(word) or word in _words(lists.DOUBLING)
    return word + (word[-1] if doubles else "") + ending


def _regular_forms(word: str) -> tuple[str, ...]:
    """The other forms of a word that is not listed with any."""
    if not _may_have_forms(word):
        return ()
    if word.endswith(("ify", "ize")):
        return _of_regular_verb(word)
    is_man = word.endswith("man") and word not in _words(lists.NOUNS)
    return (word[:-2] + "en",) if is_man else (with_s(word),)


def _may_have_forms(word: str) -> bool:
    """Whether a word that is not listed with forms may be a noun or verb in its dictionary form."""
    if word in _words(lists.NOUNS):
        return True
    if not word.isascii() or word in STOP_WORDS or word in _words(lists.UNCHANGED):
        return False
    return not word.endswith(_WITHOUT_FORMS) and (word[-1] != "s" or word.endswith(("ss", "us")))


@cache
def _known_forms() -> dict[str, tuple[str, ...]]:
    """All forms of each listed word, by its dictionary form and, where that is no word of its own, by any other."""
    groups = list(_groups())
    known: dict[str, tuple[str, ...]] = {}
    for group in groups:
        known[group[0]] = tuple(dict.fromkeys([*known.get(group[0], ()), *group]))
    for group in groups:
        for form in set(group) - _words(lists.NOUNS):
            known.setdefault(form, known[group[0]])
    return known


def _groups() -> Iterable[tuple[str, ...]]:
    for line in lists.IRREGULAR.split(";"):
        yield tuple(line.split())
    for line in lists.VERBS_WITH_PASTS.split(";"):
        verb, *pasts = line.split()
        yield (verb, with_s(verb), *pasts, with_ending(verb, "ing"))
    for verb in lists.REGULAR_VERBS.split():
        yield (verb, *_of_regular_verb(verb))
    for adjective in lists.ADJECTIVES.split():
        yield (adjective, with_ending(adjective, "er"), with_ending(adjective, "est"))


def _of_regular_verb(verb: str) -> tuple[str, ...]:
    return with_s(verb), with_ending(verb, "ed"), with_ending(verb, "ing")


@cache
def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


def _in_case_of(word: str, form: str) -> str:
    """The form with the capitals of the word.

    >>> [_in_case_of(*pair) for pair in (("Run", "ran"), ("RUN", "ran"), ("iPhone", "iphones"), ("Be", "is"))]
    ['Ran', 'RAN', 'iPhones', 'Is']
    """
    if word.isupper():
        return form.upper()
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(word.lower(), form, strict=False))
    shared = sum(1 for _ in alike)
    form = word[:shared] + form[shared:]
    return form[:1].upper() + form[1:] if word[:1].isupper() else form
