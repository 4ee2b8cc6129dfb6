"""`apply`, beside a twin that calls list.insert for one edit after the other."""

import random

import torch

from insnet.insertion.canvas import INSERTED, Canvas, Edits, apply, place_of_edits


def canvas_of_lists(rows, capacity):
    """A canvas from rows of (token, origin, closed_after)."""

    def column(index, fill):
        return torch.tensor([[place[index] for place in row] + [fill] * (capacity - len(row)) for row in rows])

    return Canvas(column(0, 0), column(1, INSERTED), column(2, False), torch.tensor([len(row) for row in rows]))


def lists_of_canvas(canvas):
    """The rows of (token, origin, closed_after) in use, and a check that nothing lies behind them."""
    rows = []
    for row, length in enumerate(canvas.length.tolist()):
        assert not canvas.tokens[row, length:].any() and not canvas.closed_after[row, length:].any()
        assert (canvas.origin[row, length:] == INSERTED).all()
        values = (canvas.tokens[row], canvas.origin[row], canvas.closed_after[row])
        rows.append(list(zip(*(value[:length].tolist() for value in values), strict=True)))
    return rows


def edits_of_lists(rows, width, rng):
    """Edits from rows of (slot, token) or None; the slot of an edit that puts nothing may be anything."""
    slots = [[edit[0] if edit else rng.randint(0, 9) for edit in row] for row in rows]
    tokens = [[edit[1] if edit else Edits.NOTHING for edit in row] for row in rows]
    zeros = torch.zeros(len(rows), width)
    return Edits(
        torch.tensor(slots).view(len(rows), width),
        torch.tensor(tokens).view(len(rows), width).long(),
        zeros,
        torch.zeros(len(rows)),
        torch.zeros(len(rows), dtype=torch.bool),
    )


def insert_all(row, edits):
    """The row after its edits: from the rightmost slot to the left, so that no slot moves before its turn."""
    row = list(row)
    done = [edit for edit in edits if edit]
    for slot in sorted({slot for slot, _ in done}, reverse=True):
        for token in reversed([token for other, token in done if other == slot]):
            row.insert(slot + 1, (token, INSERTED, False))
    return row


def random_case(rng, rows=6):
    lengths = [rng.randint(2, 9) for _ in range(rows)]
    texts = [
        [(rng.randint(1, 99), rng.choice([INSERTED, 0, 1]), rng.random() < 0.3) for _ in range(length)]
        for length in lengths
    ]
    width = rng.randint(1, 6)
    edits = [
        [(rng.randint(0, length - 2), rng.randint(100, 199)) if rng.random() < share else None for _ in range(width)]
        for length, share in zip(lengths, [0.0, 1.0, *[0.6] * (rows - 2)], strict=True)
    ]
    capacity = max(lengths) + width + rng.randint(0, 2)
    return texts, edits, canvas_of_lists(texts, capacity), edits_of_lists(edits, width, rng)


def test_apply_equals_list_insert():
    """Tokens, origins, closed slots and lengths; several edits in one slot, and rows without any."""
    rng = random.Random(1)
    several_in_one_slot = 0
    for _ in range(400):
        texts, edits, canvas, tensors = random_case(rng)
        after = apply(canvas, tensors)
        assert after.capacity == canvas.capacity
        assert lists_of_canvas(after) == [insert_all(*pair) for pair in zip(texts, edits, strict=True)]
        slots = [edit[0] for edit in edits[1]]
        several_in_one_slot += len(slots) > len(set(slots))
    assert several_in_one_slot > 100


def test_apply_leaves_its_arguments_alone():
    _, _, canvas, edits = random_case(random.Random(2))
    before = [value.clone() for value in (*vars(canvas).values(), *vars(edits).values())]
    apply(canvas, edits)
    after = [*vars(canvas).values(), *vars(edits).values()]
    assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))


def test_place_of_edits_is_where_the_new_tokens_stand():
    rng = random.Random(3)
    for _ in range(200):
        texts, edits, _, tensors = random_case(rng)
        edits = [  # distinct tokens, so that each can be found again
            [edit and (edit[0], 1000 + index) for index, edit in enumerate(row)] for row in edits
        ]
        places = place_of_edits(tensors)
        for row, (text, row_edits) in enumerate(zip(texts, edits, strict=True)):
            tokens = [token for token, _, _ in insert_all(text, row_edits)]
            for index, edit in enumerate(row_edits):
                if edit:
                    assert places[row, index] == tokens.index(edit[1])


def test_many_steps_one_after_the_other_equal_many_lists():
    """The canvas that comes out goes in again, with room added where it is needed."""
    rng = random.Random(4)
    texts = [[(1, INSERTED, False), (2, INSERTED, False)] for _ in range(5)]
    canvas = canvas_of_lists(texts, 2)
    for _ in range(25):
        edits = [
            [(rng.randint(0, len(text) - 2), rng.randint(5, 99)) if rng.random() < 0.7 else None for _ in range(2)]
            for text in texts
        ]
        canvas = apply(canvas.with_capacity(canvas.capacity + 2), edits_of_lists(edits, 2, rng))
        texts = [insert_all(*pair) for pair in zip(texts, edits, strict=True)]
        assert lists_of_canvas(canvas) == texts
    assert all(text[0][0] == 1 and text[-1][0] == 2 for text in texts)


def test_with_capacity_adds_only_empty_places():
    texts, _, canvas, _ = random_case(random.Random(5))
    wider = canvas.with_capacity(canvas.capacity + 7)
    assert wider.capacity == canvas.capacity + 7
    assert lists_of_canvas(wider) == texts
    assert lists_of_canvas(canvas.with_capacity(canvas.capacity)) == texts


def test_slots_are_the_gaps_between_used_places():
    rng = random.Random(6)
    for _ in range(50):
        texts, _, canvas, _ = random_case(rng)
        for row, text in enumerate(texts):
            gaps = [place + 1 < len(text) for place in range(canvas.capacity)]
            assert canvas.is_slot()[row].tolist() == gaps
            is_open = [is_gap and not text[place][2] for place, is_gap in enumerate(gaps)]
            assert canvas.open_slots()[row].tolist() == is_open
