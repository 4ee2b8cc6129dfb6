"""Writes docs/samples.md: python -m scripts.write_samples [--model NAME] [--tau TAU=DIR ...] [--order FILE].

What the default model and a small one write for the sixty keyword lists of samples_keywords.txt, seed 0, first answer,
nothing chosen or mended; some of them again by the small one with several words per round, or by one model for each
tolerance tau; and in which order it inserts, read from the results file of `python -m benchmarks.insertion_order`.
What write_appendix.py has written at the end of the page stays.
"""

import argparse
import json
import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import insnet
from benchmarks.spectrum import Point, points_of_model, points_of_taus, read_tau
from insnet.cli.terminal import with_keywords
from insnet.cli.watch import View
from insnet.files import write_atomically
from insnet.shelf import SMALL
from insnet.text.corpus import read_keyword_lists

DOCS = Path(__file__).resolve().parents[1] / "docs"
KEYWORDS = DOCS / "samples_keywords.txt"
ORDER = DOCS.parent / "benchmarks" / "results" / "insertion_order.json"
SEED = 0
STEP_BY_STEP = (11, 19)  # which of the lists, counted from 1
SEVERAL_A_ROUND = (21, 30)  # likewise
DEGREES = ("parallel_mass=0.5/0.7/0.9",)  # of parallelism, where there is no model for each tolerance
BLANKS = ("The ___ was built in ___ by ___.", "She opened the ___ and found ___.")
FILLINGS = 3
APPENDIX = "## As in the paper's appendix"
_SPECIAL = "\\`*_{}[]<>|$~#"  # what Markdown may read as more than itself


# --- the page ---


def page(
    model: insnet.Model,
    name: str,
    order: dict[str, Any],
    order_link: str,
    folder_of_tau: dict[float, str] | None = None,
    default: insnet.Model | None = None,
) -> str:
    """All of docs/samples.md, with what the default model writes, if it is given."""
    lists = read_keyword_lists(KEYWORDS)
    first = default_section(default, lists) if default is not None else ""
    results = model.generate_batch(lists, seed=SEED)
    steps = "\n\n".join(steps_section(results[number - 1]) for number in STEP_BY_STEP)
    blanks = "\n\n".join(blanks_section(model, text) for text in BLANKS)
    parameters = sum(parameter.numel() for parameter in model.family.parameters())
    numbers = " and ".join(map(str, STEP_BY_STEP))
    return f"""# What it writes

{first}## Sixty keyword lists, by the small model

Written by the model `{name}` ({parameters / 1e6:.1f} million parameters), seed {SEED}, its first answer to each list:
nobody chose, left out or mended any.{own_choice(model)}
`python -m scripts.write_samples --model {name}` makes this page again. What the texts say is invented.

Required words are bold.

{samples_table(results)}

## Step by step

Numbers {numbers} again; what a step inserted is bold. A rare word takes several steps, one per piece.

{steps}

{degrees_section(model, name, lists, folder_of_tau or {})}## Blanks

What was filled in is bold.

{blanks}

## What comes first

{order_section(order, order_link)}
"""


def default_section(model: insnet.Model, lists: Sequence[list[str]]) -> str:
    """What the default model writes for the lists."""
    text = (
        f"Written by the default model ([how](default-model.md)), seed {SEED}, its first answer to each list of ours: "
        f"nobody chose, left out or mended any.{own_choice(model)} Processors that compute in bfloat16 and others may "
        "give other texts. What they say is invented; required words are bold."
    )
    table = samples_table(model.generate_batch(lists, seed=SEED))
    return f"## Sixty keyword lists, by the default model\n\n{wrapped(text)}\n\n{table}\n\n"


def kept_part(page: str) -> str:
    """What write_appendix.py has written, at the end of a page; empty if it has not."""
    start = page.find(APPENDIX)
    return page[start:] if start >= 0 else ""


def samples_table(results: Sequence[insnet.Result]) -> str:
    """One row per text."""
    rows = [
        f"| {number} | {escaped(', '.join(result.keywords))} | {with_bold_keywords(result.text, result.keywords)} |"
        for number, result in enumerate(results, start=1)
    ]
    return "\n".join(["| | keywords | text |", "|---|---|---|", *rows])


def own_choice(model: insnet.Model) -> str:
    """What the model does of itself before it answers, as a sentence."""
    selection = model.generation.selection
    if selection.candidates == 1:
        return ""
    rule = selection.candidate_choice
    return f" The model itself writes {selection.candidates} candidates and keeps one (by {rule})."


def steps_section(result: insnet.Result) -> str:
    """The canvas after each step."""
    rows, previous = [], " ".join(result.keywords)
    for entry in result.trace:
        rows.append(f"| {entry['step']} | {with_bold_news(entry['text'], previous)} |")
        previous = entry["text"]
    start = f"| 0 | {escaped(' '.join(result.keywords))} |"
    return "\n".join(["| step | canvas |", "|---|---|", start, *rows])


# --- several words per round ---


def degrees_section(model: insnet.Model, name: str, lists: Sequence[list[str]], folder_of_tau: dict[float, str]) -> str:
    """Some lists again, from one word per round to many; nothing for a model that can only insert one by one."""
    if not model.family.traits.several_per_step:
        return ""
    points = [*points_of_model(name, () if folder_of_tau else DEGREES), *points_of_taus(folder_of_tau)]
    models = {name: model, **{folder: insnet.load(folder, device="cpu") for folder in folder_of_tau.values()}}
    tables = [degrees_table(points, models.__getitem__, lists[number - 1]) for number in SEVERAL_A_ROUND]
    numbers = " and ".join(map(str, SEVERAL_A_ROUND))
    how = "the same model all the time"
    if folder_of_tau:
        how = f"below `{name}` one model for each tolerance τ, with the paper's top-k; only `{name}` ships"
    text = (
        f"Numbers {numbers} again, from one word per round to many ({how}). The number behind a word is the round that "
        "it came in; required words are bold."
    )
    return "\n\n".join(["## Several words per round", wrapped(text), *tables]) + "\n\n"


def degrees_table(points: Sequence[Point], model_of: Callable[[str], insnet.Model], keywords: list[str]) -> str:
    """One row a way to write."""
    rows = ["| how | rounds | text |", "|---|---|---|"]
    for point in points:
        [result] = model_of(point.model).generate_batch([keywords], seed=SEED, **point.settings)
        rows.append(f"| {label(point)} | {result.steps} | {with_rounds(result)} |")
    return "\n".join(rows)


def label(point: Point) -> str:
    """How a way to write differs from the others, in words."""
    own = [f"{key} {value}" for key, value in point.settings.items() if key != "mode"]
    if point.name.startswith("tau_"):
        own = [point.name.replace("tau_", "τ = "), *own]
    return escaped(", ".join(own)) if own else "one by one"


def with_rounds(result: insnet.Result) -> str:
    """The text with the round of each word behind it, and what was given bold."""
    view = View.of(" ".join(result.keywords))
    for entry in result.trace:
        view = view.grown(entry["text"])
    marked, end = [], 0
    for step, start, stop in view.parts():
        part = escaped(view.text[start:stop])
        marked += [escaped(view.text[end:start]), f"{part}<sup>{step}</sup>" if step else f"**{part}**"]
        end = stop
    return "".join([*marked, escaped(view.text[end:])])


# --- blanks ---


def blanks_section(model: insnet.Model, text: str) -> str:
    """A text with blanks, and some ways to fill them."""
    results = model.infill(text, num_samples=FILLINGS, seed=SEED)
    return "\n".join([f"`{text}`", "", *(f"- {with_bold_fillings(each.text, each.keywords)}" for each in results)])


# --- what comes first ---


def order_section(order: dict[str, Any], link: str) -> str:
    """The measured answer to the paper's remark."""
    decoded, untruncated = leads(order, "decoded"), leads(order, "untruncated")
    holds = decoded["lead"] > 3 * decoded["error"]
    is_truncation = untruncated["lead"] < decoded["lead"] / 2
    remark = (
        'The paper remarks that the model "tends to insert punctuation and function words (e.g., Articles and '
        'Prepositions) first, and then more concrete content words". Training prefers nothing: it inserts in random '
        f"order. Measured on {escaped(str(order['data']))} ([{Path(link).name}]({link})):"
    )
    as_decoded = (
        f"- As the model decodes ({truncation(order['settings']['generation'])}), {decoded['first']:.0%} of the first "
        f"tenth of its insertions are function words or punctuation, and {decoded['last']:.0%} of the last. "
        f"If the same words came in random order, {decoded['random']:.0%} would be. "
    ) + ("The remark holds." if holds else "The remark does not hold for this model.")
    as_drawn = (
        f"- Drawn without truncation, {untruncated['first']:.0%} of the first tenth are, and {untruncated['last']:.0%} "
        f"of the last, against {untruncated['random']:.0%} in random order. "
    )
    cause = "Most of that lead is the work of truncation." if is_truncation else "Truncation is not the cause."
    as_drawn += cause if holds else ""
    legend = (
        "Rank is the mean rank of a word by its frequency in the training text, 1 being the commonest; a piece counts "
        "as the word it ends up in."
    )
    parts = [wrapped(remark), "\n".join(map(wrapped, (as_decoded, as_drawn))), order_table(order), wrapped(legend)]
    return "\n\n".join(parts)


def truncation(settings: dict[str, Any]) -> str:
    """How a generation config cuts distributions, in words."""
    cuts = [f"slot mass {settings['slot_mass']:g}", f"top-{settings['top_k']}" if settings["top_k"] else ""]
    cuts += [f"top-p {settings['top_p']:g}" if settings["top_p"] < 1 else ""]
    return ", ".join(cut for cut in cuts if cut)


def leads(order: dict[str, Any], name: str) -> dict[str, float]:
    """The share of function words and punctuation in the first and last tenth and in a random order; how far the first
    lies above the last of these, and that difference's standard error."""
    first, last = order[name]["by_tenth"][0], order[name]["by_tenth"][-1]
    random = order[f"{name}_in_random_order"]["by_tenth"][0]
    shares = {label: small_words(entry) for label, entry in (("first", first), ("last", last), ("random", random))}
    chance = shares["random"]
    error = math.sqrt(chance * (1 - chance) / first["insertions"])
    return {**shares, "lead": shares["first"] - chance, "error": error}


def small_words(entry: dict[str, float]) -> float:
    """Function words and punctuation together."""
    return entry["function_share"] + entry["punctuation_share"]


def order_table(order: dict[str, Any]) -> str:
    """One row a tenth of the trajectory: as decoded, in random order, and untruncated."""
    names = ("decoded", "decoded_in_random_order", "untruncated")
    heads = [f"{title}: rank | function words | punctuation" for title in ("decoded", "random order", "untruncated")]
    rows = [f"| insertions | {' | '.join(heads)} |", "|---|" + "---|" * 9]
    for tenth in range(len(order["decoded"]["by_tenth"])):
        cells = [cell for name in names for cell in _cells(order[name]["by_tenth"][tenth])]
        rows.append(f"| {10 * tenth} to {10 * tenth + 10}% | {' | '.join(cells)} |")
    return "\n".join(rows)


def _cells(entry: dict[str, float]) -> list[str]:
    if not entry["insertions"]:
        return ["", "", ""]
    return [f"{entry['rank']:,.0f}", f"{entry['function_share']:.0%}", f"{entry['punctuation_share']:.0%}"]


def read_order(path: Path, name: str) -> dict[str, Any]:
    """The results file of this model's insertion order."""
    how = f"python -m benchmarks.insertion_order {name} --data DIR --output {path.name}"
    if not path.is_file():
        raise ValueError(f"{path} does not exist; measure first: {how}")
    order: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if order["settings"]["model"] != name:
        raise ValueError(f"{path} is about {order['settings']['model']!r}, not of {name!r}; measure again: {how}")
    return order


# --- Markdown ---


def wrapped(text: str) -> str:
    """A paragraph or an item of a list, in lines of at most 120 characters."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def escaped(text: str) -> str:
    """Text that Markdown prints as it stands."""
    return "".join("\\" + character if character in _SPECIAL else character for character in text)


def with_bold_keywords(text: str, keywords: Sequence[str]) -> str:
    """The text with its required words bold."""
    return with_bold(text, [(span.start, span.end) for span in with_keywords(text, keywords).spans])


def with_bold_fillings(text: str, kept: Sequence[str]) -> str:
    """The text with all bold but what was kept."""
    spans, end = [], 0
    for number, stretch in enumerate([*kept, ""], start=1):
        is_at_end = number == len(kept) and text.endswith(stretch)  # a full stop may stand in a filling, too
        start = len(text) - len(stretch) if is_at_end or not stretch else text.index(stretch, end)
        inner = text[end:start]
        first = end + len(inner) - len(inner.lstrip())
        spans.append((first, first + len(inner.strip())))
        end = start + len(stretch)
    return with_bold(text, [span for span in spans if span[0] < span[1]])


def with_bold_news(text: str, previous: str) -> str:
    """The text with what was not in the previous one bold."""
    newest = View.of(previous).grown(text).styled([], shows_newest=True)
    return with_bold(text, [(span.start, span.end) for span in newest.spans])


def with_bold(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with some stretches bold."""
    parts, end = [], 0
    for start, stop in sorted(spans):
        parts += [escaped(text[end:start]), "**", escaped(text[start:stop]), "**"]
        end = stop
    return "".join([*parts, escaped(text[end:])])


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(description="Write docs/samples.md.")
    parser.add_argument("--model", default=SMALL, help="a model by name or folder (%(default)s)")
    parser.add_argument("--tau", action="append", metavar="TAU=DIR", help="a model for each tolerance, to be compared")
    parser.add_argument("--order", type=Path, default=ORDER, help="its results of python -m benchmarks.insertion_order")
    parser.add_argument("--output", type=Path, default=DOCS / "samples.md")
    options = parser.parse_args(arguments)
    name = Path(options.model).name
    try:
        folder_of_tau = dict(read_tau(text) for text in options.tau or [])
        order = read_order(options.order, name)
        link = Path("..", "benchmarks", "results", options.order.name).as_posix()
        default = insnet.load(fetch=True, device="cpu")
        text = page(insnet.load(options.model, device="cpu"), name, order, link, folder_of_tau, default)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    kept = kept_part(options.output.read_text(encoding="utf-8")) if options.output.exists() else ""
    write_atomically(options.output, f"{text}\n{kept}" if kept else text)
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
