"""What an actor of the town is: a person or an animal with its deeds, hours and sayings."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """One who does things.

    A deed is written `verb rest @ place / place`: the verb in its base form, `[class]` for a noun phrase
    (see `phrases.fill`), `{his}` for the actor's possessive, then places that suit the deed, if any.
    """

    noun: str
    """The singular noun, or a name."""
    plural: str
    """The plural; empty for names and for those of whom the town has one."""
    pronoun: str
    """he, she, it or they."""
    adjectives: str
    """Adjectives that suit the noun, separated by spaces."""
    deeds: tuple[str, ...]
    """What the actor does."""
    times: tuple[str, ...] = ("in the morning", "in the afternoon", "at noon")
    """Hours that suit the deeds."""
    manners: str = ""
    """Adverbs that suit all of the deeds."""
    sayings: tuple[str, ...] = ()
    """What only this actor would say, without closing comma or full stop."""
    is_nocturnal: bool = False
    """Whether the actor is abroad in the evening and at night."""
    has_article: bool = True
    """False for names."""
