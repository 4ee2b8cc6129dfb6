"""Limits on decoding, beside twins that print strings, split them and look for sequences in lists."""

import random
from dataclasses import replace

import pytest
import torch

from insnet.decoding.choose import Chooser
from insnet.decoding.config import GenerationConfig
from insnet.families.generator import Prompt, State
from insnet.families.offers import ChosenSlots
from insnet.insertion.canvas import INSERTED, Canvas
from insnet.insertion.constraints import (
    ABSENT,
    Lexicon,
    Limits,
    completing_tokens,
    count_words,
    empty_blanks,
    neighbours_of_slot,
    repeated_sequences,
)

BOS, EOS, FIRST_WORD, VOCABULARY = 1, 2, 5, 14


def random_lexicon(rng, vocabulary=VOCABULARY):
    def table(share):
        return torch.tensor([rng.random() < share for _ in range(vocabulary)])

    shares = {"starts_word": 0.7, "joins_left": 0.2, "joins_right": 0.2, "is_word": 0.6, "generatable": 0.9}
    shares |= {"may_follow_required": 0.7, "may_precede_required": 0.8}
    return Lexicon(**{name: table(share) for name, share in shares.items()})


def random_texts(rng, rows=5, longest=8):
    """Rows <bos> ... <eos> over a vocabulary so small that sequences repeat."""
    return [[BOS, *(rng.randint(FIRST_WORD, 8) for _ in range(rng.randint(0, longest))), EOS] for _ in range(rows)]


def canvas_of(texts, extra=0, origins=None, closed_slots=()):
    capacity = max(map(len, texts)) + extra
    tokens = torch.tensor([text + [0] * (capacity - len(text)) for text in texts])
    origin = torch.full_like(tokens, INSERTED)
    for row, values in enumerate(origins or []):
        origin[row, : len(values)] = torch.tensor(values)
    closed = torch.zeros_like(tokens, dtype=torch.bool)
    for row, slots in enumerate(closed_slots):
        closed[row, slots] = True
    return Canvas(tokens, origin, closed, torch.tensor([len(text) for text in texts]))


def sequences_of(lists, longest):
    """(B, F, M) from lists of sequences; rows with fewer hold sequences of nothing but ABSENT."""
    most = max(map(len, lists))
    filled = [row + [[]] * (most - len(row)) for row in lists]
    return torch.tensor([[s + [ABSENT] * (longest - len(s)) for s in row] for row in filled]).view(-1, most, longest)


def print_text(tokens, lexicon):
    """The text that tokens print: a letter each, with spaces where words are parted."""
    printed = ""
    for index, token in enumerate(tokens):
        glued = not lexicon.starts_word[token] or lexicon.joins_left[token]
        glued = glued or (index > 0 and lexicon.joins_right[tokens[index - 1]])
        printed += ("" if glued else " ") + chr(ord("a") + token)
    return printed


def holds(tokens, sequence, place):
    """Whether `sequence` stands in `tokens` somewhere over `place`."""
    starts = range(max(place - len(sequence) + 1, 0), place + 1)
    return any(tokens[start : start + len(sequence)] == sequence for start in starts)


def completing_twin(text, slot, sequences):
    """Which tokens complete a sequence, by putting each of them there."""
    result = []
    for token in range(VOCABULARY):
        after = [*text[: slot + 1], token, *text[slot + 1 :]]
        result.append(any(sequence and holds(after, sequence, slot + 1) for sequence in sequences))
    return result


def test_words_are_those_of_the_printed_text():
    rng = random.Random(1)
    for _ in range(400):
        lexicon = random_lexicon(rng)
        texts = random_texts(rng)
        correction = torch.tensor([rng.randint(-1, 2) for _ in texts])
        counted = count_words(canvas_of(texts, extra=rng.randint(0, 2)), lexicon, correction)
        printed = [len(print_text(text[1:-1], lexicon).split()) for text in texts]
        assert counted.tolist() == [n + c for n, c in zip(printed, correction.tolist(), strict=True)]


def test_an_empty_canvas_prints_no_word():
    assert count_words(canvas_of([[BOS, EOS]]), random_lexicon(random.Random(2)), torch.tensor([0])).tolist() == [0]


def test_neighbours_of_slot_are_the_two_tokens_around_it():
    texts = [[BOS, 5, 6, EOS], [BOS, 7, EOS]]
    canvas = canvas_of(texts, origins=[[-1, 0, 1, -1], [-1, 3, -1]])
    tokens, origins = neighbours_of_slot(canvas, torch.tensor([1, 1]))
    assert tokens.tolist() == [[5, 6], [7, EOS]]
    assert origins.tolist() == [[0, 1], [3, INSERTED]]


@pytest.mark.parametrize("longest", [1, 2, 3, 4])
def test_completing_tokens_are_found_by_inserting_each_of_them(longest):
    rng = random.Random(longest)
    found = 0
    for _ in range(60):
        texts = random_texts(rng)
        sequences = [
            [[rng.randint(FIRST_WORD, 8) for _ in range(rng.randint(1, longest))] for _ in range(rng.randint(1, 4))]
            for _ in texts
        ]
        slots = [rng.randint(0, len(text) - 2) for text in texts]
        canvas, table = canvas_of(texts, extra=rng.randint(0, 2)), sequences_of(sequences, longest)
        completes = completing_tokens(canvas, torch.tensor(slots), table, VOCABULARY)
        wanted = [completing_twin(*case) for case in zip(texts, slots, sequences, strict=True)]
        assert completes.tolist() == wanted
        found += sum(map(sum, wanted))
    assert found > 100


def test_sequences_reach_no_further_than_the_canvas():
    """Zeros behind a text and places in front of it are no tokens, not even for a sequence of zeros."""
    canvas = canvas_of([[BOS, 5, EOS], [BOS, 5, 5, 5, 5, 5, EOS]])
    sequences = torch.tensor([[[5, EOS, 0], [0, BOS, 5], [6, EOS, ABSENT]]] * 2)
    completes = completing_tokens(canvas, torch.tensor([1, 0]), sequences, VOCABULARY)
    assert completes[0].nonzero().flatten().tolist() == [6]  # before <eos>
    assert not completes[1].any()


def limits_of(rows, banned=None, fills_blanks=False):
    """Limits that allow everything but what is banned (B, F, M)."""
    many, none = torch.full((rows,), 99), torch.zeros(rows, dtype=torch.int64)
    banned = torch.zeros(rows, 0, 1, dtype=torch.int64) if banned is None else banned
    fills = torch.full((rows,), fills_blanks)
    gaps = torch.zeros(rows, 0, dtype=torch.int64)
    return Limits(none, many, many, none - 1, none, none, banned, fills, fills_blanks, gaps, gaps, none)


def allowed_tokens(canvas, slots, lexicon, limits):
    """Which tokens the decoder allows in a slot of every row: those it takes where no other has any probability."""
    none = torch.zeros(len(slots), dtype=torch.int64)
    state = State.first(Prompt(canvas, limits, none, int(canvas.length.max()), none), None)
    chooser = Chooser(GenerationConfig.of(no_repeat_ngram=0), lexicon)
    chosen, noise = ChosenSlots.of(torch.tensor(slots)[:, None]), chooser.noise(state)
    log_probs = torch.full((VOCABULARY, 1, VOCABULARY), -torch.inf)
    log_probs[range(VOCABULARY), 0, range(VOCABULARY)] = 0.0  # a token at a time
    tokens = [chooser.tokens(state, chosen, own.expand(len(slots), -1), noise).tolist() for own in log_probs]
    return [[token == number for number, token in enumerate(row)] for row in zip(*tokens, strict=True)]


@pytest.mark.parametrize("fills_blanks", [False, True])
def test_allowed_tokens_leave_required_words_whole_complete_nothing_banned_and_fill_blanks_with_words(fills_blanks):
    rng = random.Random(6)
    for _ in range(60):
        lexicon = random_lexicon(rng)
        texts = random_texts(rng)
        origins = [[INSERTED, *(rng.choice([INSERTED, 0, 1]) for _ in text[2:]), INSERTED] for text in texts]
        slots = [rng.randint(0, len(text) - 2) for text in texts]
        banned = [
            [[rng.randint(FIRST_WORD, 8) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(0, 2))]
            for _ in texts
        ]
        limits = limits_of(len(texts), sequences_of(banned, 3), fills_blanks)
        allowed = allowed_tokens(canvas_of(texts, 1, origins), slots, lexicon, limits)
        for row, (text, slot) in enumerate(zip(texts, slots, strict=True)):
            completes = completing_twin(text, slot, banned[row])
            is_left, is_right = (origins[row][place] != INSERTED for place in (slot, slot + 1))
            is_blank = fills_blanks and (is_left or slot == 0) and (is_right or slot == len(text) - 2)
            for token in range(VOCABULARY):
                parts_left = is_left and not lexicon.may_follow_required[token]
                parts_right = is_right and not lexicon.may_precede_required[token]
                wanted = bool(lexicon.generatable[token]) and not (parts_left or parts_right or completes[token])
                assert allowed[row][token] == (wanted and (not is_blank or bool(lexicon.is_word[token])))


def test_empty_blanks_are_open_slots_between_two_given_stretches():
    texts = [[BOS, 5, 6, 7, EOS], [BOS, 5, EOS], [BOS, EOS]]
    origins = [[INSERTED, 0, INSERTED, 1, INSERTED], [INSERTED, 0, INSERTED], [INSERTED, INSERTED]]
    canvas = canvas_of(texts, 2, origins, closed_slots=[[0], [], []])
    places = [row.nonzero()[:, 0].tolist() for row in empty_blanks(canvas, limits_of(3, fills_blanks=True))]
    assert places == [[3], [0, 1], [0]]
    assert not empty_blanks(canvas, limits_of(3)).any()


def test_no_token_glues_itself_to_a_required_word_whatever_is_inserted():
    """The induction behind what is refused, played: random insertions among those allowed, printed at the end.

    Word-initial tokens that join to neither side may stand beside required words, as a tokenizer would say.
    """
    rng = random.Random(7)
    required = VOCABULARY - 1
    for _ in range(20):
        lexicon = random_lexicon(rng)
        lexicon.starts_word[required] = True
        lexicon.joins_left[required] = lexicon.joins_right[required] = False
        lexicon = replace(
            lexicon,
            may_follow_required=lexicon.starts_word & ~lexicon.joins_left,
            may_precede_required=~lexicon.joins_right,
            generatable=torch.arange(VOCABULARY) != required,
        )
        text, origins = [BOS, required, required, EOS], [INSERTED, 0, 1, INSERTED]
        for _ in range(15):
            slot = rng.randint(0, len(text) - 2)
            allowed = allowed_tokens(canvas_of([text], 0, [origins]), [slot], lexicon, limits_of(1))
            choices = [token for token in range(VOCABULARY) if allowed[0][token]]
            if choices:
                text.insert(slot + 1, rng.choice(choices))
                origins.insert(slot + 1, INSERTED)
        assert print_text(text[1:-1], lexicon).split().count(chr(ord("a") + required)) == 2


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_repeated_sequences_are_the_runs_of_the_text(size):
    rng = random.Random(8)
    for _ in range(60):
        texts = random_texts(rng)
        longest = max(map(len, texts)) + rng.randint(0, 2)
        sequences = repeated_sequences(canvas_of(texts, extra=3), size, longest)
        assert sequences.shape[2] == min(size, longest)
        for text, row in zip(texts, sequences.tolist(), strict=True):
            inner = text[1:-1]
            runs = [inner[start : start + size] for start in range(len(inner) - size + 1)]
            assert [sequence for sequence in row if min(sequence) >= 0] == runs


@pytest.mark.parametrize("size", [2, 3])
def test_refusing_repeated_sequences_refuses_what_would_repeat(size):
    """Every token that would write a run a second time is refused, and nothing else is."""
    rng = random.Random(9)
    for _ in range(100):
        texts = random_texts(rng)
        slots = [rng.randint(0, len(text) - 2) for text in texts]
        canvas = canvas_of(texts, extra=1)
        runs = repeated_sequences(canvas, size, canvas.capacity)
        refused = completing_tokens(canvas, torch.tensor(slots), runs, VOCABULARY)
        for row, (text, slot) in enumerate(zip(texts, slots, strict=True)):
            inner = text[1:-1]
            runs = [inner[start : start + size] for start in range(len(inner) - size + 1)]
            assert refused[row].tolist() == completing_twin(text, slot, runs)


def test_a_canvas_shorter_than_a_run_has_no_runs():
    canvas = canvas_of([[BOS, EOS], [BOS, EOS]])
    assert (repeated_sequences(canvas, 3, canvas.capacity) < 0).all()


def test_a_lexicon_moves_with_all_its_tables():
    moved = random_lexicon(random.Random(10)).to(torch.device("meta"))
    assert {table.device.type for table in vars(moved).values()} == {"meta"}
