"""Random choices that come out the same on every version of Python."""

import random
from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


class Dice:
    """Choices drawn from a seed, through `Random.random` alone: its numbers Python promises never to change."""

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"seed {seed} is negative: give 0 or more")
        self._random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random.random() < probability

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of the choices, each as likely as the next."""
        return choices[int(self._random.random() * len(choices))]

    def weighted(self, choices: Sequence[tuple[float, Choice]]) -> Choice:
        """One of the (weight, choice) pairs' choices, in proportion to its weight."""
        mark = self._random.random() * sum(weight for weight, _ in choices)
        for weight, choice in choices:
            mark -= weight
            if mark < 0:
                return choice
        return choices[-1][1]

    def subset(self, choices: Sequence[Choice], size: int) -> list[Choice]:
        """`size` of the choices (all, if there are fewer), kept in their order."""
        chosen: list[Choice] = []
        for index, choice in enumerate(choices):
            still_wanted, still_left = size - len(chosen), len(choices) - index
            if self.chance(still_wanted / still_left):
                chosen.append(choice)
        return chosen
