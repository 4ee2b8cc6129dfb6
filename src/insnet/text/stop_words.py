"""English function words: never keywords."""

_WORDS = """
    a about above across after again against all almost along already also although always am among an and another any
    anything are around as at be because been before being below between both but by can cannot could d did do does
    doing don down during each either else enough even ever every everything few for from further get got had has
    have having he her here hers herself him himself his how however i if in into is it its itself just ll m many may
    me might more most much must my myself neither never no nor not nothing now of off often on once one only or other
    others our ours ourselves out over own quite rather re really s same shall she should since so some something
    still such t than that the their theirs them themselves then there these they this those though
    through thus to too toward under until up upon us ve very was we were what whatever when where whether which while
    who whom whose why will with within without would yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_WORDS.split())

_BEFORE_NOT = frozenset({"ain", "won", "shan"})  # ain't, won't and shan't hide their verb


def is_stop_word(word: str) -> bool:
    """Whether a lower-cased word is a function word, or a contraction of one.

    >>> [is_stop_word(word) for word in ("it's", "couldn’t", "won't", "won", "well-known")]
    [True, True, True, False, False]
    """
    if word in STOP_WORDS:
        return True
    head, apostrophe, tail = word.replace("’", "'").partition("'")
    if not apostrophe:
        return False
    return head in STOP_WORDS or (tail == "t" and (head in _BEFORE_NOT or head.removesuffix("n") in STOP_WORDS))
