"""English sentences about a small town by the sea, as many as one likes: the corpus of the tour.

Bakers bake, fishermen fish, and the goat eats the hat: every deed stands with those who do it, and with objects,
places and hours that suit it. So what a small model picks up from a few thousand sentences reads as sense.
"""

import re
from collections.abc import Callable

from insnet.tour import events, phrases
from insnet.tour.dice import Dice
from insnet.tour.english import capitalised, gerund, past, third_person, with_article
from insnet.tour.function_words import content_words
from insnet.tour.phrases import Subject, fill

SHORTEST, LONGEST = 5, 18
MOST_MISSES = 10_000
"""Draws in a row that give nothing new before we say that there is no more."""

# Verbs used in every form: the rest only in the past, so that a small model meets each form of each verb often enough.
_COMMON = """
    bake sell catch feed read visit build repair sew plant watch write sing carry drink cook play
    paint wait walk sit sleep eat fly run swim buy
"""
COMMON_VERBS = frozenset(_COMMON.split())
ONGOING_VERBS = COMMON_VERBS - frozenset({"catch", "feed", "sew", "plant", "fly", "buy", "run"})


def sentences(count: int, seed: int) -> list[str]:
    """`count` distinct sentences of 5 to 18 words; fewer with the same seed are their beginning."""
    return distinct(sentence, count, seed)


def distinct(draw: Callable[[Dice], str], count: int, seed: int) -> list[str]:
    """The first `count` different, well-formed texts that `draw` gives."""
    if count < 0:
        raise ValueError(f"count {count} is negative: give 0 or more")
    dice = Dice(seed)
    found: dict[str, None] = {}  # a dict, because it remembers the order
    misses = 0
    while len(found) < count:
        text = draw(dice)
        misses = 0 if is_well_formed(text) and text not in found else misses + 1
        if misses == 0:
            found[text] = None
        elif misses > MOST_MISSES:
            raise ValueError(f"{count} different sentences wanted, about {len(found)} can be made: ask for fewer")
    return list(found)


def sentence(dice: Dice) -> str:
    """One sentence of any shape, not yet checked for length or repeated words."""
    return capitalised(dice.weighted(SHAPES)(dice))


def is_well_formed(text: str) -> bool:
    """Whether the length is right, there are two words to draw keywords from, none comes twice and none clash."""
    stems = [re.sub("'s$", "", word.lower()) for word in content_words(text)]
    if any(not deeds.isdisjoint(stems) and not oddities.isdisjoint(stems) for deeds, oddities in events.INCONGRUOUS):
        return False
    return SHORTEST <= len(text.split()) <= LONGEST and len(stems) >= 2 and len(set(stems)) == len(stems)


# --- clauses ---------------------------------------------------------------------------------------------------------


def doer(dice: Dice) -> Subject:
    """A person, or one time in five an animal."""
    return phrases.animal(dice) if dice.chance(0.2) else phrases.person(dice)


def companion(first: Subject, dice: Dice) -> Subject:
    """Somebody else who is about at the same hours: the owl does not meet the baker."""
    other = doer(dice)
    while other.actor.is_nocturnal != first.actor.is_nocturnal:
        other = doer(dice)
    return other


def deed(
    subject: Subject, dice: Dice, *, place: float = 0.6, verbs: frozenset[str] | None = None, is_habit: bool = False
) -> tuple[str, str]:
    """A verb in its base form (one of `verbs`, if given) and what follows it, with a place at the given probability."""
    deeds = [text for text in subject.actor.deeds if verbs is None or text.split()[0] in verbs]
    template, _, places = dice.pick(deeds).partition(" @ ")
    if is_habit:  # one paints pictures every week, not a picture
        template = re.sub(r"\[(?:a |many )?(?!someone|number)(\w+)\]", r"[plural \1]", template)
    verb, _, rest = template.partition(" ")
    needs_place = not rest  # "walked" alone says too little
    if places and (needs_place or dice.chance(place)):
        rest = f"{rest} {dice.pick(places.split(' / '))}".strip()
    return verb, fill(rest, subject, dice)


def predicate(subject: Subject, dice: Dice, *, place: float = 0.6) -> str:
    """A deed in the past: `sold fresh bread at the market`, sometimes `patiently mended his nets`."""
    verb, rest = deed(subject, dice, place=place)
    manner = dice.pick(subject.actor.manners.split()) + " " if subject.actor.manners and dice.chance(0.12) else ""
    return f"{manner}{past(verb)} {rest}".strip()


def clause(subject: Subject, dice: Dice, *, place: float = 0.6) -> str:
    """Somebody did something."""
    return f"{subject.text} {predicate(subject, dice, place=place)}"


def progressive(subject: Subject, dice: Dice) -> str:
    """Somebody was doing something."""
    verb, rest = deed(subject, dice, verbs=ONGOING_VERBS)
    return f"{subject.text} {subject.was} {gerund(verb)} {rest}".strip()


def habit(subject: Subject, dice: Dice) -> str:
    """Somebody often does something, or does it every day."""
    verb, rest = deed(subject, dice, place=0.75, verbs=COMMON_VERBS, is_habit=True)
    verb = verb if subject.is_plural else third_person(verb)
    if dice.chance(0.4):
        return f"{subject.text} {dice.pick(events.HABIT_ADVERBS)} {verb} {rest}"
    text, time = f"{subject.text} {verb} {rest}", dice.pick(events.HABIT_TIMES)
    return f"{time}, {text}" if dice.chance(0.4) else f"{text} {time}"


def time_of(subject: Subject, dice: Dice) -> str:
    """A time in the past that suits the subject."""
    return dice.pick(subject.actor.times) if dice.chance(0.55) else dice.pick(events.PAST_TIMES)


def event_for(subject: Subject, dice: Dice) -> str:
    """Something that happens at an hour when the subject is about."""
    by_hour = events.NIGHT_EVENTS if subject.actor.is_nocturnal else events.DAY_EVENTS
    return dice.pick(by_hour) if dice.chance(0.5) else dice.pick(events.ANY_EVENTS)


def background_for(subject: Subject, dice: Dice) -> str:
    """Something that goes on meanwhile."""
    return dice.pick(events.NIGHT_BACKGROUNDS if subject.actor.is_nocturnal else events.BACKGROUNDS)


# --- shapes of sentences ---------------------------------------------------------------------------------------------


def simple(dice: Dice) -> str:
    """The fisherman sold two red crabs at the harbour yesterday."""
    subject = doer(dice)
    text = clause(subject, dice)
    return f"{text} {time_of(subject, dice)}." if dice.chance(0.35) else f"{text}."


def fronted(dice: Dice) -> str:
    """In the evening, the innkeeper poured hot tea for the captain; or at the market, the farmer sold six onions."""
    subject = doer(dice)
    template, _, places = dice.pick(subject.actor.deeds).partition(" @ ")
    verb, _, rest = template.partition(" ")
    resting = _resting_places(places)
    if rest and resting and dice.chance(0.5):
        return fill(f"{dice.pick(resting)}, {subject.text} {past(verb)} {rest}.", subject, dice)
    return f"{time_of(subject, dice)}, {clause(subject, dice)}."


def habitual(dice: Dice) -> str:
    """The baker usually sells fresh bread at the market in summer."""
    return f"{habit(doer(dice), dice)}."


def coordinated(dice: Dice) -> str:
    """The teacher rang the bell, and the children ran home."""
    first = doer(dice)
    if dice.chance(0.3):
        return f"{event_for(first, dice)}, and {clause(first, dice)}."
    if dice.chance(0.5):
        return f"{first.text} {predicate(first, dice, place=0.3)} and {predicate(first, dice)}."
    return f"{clause(first, dice, place=0.3)}, and {clause(companion(first, dice), dice, place=0.3)}."


def contrasted(dice: Dice) -> str:
    """The sailor wanted to swim, but the sea was too cold."""
    is_animal = dice.chance(0.15)
    subject = phrases.pet(dice) if is_animal else phrases.person(dice)
    hopes, outcomes = dice.pick(events.ANIMAL_BUTS if is_animal else events.PERSON_BUTS)
    time = f"{dice.pick(events.PAST_TIMES)}, " if dice.chance(0.15) else ""
    hope, outcome = fill(dice.pick(hopes), subject, dice), fill(dice.pick(outcomes), subject, dice)
    return f"{time}{subject.text} {hope}, but {outcome}."


def reasoned(dice: Dice) -> str:
    """The postman took an umbrella because the sky was dark."""
    is_animal = dice.chance(0.15)
    subject = phrases.pet(dice) if is_animal else phrases.person(dice)
    effects, causes = dice.pick(events.ANIMAL_REASONS if is_animal else events.PERSON_REASONS)
    effect, cause = fill(dice.pick(effects), subject, dice), fill(dice.pick(causes), subject, dice)
    if dice.chance(0.25) and not re.search(r"\b(he|she|it|they)\b", cause):
        return f"because {cause}, {subject.text} {effect}."
    return f"{subject.text} {effect} because {cause}."


def timed(dice: Dice) -> str:
    """When the rain stopped, the gardener watered the roses; or the cat was sleeping when the bell rang."""
    subject = doer(dice)
    event = event_for(subject, dice)
    conjunction = dice.pick(("when", "before", "after"))
    if dice.chance(0.3):
        return f"{progressive(subject, dice)} when {event}."
    if dice.chance(0.5):
        return f"{conjunction} {event}, {clause(subject, dice)}."
    return f"{clause(subject, dice)} {conjunction} {event}."


def meanwhile(dice: Dice) -> str:
    """While the wind blew from the sea, the keeper lit the great lamp."""
    subject = doer(dice)
    if dice.chance(0.4):
        return f"while {clause(subject, dice, place=0.3)}, {clause(companion(subject, dice), dice, place=0.3)}."
    if dice.chance(0.5):
        return f"while {background_for(subject, dice)}, {clause(subject, dice)}."
    return f"{clause(subject, dice)} while {background_for(subject, dice)}."


def in_sequence(dice: Dice) -> str:
    """The farmer fed the cows before he drove the cart to the market."""
    subject = doer(dice)
    return f"{clause(subject, dice, place=0.3)} before {subject.pronoun} {predicate(subject, dice, place=0.4)}."


def existential(dice: Dice) -> str:
    """There were three white hens in the garden that morning."""
    subject = phrases.animal(dice)
    places = [place for template in subject.actor.deeds for place in _resting_places(template.partition(" @ ")[2])]
    noun = re.sub("^the ", "", subject.text)
    amount = f"were {noun}" if subject.is_plural else f"was {with_article(noun)}"
    return f"there {amount} {dice.pick(places)}{dice.pick(('', ' ' + time_of(subject, dice)))}."


def described_scene(dice: Dice) -> str:
    """The harbour was quiet after the storm; or it rained all night."""
    if dice.chance(0.35):
        weather = f"{dice.pick(events.WEATHER)} {dice.pick(events.WEATHER_SPANS)}"
        return f"{weather}, and {clause(phrases.person(dice), dice)}."
    place, was, states = dice.pick(events.SCENES)
    scene, time = f"{place} {was} {dice.pick(states)}", dice.pick(events.SCENE_TIMES)
    if dice.chance(0.3):
        return f"{scene}, and {clause(doer(dice), dice)}."
    return f"{scene} {time}."


def identified(dice: Dice) -> str:
    """The man who bought a gold watch was the captain's brother."""
    noun, pronoun = dice.pick((("man", "he"), ("woman", "she")))
    relative = phrases.relative(dice, pronoun)
    stranger = Subject(f"the {noun} who", relative.actor, pronoun)
    return f"{clause(stranger, dice)} was {relative.text}."


def question(dice: Dice) -> str:
    """Did the miller carry six sacks of flour to the bakery yesterday?"""
    if dice.chance(0.4):
        return fill(dice.pick(events.OTHER_QUESTIONS), None, dice)
    subject = phrases.person(dice)
    verb, rest = deed(subject, dice, verbs=COMMON_VERBS)
    if dice.chance(0.3) and not {"her", "his", "their"} & set(rest.split()):
        return f"who {past(verb)} {rest} {dice.pick(events.QUESTION_TIMES)}?"
    opening = dice.pick(("did", "did", "why did", "when did"))
    time = "" if opening == "when did" else " " + dice.pick(events.QUESTION_TIMES)
    return f"{opening} {subject.text} {verb} {rest}{time}?"


def exclamation(dice: Dice) -> str:
    """What an enormous fish the fisherman caught!"""
    return fill(dice.pick(events.EXCLAMATIONS), None, dice)


def speech(dice: Dice) -> str:
    """ "It will rain tomorrow," said the farmer."""
    speaker = phrases.speaker(dice)
    if dice.chance(0.2):
        opening, rest = dice.pick(events.SAYING_PAIRS)
        return f'"{capitalised(opening)}," said {speaker.text}, "{rest}."'
    sayings = speaker.actor.sayings if speaker.actor.sayings and dice.chance(0.75) else events.SAYINGS
    words = capitalised(fill(dice.pick(sayings), None, dice))
    if words[-1] not in "?!" and dice.chance(0.3):
        return f'{speaker.text} said, "{words}."'
    verb = {"?": "asked", "!": "called"}.get(words[-1]) or dice.pick(("said", "said", "said", "answered", "whispered"))
    tail = f" {dice.pick(events.SAYING_TAILS)}" if dice.chance(0.25) else ""
    return f'"{words}{"" if words[-1] in "?!" else ","}" {verb} {speaker.text}{tail}.'


def _resting_places(places: str) -> list[str]:
    prepositions = ("in ", "on ", "under ", "behind ", "beside ", "near ", "by ", "at the ")
    return [place for place in places.split(" / ") if place.startswith(prepositions)]


SHAPES: tuple[tuple[float, Callable[[Dice], str]], ...] = (
    (22, simple),
    (14, fronted),
    (8, habitual),
    (9, coordinated),
    (7, contrasted),
    (7, reasoned),
    (9, timed),
    (6, meanwhile),
    (3, in_sequence),
    (2, existential),
    (5, described_scene),
    (2, identified),
    (7, question),
    (1, exclamation),
    (10, speech),
)
