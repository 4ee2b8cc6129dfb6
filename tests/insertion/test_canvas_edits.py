"""`apply`, beside a slow twin on Python lists: deletions go first, then each slot is filled or closed."""

import random

import torch
from hypothesis import given
from hypothesis import strategies as st

from insnet.insertion.canvas import CLOSE, INSERTED, NOTHING, Canvas, Edits, apply, place_of_edits

PLACE = st.tuples(st.integers(1, 99), st.sampled_from([INSERTED, 0, 1]), st.booleans(), st.integers(1, 99))
"""(token, origin, closed_after, age): a place of a text, the age being a table of the family's own."""
TOKEN = st.one_of(st.integers(100, 199), st.sampled_from([NOTHING, CLOSE]))


@st.composite
def cases(draw, deletes=True):
    """Texts, places deleted from each, and (slot, token) edits of what is left."""
    texts = draw(st.lists(st.lists(PLACE, min_size=2, max_size=8), min_size=1, max_size=3))
    width = draw(st.integers(1, 5))
    gone, edits = [], []
    for text in texts:
        inner = st.integers(1, len(text) - 2)
        gone.append(draw(st.sets(inner)) if deletes and len(text) > 2 else set())
        slot = st.integers(0, len(text) - len(gone[-1]) - 2)
        edits.append(draw(st.lists(st.tuples(slot, TOKEN), min_size=width, max_size=width)))
    return texts, gone, edits


def canvas_of(texts, capacity):
    """A canvas, and the ages of its places (B, capacity)."""

    def column(index, fill):
        return torch.tensor([[place[index] for place in text] + [fill] * (capacity - len(text)) for text in texts])

    length = torch.tensor([len(text) for text in texts])
    return Canvas(column(0, 0), column(1, INSERTED), column(2, False), length), column(3, 0)


def edits_of(edits, gone, capacity):
    slot, token = torch.tensor(edits).permute(2, 0, 1)
    deleted = torch.tensor([[place in own for place in range(capacity)] for own in gone])
    zeros = torch.zeros(slot.shape)
    return Edits(slot, token, zeros, zeros[:, 0], zeros[:, 0].bool(), deleted=deleted if any(gone) else None)


def edited(text, gone, edits, age_of_edit):
    """The twin: a cursor walks through each slot; a token goes behind it, closing marks the place where it stands."""
    left = [place for number, place in enumerate(text) if number not in gone]
    result = []
    for slot, place in enumerate(left):
        result.append(place)
        for index, (where, token) in enumerate(edits):
            if where == slot and token == CLOSE:
                result[-1] = (*result[-1][:2], True, result[-1][3])
            elif where == slot and token != NOTHING:
                result.append((token, INSERTED, False, age_of_edit(index)))
    return result


def lists_of(canvas, ages):
    """The places in use, and a check that nothing lies behind them."""
    rows = []
    for row, length in enumerate(canvas.length.tolist()):
        assert not canvas.tokens[row, length:].any() and not canvas.closed_after[row, length:].any()
        assert (canvas.origin[row, length:] == INSERTED).all()
        columns = (canvas.tokens[row], canvas.origin[row], canvas.closed_after[row], ages[row])
        rows.append(list(zip(*(values[:length].tolist() for values in columns), strict=True)))
    return rows


def after(case, *, spare=0):
    """Canvas and ages after a case; edit number e of every row has the age 1000 + e."""
    texts, gone, edits = case
    width = len(edits[0])
    capacity = max(map(len, texts)) + width + spare
    canvas, ages = canvas_of(texts, capacity)
    new_ages = (1000 + torch.arange(width)).expand(len(texts), width)
    canvas, [ages] = apply(canvas, edits_of(edits, gone, capacity), (ages, new_ages))
    return canvas, ages


@given(cases(), st.integers(0, 2))
def test_apply_equals_a_cursor_that_walks_through_lists(case, spare):
    """Tokens, origins, closed slots, lengths and a table of the family's own; several edits in one slot, too."""
    expected = [edited(*row, lambda index: 1000 + index) for row in zip(*case, strict=True)]
    assert lists_of(*after(case, spare=spare)) == expected


@given(cases())
def test_a_table_may_give_every_new_place_the_same_value(case):
    texts, gone, edits = case
    capacity = max(map(len, texts)) + len(edits[0])
    canvas, ages = canvas_of(texts, capacity)
    canvas, [ages] = apply(canvas, edits_of(edits, gone, capacity), (ages, 7))
    assert lists_of(canvas, ages) == [edited(*row, lambda index: 7) for row in zip(*case, strict=True)]


@given(cases())
def test_apply_leaves_its_arguments_alone(case):
    texts, gone, edits = case
    capacity = max(map(len, texts)) + len(edits[0])
    canvas, edits = canvas_of(texts, capacity)[0], edits_of(edits, gone, capacity)
    arguments = [value for value in (*vars(canvas).values(), *vars(edits).values()) if value is not None]
    before = [value.clone() for value in arguments]
    apply(canvas, edits)
    assert all(torch.equal(*pair) for pair in zip(before, arguments, strict=True))


@given(cases(deletes=False))
def test_place_of_edits_is_where_the_new_tokens_stand(case):
    texts, gone, edits = case
    marked = [[(slot, 1000 + i if token > 0 else token) for i, (slot, token) in enumerate(row)] for row in edits]
    places = place_of_edits(edits_of(marked, gone, 99))
    for row, (text, own) in enumerate(zip(texts, marked, strict=True)):
        tokens = [place[0] for place in edited(text, set(), own, int)]
        assert all(places[row, i] == tokens.index(token) for i, (_, token) in enumerate(own) if token > 0)


@given(cases(deletes=False))
def test_the_order_of_edits_matters_only_within_a_slot(case):
    texts, gone, edits = case
    ordered = edits_of(edits, gone, 99).left_to_right()
    pairs = [list(zip(*row, strict=True)) for row in zip(ordered.slot.tolist(), ordered.token.tolist(), strict=True)]
    for row, own in zip(edits, pairs, strict=True):
        real = [pair for pair in own if pair[1] != NOTHING]
        assert own[: len(real)] == sorted((pair for pair in row if pair[1] != NOTHING), key=lambda pair: pair[0])
    canvas, _ = canvas_of(texts, max(map(len, texts)) + len(edits[0]))
    one, other = (apply(canvas, own)[0] for own in (edits_of(edits, gone, 99), ordered))
    assert all(torch.equal(*pair) for pair in zip(vars(one).values(), vars(other).values(), strict=True))


@given(cases(), st.data())
def test_rows_left_out_are_left_alone_and_rows_selected_keep_their_edits(case, data):
    texts, gone, edits = case
    capacity = max(map(len, texts)) + len(edits[0])
    (canvas, ages), every = canvas_of(texts, capacity), edits_of(edits, gone, capacity)
    is_active = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    some = every.only(torch.tensor(is_active))
    canvas, [ages] = apply(canvas, some, (ages, 0))
    expected = [
        edited(text, deleted, own, lambda index: 0) if on else text
        for text, deleted, own, on in zip(texts, gone, edits, is_active, strict=True)
    ]
    assert lists_of(canvas, ages) == expected
    assert some.finished.tolist() == [not on for on in is_active]
    last = every.select(torch.tensor([-1]))
    assert torch.equal(last.token, every.token[-1:]) and (last.deleted is None) == (every.deleted is None)


def test_many_steps_one_after_the_other_equal_many_lists():
    """The canvas that comes out goes in again, with room added where it is needed."""
    rng = random.Random(4)
    texts = [[(1, INSERTED, False, 0), (2, INSERTED, False, 0)] for _ in range(5)]
    canvas, ages = canvas_of(texts, 2)
    for step in range(25):
        gone = [{1} if len(text) > 6 and (row + step) % 2 else set() for row, text in enumerate(texts)]
        slots = [rng.randint(0, len(text) - len(own) - 2) for text, own in zip(texts, gone, strict=True)]
        edits = [[(slot, 5 + step), (0, CLOSE)] for slot in slots]
        canvas, ages = canvas.with_capacity(canvas.capacity + 2), torch.nn.functional.pad(ages, (0, 2))
        canvas, [ages] = apply(canvas, edits_of(edits, gone, canvas.capacity), (ages, step))
        texts = [edited(*row, lambda index, step=step: step) for row in zip(texts, gone, edits, strict=True)]
        assert lists_of(canvas, ages) == texts


@given(cases())
def test_with_capacity_adds_only_empty_places(case):
    canvas, ages = canvas_of(case[0], 9)
    wider = canvas.with_capacity(16)
    assert wider.capacity == 16
    assert lists_of(wider, ages) == case[0]


@given(cases())
def test_slots_are_the_gaps_between_used_places(case):
    canvas, _ = canvas_of(case[0], 9)
    for row, text in enumerate(case[0]):
        gaps = [place + 1 < len(text) for place in range(9)]
        assert canvas.is_slot()[row].tolist() == gaps
        is_open = [is_gap and not text[place][2] for place, is_gap in enumerate(gaps)]
        assert canvas.open_slots()[row].tolist() == is_open
