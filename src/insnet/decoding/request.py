"""What a user asks for, checked and turned into the prompt of a decoder."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from insnet.families.generator import Prompt
from insnet.insertion.canvas import INSERTED, Canvas
from insnet.insertion.constraints import ABSENT, Constraints, Lexicon
from insnet.text.specials import BOS, EOS, UNK
from insnet.text.spellings import spellings
from insnet.text.tokenizer import Tokenizer
from insnet.text.words import Literal, contains_in_order, whole_word_pattern

BLANK = "___"
MAX_GIVEN_TOKENS = 1024  # required text beyond this is refused: attention over it would not be what anyone meant


@dataclass(frozen=True)
class Request:
    """One text to write: required stretches in reading order, and where words may go."""

    required: tuple[Literal, ...]
    """Stretches that stay whole; words may be inserted between any two."""
    opens_start: bool = True
    """Words may stand before the first stretch."""
    opens_end: bool = True
    """Words may stand after the last stretch."""
    fills_blanks: bool = False
    """Every gap between stretches must get a word."""
    min_words: int = 1
    max_words: int = 200
    max_tokens: int = 256
    banned: tuple[str, ...] = ()
    """Words and phrases that must not be written."""
    insertions: int | None = None
    """After how many insertions the text should end, if that was found out beforehand."""

    def phrases(self) -> list[str]:
        """The required stretches as text."""
        return [literal.text for literal in self.required]

    def is_kept_in(self, text: str) -> bool:
        """Whether everything required stands in the text, in order: as whole words, or verbatim around blanks."""
        if not self.fills_blanks:
            return contains_in_order(text, self.phrases())
        end = 0
        for phrase in self.phrases():
            start = text.find(phrase, end)
            if start < 0:
                return False
            end = start + len(phrase)
        return True


def required_words(keywords: Sequence[str]) -> tuple[Literal, ...]:
    """Keywords and phrases as stretches of required text; what cannot be one is refused."""
    if isinstance(keywords, str):
        raise ValueError(
            f"keywords came as one string {keywords!r}; expected a list of words, like {keywords.split()!r}"
        )
    return tuple(
        Literal(_clean(keyword, number), takes_capital=True) for number, keyword in enumerate(keywords, start=1)
    )


def blanks(text: str) -> Request:
    """A request to fill the blanks of a text, which is kept word for word.

    >>> [literal.text for literal in blanks("The ___ sat on ___.").required]
    ['The', 'sat on', '.']
    """
    parts = text.split(BLANK)
    if len(parts) == 1:
        raise ValueError(f"no blank in {text!r}; write {BLANK} where words are missing")
    literals = []
    for index, part in enumerate(parts):
        has_blank_before, has_blank_after = index > 0, index < len(parts) - 1
        stripped = part.strip()
        joins_left = has_blank_before and part[:1] != "" and not part[0].isspace()
        joins_right = has_blank_after and part[-1:] != "" and not part[-1].isspace()
        if (joins_left and _is_letter(part[0])) or (joins_right and _is_letter(part[-1])):
            raise ValueError(f"a blank touches the word in {part.strip()!r}; put a space between blank and word")
        if stripped:
            literals.append(Literal(_clean(stripped, index + 1), joins_left, joins_right))
    opens_start, opens_end = not parts[0].strip(), not parts[-1].strip()
    return Request(tuple(literals), opens_start, opens_end, fills_blanks=True)


def _is_letter(character: str) -> bool:
    return character.isalnum() or character in "_'’-"


def _clean(keyword: str, number: int) -> str:
    """The keyword with single spaces; refused if there is nothing to print or something that can't be printed."""
    if not isinstance(keyword, str):
        raise ValueError(f"keyword {number} is {keyword!r}; expected a word")
    words = " ".join(keyword.split())
    if not words:
        raise ValueError(f"keyword {number} is empty; every keyword needs at least one visible character")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in words):
        raise ValueError(f"keyword {number} {words[:40]!r} holds a control character; remove it")
    return words


def prompt_of_requests(
    requests: Sequence[Request], seeds: Sequence[int], tokenizer: Tokenizer, lexicon: Lexicon, device: torch.device
) -> Prompt:
    """The prompt of a batch of requests, each with its own seed."""
    pieces = [[_encoded(literal, tokenizer) for literal in request.required] for request in requests]
    for request, tokens in zip(requests, pieces, strict=True):
        _check(request, sum(map(len, tokens)))
    room = max(2 + sum(map(len, tokens)) + request.max_tokens for request, tokens in zip(requests, pieces, strict=True))
    canvas = Canvas(
        tokens=_padded([[BOS, *_flat(tokens), EOS] for tokens in pieces], room, 0),
        origin=_padded([_origins(tokens) for tokens in pieces], room, INSERTED),
        closed_after=_padded([_closed(r, t) for r, t in zip(requests, pieces, strict=True)], room, 0).bool(),
        length=torch.tensor([2 + sum(map(len, tokens)) for tokens in pieces]),
    )
    on_cpu = lexicon.to(torch.device("cpu"))
    constraints = Constraints(
        min_words=torch.tensor([request.min_words for request in requests]),
        max_words=torch.tensor([request.max_words for request in requests]),
        max_tokens=torch.tensor([request.max_tokens for request in requests]),
        insertions=torch.tensor([Constraints.FREE if r.insertions is None else r.insertions for r in requests]),
        slack=torch.zeros(len(requests), dtype=torch.int64),
        word_correction=torch.tensor([_correction(r, t, on_cpu) for r, t in zip(requests, pieces, strict=True)]),
        forbidden=_forbidden([request.banned for request in requests], tokenizer),
        fills_blanks=torch.tensor([request.fills_blanks for request in requests]),
    )
    return _to_device(Prompt(canvas, constraints, torch.tensor(seeds, dtype=torch.int64)), device)


def _check(request: Request, tokens: int) -> None:
    if tokens > MAX_GIVEN_TOKENS:
        raise ValueError(
            f"the required words take {tokens} tokens, more than {MAX_GIVEN_TOKENS}: give fewer or shorter words"
        )
    words, blanks = _printed_words(request), _count_blanks(request)
    if words + blanks > request.max_words:
        what = f"{words} words and {blanks} blanks" if blanks else f"{words} words"
        raise ValueError(f"{what} are required, but at most {request.max_words} allowed; raise the upper length")
    if blanks > request.max_tokens:
        raise ValueError(f"{blanks} blanks cannot be filled with max_tokens {request.max_tokens}; raise it")
    for banned in request.banned:
        if whole_word_pattern(banned, ignore_case=True).search(" ".join(request.phrases())):
            raise ValueError(f"{banned!r} is both required and banned; drop one of the two")


def _printed_words(request: Request) -> int:
    """Whitespace words that the required text prints once its blanks hold a word each."""
    joins = sum(literal.joins_left + literal.joins_right for literal in request.required)
    return sum(len(literal.text.split()) for literal in request.required) - joins


def _count_blanks(request: Request) -> int:
    gaps = max(len(request.required) - 1, 0) + request.opens_start + request.opens_end
    return min(gaps, len(request.required) + 1) if request.fills_blanks else 0


def _encoded(literal: Literal, tokenizer: Tokenizer) -> list[int]:
    """The tokens of a stretch, written as they are in a text where a word stands in the blank that it touches."""
    text = "a" * literal.joins_left + literal.text + "a" * literal.joins_right
    groups = tokenizer.words(tokenizer.encode(text))
    groups = groups[literal.joins_left : len(groups) - literal.joins_right]
    return [token for group in groups for token in group] or [UNK]


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
    begins, joins_right = lexicon.starts_word & ~lexicon.joins_left, lexicon.joins_right
    seen = 0
    for literal, stretch in zip(request.required, tokens, strict=True):
        previous = [False, *joins_right[stretch[:-1]].tolist()]
        seen += sum(b and not p for b, p in zip(begins[stretch].tolist(), previous, strict=True))
        seen -= bool(literal.joins_right and joins_right[stretch[-1]])  # what follows is not counted either
    return _printed_words(request) - seen


def _forbidden(banned: Sequence[Sequence[str]], tokenizer: Tokenizer) -> Tensor:
    """(B, F, M) every way to write what each row must not."""
    ways = {phrase: spellings(tokenizer, phrase) for phrases in banned for phrase in phrases}
    rows = [[spelling for phrase in phrases for spelling in ways[phrase]] for phrases in banned]
    count = max(map(len, rows), default=0)
    longest = max((len(spelling) for row in rows for spelling in row), default=1)
    forbidden = torch.full((len(rows), count, longest), ABSENT)
    for index, row in enumerate(rows):
        for number, spelling in enumerate(row):
            forbidden[index, number, : len(spelling)] = torch.tensor(spelling)
    return forbidden


def _to_device(prompt: Prompt, device: torch.device) -> Prompt:
    canvas = Canvas(**{name: tensor.to(device) for name, tensor in vars(prompt.canvas).items()})
    constraints = Constraints(**{name: tensor.to(device) for name, tensor in vars(prompt.constraints).items()})
    return replace(prompt, canvas=canvas, constraints=constraints, seeds=prompt.seeds.to(device))
