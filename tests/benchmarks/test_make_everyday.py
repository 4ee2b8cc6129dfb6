"""The default model's text: which lines fit, and under which names."""

import lzma
import random
from pathlib import Path

import pytest

from scripts import make_everyday
from scripts.everyday_names import OVERUSED, renamed
from scripts.make_everyday import REGISTERS, is_plain, is_telling, kept

NOVELS, TALK = REGISTERS["novels"], REGISTERS["tatoeba"]
FAMILIAR = frozenset({"old", "baker", "sold", "warm", "bread", "to", "his", "neighbours", "every", "day", "kind"})


@pytest.mark.parametrize(
    "line",
    [
        "The old baker sold warm bread to his neighbours.",
        "I've never seen my sister's garden in winter.",
        "Can we meet at 10 on Monday?",
    ],
)
def test_a_plain_sentence_fits(line: str) -> None:
    assert is_plain(line, TALK)


@pytest.mark.parametrize(
    "line",
    [
        "Warm bread.",  # short
        "the old baker sold warm bread.",  # no capital
        '"Warm bread," said the baker to us.',  # speech
        "The bakery opened its doors in 1987.",  # a year
        "He sold bread , rolls and cake .",  # spaces before stops
        "The figure below shows the price of bread.",  # points elsewhere
        "On Friday Anna Berger met Paul Wolf in Berlin.",  # names
        "But the old baker sold warm bread.",  # half a sentence, in prose
    ],
)
def test_other_lines_do_not(line: str) -> None:
    assert not is_plain(line, NOVELS)


def test_a_line_has_something_to_say() -> None:
    assert is_telling(["old", "baker", "sold"])
    assert not is_telling(["I", "want", "to", "know", "what", "I", "need"])


def test_overused_people_are_mostly_left_out_and_else_get_other_names() -> None:
    dice = random.Random(0)
    lines = [renamed("Tom met Mary and Tom smiled.", dice) for _ in range(400)]
    new = [line for line in lines if line is not None]
    assert 0.03 < len(new) / len(lines) < 0.2
    assert not any(name in line for line in new for name in OVERUSED)
    assert all(line.split()[0] == line.split()[4] != line.split()[2].strip(".") for line in new)
    assert renamed("The bus was late.", dice) == "The bus was late."


def test_lines_are_kept_once_if_decent_and_familiar(tmp_path: Path) -> None:
    lines = [
        "The old baker sold warm bread to his neighbours every day.",
        "The old baker sold warm bread to his neighbours every day!",
        "The old baker sold quaint bread to his kind neighbours every day.",
    ]
    path = tmp_path / f"{NOVELS.file}.txt.xz"
    path.parent.mkdir(parents=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    assert list(kept(tmp_path, NOVELS, FAMILIAR, set(), random.Random(0))) == lines[:1]


def test_the_same_input_gives_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = tmp_path / "corpora"
    for number, register in enumerate(REGISTERS.values()):
        path = corpora / f"{register.file}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The old baker sold warm bread to {number} kind neighbours every day.\n" * 3, encoding="utf-8")
    monkeypatch.setattr(make_everyday, "VALID_LINES", 0)
    monkeypatch.setattr(make_everyday, "FAMILIAR", 1)
    written = []
    for name in ("first", "second"):
        monkeypatch.setattr("sys.argv", ["make_everyday", str(corpora), "--output", str(tmp_path / name)])
        make_everyday.main()
        written.append([(tmp_path / name / file).read_bytes() for file in ("train.txt", "valid.txt")])
    assert written[0] == written[1]
    assert len(written[0][0].splitlines()) == len(REGISTERS)
