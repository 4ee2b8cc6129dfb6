"""Nouns of the town, each with the adjectives that suit it.

A line reads `singular plural: adjectives`, or `noun: adjectives` for what cannot be counted.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """A noun and what may stand in front of it."""

    singular: str
    plural: str | None
    """None for what cannot be counted, such as bread."""
    adjectives: tuple[str, ...]


def noun(line: str) -> Noun:
    """The noun a line of the lists below describes."""
    forms, _, adjectives = line.partition(":")
    singular, *plural = forms.split()
    return Noun(singular, plural[0] if plural else None, tuple(adjectives.split()))


NOUNS_OF_CLASS: dict[str, tuple[Noun, ...]] = {
    name: tuple(map(noun, lines))
    for name, lines in {
        "bread": (
            "bread: fresh warm brown", "loaf loaves: small round warm", "cake cakes: sweet small round",
            "pie pies: hot sweet",
        ),
        "fruit": ("apple apples: red green sweet", "pear pears: yellow sweet", "cherry cherries: red sweet"),
        "vegetable": ("cabbage cabbages: green round", "onion onions: small brown", "carrot carrots: fresh long"),
        "fish": ("fish: fresh silver", "herring herrings: fresh silver", "crab crabs: big red"),
        "big_fish": ("fish fish: big enormous",),
        "dairy": ("milk: fresh", "butter: fresh yellow", "cheese: fresh old"),
        "meal": ("soup: hot good", "fish: fresh"),
        "drink": ("tea: hot", "coffee: hot black", "cider: sweet cold", "milk: warm"),
        "flower": ("rose roses: red white yellow", "lily lilies: white"),
        "furniture": ("chair chairs: wooden", "table tables: round long wooden"),
        "clothes": (
            "coat coats: warm long blue", "hat hats: black straw red",
            "dress dresses: green blue long", "scarf scarves: warm red",
        ),
        "belonging": ("umbrella umbrellas: black old", "hat hats: black straw", "key keys: small",
                      "basket baskets: old"),
        "letter": ("letter letters: long",),
        "mail": ("letter letters: long", "parcel parcels: heavy small", "newspaper newspapers:"),
        "book": ("book books: old thick well-known",),
        "story": ("story stories: old long strange sad funny",),
        "song": ("song songs: old sad well-known", "tune tunes: cheerful merry", "waltz waltzes: slow old"),
        "clock": ("clock clocks: old wooden old-fashioned", "watch watches: gold silver"),
        "cargo": ("barrel barrels: heavy empty", "box boxes: wooden heavy", "sack sacks: heavy empty"),
        "livestock": ("cow cows: brown", "horse horses: white old", "goat goats: hungry", "hen hens: brown white"),
        "picture": ("picture pictures: small large beautiful",),
        "map": ("map maps: old",),
        "kite": ("kite kites: red yellow",),
        "boat": ("boat boats: small blue green",),
        "ship": ("ship ships: tall old large",),
        "mouse": ("mouse mice: grey little",),
        "bird": ("bird birds: little",),
    }.items()
}  # fmt: skip

NUMBERS = ("two", "three", "four", "five", "six", "seven", "ten", "twelve")
