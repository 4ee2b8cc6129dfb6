"""Children, neighbours and animals: those of the town who have no trade."""

from insnet.tour.actors import Actor

PERSON_DEEDS = (
    "buy [bread] @ at the bakery / at the market", "buy [many fruit] @ at the market / in the square",
    "buy [fish] @ at the harbour",
    "walk @ along the beach / through the park / across the bridge / along the river",
    "read [a book] @ under the old tree / in the library / by the fire", "write [a letter] to [someone]",
    "wait for the ship @ at the harbour", "visit [someone] @ in the little house by the river",
    "feed the ducks @ in the park / near the pond", "watch the boats @ from the bridge / from the window",
    "listen to the music @ in the square / at the inn", "drink [drink] @ in the garden / by the fire / at the inn",
    "pick [many fruit] @ in the garden", "look for {his} [bare belonging] @ in the park / at the inn",
    "dance @ in the square / at the wedding", "help [someone] @ at the market / in the garden",
    "sit @ on the bench / by the fire / under the old tree", "swim @ in the bay / across the river",
)  # fmt: skip
PERSON_TIMES = ("in the morning", "in the afternoon", "in the evening", "after lunch")
NAMES_OF_PRONOUN = {"she": ("Anna", "Clara", "Rosa", "Emma"), "he": ("Tom", "Peter", "Oliver", "Jacob")}
KIN_OF_PRONOUN = {"she": ("daughter", "sister", "wife", "mother"), "he": ("son", "brother", "husband", "father")}

NAMED: tuple[Actor, ...] = tuple(
    Actor(name, "", pronoun, "", PERSON_DEEDS, PERSON_TIMES, has_article=False)
    for pronoun, names in NAMES_OF_PRONOUN.items()
    for name in names
)
NEIGHBOURS: tuple[Actor, ...] = (
    Actor("woman", "", "she", "old young tall kind", PERSON_DEEDS, PERSON_TIMES),
    Actor("man", "", "he", "old young tall quiet", PERSON_DEEDS, PERSON_TIMES),
    Actor("neighbour", "", "she", "friendly old good-natured", PERSON_DEEDS, PERSON_TIMES),
    Actor("mayor", "", "he", "good-natured busy well-known", (
        *PERSON_DEEDS[:3], "open the market @ in the square", "drink [drink] with [someone] @ at the inn",
        "give [a flower] to [someone] @ at the wedding", "dance with [someone] @ at the wedding",
    ), PERSON_TIMES, sayings=("the town needs a new bridge", "welcome to our little town", "the market is open")),
)  # fmt: skip
KIN: dict[str, Actor] = {pronoun: Actor("", "", pronoun, "", PERSON_DEEDS, PERSON_TIMES) for pronoun in KIN_OF_PRONOUN}
CHILD_DEEDS = (
    "play @ in the park / on the beach / behind the school", "run @ to school / home / down the hill / along the beach",
    "build a castle @ on the beach", "learn [a song] @ at school / in the classroom",
    "fly [a kite] @ on the hill / on the beach", "chase the hens @ through the garden / across the field",
    "feed the ducks @ near the pond / in the park", "eat [many fruit] @ under the old tree / in the garden",
    "listen to [a story] @ at school / in the library / by the fire", "draw [a boat] @ in the sand / on the wall",
    "hide @ behind the barn / under the table",
)  # fmt: skip
CHILDREN: tuple[Actor, ...] = (
    Actor("boy", "boys", "he", "little shy hungry", CHILD_DEEDS, ("after school", "in the afternoon"), "happily"),
    Actor("girl", "girls", "she", "little clever merry", CHILD_DEEDS, ("after school", "in the afternoon"), "happily"),
    Actor(
        "child", "children", "they", "little merry noisy", CHILD_DEEDS, ("after school", "in the afternoon"), "happily"
    ),
)

NIGHT = ("in the evening", "late at night", "at midnight")
ANIMALS: tuple[Actor, ...] = (
    Actor("cat", "cats", "it", "grey black lazy", (
        "sleep @ by the fire / on the warm roof / under the table / on the wall",
        "steal [a fish] @ at the harbour / from the kitchen",
        "chase [a mouse] @ through the barn / across the kitchen", "drink the milk @ in the kitchen",
        "watch the birds @ from the window / from the roof", "sit @ on the wall / on the chair by the fire",
    ), manners="quietly"),
    Actor("dog", "dogs", "it", "brown friendly hungry", (
        "bark @ at the postman / at the moon / behind the gate",
        "chase the cat @ across the square / through the garden",
        "sleep @ in front of the fire / under the table", "follow [someone] @ home / to the market / along the beach",
        "dig a hole @ in the garden / on the beach", "carry a stick @ across the field",
    )),
    Actor("horse", "horses", "it", "white old strong", (
        "pull the cart @ up the hill / to the market / across the bridge", "eat [many vegetable] @ in the field",
        "eat the grass @ on the hill / by the river", "stand @ under the old tree / in the barn",
        "run @ across the field / along the beach",
    ), manners="slowly"),
    Actor("gull", "gulls", "it", "white hungry noisy", (
        "cry @ above the harbour / above the roofs", "steal [a fish] @ from the boat / from the market",
        "sit @ on the mast / on the roof of the inn", "follow the boats @ into the harbour / across the bay",
        "fly @ above the lighthouse / across the bay / over the sea",
    )),
    Actor("owl", "", "it", "old grey", (
        "sit @ in the old tree / on the roof of the church", "fly @ over the field / across the garden",
        "catch [a mouse] @ in the field / behind the barn",
        "watch the sleeping town @ from the old tree / from the church",
    ), NIGHT, "quietly", is_nocturnal=True),
    Actor("goat", "", "it", "hungry white clever", (
        "eat [all flower] @ in the garden / by the gate", "eat [a clothes] @ in the garden / behind the barn",
        "climb the wall @ of the garden / behind the church", "follow [someone] @ up the hill / to school",
        "sleep @ in the barn",
    )),
    Actor("duck", "ducks", "it", "little white noisy", (
        "swim @ across the pond / under the bridge / down the river", "eat the old bread @ in the park / near the pond",
        "walk @ across the road / through the gate", "sleep @ in the grass / beside the pond",
    )),
    Actor("fox", "", "it", "red clever young", (
        "creep @ behind the barn / through the gate / across the field", "steal a hen @ from the barn",
        "hide @ under the bridge / behind the wall", "watch the hens @ from the garden wall / from the field",
    ), NIGHT, "quietly", is_nocturnal=True),
    Actor("donkey", "", "it", "grey patient tired", (
        "carry [many cargo] @ up the hill / to the market / to the mill",
        "stand @ in the rain / in the square / under a tree",
        "eat [a clothes] @ at the market", "pull the cart @ to the mill / along the road",
    ), manners="slowly patiently"),
)  # fmt: skip
