"""`python -m benchmarks.NAME`: models in, one JSON line, a results file and its texts out."""

import json
from pathlib import Path

import pytest
from small_judge import save_small_judge
from small_models import small_family, tokenizer_of

from insnet.decoding.config import MODES
from insnet.evaluation.files import write_compressed
from insnet.evaluation.task import read_task
from insnet.families.storage import save_model
from insnet.shelf import load
from insnet.text.corpus import read_lines
from insnet.tour import write_corpus


def save(folder: Path, family: str = "insnet", **config) -> Path:
    """A small model with random weights as a run folder."""
    tokenizer = tokenizer_of("word")
    save_model(folder, small_family(family, tokenizer.size, **config))
    tokenizer.save(folder)
    (folder / "generation_config.json").write_text(json.dumps({"max_tokens": 12, "rehearsals": 2}))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("runs")
    configs = {
        "full": {},
        "truncated": {"truncated": True},
        "noglobal": {"noglobal": True},
        "told": {"count_head": 12, "length_conditioned": True},
        "baseline": {"family": "autoregressive"},
    }
    return {name: save(home / name, **config) for name, config in configs.items()}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "tour"
    write_corpus(folder, train=30, valid=6, test=6)
    return folder


def lines_of(path: Path) -> list[str]:
    return list(read_lines(path))


def test_quality_is_one_command(benchmark, runs, data, tmp_path):
    pytest.importorskip("transformers")
    path, judge = tmp_path / "quality_tour.json", save_small_judge(tmp_path / "llama", positions=2048)
    ended = benchmark(
        *["quality", runs["told"], "--data", data, "--limit", 4, "--seeds", "5,6", "--device", "cpu"],
        *["--settings", "candidates=2 min_p=0.1", "--faithful", runs["full"], "--baseline", runs["baseline"]],
        *["--baseline-settings", "top_k=2", "--judge-folder", judge, "--output", path],
    )
    [printed], stored = ended.json_lines(), json.loads(path.read_text())
    assert (ended.code, printed["headline"], stored["seeds"]) == (0, stored["headline"], [5, 6])
    assert {"judge_ppl", "judge_ppl_reference", "faithful_bleu4", "ar_nist4"} < stored["headline"].keys()
    assert (stored["model"], stored["faithful"]["model"], stored["ar"]["model"]) == ("told", "full", "baseline")
    assert (stored["settings"]["candidates"], stored["ar"]["settings"]["top_k"]) == (2, 2)
    assert stored["data"] == "tour/test, 4 keyword lists"
    written = [lines_of(tmp_path / f"quality_tour{name}.outputs.txt.xz") for name in ("", ".faithful", ".ar")]
    assert [len(lines) for lines in written] == [4, 4, 4] and written[0] != written[1] != written[2]
    kept = {path.read_text(), *(line for lines in written for line in lines)}
    assert not any(reference in text for reference in read_task(data, "test").references for text in kept)


def test_a_baseline_that_comes_later_is_as_if_it_had_been_there(benchmark, runs, data, tmp_path):
    path = tmp_path / "quality_tour.json"
    options = ["--data", data, "--device", "cpu"]
    write = ["quality", runs["full"], *options, "--limit", 4, "--seeds", "3,4", "--output", path]
    benchmark(*write, "--baseline", runs["baseline"], "--baseline-settings", "top_k=2")
    at_once, texts = json.loads(path.read_text()), tmp_path / "quality_tour.ar.outputs.txt.xz"
    texts_at_once = lines_of(texts)
    texts.unlink()
    benchmark(*write)
    before = json.loads(path.read_text())
    later = ["baseline", path, runs["baseline"], *options, "--settings", "top_k=2"]
    ended, after = benchmark(*later), json.loads(path.read_text())
    assert ended.code == 0 and "ar_bleu2" not in before["headline"]
    assert after["headline"] == at_once["headline"] and lines_of(texts) == texts_at_once
    assert ended.json_lines()[0]["headline"].items() <= after["headline"].items()
    assert at_once["ar"].items() <= after["ar"].items() and "benchmarks.baseline" in after["ar"]["command"]
    assert {name: after[name] for name in before if name != "headline"} == {
        name: before[name] for name in before if name != "headline"
    }
    again = benchmark(*later[:-1], "top_k=1"), json.loads(path.read_text())
    assert again[1]["ar"]["settings"]["top_k"] == 1 and again[1]["headline"].keys() == after["headline"].keys()
    write_compressed(tmp_path / "quality_tour.outputs.txt.xz", "the cat sat.\n" * 4)
    refused = benchmark(*later)
    assert refused.code == 1 and "give its own texts and data" in refused.err
    assert json.loads(path.read_text()) == again[1], "nothing is lost"


def test_the_papers_decoding_is_left_out_aloud_or_refused(benchmark, runs, data):
    options = ["--data", data, "--limit", 2, "--seeds", "0", "--device", "cpu"]
    ended = benchmark("quality", runs["told"], *options)
    assert ended.code == 0 and "the paper's decoding is left out" in ended.err
    assert "faithful_bleu2" not in ended.json_lines()[0]["headline"]
    assert "faithful_bleu2" in benchmark("quality", runs["full"], *options).json_lines()[0]["headline"]
    refused = benchmark("quality", runs["full"], *options, "--faithful", runs["told"])
    assert refused.code == 1 and "was given its length" in refused.err and len(refused.err.splitlines()) == 1
    assert benchmark("quality", runs["full"], *options, "--settings", "top_k=1/2").code == 2


def test_the_ablation_is_one_command(benchmark, runs, data, tmp_path):
    path = tmp_path / "ablation.json"
    models = [word for name in ("full", "truncated", "noglobal") for word in (f"--{name}", runs[name])]
    options = ["--data", data, "--limit", 3, "--seeds", "0", "--orders", 2, "--device", "cpu", "--output", path]
    ended = benchmark("ablation", *models, *options)
    stored = json.loads(path.read_text())
    assert (ended.code, ended.json_lines()[0]["headline"]) == (0, stored["headline"])
    assert {"stop_nll_full", "bleu2_truncated", "nonterminating_noglobal"} < stored["headline"].keys()
    for name in ("", ".truncated", ".noglobal"):
        assert len(lines_of(tmp_path / f"ablation{name}.outputs.txt.xz")) == 3
    swapped = benchmark("ablation", "--full", runs["truncated"], *models[2:], *options)
    assert swapped.code == 1 and "given as full has truncated = True" in swapped.err


def test_dinic_is_one_command(benchmark, runs, data, tmp_path):
    path = tmp_path / "dinic_tour.json"
    ended = benchmark(
        *["dinic", runs["full"], runs["told"], "--data", data, "--limit", 3, "--seeds", "0,1"],
        *["--settings", "parallel_mass=0.9 top_k=1", "--sequential-settings", "top_k=3", "--uniform", runs["full"]],
        *["--texts", 1, "--rounds", 1, "--warmup", 0, "--device", "cpu", "--output", path],
    )
    stored = json.loads(path.read_text())
    assert (ended.code, ended.json_lines()[0]["headline"]) == (0, stored["headline"])
    assert {"bleu2", "sequential_steps", "uniform_bleu4", "latency_ratio_batch1"} < stored["headline"].keys()
    assert [stored[name]["model"] for name in ("sequential", "uniform")] == ["full", "full"]
    assert stored["model"] == "told" and stored["latency"]["texts"] == 1
    for name in ("", ".sequential", ".uniform"):
        assert len(lines_of(tmp_path / f"dinic_tour{name}.outputs.txt.xz")) == 3


def test_texts_that_were_written_without_a_judge_are_judged_later(benchmark, runs, data, tmp_path):
    """As if the judge had been there from the start, but for the seeds whose texts were not kept."""
    pytest.importorskip("transformers")
    path, folder = tmp_path / "quality_tour.json", save_small_judge(tmp_path / "llama", positions=2048)
    write = ["quality", runs["full"], "--data", data, "--limit", 4, "--seeds", "3", "--device", "cpu"]
    write += ["--baseline", runs["baseline"], "--output", path]
    benchmark(*write, "--judge-folder", folder)
    at_once = json.loads(path.read_text())["headline"]
    benchmark(*write)
    before = json.loads(path.read_text())
    later = ["judge", path, "--data", data, "--judge-folder", folder, "--device", "cpu"]
    ended, after = benchmark(*later), json.loads(path.read_text())
    assert ended.code == 0 and "judge_ppl" not in before["headline"]
    assert after["headline"] == pytest.approx(at_once)
    assert ended.json_lines()[0]["headline"].items() <= after["headline"].items()
    assert {"ar_judge_ppl", "faithful_judge_ppl", "judge_ppl_reference"} < after["headline"].keys()
    assert (after["judged"]["judge"], after["judged"]["seeds"]) == ("llama", [3])
    assert {name: after[name] for name in before if name != "headline"} == {
        k: before[k] for k in before if k != "headline"
    }
    texts = tmp_path / "quality_tour.outputs.txt.xz"
    write_compressed(texts, "the cat sat.\n" * 4)
    assert "give its own texts and data" in benchmark(*later).err
    write_compressed(texts, "the cat sat.\n")
    assert "has 1 texts for 4 references" in benchmark(*later).err
    path.write_text(json.dumps({"headline": {}}))
    refused = benchmark(*later)
    assert refused.code == 1 and "has no texts to judge" in refused.err


def test_settings_are_compared_with_the_models_own_on_the_same_texts(benchmark, runs, data, tmp_path):
    path = tmp_path / "settings.json"
    asked = ["settings", runs["full"], "--data", data, "--limit", 4, "--seeds", "0,1", "--device", "cpu"]
    ended = benchmark(*asked, "--try", "top_k=1/3", "--try", "candidates=2 temperature=0.9", "--output", path)
    stored = json.loads(path.read_text())
    assert (ended.code, ended.json_lines()[0]["headline"]) == (0, stored["headline"])
    names = ["own", "top_k_1", "top_k_3", "candidates_2_temperature_0.9"]
    assert list(stored["choices"]) == names and (stored["split"], stored["sentences"]) == ("valid", 4)
    assert all(f"bleu4_{name}" in stored["headline"] and f"{name}: bleu2" in ended.err for name in names)
    assert stored["choices"]["top_k_3"]["settings"]["top_k"] == 3
    alone = benchmark("quality", runs["full"], *asked[2:], "--split", "valid", "--settings", "top_k=1")
    assert stored["headline"]["bleu2_top_k_1"] == alone.json_lines()[0]["headline"]["bleu2"]
    twice = benchmark(*asked, "--try", "top_k=1", "--try", "top_k=1/2")
    assert twice.code == 1 and "asked for twice" in twice.err
    wrong = benchmark(*asked, "--try", "top_k=1", "--try", "tempo=3")
    assert wrong.code == 1 and "tempo" in wrong.err and "own: " not in wrong.err, "before anything is written"


def test_the_insertion_order_is_measured_on_a_data_folder(benchmark, model_folder, tmp_path):
    write_corpus(tmp_path / "data", train=30, valid=6, test=1)
    path = tmp_path / "order.json"
    options = ["--data", tmp_path / "data", "--limit", 4, "--device", "cpu", "--output", path]
    ended = benchmark("insertion_order", model_folder, *options)
    [printed], stored = ended.json_lines(), json.loads(path.read_text())
    assert (ended.code, printed["headline"], stored["seeds"]) == (0, stored["headline"], [0])
    assert {"rank_first_tenth", "random_function_share_last_tenth"} < stored["headline"].keys()
    assert stored["data"] == "data/valid, 4 keyword lists"
    other = tmp_path / "other.txt"
    other.write_text("one two\n")
    [counted] = benchmark("insertion_order", model_folder, *options[:-2], "--text", other).json_lines()
    assert counted["ranked_by"] == {"words": 2, "different": 2}


def test_stopping_rules_are_compared_on_a_data_folder(benchmark, model_folder, tmp_path):
    write_corpus(tmp_path / "data", train=30, valid=6, test=1)
    path = tmp_path / "stopping.json"
    options = ["--data", tmp_path / "data", "--limit", 3, "--device", "cpu", "--output", path]
    ended = benchmark("stopping", model_folder, *options)
    assert ended.code == 0 and ended.json_lines()[0]["headline"] == json.loads(path.read_text())["headline"]
    wrong = benchmark("stopping", model_folder, *options, "--quantiles", "half")
    assert wrong.code == 2 and "expected numbers with commas" in wrong.err


def test_a_spectrum_is_measured_drawn_and_written(benchmark, model_folder, tmp_path):
    pytest.importorskip("matplotlib")
    write_corpus(tmp_path / "data", train=30, valid=6, test=1)
    path, plot = tmp_path / "spectrum.json", tmp_path / "spectrum.png"
    options = ["--data", tmp_path / "data", "--limit", 3, "--device", "cpu"]
    ended = benchmark(
        *["spectrum", model_folder, *options, "--settings", "parallel_mass=0.5/0.9"],
        *["--tau", f"10={model_folder}", "--tau", f"-inf={model_folder}", "--seeds", "1,2"],
        *["--plot", plot, "--paper", "yelp", "--output", path],
    )
    [printed], stored = ended.json_lines(), json.loads(path.read_text())
    assert (ended.code, printed["headline"], stored["seeds"]) == (0, stored["headline"], [1, 2])
    assert {"bleu4_sequential", "sequential_ratio_parallel_mass_0.5", "bleu4_tau_10"} < stored["headline"].keys()
    assert stored["headline"]["sequential_ratio_tau_-inf"] == 1.0
    assert plot.is_file() and len(lines_of(tmp_path / "spectrum.tau_10.outputs.txt.xz")) == 3
    for wrong in (
        [],
        ["--settings", "top_k=1"],
        [model_folder, "--paper", "news"],
        [model_folder, "--tau", "ten=x"],
        [model_folder, "--seeds", "one"],
    ):
        assert benchmark("spectrum", *wrong, *options).code == 2
    assert "did you mean 'top_k'" in benchmark("spectrum", model_folder, *options, "--settings", "topk=1").err


def test_parallel_speed_is_measured_on_a_data_folder(benchmark, model_folder, tmp_path):
    write_corpus(tmp_path / "data", train=30, valid=6, test=1)
    path = tmp_path / "parallel.json"
    options = ["--data", tmp_path / "data", "--limit", 3, "--device", "cpu", "--rounds", 1, "--warmup", 0, "--texts", 1]
    ended = benchmark(
        *["parallel_speed", model_folder, *options, "--batch-sizes", "1,2"],
        *["--settings", "parallel_mass=0.9 min_p=0.25", "--output", path],
    )
    [printed], stored = ended.json_lines(), json.loads(path.read_text())
    assert (ended.code, printed["headline"]) == (0, stored["headline"])
    assert {"latency_ratio_batch1", "latency_ratio_batch2", "rounds_per_word"} < stored["headline"].keys()
    assert stored["settings"]["generation"]["parallel"]["min_p"] == 0.25
    assert len(lines_of(tmp_path / "parallel.outputs.txt.xz")) == 3
    assert benchmark("parallel_speed", model_folder, *options, "--settings", "top_k=1/2").code == 2
    again = benchmark(
        *["parallel_speed", model_folder, *options, "--batch-sizes", "1", "--suffix", "here"],
        *["--settings", "parallel_mass=0.9 min_p=0.25", "--with", f"{path}:latency_ratio_batch2"],
    )
    [printed] = again.json_lines()
    assert printed["headline"]["latency_ratio_batch2"] == stored["headline"]["latency_ratio_batch2"]
    assert printed["taken_from"]["latency_ratio_batch2"]["date"] == stored["date"]
    assert "latency_ratio_batch1_here" in printed["headline"]


def test_fresh_lists_are_written_in_both_modes(benchmark, model_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.default_model.complete_parses", lambda texts: len(texts) / 8)  # the parser's part
    (tmp_path / "lists.txt").write_text("baker bread\n\nsea\n")
    ended = benchmark("fresh_lists", model_folder, "--lists", tmp_path / "lists.txt", "--output", tmp_path / "f.json")
    [printed], stored = ended.json_lines(), json.loads((tmp_path / "f.json").read_text())
    assert (ended.code, printed["headline"], stored["data"]) == (0, stored["headline"], "lists.txt, 2 keyword lists")
    own = {
        mode: {k.removeprefix(f"{mode}_"): v for k, v in stored["headline"].items() if k.startswith(mode)}
        for mode in MODES
    }
    texts = lines_of(tmp_path / "f.outputs.txt.xz")
    model = load(model_folder, device="cpu")
    for mode, written in zip(MODES, (texts[:2], texts[2:]), strict=True):
        results = model.generate_batch([["baker", "bread"], ["sea"]], seed=0, mode=mode)
        assert written == [result.text for result in results]
        steps, words = sum(result.steps for result in results), sum(len(text.split()) for text in written)
        assert own[mode]["rounds_per_word"] == pytest.approx(steps / words)
        assert (own[mode]["kept_in_order"], own[mode]["parses"]) == (1.0, 0.25)


def test_a_service_under_load_answers_everybody(benchmark, model_folder, tmp_path):
    (tmp_path / "lists.txt").write_text("baker bread\nsea\n")
    options = ["--lists", tmp_path / "lists.txt", "--clients", "3", "--seconds", "0.5", "--requests", "20"]
    ended = benchmark("serve_load", model_folder, *options, "--small", model_folder, "--output", tmp_path / "s.json")
    figures = json.loads((tmp_path / "s.json").read_text())["headline"]
    assert ended.code == 0 and figures["clients"] == 3 and figures["requests"] >= 3
    assert figures["dropped"] == figures["keyword_violations"] == 0 and figures["memory_requests"] == 20
    assert 0 < figures["p50_ms"] <= figures["p95_ms"] <= figures["p99_ms"]
