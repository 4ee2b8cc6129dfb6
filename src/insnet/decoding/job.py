"""What one call asks for: its options, checked, and the drafts it takes."""

import itertools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from insnet.decoding.config import GenerationConfig
from insnet.decoding.request import Request
from insnet.randomness import mix, uniform

_PERMUTATION_NOISE, _SAMPLE_NOISE, _ATTEMPT_NOISE, _CANDIDATE_NOISE = 401, 402, 404, 405
_ORDERS_TRIED = 8  # keyword orders tried when any order will do


@dataclass(frozen=True)
class Job:
    """One call's options, checked."""

    config: GenerationConfig
    seed: int
    banned: tuple[str, ...]
    any_order: bool
    accept: Callable[[str], bool] | None
    attempts: int
    batch_size: int
    on_written: Callable[[int], None] | None

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
        if isinstance(banned, str):
            raise ValueError(f"banned came as one string {banned!r}; expected a list of words, like [{banned!r}]")
        if seed is not None and not -(2**63) <= seed < 2**63:
            raise ValueError(f"seed is {seed}; expected a whole number of at most 64 bits")
        if length is not None:
            if not isinstance(length, tuple | list) or len(length) != 2:
                raise ValueError(f"length is {length!r}; expected the fewest and the most words, like (8, 40)")
            least, most = length
            settings = {**settings, **({} if least is None else {"min_words": least})}
            settings = {**settings, **({} if most is None else {"max_words": most})}
        config = GenerationConfig.of({**vars(generation), **settings})
        seed = secrets.randbits(31) if seed is None else seed
        if not 0 <= seed < 2**63:
            raise ValueError(f"seed is {seed}; expected a whole number from 0 to {2**63 - 1}")
        return cls(config, seed, tuple(banned), any_order, accept, attempts, batch_size, on_written)

    def bounded(self, request: Request) -> Request:
        """The request within this call's bounds."""
        limits = self.config
        return replace(
            request,
            min_words=limits.min_words,
            max_words=limits.max_words,
            max_tokens=limits.max_tokens,
            banned=self.banned,
        )

    def sample_seed(self, number: int) -> int:
        """The seed of a sample; the first is the call's own, so that one sample equals a call without samples."""
        return self.seed if number == 0 else int(mix(_SAMPLE_NOISE, self.seed, number))

    def drafts(self, request: Request, seed: int) -> list[list[tuple[Request, int]]]:
        """What to write for one text, of which the best is kept: the candidates of every order of the required words,
        the given order and the text's own seed first."""
        orders = _orders(request, seed) if self.any_order else [request]
        seeds = [self.candidate_seed(seed, number) for number in range(self.config.candidates)]
        return [[(order, own) for own in seeds] for order in orders]

    def choices(self) -> list[str]:
        """The options at work that choose among finished texts, by name."""
        is_used = {
            "any_order": self.any_order,
            "accept": self.accept is not None,
            "candidates": self.config.candidates > 1,
            "revise": self.config.revise > 0,
        }
        return [name for name, used in is_used.items() if used]

    def accepts(self, text: str) -> bool:
        """Whether a text will do."""
        return self.accept is None or bool(self.accept(text))

    @staticmethod
    def candidate_seed(seed: int, number: int) -> int:
        """The seed of a candidate; the first is the text's own, so that one candidate equals a call without them."""
        return seed if number == 0 else int(mix(_CANDIDATE_NOISE, seed, number)) & (2**63 - 1)

    @staticmethod
    def attempt_seed(seed: int, attempt: int) -> int:
        """The seed of an attempt; the first is the text's own, so that a filter changes only what it refuses."""
        return seed if attempt == 0 else int(mix(_ATTEMPT_NOISE, seed, attempt)) & (2**63 - 1)


def _orders(request: Request, seed: int) -> list[Request]:
    """The request with its stretches in some orders, the given one first; all of them if they are few."""
    required = request.required
    if len(required) <= 3:
        orders = list(itertools.permutations(required))
    else:
        keys = [
            uniform(_PERMUTATION_NOISE, seed, number, torch.arange(len(required))) for number in range(_ORDERS_TRIED)
        ]
        orders = [required, *(tuple(required[place] for place in key.argsort().tolist()) for key in keys[1:])]
    return [replace(request, required=order) for order in dict.fromkeys(orders)]
