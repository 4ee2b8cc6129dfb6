"""Link Grammar's verdicts: one for each text, and never the wrong text's."""

import os
import stat

import pytest

from insnet.evaluation.grammar import complete_parses, has_parser, parsed

SENTENCE, SALAD = "The dog sleeps on the warm floor.", "Dog the sleeps floor on the."
needs_parser = pytest.mark.skipif(not has_parser(), reason="link-parser is not installed")


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """A program in the parser's place: what it prints, and its exit code."""

    def install(body):
        program = tmp_path / "link-parser"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return install


@needs_parser
def test_a_sentence_parses_and_its_words_shuffled_do_not():
    assert parsed([SENTENCE, SALAD, SENTENCE]) == [True, False, True]
    assert complete_parses([SENTENCE, SALAD]) == 0.5


@needs_parser
@pytest.mark.parametrize("text", ["", "!help", "*what", "%a note", "  "])
def test_what_the_parser_would_not_take_for_a_text_is_no_sentence_and_moves_no_verdict(text):
    assert parsed([SALAD, text, SENTENCE]) == [False, False, True]


@needs_parser
def test_a_text_over_several_lines_is_one_text():
    assert parsed(["The dog sleeps\non the\n\nwarm floor.", SALAD]) == [True, False]


def test_without_the_parser_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="apt install link-grammar"):
        parsed([SENTENCE])


def test_verdicts_are_read_in_order_and_asked_for_once_per_text(scripted):
    yes, no = "echo 'Found 2 linkages (2 had no P.P. violations)'", "echo 'No complete linkages found.'"
    answer = f"case $line in The*) {yes};; *) {no};; esac"
    scripted(f"echo 'verbosity set to 1'; while read -r line; do {answer}; done; echo Bye.")
    assert parsed([SALAD, SENTENCE, SALAD]) == [False, True, False]


def test_parses_that_all_break_a_rule_are_none_and_one_verdict(scripted):
    broken = (
        "echo 'No complete linkages found.'; echo 'Found 6 linkages (0 of 6 random linkages had no P.P. violations)'"
    )
    scripted(f"read -r line; {broken}; echo 'Found 1 linkage (1 had no P.P. violations)'")
    assert parsed([SALAD, SENTENCE]) == [False, True]


def test_a_parser_that_breaks_off_is_an_error_and_no_verdict(scripted):
    scripted("echo 'Found 1 linkage (1 had no P.P. violations)'; echo 'no dictionary' >&2; exit 1")
    with pytest.raises(ValueError, match="1 verdicts on 2 texts; its last line: no dictionary"):
        parsed([SENTENCE, SALAD])
