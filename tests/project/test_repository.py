"""What holds for the repository as a whole: small files, a small tree, no traces of the machine it was written on."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES_A_FILE_MAY_HAVE = 400
BYTES_THE_TREE_MAY_HAVE = 56 * 2**20  # two models of 20 MiB, one of 4, and all the rest
BYTES_WITHOUT_WEIGHTS = 9 * 2**20
# Spelt in two parts, so that this file does not hold what it looks for.
MACHINE_PATHS = [("/" + name + "/").encode() for name in ("work", "root")]

needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="which files are tracked is known only in a clone")


def tracked_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def project_table() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def package_name(requirement: str) -> str:
    """The part of "Some_Name[extra]>=1,<2" that names the package, spelt as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def test_no_source_file_is_longer_than_a_reader_can_hold():
    files = [path for folder in ("src", "benchmarks", "scripts") for path in (ROOT / folder).rglob("*.py")]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    too_long = {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LINES_A_FILE_MAY_HAVE}
    assert lengths
    assert too_long == {}


@needs_git
def test_no_tracked_file_names_a_path_of_one_machine():
    found = [
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if any(machine_path in path.read_bytes() for machine_path in MACHINE_PATHS)
    ]
    assert found == []


@needs_git
def test_the_tracked_tree_stays_small():
    files = tracked_files()
    assert files
    sizes = {path: path.lstat().st_size for path in files}  # a link is as small as its name
    assert sum(sizes.values()) < BYTES_THE_TREE_MAY_HAVE
    without_weights = [size for path, size in sizes.items() if path.suffix != ".safetensors"]
    assert sum(without_weights) < BYTES_WITHOUT_WEIGHTS


@needs_git
def test_shipped_packages_are_not_ignored():
    """Names for outputs at the top of the tree (data, runs) hide nothing inside the package."""
    names = ["data/any", "src/insnet/models/any/model.safetensors", "src/insnet/text/any.py", "src/insnet/data/any.py"]
    # check-ignore prints those of its arguments that .gitignore hides.
    ignored = subprocess.run(["git", "check-ignore", *names], cwd=ROOT, capture_output=True, text=True).stdout.split()
    assert ignored == ["data/any"]


def test_every_direct_dependency_has_an_exact_version():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []  # no host, no path, no +cpu
    pinned = {package_name(line) for line in lines}
    table = project_table()
    wanted = [*table["dependencies"], *(r for extra in table["optional-dependencies"].values() for r in extra)]
    assert {package_name(requirement) for requirement in wanted} - pinned == {"insnet"}
    assert pinned.isdisjoint({"huggingface-hub", "hf-xet"})


def test_the_citation_names_the_version_that_is_installed():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == project_table()["version"]
