"""Notices on the harbour wall: another register, in the town's own words, to show fine-tuning on.

A model that has only read about the town knows every word here, but none of the sentences sounds like it.
"""

from insnet.tour.dice import Dice
from insnet.tour.english import capitalised
from insnet.tour.grammar import distinct
from insnet.tour.things import NUMBERS

HOURS = ("before sunrise", "at dawn", "at noon", "in the evening", "at midnight", "after the storm")
DEADLINES = ("before sunrise", "before noon", "before the storm", "before dinner")
DAYS = ("today", "tomorrow", "on Monday", "on Wednesday", "on Friday", "on Saturday", "on Sunday", "on market day")
WORKERS = ("the sailors", "the fishermen", "the guests", "the children", "the boys", "the girls")
ORDERS = (
    "close the gate", "close all the windows", "repair the nets", "carry the barrels onto the ship", "paint the boats",
    "carry the boxes to the market", "carry the empty sacks to the mill", "feed the horses", "wait at the gate",
)  # fmt: skip
FORBIDDEN = (
    "swim near the rocks", "feed the gulls", "sleep on the deck", "play the fiddle", "sell fish on the bridge",
    "walk on the wet deck", "wait on the bridge", "sit on the barrels", "run on the deck", "play near the boats",
)  # fmt: skip
VESSELS = ("the morning ship", "the old ship", "the blue boat", "the green boat", "the large ship", "the small boat")
PLACES = ("the bridge", "the market", "the lighthouse", "the harbour", "the town hall", "the library", "the beach")
CAUSES = ("a storm is coming", "the wind is too strong", "it is a holiday", "there is no wind")
LOST = (
    "a black umbrella", "a small key", "a straw hat", "a silver watch", "a red scarf", "an old basket", "a grey cat",
)  # fmt: skip
FINDING_PLACES = (
    "on the bench", "on the beach", "near the lighthouse", "at the inn", "under the bridge", "on the deck",
)  # fmt: skip
KEEPERS = ("the captain", "the innkeeper", "the mayor", "the postman", "the lighthouse keeper")
CARGOES = ("barrels", "boxes", "sacks of flour", "loaves", "lamps")


def domain_sentences(count: int, seed: int) -> list[str]:
    """`count` distinct harbour notices of 5 to 18 words."""
    return distinct(notice, count, seed)


def notice(dice: Dice) -> str:
    """One notice, not yet checked for length or repeated words."""
    return capitalised(dice.pick((order, ban, departure, closure, find, cargo))(dice))


def order(dice: Dice) -> str:
    """Please wash the deck before noon."""
    if dice.chance(0.5):
        return f"please {dice.pick(ORDERS)} {dice.pick(DEADLINES)}."
    return f"{dice.pick(WORKERS)} must {dice.pick(ORDERS)} {dice.pick(DEADLINES)}."


def ban(dice: Dice) -> str:
    """Please don't feed the gulls on Sunday."""
    who = dice.pick(("please don't", "you must never", *(f"{workers} must not" for workers in WORKERS)))
    return f"{who} {dice.pick(FORBIDDEN)} {dice.pick((*HOURS, *DAYS))}."


def departure(dice: Dice) -> str:
    """The blue boat will leave the harbour tomorrow at dawn, and the captain will not wait."""
    text = f"{dice.pick(VESSELS)} will leave the harbour {dice.pick(DAYS)} {dice.pick(HOURS[:5])}"
    return text + dice.pick((".", ", and the captain will not wait.", ", but not in the fog."))


def closure(dice: Dice) -> str:
    """The bridge is closed today because the wind is too strong."""
    return f"{dice.pick(PLACES)} is closed {dice.pick(DAYS)} because {dice.pick(CAUSES)}."


def find(dice: Dice) -> str:
    """There is a straw hat on the bench, please visit the captain."""
    return f"there is {dice.pick(LOST)} {dice.pick(FINDING_PLACES)}, please visit {dice.pick(KEEPERS)}."


def cargo(dice: Dice) -> str:
    """The large ship needs twelve barrels tomorrow before noon."""
    amount = f"{dice.pick(NUMBERS)} {dice.pick(CARGOES)}"
    return f"{dice.pick(VESSELS)} needs {amount} {dice.pick(DAYS)} {dice.pick(DEADLINES[:3])}."
