"""Blanks that hold so many words, read out of the finished text by a pattern; the text around them stays as it was."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from many_requests import many_requests
from small_models import KINDS, small_family, small_model
from small_tokenizers import TOKENIZERS

from insnet.decoding.config import GenerationConfig
from insnet.families import FAMILIES
from insnet.model import Model

HOT = {"temperature": 3.0, "top_k": 0, "max_tokens": 30}
FAMILIES_WITH_BLANKS = sorted(name for name in FAMILIES if FAMILIES[name].traits.fills_blanks)
BOUNDS = {
    "": (1, None),
    "{1}": (1, 1),
    "{2}": (2, 2),
    "{2,3}": (2, 3),
    "{,2}": (1, 2),
    "{3,}": (3, None),
    "{ 1, 2 }": (1, 2),
}
BESIDE = r"(?:\s|(?<!\w))"  # behind a blank stands a space, or a mark that opens what was given, like a bracket
PARTS = ["The old", "sat on", "Über 🙂", "and the", "sold.\n\nThe next day", "C++  is"]
ENDS = ["", "the end.", "in the harbour!"]


def filling(bounds):
    """A pattern for what a blank between spaces may hold."""
    least, most = bounds
    return rf"\S+(?:\s+\S+){{{least - 1},{'' if most is None else most - 1}}}"


def byte_level_model():
    tokenizer = TOKENIZERS["gpt2"]
    family = small_family("gaps", tokenizer.size, layers=1, scale=0.5)
    family.read_vocabulary(tokenizer)
    return Model(family, tokenizer, GenerationConfig())


BYTE_LEVEL = byte_level_model()


@st.composite
def texts(draw):
    """A text, and a pattern for it with its blanks filled: a mark may touch the text before a blank."""
    text, pattern = "", ""
    for part in [*draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3)), draw(st.sampled_from(ENDS))]:
        bounds = draw(st.sampled_from(sorted(BOUNDS)))
        text += f"{part} ___{bounds} " if part not in ENDS else part
        pattern += rf"{re.escape(part)}\S*\s{filling(BOUNDS[bounds])}{BESIDE}" if part not in ENDS else re.escape(part)
    return text.strip(), pattern if text.endswith(tuple(filter(None, ENDS))) else pattern.removesuffix(BESIDE)


@many_requests
@given(st.sampled_from([*FAMILIES_WITH_BLANKS, "byte level"]), st.sampled_from(KINDS), texts(), st.integers(0, 2**31))
def test_every_blank_holds_as_many_words_as_it_may_and_the_rest_is_kept_to_the_letter(name, kind, asked, seed):
    text, pattern = asked
    model = BYTE_LEVEL if name == "byte level" else small_model(name, kind)
    options = {"seed": seed, "stopping": "sampled", **HOT}
    if model.family.traits.several_per_step and seed % 2:
        options["mode"] = "parallel"
    result = model.infill(text, **options)
    assert re.fullmatch(pattern, result.text), (text, result.text)


@pytest.mark.parametrize("name", FAMILIES_WITH_BLANKS)
@pytest.mark.parametrize("options", [{}, {"candidates": 3}, {"mode": "parallel"}, {"stopping": "rehearsed"}])
def test_bounds_hold_with_candidates_in_both_modes_and_by_every_rule(name, options):
    model = small_model(name, "bpe")
    if options.get("mode") == "parallel" and not model.family.traits.several_per_step:
        pytest.skip("it inserts one by one")
    for seed in range(6):
        for text, pattern in [
            ("The ___{2,3} sat on ___{1}.", rf"The\S* {filling((2, 3))}{BESIDE}sat on\S* \S+\."),
            ("(___{2}) was ___{,2}", rf"\({filling((2, 2))}\) was\S* {filling((1, 2))}"),
            ("___{1}.", r"\S+\."),
        ]:
            for result in model.infill(text, num_samples=2, seed=seed, **options, **HOT):
                assert re.fullmatch(pattern, result.text), (text, result.text)


@pytest.mark.parametrize("name", FAMILIES_WITH_BLANKS)
def test_few_draws_are_needed(name):
    """The blanks are bounded while the text is written, not by luck."""
    model = small_model(name, "bpe")
    for seed in range(10):
        options = {"seed": seed, "stopping": "sampled", "attempts": 2, **HOT, "max_tokens": 90}
        result = model.infill("The ___{3} sat on ___{1} and ___{2,3} left.", **options)
        pattern = rf"The\S* {filling((3, 3))}{BESIDE}sat on\S* \S+{BESIDE}and\S* {filling((2, 3))}{BESIDE}left\."
        assert re.fullmatch(pattern, result.text), result.text


@pytest.mark.parametrize("model", [small_model("gaps", "bpe"), BYTE_LEVEL], ids=["marked", "byte level"])
def test_the_length_counts_the_whole_text(model):
    for seed in range(4):
        text = model.infill("The ___{1,9} sat on ___{2}.", length=(9, 9), seed=seed, **HOT).text
        assert len(text.split()) == 9 and re.fullmatch(
            rf"The\S* {filling((4, 4))}{BESIDE}sat on\S* {filling((2, 2))}\.", text
        )


@pytest.mark.parametrize("name", FAMILIES_WITH_BLANKS)
def test_equal_texts_in_any_batch(name):
    model = small_model(name, "bpe")
    options = {"num_samples": 5, "seed": 3, "stopping": "sampled", **HOT}
    several = [model.infill("The ___{2,4} sat on ___{1}.", batch_size=size, **options) for size in (1, 3, 64)]
    assert [r.text for r in several[0]] == [r.text for r in several[1]] == [r.text for r in several[2]]


@pytest.mark.parametrize("kind", KINDS)
def test_spaces_and_lines_around_blanks_are_kept(kind):
    model = small_model("insnet", kind)
    for seed in range(6):
        text = model.infill("Dear  Sam,\n\n\t___{1}\n\nThe ship  sails on ___{1}\tthen.", seed=seed, **HOT).text
        assert re.fullmatch(r"Dear  Sam,\n\n\t\S+\n\nThe ship  sails on\S* \S+\tthen\.", text), text


def test_a_brace_that_is_meant_is_kept_and_blanks_without_text_between_are_one():
    model = small_model("insnet", "word")
    assert re.fullmatch(r"The \S.*\{2\} sat", model.infill(r"The ___\{2} sat", seed=1, **HOT).text)
    for seed in range(4):
        assert len(model.infill("___{1} ___{2}", seed=seed, **HOT).text.split()) == 3


MISTAKES = [
    ("a ___{5,2}", {}, "'___{5,2}' has fewest words 5 above most words 2"),
    ("a ___{x}", {}, "cannot read '___{x}'; expected ___{2,5}, ___{3,}, ___{,4} or ___{2}"),
    ("a ___{} b", {}, "cannot read '___{}'"),
    ("a ___{,}", {}, "cannot read '___{,}'"),
    ("a ___{2", {}, "cannot read '___{2'"),
    ("a ___{-1}", {}, "cannot read '___{-1}'"),
    ("a ___{99999}", {}, "cannot read '___{99999}'"),
    ("a ___{0}", {}, "'___{0}' may hold no word"),
    ("a ___\n___ b", {}, "nothing but a line break parts two blanks"),
    ("a ___{4} b", {"length": (1, 5)}, "2 words and blanks for at least 4 are required, but at most 5 allowed"),
    (
        "a ___{4} b",
        {"length": (9, 20)},
        "at least 9 words were asked for, but with all its blanks the text has at most 6",
    ),
    ("a ___{9} b", {"max_tokens": 5}, "9 words in blanks cannot be filled with max_tokens 5"),
]


@pytest.mark.parametrize("text, options, says", MISTAKES)
def test_bounds_that_cannot_be_are_one_clear_line(text, options, says):
    with pytest.raises(ValueError, match=re.escape(says)) as refused:
        small_model("insnet", "word").infill(text, **options)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200
