"""Small models with random weights, prompts and edits for them, and what a family offers in plain tensors."""

from functools import cache

import torch
from torch import Tensor

from insnet.decoding.choose import Chooser
from insnet.decoding.config import Bounds, GenerationConfig
from insnet.decoding.decide import Decider, of_open_slots
from insnet.decoding.loop import decode
from insnet.decoding.prompt import prompt_of_requests
from insnet.decoding.request import Request, required_words
from insnet.decoding.trace import Recorder
from insnet.families import FAMILIES
from insnet.families.offers import ChosenSlots
from insnet.insertion.canvas import CLOSE, NOTHING, Edits
from insnet.model import Model
from insnet.text.batching import TokenBatch
from insnet.text.marked import MarkedTokenizer, TokenizerConfig
from insnet.text.specials import BOS, EOS
from insnet.text.tokenizer import Tokenizer
from insnet.tour.grammar import sentences

KINDS = ("word", "bpe")
LINES = sentences(300, 0)
_SYMBOLS = [  # symbols that lean on either neighbour or on both, of which the sentences above have few
    "Write to me@home and/or a*b=c, ~50 of +10 (or) @noon & <tag> \\o/ 3–4 a—b #one $5 £6 100% [x] {y} “so” «da» it’s",
    "Half…way; yes: no? no! 'quoted' -5 x_y ... -- §7 ¿que? 1/2 a.b a:b",
]
_SIZE = {"word": 900, "bpe": 420}
ENDS = {
    "autoregressive": lambda family: [(family.token_head.bias[EOS], 3.5)],
    "insertion_transformer": lambda family: [
        (family.end_head.bias, 9.0 if family.config.finalisation == "slot" else 7.0)
    ],
}
"""Where the end is one choice among hundreds, what makes it as likely with random weights as a stop head says it is."""


@cache
def tokenizer_of(kind: str, lower_case: bool = False) -> Tokenizer:
    """The vocabulary of 300 sentences and of symbols in every position."""
    return MarkedTokenizer.learn(LINES + _SYMBOLS * 9, TokenizerConfig(kind, _SIZE[kind], lower_case))


def shake(module: torch.nn.Module, seed: int = 0, scale: float = 0.3) -> None:
    """Gives every parameter, biases and gains too, a random value: zeros would hide mistakes."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=noise, dtype=torch.float64) * scale)


def small_family(name: str, vocabulary: int, *, seed: int = 0, scale: float = 0.3, dtype=torch.float64, **config):
    """An untrained family of two layers."""
    settings = {"width": 16, "layers": 2, "heads": 2, "dropout": 0.0, **config}
    family = FAMILIES[name](FAMILIES[name].Config(vocabulary_size=vocabulary, **settings))
    shake(family, seed, scale)
    with torch.no_grad():
        for bias, more in ENDS.get(name, lambda _: [])(family):
            bias += more
    return family.to(dtype).eval()


def small_model(name: str, kind: str, *, lower_case: bool = False, generation: dict | None = None, **options) -> Model:
    """An untrained model in float64, which stops neither at once nor never."""
    tokenizer = tokenizer_of(kind, lower_case)
    family = small_family(name, tokenizer.size, **options)
    return Model(family, tokenizer, GenerationConfig.of({"max_tokens": 14, **(generation or {})}))


def prompt_of(model: Model, keyword_lists, seeds=None, banned=(), **bounds):
    """The prompt of some keyword lists, or of requests."""
    limits = Bounds(**bounds)
    requests = [
        r if isinstance(r, Request) else Request(required_words(r), bounds=limits, banned=banned) for r in keyword_lists
    ]
    seeds = list(range(len(requests))) if seeds is None else seeds
    return prompt_of_requests(requests, seeds, model.tokenizer, model.scribe.lexicon, model.device)


def decider(model: Model, **settings) -> Decider:
    """What decides by some settings."""
    return Decider(Chooser(GenerationConfig.of(settings), model.scribe.lexicon))


def traces(model: Model, prompt, decide) -> list:
    """Every row's steps."""
    recorder = Recorder(len(prompt.seeds))
    recorder.steps.extend(decode(model.family, prompt, decide))
    return recorder.traces()


def batch_of(tokenizer: Tokenizer, token_lists, given=None, order=None, pad_to=None, seeds=None) -> TokenBatch:
    """A batch of token lists without <bos> and <eos>; `order` prescribes position_of_step row by row."""
    starts_word = torch.tensor(tokenizer.starts_word)
    batch = TokenBatch.of(token_lists, starts_word=starts_word, given=given, pad_to=pad_to, seeds=seeds)
    if order is None:
        return batch
    width = batch.tokens.shape[1]
    padded = torch.tensor([[*row, *range(len(row), width)] for row in order])
    return TokenBatch(batch.tokens, batch.lengths, batch.given, batch.starts_word, batch.seeds, padded)


def order_of(tokens: int, given, rng, *, left_to_right: bool) -> list[int]:
    """A position_of_step: <bos>, <eos>, the given places, then the rest at random or left to right."""
    places = range(1, tokens + 1)
    rest = [place for place in places if not given[place - 1]]
    if not left_to_right:
        rng.shuffle(rest)
    return [0, tokens + 1, *(place for place in places if given[place - 1]), *rest]


def plays_of(tokens, order, given_count: int) -> list[tuple[int, int]]:
    """(slot, token) of every step after the given ones, found by keeping a list of places."""
    framed = [BOS, *tokens, EOS]
    canvas = sorted(order[: 2 + given_count])
    plays = []
    for place in order[2 + given_count :]:
        slot = sum(other < place for other in canvas) - 1
        plays.append((slot, framed[place]))
        canvas = sorted([*canvas, place])
    return plays


def gap_plays_of(tokens, given, closed=()) -> list[tuple[int, int]]:
    """(slot, token) of every step of a family that fills gap by gap, CLOSE where a gap ends; no gap is asked for where
    one is `closed` from the start, right of so many tokens."""
    plays = []
    for place in range(len(tokens) + 1):
        is_next_given = place == len(tokens) or given[place]
        if not is_next_given:
            plays.append((place, tokens[place]))
        elif place not in closed:
            plays.append((place, CLOSE))
    return plays


def edits_of(rows) -> Edits:
    """Edits from a list of (slot, token) pairs per row; an empty list leaves the row alone."""
    most = max(1, max(map(len, rows)))
    padded = [[*row, *[(0, NOTHING)] * (most - len(row))] for row in rows]
    slot, token = torch.tensor(padded).permute(2, 0, 1)
    zeros = torch.zeros(len(rows), most, dtype=torch.float64)
    return Edits(slot, token, zeros, zeros[:, 0], torch.zeros(len(rows), dtype=torch.bool))


def offers(family, state) -> dict[str, Tensor]:
    """Everything a family offers at a state, closed slots taken out: stop, go (B,), slots (B, S), and the tokens of
    every slot (B, S, V), or (B, S, V + 1) with a column for nothing."""
    offer = family.offer(state)
    rows, slots = offer.slots.shape
    log_probs, stop, go = of_open_slots(offer, state.canvas.open_slots()[:, :slots])
    every = torch.arange(slots).expand(rows, slots)
    row, column = torch.ones_like(every).nonzero(as_tuple=True)
    tokens = offer.tokens(ChosenSlots(every, row, column)).view(rows, slots, -1)
    named = {"stop": stop, "go": go, "slots": log_probs, "tokens": tokens}
    return {name: values for name, values in named.items() if values is not None}
