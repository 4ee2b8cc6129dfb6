"""Writes the paper's tables, its numbers beside ours: python -m scripts.write_tables [--results DIR] [PAGE...].

A page that has the two comment lines BEGIN and END gets them between these: docs/results.md, if none is named. Our
numbers are read from results files and link to them; what was not measured yet is a dash.
"""

import argparse
import json
import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import paper
from insnet.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "results.md"
BEGIN = "<!-- tables: python -m scripts.write_tables writes what follows -->"
END = "<!-- end of the tables -->"
NOTHING = "–"
DATA = ("yelp", "news")
TRAINING_SETS = (
    "The training sets are the closest public text we could get, not the paper's own, which cannot be had; the test "
    "sets are the public ones, 1,000 texts each. Ours are means of several seeds, scored on lower-case words against "
    "one reference; every number leads to the file it was read from."
)
OF_OUR_TEXTS = (
    "Our texts: how many of the required words they hold, how long and how varied they are beside the references "
    "(1 is as they are), and their perplexity to a language model that had no part in writing them."
)
OF_THE_ABLATION = (
    "What offsets and the newest token's encoding are good for, on Yelp; texts end where the stop probability exceeds "
    "0.5, as in the paper (without end: the share that hits the length cap)."
)

SAME_LAYERS = """\
Our model in the row InsNet-Dinic was trained at τ = ∞. A token is refused a place in an earlier layer if it would lose
more than τ nats there, and at 10 nats none is refused. So both tolerances make the same layers. Layers per insertion at
τ = 10 and at τ = ∞, on 400 valid texts: {pairs}.
At τ = ∞ training need not ask the model where a token may go, which makes it cheaper."""


@dataclass(frozen=True)
class Row:
    """A row of the main table: who, and where its figures are."""

    name: str
    entry: str
    """What `paper.TABLE` calls it; empty if the paper has none."""
    file: str = ""
    """The results file without _DATA.json; empty if we measure none."""
    begin: str = ""
    """What its figures begin with there."""
    ours: str = ""
    """How our row differs from the paper's."""


ROWS = (
    Row("left to right (Plan-and-Write)", "plan_and_write", "quality", "ar_"),
    Row("NMSTG", "nmstg", "rivals", "nmstg_"),
    Row("InDIGO", "indigo", "rivals", "indigo_"),
    Row("Levenshtein Transformer", "levenshtein", "rivals", "levenshtein_"),
    Row("POINTER (the paper's: base, from BERT)", "pointer_base", "rivals", "pointer_"),
    Row("POINTER, base, from BERT and Wikipedia", "pointer_base_wiki"),
    Row("POINTER, large, from BERT and Wikipedia", "pointer_large_wiki"),
    Row("InsNet, one by one, decoded as in the paper", "sequential", "quality", "faithful_"),
    Row("the same at the paper's size, 12 x 768", "", "base", "faithful_"),
    Row("InsNet, one by one, our decoding", "", "quality"),
    Row("InsNet-uniform, 7 rounds", "uniform", "dinic", "uniform_"),
    Row("InsNet-Dinic, τ = 10", "dinic", "dinic", ours="trained at τ = ∞, which makes the same layers (below)"),
    Row("the same, learned from one set alone, best of 4", "", "alone"),
)
OF_OUR_MODELS = ("quality", "base", "dinic", "alone")
"""The files whose texts are looked at."""
OF_TEXTS = {"coverage": "{:.3f}", "length_ratio": "{:.2f}", "distinct2_ratio": "{:.2f}", "judge_ppl": "{:.0f}"}
"""What is shown of our texts, and how."""


@dataclass(frozen=True)
class Results:
    """The results files that there are, seen from a page."""

    folder: Path
    page: Path

    def read(self, name: str) -> dict[str, Any] | None:
        """A results file; None if it is not there."""
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def cell(self, name: str, figures: Sequence[str], form: str = "{:.2f}") -> str:
        """Some figures of a file with slashes, linked to it; a dash for what is missing."""
        headline = (self.read(name) or {}).get("headline", {})
        if not any(figure in headline for figure in figures):
            return NOTHING
        shown = [form.format(headline[figure]) if figure in headline else NOTHING for figure in figures]
        return f"[{'/'.join(shown)}]({self.link(name)})"

    def link(self, name: str) -> str:
        return Path(os.path.relpath(self.folder / f"{name}.json", self.page.parent)).as_posix()


def tables(results: Results) -> str:
    """All that stands between the two comment lines."""
    names = [f"{file}_{data}" for file in (*OF_OUR_MODELS, "rivals") for data in DATA] + ["ablation"]
    measured = "\n".join(line for name in names if (line := _measured(results, name)))
    parts = [
        _wrapped(TRAINING_SETS),
        main_table(results),
        same_layers(results),
        _wrapped(OF_OUR_TEXTS),
        texts_table(results),
        latencies(results),
        _wrapped(OF_THE_ABLATION),
        ablation_table(results),
        measured,
    ]
    return "\n\n".join(part for part in parts if part)


def main_table(results: Results) -> str:
    """The paper's table 1, ours below it."""
    lines = [
        "| | | Yelp BLEU-2/4 | NIST-2/4 | steps | News BLEU-2/4 | NIST-2/4 | steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        if row.entry:
            cells = [cell for data in DATA for cell in _of_paper(paper.TABLE[data][row.entry])]
            lines.append(_line(row.name, "paper", *cells))
        if row.file:
            cells = [cell for data in DATA for cell in _of_ours(results, f"{row.file}_{data}", row.begin)]
            lines.append(_line(row.ours if row.entry else row.name, "**ours**", *cells))
    return "\n".join(lines)


def _of_paper(entry: paper.Entry) -> list[str]:
    return [
        f"{entry.bleu2:.2f}/{entry.bleu4:.2f}",
        f"{entry.nist2:.2f}/{entry.nist4:.2f}",
        f"{entry.steps:.1f}",
    ]


def _of_ours(results: Results, file: str, begin: str) -> list[str]:
    return [
        results.cell(file, [f"{begin}bleu2", f"{begin}bleu4"]),
        results.cell(file, [f"{begin}nist2", f"{begin}nist4"]),
        results.cell(file, [f"{begin}steps"], "{:.1f}"),
    ]


def texts_table(results: Results) -> str:
    """What BLEU does not measure of our texts."""
    what = ("coverage", "length ratio", "distinct-2 ratio", "perplexity")
    lines = [
        "| ours | " + " | ".join(f"{data} {name}" for data in ("Yelp", "News") for name in what) + " |",
        "|---|" + "---|" * 2 * len(what),
    ]
    for row in (row for row in ROWS if row.file in OF_OUR_MODELS):
        cells = [
            results.cell(f"{row.file}_{data}", [f"{row.begin}{name}"], form)
            for data in DATA
            for name, form in OF_TEXTS.items()
        ]
        lines.append(_line(row.name, *cells))
    cells = [results.cell(f"quality_{data}", ["judge_ppl_reference"], "{:.0f}") for data in DATA]
    lines.append(_line("the references", "", "1", "1", cells[0], "", "1", "1", cells[1]))
    return "\n".join(lines)


def same_layers(results: Results) -> str:
    """Why a model of tau = infinity stands in the row of tau = 10."""

    def layers(data: str, tau: str) -> str:
        return results.cell(f"layers_by_tau_{data}", [f"layers_per_insertion_tau_{tau}"], "{:.4f}")

    pairs = [f"{layers(name, '10')} and {layers(name, 'inf')} on {name.title()}" for name in DATA]
    return SAME_LAYERS.format(pairs=", ".join(pairs))


def latencies(results: Results) -> str:
    """What parallel decoding saves."""
    yelp, news = (results.cell(f"dinic_{data}", ["latency_ratio_batch1"]) for data in DATA)
    return f"Latency of InsNet-Dinic over one by one, a text at a time: Yelp {yelp}, News {news}. The paper gives none."


def ablation_table(results: Results) -> str:
    """The paper's ablation, and the length and the share of texts without end, of which it shows examples only."""
    lines = ["| | | stop NLL | BLEU-2/4 | length ratio | without end |", "|---|---|---|---|---|---|"]
    for name, entry in paper.ABLATION.items():
        bleu = f"{entry['bleu2']}/{entry['bleu4']}"
        lines.append(_line(name, "paper", f"{entry['stop_nll']:.2f}", bleu, NOTHING, NOTHING))
        ours = (
            results.cell("ablation", [f"stop_nll_{name}"]),
            results.cell("ablation", [f"bleu2_{name}", f"bleu4_{name}"]),
            results.cell("ablation", [f"length_ratio_{name}"]),
            results.cell("ablation", [f"nonterminating_{name}"], "{:.1%}"),
        )
        lines.append(_line("", "**ours**", *ours))
    return "\n".join(lines)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False)


def _measured(results: Results, name: str) -> str:
    """What a file says of how it was measured; nothing if it is not there."""
    found = results.read(name)
    if found is None:
        return ""
    seeds = ", ".join(map(str, found["seeds"]))
    commit, dash, dirty = found["commit"].partition("-")
    return (
        f"- [{name}.json]({results.link(name)}): {found['data']}; seed{'s' * (len(found['seeds']) > 1)} {seeds}; "
        f"{found['hardware']}; commit {commit[:9]}{dash}{dirty}"
    )


def filled(page: str, results: Results) -> str:
    """The page with what belongs between two comment lines, or as it was if it has none."""
    if not (BEGIN in page or END in page):
        return page
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"only one of the two lines is there: {BEGIN} and {END}; write both")
    return f"{before}{BEGIN}\n\n{tables(results)}\n\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(description="Write the paper's tables, its numbers beside ours, into pages.")
    parser.add_argument("pages", nargs="*", type=Path, help="docs/results.md, if none is named")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of results files")
    options = parser.parse_args(arguments)
    for page in options.pages or [PAGE]:
        old = page.read_text(encoding="utf-8")
        try:
            new = filled(old, Results(options.results.resolve(), page.resolve()))
        except ValueError as error:
            print(f"error: {page}: {error}", file=sys.stderr)
            return 1
        if new != old:
            write_atomically(page, new)
            print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
