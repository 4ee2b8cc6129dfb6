"""`insnet benchmark`: one JSON line on stdout, and a results file that says how it was measured."""

import json

import pytest

SMALL = [
    "--width",
    16,
    "--layers",
    1,
    "--heads",
    2,
    "--vocabulary",
    60,
    "--rounds",
    1,
    "--warmup",
    0,
    "--device",
    "cpu",
]


@pytest.mark.parametrize(
    ("name", "options", "headline"),
    [
        ("train-speed", ["-n", "8,16", "--batch-tokens", 64], "ratio_n16"),
        ("train-speed", ["-n", "8", "--batch-tokens", 64, "--tau", "-inf,0.3,inf"], "train_step_ratio"),
        ("decode-speed", ["-n", 4, "--batch-sizes", "1,2"], "reencode_over_cached_n4"),
    ],
)
def test_a_measurement_ends_in_one_json_line_and_a_results_file(insnet, tmp_path, name, options, headline):
    path = tmp_path / "speed.json"
    ended = insnet("benchmark", name, *options, *SMALL, "--output", path)
    [printed] = ended.json_lines()
    written = json.loads(path.read_text())
    assert ended.code == 0
    assert printed["headline"] == written["headline"]
    assert written["headline"][headline] > 0
    assert written["command"].startswith(f"insnet benchmark {name} -n ")
    assert str(tmp_path) not in path.read_text()
    assert {"commit", "hardware", "date", "seeds", "data"} <= written.keys()


def test_tolerances_that_are_no_numbers_are_refused(insnet):
    ended = insnet("benchmark", "train-speed", "--tau", "ten", *SMALL)
    assert ended.code == 2 and "expected numbers with commas" in ended.err
