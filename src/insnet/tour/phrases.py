"""Words to phrases: subjects, objects, filled templates."""

import re
from dataclasses import dataclass

from insnet.tour.actors import Actor
from insnet.tour.dice import Dice
from insnet.tour.english import with_article
from insnet.tour.things import NOUNS_OF_CLASS, NUMBERS, Noun
from insnet.tour.townsfolk import ANIMALS, CHILDREN, KIN, KIN_OF_PRONOUN, NAMED, NEIGHBOURS
from insnet.tour.trades import TRADES

POSSESSIVE = {"he": "his", "she": "her", "it": "its", "they": "their"}


@dataclass(frozen=True)
class Subject:
    """Who a clause is about."""

    text: str
    actor: Actor
    pronoun: str

    @property
    def is_plural(self) -> bool:
        """Whether the verb agrees with `they`."""
        return self.pronoun == "they"

    @property
    def was(self) -> str:
        """`was` or `were`."""
        return "were" if self.is_plural else "was"


def person(dice: Dice) -> Subject:
    """A human subject: mostly one of the trades, else a neighbour, a child, a name, or somebody's daughter."""
    draw = dice.weighted(((60, trade), (9, neighbour), (10, child), (9, named), (12, relative)))
    return draw(dice)


def trade(dice: Dice) -> Subject:
    """One of the trades."""
    return described(dice.pick(TRADES), dice)


def neighbour(dice: Dice) -> Subject:
    """A man or a woman of the town."""
    return described(dice.pick(NEIGHBOURS), dice)


def child(dice: Dice) -> Subject:
    """A child or several."""
    return described(dice.pick(CHILDREN), dice)


def named(dice: Dice) -> Subject:
    """Somebody with a name."""
    return described(dice.pick(NAMED), dice)


def speaker(dice: Dice) -> Subject:
    """One person who can speak for himself or herself."""
    subject = person(dice)
    while subject.is_plural:
        subject = person(dice)
    return subject


def pet(dice: Dice) -> Subject:
    """A cat or a dog."""
    return described(dice.pick(ANIMALS[:2]), dice)


def animal(dice: Dice) -> Subject:
    """One of the town's animals."""
    return described(dice.pick(ANIMALS), dice)


def relative(dice: Dice, pronoun: str | None = None) -> Subject:
    """Somebody's kin: `the baker's daughter`."""
    pronoun = pronoun or dice.pick(tuple(KIN_OF_PRONOUN))
    kinship = dice.pick(KIN_OF_PRONOUN[pronoun])
    owner = dice.pick([actor for actor in TRADES if _could_have(actor, kinship)])
    return Subject(f"the {owner.noun}'s {kinship}", KIN[pronoun], pronoun)


def described(actor: Actor, dice: Dice) -> Subject:
    """The actor as a subject: `Clara`, `the old baker`, `three sailors`."""
    if not actor.has_article:
        return Subject(actor.noun, actor, actor.pronoun)
    is_plural = actor.pronoun == "they" or (bool(actor.plural) and dice.chance(0.1))
    noun = actor.plural if is_plural else actor.noun
    adjective = dice.pick(actor.adjectives.split()) + " " if dice.chance(0.4) else ""
    determiner = dice.pick(NUMBERS[:4]) if is_plural and dice.chance(0.4) else "the"
    return Subject(f"{determiner} {adjective}{noun}", actor, "they" if is_plural else actor.pronoun)


def fill(template: str, subject: Subject | None, dice: Dice) -> str:
    """The template with every `[determiner class]` and every pronoun of the subject written out.

    `[rose]` takes any determiner, `[a rose]` and `[the rose]` the one they name; `[many rose]` is `three roses` or
    `roses`, `[all rose]` is `the roses`, `[plural rose]` is `roses`, `[bare rose]` is `rose`. `[someone]`,
    `[bare animal]` and `[number]` are drawn from the town's people, animals and number words.
    """
    if subject is not None:
        template = template.replace("{his}", POSSESSIVE[subject.pronoun])
        template = template.replace("{he}", subject.pronoun).replace("{was}", subject.was)
    return re.sub(r"\[([^\]]+)\]", lambda match: _written_out(match[1], dice), template)


def _written_out(reference: str, dice: Dice) -> str:
    if reference == "someone":
        return _someone(dice)
    if reference == "number":
        return dice.pick(NUMBERS)
    if reference == "bare animal":
        return dice.pick(ANIMALS[:3]).noun
    determiner, _, name = reference.rpartition(" ")
    noun = dice.pick(NOUNS_OF_CLASS[name])
    return _noun_phrase(noun, determiner or dice.pick(("a", "a", "a", "the", "many", "many")), dice)


def _someone(dice: Dice) -> str:
    actor = dice.weighted(((70, dice.pick(TRADES)), (18, dice.pick(NAMED)), (12, dice.pick(NEIGHBOURS))))
    if not actor.has_article:
        return actor.noun
    adjective = dice.pick(actor.adjectives.split()) + " " if dice.chance(0.25) else ""
    return f"the {adjective}{actor.noun}"


def _noun_phrase(noun: Noun, determiner: str, dice: Dice) -> str:
    adjective = dice.pick(noun.adjectives) + " " if noun.adjectives and dice.chance(0.45) else ""
    singular = adjective + noun.singular
    if determiner == "bare":
        return singular
    if determiner == "the":
        return f"the {singular}"
    if noun.plural is None:
        return f"some {singular}" if determiner in ("a", "many") and dice.chance(0.3) else singular
    if determiner == "a":
        return with_article(singular)
    plural = adjective + noun.plural
    if determiner == "all":
        return f"the {plural}"
    return f"{dice.pick(NUMBERS)} {plural}" if determiner == "many" and dice.chance(0.5) else plural


def _could_have(owner: Actor, kinship: str) -> bool:
    return not (owner.pronoun == "he" and kinship == "husband") and not (owner.pronoun == "she" and kinship == "wife")
