"""Writes the last part of docs/samples.md, in the layout of the paper's appendix:

    python -m scripts.write_appendix --full DIR --truncated DIR --noglobal DIR --news DIR

Texts of the paper's model and its ablations side by side, on reviews, and how a model of news inserts step by step; the
models are those of recipes/yelp_full.toml, yelp_truncated.toml, yelp_noglobal.toml and news_base.toml. Keyword lists
are our own, so there is no reference to print; seed 0, first draw, nothing chosen or mended.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import insnet
from benchmarks.decodings import PAPER_DECODING, Decoding, check_stops_by_itself, hits_cap
from insnet.files import write_atomically
from scripts.write_samples import APPENDIX, DOCS, SEED, escaped, kept_part, with_bold_keywords, wrapped

TITLES = {"full": "InsNet", "truncated": "InsNet-truncated", "noglobal": "InsNet-noglobal"}
REVIEWS = (
    ("parking", "friendly", "soup", "noodles", "spicy", "portions", "return"),
    ("haircut", "appointment", "walked", "waited", "stylist", "price", "happy"),
    ("breakfast", "coffee", "eggs", "cold", "waitress", "apologized", "manager"),
)
NEWS = (("talks", "agreement", "minister", "week"), ("players", "season", "injury", "return"))
SHOWN = 60  # words of a text without end


def appendix(models: Mapping[str, insnet.Model], news: insnet.Model) -> str:
    """The whole part."""
    how = (
        "Models that learned from Yelp alone, or from both sets and then from news, in random order, and decode as the "
        "paper's do: one "
        f"insertion per step among the slots that hold {PAPER_DECODING['slot_mass']:g} of the probability, one of the "
        f"{PAPER_DECODING['top_k']} likeliest tokens, the end where the stop probability exceeds "
        "0.5. They do not ship."
    )
    tables = [ablation_table(models, keywords) for keywords in REVIEWS]
    steps = [trajectory_table(news, keywords) for keywords in NEWS]
    without_end = f"A text that hits the length cap is non-terminating; {SHOWN} words of it are shown."
    parts = [APPENDIX, wrapped(how), "### Ablations on Yelp", wrapped(without_end), *tables]
    return "\n\n".join([*parts, "### Trajectories on news", *steps]) + "\n"


def ablation_table(models: Mapping[str, insnet.Model], keywords: Sequence[str]) -> str:
    """What each model makes of the same keywords."""
    rows = [f"| | {escaped(' '.join(keywords))} |", "|---|---|"]
    for name, model in models.items():
        [result] = model.generate_batch([list(keywords)], seed=SEED, **PAPER_DECODING)
        longest = Decoding(model, PAPER_DECODING).all_settings()["max_words"]
        rows.append(f"| {TITLES[name]} | {cut_short(result, longest)} |")
    return "\n".join(rows)


def cut_short(result: insnet.Result, longest: int) -> str:
    """A text with its keywords bold; of one without end its first words, and a note."""
    if not hits_cap(result, longest):
        return with_bold_keywords(result.text, result.keywords)
    return escaped(" ".join(result.text.split()[:SHOWN])) + " ... (**non-terminating**)"


def trajectory_table(model: insnet.Model, keywords: Sequence[str]) -> str:
    """The canvas after each step, keywords bold."""
    [result] = model.generate_batch([list(keywords)], seed=SEED, **PAPER_DECODING)
    canvases = [" ".join(keywords), *(entry["text"] for entry in result.trace)]
    rows = [f"| {step} | {with_bold_keywords(text, keywords)} |" for step, text in enumerate(canvases)]
    return "\n".join(["| step | InsNet-News |", "|---|---|", *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(description="Write the last part of docs/samples.md.")
    for name in (*TITLES, "news"):
        parser.add_argument(f"--{name}", required=True, metavar="DIR", help="a run folder or a model's")
    parser.add_argument("--output", type=Path, default=DOCS / "samples.md")
    options = parser.parse_args(arguments)
    try:
        models = {name: insnet.load(getattr(options, name), device="cpu") for name in TITLES}
        news = insnet.load(options.news, device="cpu")
        for name, model in {**models, "news": news}.items():
            check_stops_by_itself(model, f"the model given as {name}")
        part = appendix(models, news)
        page = options.output.read_text(encoding="utf-8")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write_atomically(options.output, page.removesuffix(kept_part(page)).rstrip() + f"\n\n{part}")
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
