"""The orders in which a sentence's tokens may be inserted.

Every order begins with <bos>, <eos> and the given tokens left to right; the rest follows by a sort key per position.
Shapes: B rows, L positions in reading order (padding at the end), T = L steps in insertion order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from insnet.randomness import Purpose, uniform


@dataclass(frozen=True)
class Sentence:
    """What an order may look at, for a batch of sentences."""

    tokens: Tensor
    """(B, L) ids in reading order; smaller ids are more frequent words."""
    lengths: Tensor
    """(B,) how many positions are real."""
    given: Tensor
    """(B, L) true where the token is on the canvas from the start."""
    starts_word: Tensor
    """(B, L) true where a word begins; false for its further pieces."""
    seeds: Tensor
    """(B,) the row's source of randomness."""


def _random(sentence: Sentence) -> Tensor:
    position = torch.arange(sentence.tokens.shape[1], device=sentence.tokens.device)
    return uniform(Purpose.ORDER, sentence.seeds[:, None], position[None, :])


def _random_words(sentence: Sentence) -> Tensor:
    """Words in random order, the pieces of one left to right: equal keys keep reading order."""
    word = sentence.starts_word.cumsum(dim=1)  # (B, L): the word each position belongs to
    return uniform(Purpose.ORDER, sentence.seeds[:, None], word)


def _left_to_right(sentence: Sentence) -> Tensor:
    length = sentence.tokens.shape[1]
    return torch.arange(length, device=sentence.tokens.device).double().expand_as(sentence.tokens)


def _balanced_tree(sentence: Sentence) -> Tensor:
    """The depth of each open position in the balanced binary tree over all open positions of its row."""
    is_open = _is_open(sentence)
    index = is_open.cumsum(dim=1) - 1  # (B, L): number among the open positions
    low = torch.zeros_like(index)
    high = is_open.sum(dim=1, keepdim=True).expand_as(index)  # the node's interval [low, high)
    depth = torch.zeros_like(index)
    for _ in range(max(sentence.tokens.shape[1], 1).bit_length()):
        middle = (low + high) // 2
        depth = depth + (index != middle)
        low, high = torch.where(index > middle, middle + 1, low), torch.where(index < middle, middle, high)
        is_found = index == middle
        low, high = torch.where(is_found, index, low), torch.where(is_found, index + 1, high)
    return depth.double()


def _common_first(sentence: Sentence) -> Tensor:
    return sentence.tokens.double()


def _rare_first(sentence: Sentence) -> Tensor:
    return -sentence.tokens.double()


ORDERS: dict[str, Callable[[Sentence], Tensor]] = {
    "random": _random,
    "random_words": _random_words,
    "left_to_right": _left_to_right,
    "balanced_tree": _balanced_tree,
    "common_first": _common_first,
    "rare_first": _rare_first,
}
"""Sort keys (B, L), smaller goes in earlier, ties left to right. Given words stand first in every order and carry no
loss."""


def position_of_step(order: str, sentence: Sentence) -> Tensor:
    """The reading position (B, T) of the token that each step inserts; padding keeps its place at the end.

    >>> one = torch.ones(1, 5, dtype=torch.bool)
    >>> sentence = Sentence(torch.tensor([[1, 9, 7, 8, 2]]), torch.tensor([5]), ~one, one, torch.tensor([3]))
    >>> position_of_step("common_first", sentence).tolist()
    [[0, 4, 2, 3, 1]]
    """
    (order,) = orders_of_name(order)
    return _sorted(ORDERS[order](sentence), sentence)


def orders_of_name(name: str) -> tuple[str, ...]:
    """The orders that a name joins.

    >>> orders_of_name("left_to_right+random_words")
    ('left_to_right', 'random_words')
    """
    orders = tuple(name.split("+"))
    for order in orders:
        if order not in ORDERS:
            raise ValueError(f"unknown order {order!r}; expected one of {', '.join(ORDERS)}, or several joined by +")
    if len(set(orders)) < len(orders):
        raise ValueError(f"the order {name!r} names one twice; name each once")
    return orders


def draw_orders(orders: Sequence[str], seeds: Tensor) -> Tensor:
    """Which (B,) of some orders each row is inserted in: each as likely, by the row's own seed."""
    return (uniform(Purpose.ORDER_NUMBER, seeds) * len(orders)).long()


def position_of_step_in(orders: Sequence[str], which: Tensor, sentence: Sentence) -> Tensor:
    """The same (B, T) with an order of its own, number `which` (B,), for each row."""
    keys = torch.stack([ORDERS[order](sentence) for order in orders])  # (N, B, L)
    return _sorted(keys.gather(0, which[None, :, None].expand(1, *keys.shape[1:]))[0], sentence)


def _sorted(key: Tensor, sentence: Sentence) -> Tensor:
    """The positions (B, T) group by group, the open ones by their key (B, L)."""
    group = _group(sentence)
    reading = torch.arange(group.shape[1], device=group.device).double()
    key = torch.where(group == _OPEN, key, reading)
    by_key = key.argsort(dim=1, stable=True)
    return by_key.gather(1, group.gather(1, by_key).argsort(dim=1, stable=True))


def log_order_count(order: str, sentence: Sentence) -> Tensor:
    """The log (B,) of how many equally likely orders there are: log (n-k)! for "random" with k given tokens.

    Added to the expected log-probability of text and order, it gives a lower bound of the text's own.
    """
    is_open = _is_open(sentence)
    if order == "random_words":
        return _log_factorial(_count_open_words(is_open, sentence.starts_word))
    if order == "random":
        return _log_factorial(is_open.sum(dim=1))
    return torch.zeros_like(sentence.lengths, dtype=torch.float64)


def _log_factorial(number: Tensor) -> Tensor:
    return torch.lgamma(number.double() + 1)


def _count_open_words(is_open: Tensor, starts_word: Tensor) -> Tensor:
    """How many words (B,) have a piece to insert; a word whose first piece is given still counts."""
    word = torch.where(is_open, starts_word.cumsum(dim=1), -1)  # (B, L)
    word_before = torch.nn.functional.pad(word.cummax(dim=1).values[:, :-1], (1, 0), value=-1)
    return (word > word_before).sum(dim=1)


_BOS, _EOS, _GIVEN, _OPEN, _PADDING = range(5)


def _group(sentence: Sentence) -> Tensor:
    """Which part of the order (B, L) each position belongs to."""
    position = torch.arange(sentence.tokens.shape[1], device=sentence.tokens.device).expand_as(sentence.tokens)
    last = sentence.lengths[:, None] - 1
    group = torch.where(sentence.given, _GIVEN, _OPEN)
    group = group.masked_fill(position == 0, _BOS).masked_fill(position == last, _EOS)
    return group.masked_fill(position > last, _PADDING)


def _is_open(sentence: Sentence) -> Tensor:
    """True (B, L) where a token is to be inserted: neither given nor padding."""
    return _group(sentence) == _OPEN
