"""The learning rate as a pure function of the update, so that a resumed run needs no scheduler state."""

_FALLING_TIME = 2 / 3  # of a time budget: compiling may take most of the first third


def learning_rate_share(update: int, *, warmup: int, total: int, spent: float = 0.0) -> float:
    """The share of the peak learning rate at an update counted from 0: rising for `warmup` updates, then falling to 0.

    `spent` is the share of a time budget that is used up: the share falls during its last two thirds. Whichever budget
    is nearer to its end decides.

    The first update already learns, and the last one still does:
    >>> [learning_rate_share(update, warmup=2, total=6) for update in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    assert update >= 0
    rising = (update + 1) / warmup if warmup > 0 else 1.0
    falling = (total - update) / max(total - warmup, 1)
    return max(min(1.0, rising, falling, (1.0 - spent) / _FALLING_TIME), 0.0)
