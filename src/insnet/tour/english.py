"""The little English grammar the tour needs: verb forms, articles, capitals."""

PAST_OF_IRREGULAR = {
    "be": "was", "bring": "brought", "build": "built", "buy": "bought", "catch": "caught", "come": "came", "cut": "cut",
    "creep": "crept", "dig": "dug", "draw": "drew", "drink": "drank", "drive": "drove", "eat": "ate", "feed": "fed",
    "find": "found", "fly": "flew", "forget": "forgot", "give": "gave", "go": "went", "grind": "ground", "grow": "grew",
    "have": "had", "hide": "hid", "keep": "kept", "know": "knew", "lead": "led", "leave": "left", "lend": "lent",
    "light": "lit", "lose": "lost", "make": "made", "meet": "met", "read": "read", "ride": "rode", "ring": "rang",
    "run": "ran", "sell": "sold", "sew": "sewed", "sing": "sang", "sit": "sat", "sleep": "slept", "stand": "stood",
    "steal": "stole", "sweep": "swept", "swim": "swam", "take": "took", "teach": "taught", "tell": "told",
    "wind": "wound", "write": "wrote",
}  # fmt: skip
DOUBLES_ITS_LAST_LETTER = frozenset({"cut", "dig", "forget", "run", "sit", "stop", "swim"})
THIRD_OF_IRREGULAR = {"have": "has", "go": "goes"}


def past(verb: str) -> str:
    """The simple past: `bake` -> `baked`, `carry` -> `carried`, `sell` -> `sold`."""
    if verb in PAST_OF_IRREGULAR:
        return PAST_OF_IRREGULAR[verb]
    if verb.endswith("e"):
        return verb + "d"
    if _ends_in_consonant_y(verb):
        return verb[:-1] + "ied"
    return _doubled(verb) + "ed"


def third_person(verb: str) -> str:
    """The present with he, she or it: `bake` -> `bakes`, `carry` -> `carries`, `catch` -> `catches`."""
    if verb in THIRD_OF_IRREGULAR:
        return THIRD_OF_IRREGULAR[verb]
    if _ends_in_consonant_y(verb):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("ch", "sh", "s", "x")) else "s")


def gerund(verb: str) -> str:
    """The -ing form: `bake` -> `baking`, `sit` -> `sitting`."""
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else _doubled(verb)
    return stem + "ing"


def with_article(phrase: str) -> str:
    """The phrase behind `a` or `an`. Our word lists hold no silent h and no `useful`, so the first letter decides."""
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


def capitalised(text: str) -> str:
    """The text with its first letter in upper case, also behind an opening quote."""
    first_letter = 1 if text.startswith('"') else 0
    return text[:first_letter] + text[first_letter].upper() + text[first_letter + 1 :]


def _ends_in_consonant_y(verb: str) -> bool:
    return verb.endswith("y") and verb[-2] not in "aeiou"


def _doubled(verb: str) -> str:
    return verb + verb[-1] if verb in DOUBLES_ITS_LAST_LETTER else verb
