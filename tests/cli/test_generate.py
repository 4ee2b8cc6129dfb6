"""`insnet generate`, `infill`, `score` and `models`, as their user sees them."""

import re

import pytest
import typer

from insnet.cli import watch
from insnet.cli.app import app
from insnet.cli.decoding_options import DECODING_OPTIONS
from insnet.cli.options import parse_length
from insnet.decoding.config import CANDIDATE_CHOICES, STOPPING_RULES, TABLE_OF_SETTING
from insnet.text.inflection import forms
from insnet.text.words import contains_in_order


def test_samples_differ_and_hold_the_keywords_in_order(insnet):
    ended = insnet("generate", "new york", "captain", "-n", 4, "--seed", 7)
    texts = ended.out.splitlines()
    assert ended.code == 0
    assert len(texts) == len(set(texts)) == 4
    assert all(contains_in_order(text, ["new york", "captain"]) for text in texts)
    assert ended.err == ""


def test_the_same_seed_gives_the_same_output_and_another_seed_another(insnet):
    first, again, other = (insnet("generate", "ship", "--seed", seed).out for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_json_has_the_promised_keys_and_the_text_that_is_printed_without_it(insnet):
    plain = insnet("generate", "ship", "--seed", 5)
    [result] = insnet("generate", "ship", "--seed", 5, "--json").json_lines()
    assert list(result) == ["keywords", "text", "tokens", "steps", "log_prob", "finished", "seed", "model"]
    assert result["text"] + "\n" == plain.out
    assert (result["keywords"], result["seed"]) == (["ship"], 5)


def test_a_trace_has_one_entry_a_step_and_ends_in_the_text(insnet):
    [result] = insnet("generate", "ship", "--seed", 5, "--json", "--trace").json_lines()
    assert [entry["step"] for entry in result["trace"]] == list(range(1, result["steps"] + 1))
    assert all(list(entry) == ["step", "insert", "delete", "text"] for entry in result["trace"])
    assert result["trace"][-1]["text"] == result["text"]


def test_the_best_candidate_is_printed_and_watched_with_its_own_steps(insnet):
    command = ("generate", "ship", "--seed", 5, "--candidates", 4, "--revise", 1, "--length", "8:")
    [result] = insnet(*command, "--json", "--trace").json_lines()
    assert insnet(*command).out == result["text"] + "\n"
    lines = insnet(*command, "--watch").out.splitlines()
    assert len(lines) == 1 + result["steps"] and lines[-1].endswith(result["text"])
    likeliest = insnet("generate", "ship", "--seed", 5, "--candidates", 9, "--candidate-choice", "likelihood")
    assert likeliest.code == 0 and "ship" in likeliest.out


def test_a_wrong_number_of_candidates_is_told_in_one_line(insnet):
    ended = insnet("generate", "ship", "--candidates", 0)
    assert (ended.code, ended.out) == (1, "") and "candidates is 0; expected 1 or more" in ended.err


@pytest.mark.parametrize(("option", "least", "most"), [("9:11", 9, 11), ("10", 10, 10), (":8", 1, 8), ("12:", 12, 999)])
def test_length_bounds_the_words(insnet, option, least, most):
    ended = insnet("generate", "ship", "--length", option, "-n", 3, "--seed", 1)
    assert all(least <= len(text.split()) <= most for text in ended.out.splitlines())


@pytest.mark.parametrize("option", ["12:", ":3", "40:60"])
def test_one_end_of_a_length_never_contradicts_what_the_model_would_write(insnet, model_folder, tmp_path, option):
    """The model's own settings ask for 6 words, and for no more than 200."""
    ended = insnet("generate", "ship", "--length", option, "--seed", 1)
    least, most = parse_length(option)
    assert ended.code == 0 and (least or 0) <= len(ended.out.split()) <= (most or 999)


@pytest.mark.parametrize(("seed", "code"), [(-1, 1), ("1.5", 2), ("x", 2)])
def test_a_seed_that_is_none_is_told(insnet, seed, code):
    ended = insnet("generate", "ship", "--seed", seed)
    assert (ended.code, ended.out) == (code, "") and "seed" in ended.err


def test_length_is_read_or_refused_as_wrong_usage(insnet):
    assert parse_length("15") == (15, 15)
    for wrong in ("x", ":", "", "1:2:3"):
        assert insnet("generate", "ship", "--length", wrong).code == 2


def test_a_banned_word_is_not_written(insnet):
    free = insnet("generate", "ship", "--seed", 3, "--length", 12, "--top-k", 1).out
    banned = next(word for word in re.findall(r"\w+", free) if word != "ship")
    again = insnet("generate", "ship", "--seed", 3, "--length", 12, "--top-k", 1, "--ban", banned).out
    assert banned in re.findall(r"\w+", free)
    assert banned not in re.findall(r"\w+", again)


def test_a_blank_gets_as_many_words_as_its_bounds_say(insnet):
    for seed in range(3):
        text = insnet("infill", "The ___{2,3} ship ___{1} .", "--seed", seed).out.rstrip("\n")
        assert re.fullmatch(r"The\S*( \S+){2,3} ?ship\S* \S+ \.", text), text


def test_a_ban_with_an_asterisk_keeps_every_form_out(insnet):
    command = ("generate", "ship", "--length", 30, "--seed", 3)
    free = set(re.findall(r"\w+", insnet(*command).out.lower()))
    word = next(word for word in sorted(free) if word.isalpha() and word not in ("ship", "a", "i") and len(word) > 1)
    again = insnet(*command, "--ban", word + "*").out
    assert not set(re.findall(r"\w+", again.lower())) & set(forms(word))


@pytest.mark.parametrize("command", [["generate", "ship", "--length", 12], ["infill", "The ___ ship ___ ."]])
def test_a_text_with_a_rejected_word_is_drawn_anew(insnet, tmp_path, command):
    free = insnet(*command, "--seed", 3).out
    word = next(word for word in re.findall(r"\w+", free) if word not in ("The", "ship"))
    (tmp_path / "words.txt").write_text(f"{word.upper()}\n")
    again = insnet(*command, "--seed", 3, "--reject", tmp_path / "words.txt")
    assert again.code == 0
    assert word.lower() not in re.findall(r"\w+", again.out.lower())


def test_a_watched_text_is_the_one_that_was_accepted(insnet, tmp_path):
    command = ["generate", "ship", "--length", 12, "--seed", 3]
    (tmp_path / "words.txt").write_text(insnet(*command).out.split()[0] + "*\n")
    accepted = insnet(*command, "--reject", tmp_path / "words.txt").out
    assert insnet(*command, "--reject", tmp_path / "words.txt", "--watch").out.endswith(accepted)


@pytest.mark.parametrize("command", [["generate", "Ship"], ["infill", "The ___ ship ."]])
def test_a_word_both_required_and_rejected_is_told_in_one_line(insnet, tmp_path, command):
    (tmp_path / "words.txt").write_text("ship\n")
    ended = insnet(*command, "--reject", tmp_path / "words.txt")
    assert (ended.code, len(ended.err.splitlines())) == (1, 1)
    assert "is both required and refused" in ended.err


def test_a_starred_keyword_takes_any_form_that_is_not_rejected(insnet, tmp_path):
    (tmp_path / "words.txt").write_text("ships\nship\n")
    command = ["generate", "captain*", "ship*", "--seed", 3, "--candidates", 2, "--reject", tmp_path / "words.txt"]
    [result] = insnet(*command, "--json").json_lines()
    assert result["keywords"][0] in ("captain", "captains") and result["keywords"][1] in ("shipped", "shipping")
    assert contains_in_order(result["text"], result["keywords"])
    watched = insnet(*command[:5], "--watch").out.splitlines()
    [drawn] = insnet(*command[:5], "--json").json_lines()
    assert watched[0].split() == ["0", *drawn["keywords"]] and watched[-1].endswith(drawn["text"])


def test_any_order_keeps_every_keyword(insnet):
    [result] = insnet("generate", "ship", "captain", "rope", "--any-order", "--seed", 3, "--json").json_lines()
    assert sorted(result["keywords"]) == ["captain", "rope", "ship"]


def test_watching_a_pipe_prints_one_line_a_step_and_ends_in_the_text(insnet):
    [result] = insnet("generate", "ship", "--seed", 5, "--json").json_lines()
    lines = insnet("generate", "ship", "--seed", 5, "--watch").out.splitlines()
    assert lines[0].split() == ["0", "ship"]
    assert len(lines) == result["steps"] + 1
    assert lines[-1].strip() == f"{result['steps']}  {result['text']}"


def test_watching_several_samples_shows_each(insnet):
    results = insnet("generate", "ship", "-n", 2, "--seed", 5, "--json").json_lines()
    lines = insnet("generate", "ship", "-n", 2, "--seed", 5, "--watch").out.splitlines()
    assert len(lines) == sum(result["steps"] + 1 for result in results)
    assert lines[-1].endswith(results[-1]["text"])


def test_watching_a_terminal_redraws_in_colour(insnet, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(watch, "_SECONDS_A_STEP", 0)
    out = insnet("generate", "ship", "--seed", 5, "--length", 6, "--watch").out
    assert "\x1b[1;30;42m" in out  # the newest word
    assert "\x1b[1;36mship" in out  # the required one
    assert "\x1b[2K" in out  # a line drawn anew


@pytest.mark.parametrize(
    ("previous", "text", "newest"),
    [
        ("captain ship", "the captain ship", ["the"]),
        ("an apple", "an ape apple", ["ape"]),
        ("Castle built", "The castle built", ["The"]),  # a keyword that lost its capital is not new
        ("bread", "bread,", [","]),
        ("sail ship", "the sail of ship", ["the", "of"]),
        ("sail ship", "the old sail of ship", ["the old", "of"]),
        ("the sail", "the sailor", ["sailor"]),
    ],
)
def test_the_newest_words_are_highlighted(previous, text, newest):
    styled = watch.View.of(previous).grown(text).styled([], shows_newest=True)
    assert [text[span.start : span.end] for span in styled.spans] == newest


def test_words_that_went_in_together_share_a_colour_of_their_own():
    texts = [
        "the ship sails",
        "the old ship sails away",
        "the old ship now sails away .",
        "so the old ship now sails away .",
    ]
    view = watch.View.of("ship")
    for text in texts:
        view = view.grown(text)
    styles = {texts[-1][span.start : span.end]: span.style for span in view.styled(["ship"]).spans}
    rounds = [["the", "sails"], ["old", "away"], ["now", "."]]
    colours = [{styles.pop(word) for word in words} for words in rounds]
    assert all(len(colour) == 1 for colour in colours) and len(set.union(*colours)) == 3
    assert styles == {"ship": "bold cyan"}  # "so" came alone


def test_a_parallel_text_holds_the_keywords_in_fewer_steps(insnet):
    command = ["generate", "ship", "captain", "--seed", 5, "--length", 12, "--mode", "parallel", "--json", "--trace"]
    [result] = insnet(*command, "--parallel-mass", 0.9).json_lines()
    assert contains_in_order(result["text"], ["ship", "captain"])
    assert result["steps"] == len(result["trace"]) < sum(len(entry["insert"]) for entry in result["trace"])
    [short] = insnet(*command[:-2], "--json", "--rounds", 2, "--length", "2:99").json_lines()
    assert short["steps"] <= 2
    infill = insnet("infill", "The ___ ship ___ .", "--mode", "parallel", "--seed", 1)
    assert infill.code == 0 and re.fullmatch(r"The.+ ship.+\s?\.\n", infill.out)


def test_blanks_are_seen_filling(insnet):
    asked = ("infill", "The ___ ship ___ .", "-n", 2, "--seed", 1)
    texts = insnet(*asked).out.splitlines()
    steps = [line.split(maxsplit=1) for line in insnet(*asked, "--watch").out.splitlines()]
    starts = [index for index, (number, _) in enumerate(steps) if number == "0"] + [len(steps)]
    assert [steps[index] for index in starts[:2]] == [["0", "The ship ."]] * 2
    assert [steps[index - 1][1] for index in starts[1:]] == texts and starts[2] > 4


def test_infill_keeps_the_text_around_blanks(insnet):
    texts = insnet("infill", "The ___ sat on ___ .", "-n", 3, "--seed", 1).out.splitlines()
    assert len(texts) == 3
    assert all(re.fullmatch(r"The.+ sat on.+\s?\.", text) for text in texts)


def test_the_example_in_the_help_of_infill_is_one_to_copy(insnet, monkeypatch):
    """Written as people write, without a space before the full stop, since "on ___ ." asks for "on the floor. ."."""
    monkeypatch.setenv("COLUMNS", "100")
    shown = insnet("infill", "--help").out
    example = re.search(r'insnet infill "(.*?)" -n 5', shown)[1]
    assert "___" in example and not re.search(r"\s[.,;:!?]", example)
    texts = insnet("infill", example, "-n", 5, "--seed", 1).out.splitlines()
    pattern = ".+".join(re.escape(part.strip()) for part in re.split(r"___(?:\{.*?\})?", example))
    assert len(texts) == 5 and all(re.fullmatch(pattern, text) for text in texts)


def test_score_says_nats_and_json_says_all(insnet):
    [score] = insnet("score", "The captain sails .", "--json").json_lines()
    assert list(score) == ["text", "log_prob", "tokens", "nats_per_token", "is_exact", "unknown_tokens"]
    assert f"{score['log_prob']:.2f} nats" in insnet("score", "The captain sails .").out


def test_score_of_a_file_has_a_line_for_every_line(insnet, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("The captain sails .\n\nA ship .\n")
    ended = insnet("score", "--input", path, "--json")
    first, empty, last = ended.json_lines()
    assert ended.code == 1
    assert (first["text"], empty["text"], last["text"]) == ("The captain sails .", "", "A ship .")
    assert "empty" in empty["error"]
    assert ended.err.splitlines()[-1] == "error: 1 of 3 lines could not be scored"


def test_models_lists_the_shelf(insnet, shelf):
    [card] = insnet("models", "--json").json_lines()
    assert list(card) == [
        "name", "family", "parameters", "size_bytes", "data", "licence", "scores", "is_default", "is_ready", "base",
    ]  # fmt: skip
    assert (card["name"], card["is_default"]) == (shelf.name, True)
    assert shelf.name in insnet("models").out


def test_a_model_is_found_by_folder_too(insnet, model_folder):
    by_folder = insnet("generate", "ship", "--seed", 1, "--model", model_folder).out
    assert by_folder == insnet("generate", "ship", "--seed", 1).out


def test_every_setting_is_an_option_of_every_writing_command():
    assert set(TABLE_OF_SETTING) - set(DECODING_OPTIONS) == {"min_words", "max_words", "mode"}  # --length, --mode
    commands = typer.main.get_command(app).commands
    for name in ("generate", "infill", "evaluate"):
        options = {parameter.name: parameter for parameter in commands[name].params}
        assert all(options[setting].help for setting in DECODING_OPTIONS)


def test_a_bad_word_is_kept_out_of_every_command_unless_the_flag_lets_it_in(insnet, monkeypatch):
    """A word that the model likes stands for one."""
    for arguments in (["generate", "ship"], ["infill", "The ship ___."]):
        run = [*arguments, "-n", 4, "--seed", 1, "--temperature", 5]
        free = insnet(*run, "--no-decent").out
        added = [word for word in re.findall(r"[a-z]+", free) if word not in " ".join(arguments)]
        monkeypatch.setattr("insnet.text.decency.INDECENT_WORDS", frozenset(added[:2]))
        for options, is_free in (([], False), (["--decent"], False), (["--no-decent"], True)):
            ended = insnet(*run, *options)
            assert (ended.code, ended.out == free) == (0, is_free)
            assert is_free or not set(added[:2]) & set(re.findall(r"[a-z]+", ended.out.lower()))


def test_every_rule_can_be_asked_for_and_no_other(insnet):
    for option, rules in (("--stopping", STOPPING_RULES), ("--candidate-choice", CANDIDATE_CHOICES)):
        for rule in rules:
            assert insnet("generate", "ship", option, rule).code == (rule == "counted")  # it has no count head
        assert insnet("generate", "ship", option, "maybe").code == 2


def test_an_order_that_the_model_has_not_learned_is_told_in_one_line(insnet):
    ended = insnet("generate", "ship", "--order", "sideways")
    assert (ended.code, ended.out) == (1, "") and "order is 'sideways', but this model has learned random" in ended.err
