"""Which words carry a sentence's content: those that are not function words."""

_LIST = """
    a about above across after again against all along already always am an and any are around as at be because before
    began behind beside but by can can't couldn't did didn't do does doesn't don't down during every everyone for from
    had half has have he her here his how i i'd i'll i'm i've if in into is isn't it it's its just last let's like many
    may me more must my near never no nobody not nothing now of often on once one onto or our out outside over past
    please she should so some still such than that the their them there they this through to today tomorrow tonight too
    two three four five six seven ten twelve under until up usually was we we'll we're were what when where while who
    whose why will with would yesterday you you're your front enough first sometimes
"""
FUNCTION_WORDS = frozenset(_LIST.split())
PUNCTUATION = "\"'.,;:?!"


def bare_words(text: str) -> list[str]:
    """The words of a text, in order and cased as they stand, without the punctuation around them."""
    stripped = (word.strip(PUNCTUATION) for word in text.split())
    return [word for word in stripped if word]


def content_words(text: str) -> list[str]:
    """The words of a text that are not function words, in order and cased as they stand."""
    return [word for word in bare_words(text) if word.lower() not in FUNCTION_WORDS]
