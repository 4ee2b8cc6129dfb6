"""`insnet benchmark`: one JSON line on stdout, and a results file that says how it was measured."""

import json

import pytest

from insnet.tour import write_corpus

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
    assert ended.code == 2 and "expected tolerances with commas" in ended.err


def test_the_insertion_order_is_measured_on_a_data_folder(insnet, model_folder, tmp_path):
    write_corpus(tmp_path / "data", train=30, valid=6, test=1)
    path = tmp_path / "order.json"
    options = ["--data", tmp_path / "data", "--limit", 4, "--device", "cpu", "--output", path]
    ended = insnet("benchmark", "insertion-order", model_folder, *options)
    [printed], stored = ended.json_lines(), json.loads(path.read_text())
    assert (ended.code, printed["headline"], stored["seeds"]) == (0, stored["headline"], [0])
    assert {"rank_first_tenth", "random_function_share_last_tenth"} < stored["headline"].keys()
    assert stored["data"] == "data/valid, 4 keyword lists"
    other = tmp_path / "other.txt"
    other.write_text("one two\n")
    [counted] = insnet("benchmark", "insertion-order", model_folder, *options[:-2], "--text", other).json_lines()
    assert counted["ranked_by"] == {"words": 2, "different": 2}


def test_stopping_rules_are_compared_on_a_data_folder(insnet, model_folder, tmp_path):
    write_corpus(tmp_path / "data", train=30, valid=6, test=1)
    path = tmp_path / "stopping.json"
    options = ["--data", tmp_path / "data", "--limit", 3, "--device", "cpu", "--output", path]
    ended = insnet("benchmark", "stopping", model_folder, *options)
    assert ended.code == 0 and ended.json_lines()[0]["headline"] == json.loads(path.read_text())["headline"]
    wrong = insnet("benchmark", "stopping", model_folder, *options, "--quantiles", "half")
    assert wrong.code == 2 and "expected numbers with commas" in wrong.err


def test_a_spectrum_is_measured_drawn_and_written(insnet, model_folder, tmp_path):
    pytest.importorskip("matplotlib")
    write_corpus(tmp_path / "data", train=30, valid=6, test=1)
    path, plot = tmp_path / "spectrum.json", tmp_path / "spectrum.png"
    options = ["--data", tmp_path / "data", "--limit", 3, "--device", "cpu"]
    ended = insnet(
        *["benchmark", "spectrum", model_folder, *options, "--settings", "parallel_mass=0.5/0.9"],
        *["--tau", f"10={model_folder}", "--tau", f"-inf={model_folder}", "--seeds", "1,2"],
        *["--plot", plot, "--paper", "yelp", "--output", path],
    )
    [printed], stored = ended.json_lines(), json.loads(path.read_text())
    assert (ended.code, printed["headline"], stored["seeds"]) == (0, stored["headline"], [1, 2])
    assert {"bleu4_sequential", "sequential_ratio_parallel_mass_0.5", "bleu4_tau_10"} < stored["headline"].keys()
    assert stored["headline"]["sequential_ratio_tau_-inf"] == 1.0
    assert plot.is_file() and len((tmp_path / "spectrum.tau_10.outputs.txt").read_text().splitlines()) == 3
    for wrong in (
        [],
        ["--settings", "top_k=1"],
        [model_folder, "--paper", "news"],
        [model_folder, "--tau", "ten=x"],
        [model_folder, "--seeds", "one"],
    ):
        assert insnet("benchmark", "spectrum", *wrong, *options).code == 2
    assert "did you mean 'top_k'" in insnet("benchmark", "spectrum", model_folder, *options, "--settings", "topk=1").err


def test_parallel_speed_is_measured_on_a_data_folder(insnet, model_folder, tmp_path):
    write_corpus(tmp_path / "data", train=30, valid=6, test=1)
    path = tmp_path / "parallel.json"
    options = ["--data", tmp_path / "data", "--limit", 3, "--device", "cpu", "--rounds", 1, "--warmup", 0, "--texts", 1]
    ended = insnet(
        *["benchmark", "parallel-speed", model_folder, *options, "--batch-sizes", "1,2"],
        *["--settings", "parallel_mass=0.9 conflicts=same_token", "--output", path],
    )
    [printed], stored = ended.json_lines(), json.loads(path.read_text())
    assert (ended.code, printed["headline"]) == (0, stored["headline"])
    assert {"latency_ratio_batch1", "latency_ratio_batch2", "rounds_per_word"} < stored["headline"].keys()
    assert stored["settings"]["generation"]["parallel"]["conflicts"] == "same_token"
    assert len((tmp_path / "parallel.outputs.txt").read_text().splitlines()) == 3
    assert insnet("benchmark", "parallel-speed", model_folder, *options, "--settings", "top_k=1/2").code == 2
    again = insnet(
        *["benchmark", "parallel-speed", model_folder, *options, "--batch-sizes", "1", "--suffix", "here"],
        *["--settings", "parallel_mass=0.9 conflicts=same_token", "--with", f"{path}:latency_ratio_batch2"],
    )
    [printed] = again.json_lines()
    assert printed["headline"]["latency_ratio_batch2"] == stored["headline"]["latency_ratio_batch2"]
    assert printed["taken_from"]["latency_ratio_batch2"]["date"] == stored["date"]
    assert "latency_ratio_batch1_here" in printed["headline"]
