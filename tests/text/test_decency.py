"""What the lists hold is said here in rot13, as there."""

import codecs

import pytest

from insnet.text.decency import INDECENT_WORDS, UNFIT_WORDS, indecent_words, is_decent, unfit_words
from insnet.text.words import split


def plain(text):
    return codecs.decode(text, "rot13")


FORMS = """
    avttref SNTTBG Ergneqrq juberf shpxvat shpxre phagf fuvggvat fuvggrq encvat frk betvrf nffrf chffvrf znfgheongvat
    fyhgf pbpx unys-oerrqf tnatonatrq puvaxf avttre’f
"""


@pytest.mark.parametrize("word", FORMS.split())
def test_bad_words_are_found_in_every_form_and_case(word):
    assert len(indecent_words(f"They said: {plain(word)}!")) == 1
    assert not is_decent(plain(word))


@pytest.mark.parametrize(
    "text",
    [
        "Essex, Middlesex and Scunthorpe lie in England.",
        "A cockpit, a cocktail, a peacock and a shuttlecock.",
        "The assassin assessed the assembly with class and passion.",
        "Grapes, drapes and scrapes.",
        "An analyst in Arsenal's analysis.",
        "Gay and lesbian couples, disabled people and Jews met the sexual health team about breast cancer.",
        "The queer old man pricked up his ears.",
        "Raccoons cocked their heads at the cumin, the document and the titan.",
        "Dick's mother liked Moby-Dick.",
        "A scrap of pizza, a therapist and a hotshot.",
    ],
)
def test_innocent_words_pass(text):
    assert indecent_words(text) == []


def test_words_that_hyphens_join_are_looked_at_one_by_one_unless_listed_whole():
    assert indecent_words(plain("N shpx-lbh nggvghqr")) == [plain("shpx")]
    assert indecent_words(plain("gung unys-oerrq")) == [plain("unys-oerrq")]
    assert indecent_words("that half of that breed") == []


def test_what_is_given_is_not_counted_but_what_is_added_is():
    ass = plain("nff")
    assert is_decent(f"The {ass} ate a carrot.", given=["carrot", ass.upper()])
    assert not is_decent(f"The {ass} ate another {ass}.", given=[ass])
    assert is_decent(f"The {ass} ate another {ass}.", given=[ass, f"another {ass}"])
    assert not is_decent(f"The {ass} sang.", given=["sang"])
    assert not is_decent(f"The {ass} and the {plain('fyhg')}.", given=[ass, ass])


def test_text_to_learn_from_is_held_to_a_longer_list():
    text = plain("Ur pbzzvggrq fhvpvqr; gurl orurnqrq uvz.")
    assert unfit_words(text) == [plain("fhvpvqr"), plain("orurnqrq")]
    assert is_decent(text)
    assert INDECENT_WORDS < UNFIT_WORDS


def test_lists_are_lower_case_single_words_without_what_everybody_writes():
    assert all(word == word.lower() and split(word) == [word] for word in UNFIT_WORDS)
    everyday = {"a", "the", "he", "she", "be", "as", "but", "class", "pass", "bloody", "kill", "murder", "sexual"}
    assert not everyday & UNFIT_WORDS
