"""Times, weather, reasons, disappointments and sayings: what holds the deeds of the town together."""

PAST_TIMES = (
    "yesterday", "last week", "last summer", "on Monday", "on Tuesday", "on Wednesday", "on Thursday", "on Friday",
    "on Saturday", "on market day", "on a cold winter day", "on a warm spring day", "on the first day of summer",
)  # fmt: skip
HABIT_TIMES = ("every day", "every week", "every Sunday", "in summer", "in winter", "in spring")
HABIT_ADVERBS = ("often", "always", "sometimes", "usually")
QUESTION_TIMES = ("yesterday", "last week", "this morning", "on Sunday", "last night")

# What happens in the town by itself: something to do things before, after and at the sound of.
DAY_EVENTS = (
    "the sun rose", "the market opened", "the snow melted", "the school bell rang", "the fog lifted",
    "the sun came out", "the morning ship arrived",
)  # fmt: skip
NIGHT_EVENTS = ("the moon rose", "the first stars came out", "the sun went down", "the lamps were lit", "it grew dark")
ANY_EVENTS = (
    "the church bell rang", "the rain stopped", "the storm began", "the wind turned", "the first snow fell",
    "the guests arrived", "the ship came in",
)  # fmt: skip
BACKGROUNDS = (
    "the rain fell on the roofs", "the wind blew from the sea", "the town was still asleep", "the snow fell",
    "the band played in the square", "it was raining",
)  # fmt: skip
NIGHT_BACKGROUNDS = (*BACKGROUNDS, "the children slept", "the moon shone on the sea")

# A place or a thing of the weather, how it can be, and the verb that goes with it.
SCENES = (
    ("the harbour", "was", ("quiet", "empty", "full of ships", "busy", "hidden in the fog")),
    ("the sea", "was", ("calm", "rough", "cold", "grey and cold")),
    ("the streets", "were", ("empty", "white with snow", "wet", "full of music", "quiet")),
    ("the market", "was", ("noisy", "full of people", "empty")),
    ("the sky", "was", ("clear", "grey", "dark")),
    ("the inn", "was", ("full of guests", "warm and noisy", "full of music", "half-empty")),
    ("the hills", "were", ("green", "white with snow", "quiet", "hidden in the fog")),
    ("the classroom", "was", ("warm", "noisy", "quiet", "full of children")),
    ("the bakery", "was", ("warm", "full of good smells", "closed", "full of people")),
    ("the wind", "was", ("cold", "strong", "warm")),
)
SCENE_TIMES = (
    "that morning", "that evening", "in the early morning", "after the storm", "before the storm", "on Sunday", "again",
)  # fmt: skip
WEATHER = (
    "it rained", "it snowed", "the wind blew", "the sun shone", "the fog stayed", "the rain fell",
    "the church bells rang",
)  # fmt: skip
WEATHER_SPANS = (
    "all night", "all day", "for three days", "until noon", "until the evening", "for a week",
)  # fmt: skip

# What one does, and why. `{he}` is the doer.
PERSON_REASONS = (
    (("stayed at home", "closed all the windows", "ran home", "took a warm coat"),
     ("it was raining", "a storm was coming", "the wind was too strong", "the sky was dark")),
    (("went to bed early", "sat by the fire", "went home early"),
     ("{he} {was} tired", "the day was long and hard", "{he} {was} cold and wet")),
    (("bought bread and cheese", "went to the inn", "asked for a bowl of soup"),
     ("{he} {was} hungry", "dinner was late", "there was nothing in the kitchen")),
    (("danced in the square", "laughed and sang", "sang all evening", "danced all night"),
     ("the music was so good", "spring was here at last", "the news was good", "it was a holiday")),
    (("called the doctor", "couldn't sleep", "lit the lamp again", "ran through the streets"),
     ("the child was sick", "there was a noise at the door", "there was a noise in the kitchen")),
    (("took a warm coat", "stayed by the fire all day", "looked for a warm scarf", "drank hot tea"),
     ("it was snowing", "the morning was cold", "winter was here")),
    (("missed the ship", "ran to the harbour", "missed the wedding"),
     ("the church clock was slow", "{he} slept too long", "the bridge was closed", "{he} forgot the time")),
)  # fmt: skip
ANIMAL_REASONS = (
    (("hid under the table", "ran into the barn", "did not leave the barn", "didn't sleep"),
     ("the wind was loud", "a storm was coming", "the children were too noisy")),
    (("came into the kitchen", "waited at the door", "followed the children home", "looked through the window"),
     ("it was hungry", "it was cold outside", "there was fish for dinner", "it was snowing")),
)  # fmt: skip

# What one hoped for, and what came of it.
PERSON_BUTS = (
    (("wanted to swim", "wanted to go to the beach", "wanted to swim in the bay"),
     ("the sea was too cold", "the waves were too high", "the wind was too strong", "it began to rain")),
    (("wanted to buy [a clothes]", "wanted to buy [a clock]", "wanted to buy [a picture]"),
     ("{he} had no money", "it was too expensive", "the shop was closed", "{he} needed the money for bread")),
    (("looked for {his} [bare belonging]", "searched the whole house for {his} [bare belonging]"),
     ("{he} didn't find it", "it was at the inn", "the goat had eaten it", "it was under the bed")),
    (("wanted to sleep", "went to bed early", "wanted to read [a book]", "wanted to write [a letter]"),
     ("the music was too loud", "the gulls were too noisy", "the neighbours were singing", "the dog barked all night")),
    (("went to the library", "walked to the bakery", "came to the town hall"),
     ("nobody was there", "it was already closed", "the door was locked", "{he} {was} too late")),
    (("asked for [a bread]", "asked for a bowl of soup", "wanted to eat [a bread]"),
     ("there was nothing left", "the kitchen was closed", "the cat was faster")),
)  # fmt: skip
ANIMAL_BUTS = (
    (("chased [the bird]", "ran after [the mouse]", "waited for [the bird] all day"),
     ("it was too slow", "it caught nothing", "the gate was closed", "it was too lazy")),
    (("wanted to sleep", "slept by the fire", "waited at the door"),
     ("the children were too noisy", "nobody opened the door", "the music was too loud", "the fire went out")),
)  # fmt: skip

SAYINGS = (
    "it will rain tomorrow", "it will snow tonight", "I don't like the sea", "I can't find my [bare belonging]",
    "I've lost my [bare belonging]", "we're going to the market", "you're late again", "let's go home",
    "my brother lives near the river", "please close the door", "I have never seen such [a big_fish]",
    "it's a beautiful day", "there is a ship in the harbour", "the music was wonderful", "I would like [a bread]",
    "I would like some [bare drink]", "some [bare drink], please",
    "don't forget your [bare belonging]", "I'll buy [a clothes] tomorrow",
    "the market is closed on Sunday", "spring is coming", "my father was a sailor", "that isn't my [bare belonging]",
    "where is my [bare belonging]?", "can you hear the music?", "have you seen my [bare animal]?", "what time is it?",
    "who opened the gate?", "is there any soup left?", "come and see the ship!", "look at the snow!",
)  # fmt: skip
SAYING_TAILS = ("with a smile", "from the window", "at the door", "at last", "in the evening")
SAYING_PAIRS = (
    ("it will rain", "but I have an umbrella"), ("the sea is rough", "but the boat is strong"),
    ("I'm tired", "but the day is beautiful"), ("the clock is old", "but it's never late"),
    ("I am not hungry", "but I'd like some cake"), ("the road is long", "and the night is cold"),
    ("the coat is old", "but it's warm"), ("winter is here", "and the nights are long"),
)  # fmt: skip

OTHER_QUESTIONS = (
    "where does [someone] live now?", "have you seen [someone] today?", "when will the ship leave the harbour?",
    "why is [someone] so late today?", "how many ships are in the harbour?", "who will help [someone] tomorrow?",
    "is there [a bread] left for [someone]?", "do you know [someone] at the inn?", "why was the music so loud?",
    "what did [someone] say about the weather?", "where did you buy [the clothes]?",
    "is your [bare belonging] on the bench?",
)  # fmt: skip
EXCLAMATIONS = (
    "what a beautiful morning it was!", "how quiet the harbour was after the storm!", "what a storm it was!",
    "how beautifully the fiddler played in the square!", "what [a big_fish] the fisherman caught!",
    "what a long winter it was!", "how sweet the apples were last summer!", "what a noise the gulls made!",
    "what [a song] the children sang!", "how [someone] laughed at the story!",
)  # fmt: skip

# Words that make no sense in one sentence: nobody swims in the snow.
_COLD = frozenset({"snow", "snowed", "snowing", "winter"})
_WET = frozenset({"rain", "rained", "raining", "storm"})
INCONGRUOUS: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (frozenset({"swam", "swim", "swims", "swimming"}), _COLD | _WET),
    (frozenset({"roses", "lilies", "apples", "pears", "cherries", "grass", "summer", "bench", "castle"}), _COLD),
    (frozenset({"kite", "kites", "castle", "bench", "grass", "danced"}), _WET),
    (frozenset({"watered", "water"}), _COLD | _WET),
    (frozenset({"cheerful"}), frozenset({"cheerfully"})),
    (frozenset({"quiet"}), frozenset({"quietly"})),
    (frozenset({"patient"}), frozenset({"patiently"})),
    (frozenset({"asleep"}), frozenset({"noisy", "market", "school", "wedding", "guests"})),
)
