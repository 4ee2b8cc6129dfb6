"""Requests in, the tensors of a decoder's prompt out.

Shapes: B requests, L places, F banned sequences of at most M tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from insnet.decoding.lengths import with_length
from insnet.decoding.request import Request
from insnet.families.generator import Prompt, map_tensors
from insnet.insertion.canvas import INSERTED, Canvas
from insnet.insertion.constraints import ABSENT, FREE, Lexicon, Limits
from insnet.text.specials import Specials
from insnet.text.spellings import spellings_of_all
from insnet.text.tokenizer import Tokenizer
from insnet.text.words import whole_word_pattern

MAX_GIVEN_TOKENS = 1024  # required text beyond this is refused: attention over it would not be what anyone meant


def prompt_of_requests(
    requests: Sequence[Request], seeds: Sequence[int], tokenizer: Tokenizer, lexicon: Lexicon, device: torch.device
) -> Prompt:
    """The prompt of a batch of requests, each with its own seed."""
    pieces = [_encoded(request, tokenizer) for request in requests]
    for request, tokens in zip(requests, pieces, strict=True):
        _check(request, sum(map(len, tokens)))
    given = [2 + sum(map(len, tokens)) for tokens in pieces]
    room = max(own + request.bounds.max_tokens for own, request in zip(given, requests, strict=True))
    closed = [_closed(request, tokens) for request, tokens in zip(requests, pieces, strict=True)]
    canvas = Canvas(
        tokens=_padded([_framed(_flat(tokens), tokenizer.specials) for tokens in pieces], room, 0),
        origin=_padded([_origins(tokens) for tokens in pieces], room, INSERTED),
        closed_after=_padded(closed, room, 0).bool(),
        length=torch.tensor(given),
    )
    limits = _limits(requests, pieces, tokenizer, lexicon.to(torch.device("cpu")))
    own_seeds = torch.tensor(seeds, dtype=torch.int64)
    prompt = Prompt(canvas, limits, own_seeds, longest=max(given), order=torch.zeros_like(own_seeds))
    moved: Prompt = map_tensors(prompt, lambda tensor: tensor.to(device))
    return moved


def prompt_of_texts(prompt: Prompt, texts: Sequence[Sequence[tuple[int, int]]], specials: Specials) -> Prompt:
    """A prompt with texts that grew from it, (token, origin) pairs in reading order, in place of what was given; its
    closed slots stay closed."""
    given, lengths = prompt.canvas, prompt.canvas.length.tolist()
    closed = []
    for text, flags, length in zip(texts, given.closed_after.tolist(), lengths, strict=True):
        own = iter(flags[1 : length - 1])
        closed.append([int(flags[0]), *(int(origin != INSERTED and next(own)) for _, origin in text), 0])
    rows = [_framed([token for token, _ in text], specials) for text in texts]
    origins = [[INSERTED, *(origin for _, origin in text), INSERTED] for text in texts]
    canvas = Canvas(
        tokens=_padded(rows, given.capacity, 0).to(given.tokens.device),
        origin=_padded(origins, given.capacity, INSERTED).to(given.tokens.device),
        closed_after=_padded(closed, given.capacity, 0).bool().to(given.tokens.device),
        length=given.length.new_tensor([len(row) for row in rows]),
    )
    return replace(prompt, canvas=canvas, longest=max(len(row) for row in rows))


def _limits(
    requests: Sequence[Request], pieces: Sequence[Sequence[list[int]]], tokenizer: Tokenizer, lexicon: Lexicon
) -> Limits:
    limits = Limits(
        min_words=torch.tensor([request.bounds.min_words for request in requests]),
        max_words=torch.tensor([request.bounds.max_words for request in requests]),
        max_tokens=torch.tensor([request.bounds.max_tokens for request in requests]),
        insertions=torch.full((len(requests),), FREE),
        slack=torch.zeros(len(requests), dtype=torch.int64),
        word_correction=torch.tensor([_correction(r, t, lexicon) for r, t in zip(requests, pieces, strict=True)]),
        forbidden=_forbidden([request.banned for request in requests], tokenizer),
        fills_blanks=torch.tensor([request.fills_blanks for request in requests]),
        has_blanks=any(request.fills_blanks for request in requests),
        least_in_gap=_of_gaps(requests, 0),
        most_in_gap=_of_gaps(requests, 1),
        given_words=torch.tensor([request.printed_words() for request in requests]),
    )
    planned = [FREE if request.insertions is None else request.insertions for request in requests]
    return with_length(limits, torch.tensor(planned))


def _of_gaps(requests: Sequence[Request], bound: int) -> Tensor:
    """(B, G) the fewest words of each gap, or the most; no gaps where there are no blanks."""
    width = max((len(request.gaps) for request in requests), default=0)
    rows = [[(gap[bound] or 0) if gap else 0 for gap in request.gaps] for request in requests]
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.int64).view(len(rows), width)


def _check(request: Request, tokens: int) -> None:
    if tokens > MAX_GIVEN_TOKENS:
        raise ValueError(
            f"the required words take {tokens} tokens, more than {MAX_GIVEN_TOKENS}: give fewer or shorter words"
        )
    words, blanks, bounds = request.printed_words(), request.least_in_blanks(), request.bounds
    if words + blanks > bounds.max_words:
        several = f"blanks for at least {blanks}" if request.is_bounded else f"{blanks} blanks"
        what = f"{words} words and {several}" if blanks else f"{words} words"
        raise ValueError(f"{what} are required, but at most {bounds.max_words} allowed; raise the upper length")
    if blanks > bounds.max_tokens:
        what = "words in blanks" if request.is_bounded else "blanks"
        raise ValueError(f"{blanks} {what} cannot be filled with max_tokens {bounds.max_tokens}; raise it")
    most = request.most_words()
    if most is not None and most < bounds.min_words:
        raise ValueError(
            f"at least {bounds.min_words} words were asked for, but with all its blanks the text has at most {most}; "
            "lower the length or let a blank hold more"
        )
    if bounds.min_words - words > bounds.max_tokens:
        raise ValueError(
            f"{bounds.min_words} words cannot be reached with max_tokens {bounds.max_tokens}: a token makes one at most"
        )
    for banned in request.banned:
        if whole_word_pattern(banned, ignore_case=True).search(" ".join(request.phrases())):
            raise ValueError(f"{banned!r} is both required and banned; drop one of the two")


def _encoded(request: Request, tokenizer: Tokenizer) -> list[list[int]]:
    """The tokens of each required stretch, written as they are inside a text; the first, if no word may stand before
    it, as at the beginning."""
    unknown = tokenizer.specials.pad if tokenizer.specials.unk is None else tokenizer.specials.unk
    return [
        tokenizer.encode_literal(literal, stands_first=number == 0 and not request.opens_start) or [unknown]
        for number, literal in enumerate(request.required)
    ]


def _framed(tokens: Sequence[int], specials: Specials) -> list[int]:
    return [specials.bos, *tokens, specials.eos]


def _flat(tokens: Sequence[Sequence[int]]) -> list[int]:
    return [token for stretch in tokens for token in stretch]


def _origins(tokens: Sequence[Sequence[int]]) -> list[int]:
    inner = [number for number, stretch in enumerate(tokens) for _ in stretch]
    return [INSERTED, *inner, INSERTED]


def _closed(request: Request, tokens: Sequence[Sequence[int]]) -> list[int]:
    """1 where no word may follow: inside stretches, and outside blanks."""
    inner = [int(place < len(stretch) - 1) for stretch in tokens for place in range(len(stretch))]
    closed = [int(not request.opens_start and bool(tokens)), *inner]
    closed[-1] = int(closed[-1] or not request.opens_end) if tokens else closed[-1]
    return [*closed, 0]


def _padded(rows: Sequence[Sequence[int]], width: int, fill: int) -> Tensor:
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def _correction(request: Request, tokens: Sequence[Sequence[int]], lexicon: Lexicon) -> int:
    """Printed words of the required text less those that `count_words` sees in its tokens."""
    begins, parts = (flags.tolist() for flags in lexicon.is_parted)
    seen = 0
    for number, (literal, stretch) in enumerate(zip(request.required, tokens, strict=True)):
        previous = [True, *(parts[token] for token in stretch[:-1])]
        seen += sum(begins[token] and parted for token, parted in zip(stretch, previous, strict=True))
        seen += number == 0 and not request.opens_start and not begins[stretch[0]]  # what follows <bos> begins a word
        seen -= bool(literal.joins_right and not parts[stretch[-1]])  # what follows is not counted either
    return request.printed_words() - seen


def _forbidden(banned: Sequence[Sequence[str]], tokenizer: Tokenizer) -> Tensor:
    """(B, F, M) every way to write what each row must not."""
    ways = {tuple(phrases): spellings_of_all(tokenizer, phrases) for phrases in map(tuple, banned)}
    rows = [ways[tuple(phrases)] for phrases in banned]
    count = max(map(len, rows), default=0)
    longest = max((len(spelling) for row in rows for spelling in row), default=1)
    return torch.tensor(
        [
            [[*spelling, *[ABSENT] * (longest - len(spelling))] for spelling in row]
            + [[ABSENT] * longest] * (count - len(row))
            for row in rows
        ],
        dtype=torch.int64,
    ).view(len(rows), count, longest)
