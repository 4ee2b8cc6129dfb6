"""Marks without a partner go, where they were inserted; nothing melts together for that."""

import pytest
from small_models import tokenizer_of
from small_tokenizers import TOKENIZERS

from insnet.text.marks import has_marks, unpaired_characters, unpaired_marks
from insnet.text.words import Literal

BPE, SMALL = tokenizer_of("bpe"), TOKENIZERS["smollm"]


@pytest.mark.parametrize(
    ("text", "lonely"),
    [
        ('He said "yes" and "no".', ""),
        ('He said "yes and left.', '"'),
        ('He said yes" and left.', '"'),
        ('"one "two" three', '"'),
        ("(a [b) c] d", "[]"),
        ("(a (b) c", "("),
        ("a) b", ")"),
        ("don't, the boys' ’tis rock ’n’ roll", ""),
        ("‘a’ ‘b", "‘"),
        ("‘don’t’ “a” „b“ “c", "“"),
        ('("a")', ""),
        ("x” y", "”"),
        ('say "', '"'),
        ("", ""),
    ],
)
def test_marks_without_a_partner_are_found(text, lonely):
    assert "".join(text[index] for index in sorted(unpaired_characters(text))) == lonely


def mended(tokenizer, *parts):
    """The text before and after; what is given as a Literal is required."""
    required = [part for part in parts if isinstance(part, Literal)]
    tokens = []
    for part in parts:
        if isinstance(part, Literal):
            tokens += [(token, required.index(part)) for token in tokenizer.encode_literal(part)]
        else:
            tokens += [(token, -1) for token in part]
    places = unpaired_marks(tokens, required, tokenizer)

    def text(pairs):
        shown, previous = [], -1
        for token, origin in pairs:
            if origin < 0 or origin != previous:
                shown.append(token if origin < 0 else required[origin])
            previous = origin
        return tokenizer.render(shown)

    kept = [(places.get(place, token), origin) for place, (token, origin) in enumerate(tokens)]
    return text(tokens), text([pair for pair in kept if pair[0] is not None])


@pytest.mark.parametrize("tokenizer", [BPE, SMALL], ids=["marked", "byte-level"])
def test_inserted_marks_go_and_required_ones_stay(tokenizer):
    king = Literal("king")
    cases = [
        ((tokenizer.encode('the day "well, (as usual'),), "the day well, as usual"),
        ((tokenizer.encode('"the day'),), "the day"),
        ((tokenizer.encode('the "day" and (usual).'),), 'the "day" and (usual).'),
        ((tokenizer.encode("the"), Literal('"'), king, Literal("("), tokenizer.encode("a)")), 'the " king ( a)'),
        ((tokenizer.encode('a "')[-1:], king, tokenizer.encode("a,")[-1:]), "king,"),
        ((king, tokenizer.encode('a"')[-1:], Literal("queen")), "king queen"),
        ((king, tokenizer.encode('the (day "well')), "king the day well"),
    ]
    for parts, expected in cases:
        assert mended(tokenizer, *parts)[1] == expected


def test_two_words_never_melt_together_where_a_mark_goes():
    quote = SMALL.encode('the "')[-1]
    assert mended(SMALL, SMALL.encode("the"), [quote], SMALL.encode("king")) == ('the "king', "the king")
    assert mended(SMALL, [quote], SMALL.encode("king")) == ('"king', "king")
    assert mended(SMALL, Literal("old"), SMALL.encode('x"')[-1:], SMALL.encode("king"))[1] == "old king"
    dash = BPE.words(BPE.encode("it—so"))[1]  # a symbol that leans on both sides would be glued to a required word
    assert not BPE.facts(dash[0]).may_follow_required
    opened = [*BPE.words(BPE.encode('day"'))[1], *dash]
    assert '"' in mended(BPE, Literal("king"), opened)[1], "better left than glued"


def test_a_token_that_holds_more_than_the_mark_stays():
    both = SMALL._printed.index(b'."')
    assert mended(SMALL, SMALL.encode("the king"), [both]) == ('the king."', 'the king."')


def test_a_text_without_marks_has_none_that_is_unpaired():
    signs = "()[]{}“”„‘’\"'«»a -–."
    texts = [left + right for left in signs for right in signs]
    assert all(has_marks(text) or not unpaired_characters(text) for text in texts)
    assert not has_marks("It's a well-known fact – isn't it?")
