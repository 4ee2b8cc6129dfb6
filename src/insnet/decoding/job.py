"""What one call asks for: its options, checked, and the drafts it takes."""

import itertools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from insnet.decoding.config import Bounds, GenerationConfig
from insnet.decoding.request import Request
from insnet.decoding.write import Written, seed_of_request
from insnet.randomness import Purpose, mix, uniform
from insnet.text.inflection import banned_forms
from insnet.text.words import Literal

_ORDERS_TRIED = 8  # keyword orders tried when any order will do
_TOKENS_PER_WORD = 4  # room for a text of an asked length, whose words may be in pieces
_FEW_STRETCHES = 4  # of which all orders are looked at: 24
_LARGEST_SEED = 2**63 - 1
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Job:
    """One call's options, checked."""

    config: GenerationConfig
    seed: int
    banned: tuple[str, ...]
    """What must not be written, every form of a word by itself."""
    any_order: bool
    accept: Callable[[str], bool] | None
    has_length: bool
    """Whether the call asks for a length: texts that miss it are drawn anew."""
    attempts: int
    batch_size: int
    on_written: Callable[[int], None] | None
    has_bounded_blanks: bool = False
    """Whether a blank is for so many words: texts that miss that are drawn anew."""

    @classmethod
    def of(
        cls,
        generation: GenerationConfig,
        *,
        seed: int | None = None,
        length: tuple[int | None, int | None] | None = None,
        banned: Sequence[str] = (),
        any_order: bool = False,
        accept: Callable[[str], bool] | None = None,
        attempts: int = 20,
        batch_size: int = 64,
        on_written: Callable[[int], None] | None = None,
        **settings: Any,
    ) -> "Job":
        for name, number in (("batch_size", batch_size), ("attempts", attempts)):
            if number < 1:
                raise ValueError(f"{name} is {number}; expected 1 or more")
        if accept is not None and not callable(accept):
            raise ValueError(f"accept is {accept!r}; expected a function from a text to True or False")
        seed = _checked_seed(seed)
        config = generation.changed(**settings)
        if length is not None:
            bounds = _bounds_of_length(length, config.bounds, keeps_max_tokens="max_tokens" in settings)
            config = replace(config, bounds=bounds)
        has_length = length is not None or bool({"min_words", "max_words"} & settings.keys())
        if has_length:
            config = config.changed(usual_least=0, usual_most=0)  # any text within the length is as asked for
        return cls(config, seed, _all_forms(banned), any_order, accept, has_length, attempts, batch_size, on_written)

    def bounded(self, request: Request) -> Request:
        """The request within this call's bounds."""
        return request.within(self.config.bounds, self.banned)

    def sample_seed(self, number: int) -> int:
        """The seed of a sample; the first is the call's own, so that one sample equals a call without samples, and each
        can be given as `seed` again."""
        return _derived(self.seed, Purpose.SAMPLE, number)

    def drafts(self, request: Request, seed: int) -> list[list[tuple[Request, int]]]:
        """What to write for one text, of which the best is kept: the candidates of every order of the required words,
        the given order and the text's own seed first. Where texts of all orders are compared, half of the candidates
        have the given order and each of the others another one. Each draws its own forms of words."""
        drafts = self._drafts_of_orders(request, seed)
        return [[(order.drawn(seed_of_request(order, own)), own) for order, own in drafted] for drafted in drafts]

    def _drafts_of_orders(self, request: Request, seed: int) -> list[list[tuple[Request, int]]]:
        selection = self.config.selection
        seeds = [self.candidate_seed(seed, number) for number in range(selection.candidates)]
        if self.any_order and selection.candidate_choice == "fluency" and len(seeds) > 1:
            return [[*zip(_orders_of_candidates(request, seed, len(seeds)), seeds, strict=True)]]
        orders = _orders(request, seed) if self.any_order else [request]
        return [[(order, own) for own in seeds] for order in orders]

    def choices(self) -> list[str]:
        """The options at work that choose among finished texts, by name."""
        is_used = {
            "any_order": self.any_order,
            "accept": self.accept is not None,
            "candidates": self.config.selection.candidates > 1,
            "revise": self.config.selection.revise > 0,
        }
        return [name for name, used in is_used.items() if used]

    @property
    def ranks_samples(self) -> bool:
        """Whether several texts for one request are the best of all candidates, which are drawn once for all."""
        return self.config.selection.candidate_choice == "fluency" and self.config.selection.candidates > 1

    @property
    def may_refuse(self) -> bool:
        """Whether a text may have to be drawn anew."""
        return self.accept is not None or self.has_length or self.has_bounded_blanks

    def accepts(self, written: Written) -> bool:
        """Whether a text will do."""
        if not written.request.has_blanks_of(written.text):
            return False
        if self.has_length and not written.request.has_length_of(written.text):
            return False
        return self.accept is None or bool(self.accept(written.text))

    @staticmethod
    def candidate_seed(seed: int, number: int) -> int:
        """The seed of a candidate; the first is the text's own, so that one candidate equals a call without them."""
        return _derived(seed, Purpose.CANDIDATE, number)

    @staticmethod
    def attempt_seed(seed: int, attempt: int) -> int:
        """The seed of an attempt; the first is the text's own, so that a filter changes only what it refuses."""
        return _derived(seed, Purpose.ATTEMPT, attempt)


def _checked_seed(seed: int | None) -> int:
    """The seed, or a fresh one."""
    if seed is None:
        return secrets.randbits(31)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= _LARGEST_SEED:
        raise ValueError(f"seed is {seed!r}; expected a whole number from 0 to {_LARGEST_SEED}")
    return seed


def _all_forms(banned: Sequence[str]) -> tuple[str, ...]:
    """The banned words and phrases, `run*` as all that it stands for."""
    if isinstance(banned, str):
        raise ValueError(f"banned came as one string {banned!r}; expected a list of words, like [{banned!r}]")
    for word in banned:
        if not isinstance(word, str):
            raise ValueError(f"banned holds {word!r}; expected words and phrases")
    return tuple(dict.fromkeys(form for phrase in banned for form in banned_forms(phrase)))


def _derived(seed: int, purpose: Purpose, number: int) -> int:
    """The seed itself for number 0, else one that follows from it; never negative."""
    return seed if number == 0 else int(mix(purpose, seed, number)) & _LARGEST_SEED


def _bounds_of_length(length: tuple[int | None, int | None], bounds: Bounds, *, keeps_max_tokens: bool) -> Bounds:
    """The bounds with a length in words, either end of which may be open, and room for it."""
    if not isinstance(length, tuple | list) or len(length) != 2:
        raise ValueError(f"length is {length!r}; expected the fewest and the most words, like (8, 40)")
    least, most = length
    for words in (least, most):
        if words is not None and (not isinstance(words, int) or isinstance(words, bool) or words < 0):
            raise ValueError(f"length is {length!r}; expected whole numbers of words, like (8, 40)")
    if least is not None and most is not None and least > most:
        raise ValueError(f"length is {length!r}; the fewest words are more than the most")
    most = most if most is not None else max(bounds.max_words, 2 * (least or 0))
    least = least if least is not None else min(bounds.min_words, most)
    room = bounds.max_tokens if keeps_max_tokens else max(bounds.max_tokens, _TOKENS_PER_WORD * most)
    return replace(bounds, min_words=least, max_words=most, max_tokens=room)


def _orders(request: Request, seed: int) -> list[Request]:
    """The request with its stretches in some orders, the given one first; all of them if they are few."""
    required = request.required
    if len(required) <= 3:
        orders = list(itertools.permutations(required))
    else:
        orders = [required, *(_shuffled(required, seed, number) for number in range(1, _ORDERS_TRIED))]
    return [replace(request, required=order) for order in dict.fromkeys(orders)]


def _orders_of_candidates(request: Request, seed: int, count: int) -> list[Request]:
    """The request so many times: half of them in the given order, the others each in another one, at random; in turn,
    where there are fewer.

    >>> request = Request((Literal("a"), Literal("b")))
    >>> [order.phrases() for order in _orders_of_candidates(request, 0, 4)]
    [['a', 'b'], ['a', 'b'], ['b', 'a'], ['b', 'a']]
    """
    others = _other_orders(request.required, seed, count // 2) or [request.required]
    shuffled = itertools.islice(itertools.cycle(others), count // 2)
    return [request] * (count - count // 2) + [replace(request, required=order) for order in shuffled]


def _other_orders(required: tuple[Literal, ...], seed: int, most: int) -> list[tuple[Literal, ...]]:
    """Up to so many different orders at random, the given one not among them."""
    if len(required) <= _FEW_STRETCHES:
        every = list(dict.fromkeys(itertools.permutations(required)))
        orders = list(_shuffled(every, seed, 0))
    else:
        orders = list(dict.fromkeys(_shuffled(required, seed, number) for number in range(1, 2 * most + 2)))
    return [order for order in orders if order != required][:most]


def _shuffled(items: Sequence[_Item], seed: int, number: int) -> tuple[_Item, ...]:
    """The items in an order that follows from a seed and a number."""
    keys = uniform(Purpose.PERMUTATION, seed, number, torch.arange(len(items)))
    return tuple(items[place] for place in keys.argsort().tolist())
