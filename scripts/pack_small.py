"""A trained small model made ready for the shelf: python -m scripts.pack_small RUN TARGET [RESULT.json ...].

Weights in eight bits, and a card with those scores of the results files that a card shows. Of the stopping rules
compared in stopping_small.json, the best quantile whose texts are as long as the originals becomes the model's own.
"""

import argparse
import re
from pathlib import Path

from insnet.decoding.config import MODES
from insnet.files import read_json_object
from insnet.shelf import pack
from insnet.text.corpus import find_split, read_lines

TEXT = Path("data/distilled")
DATA = "{:,} sentences written by the default model, for keywords drawn from everyday text"
LICENCE = "weights CC BY-SA 4.0, as are the default model's, whose sentences they were trained on"
LIMITS = (
    "20 million parameters that have learned from what another model made up: nothing that a sentence says is true.",
    "Everyday sentences of about 5 to 24 words; at most 32 tokens are inserted. 1 to 5 keywords work best, any number "
    "is kept.",
    'Rare words it makes up from pieces may not exist ("Büningtau"); yours are kept letter by letter.',
    "English only. Other languages and scripts are kept as keywords, but the text around them makes little sense.",
    "`valid_*` are nats per decision on sentences held out of the same source, in both orders as in training, the "
    "length (`valid_stop`) being decided once a sentence; `int8_minus_bf16` is what storing the weights in eight bits "
    "costs, in nats per insertion.",
    "`sequential_*` and `parallel_*` are of texts for 100 lists made up by hand, one word at a time and several: "
    "`parses` is the share that Link Grammar parses whole. The other scores are from 1,000 held-out sentences; "
    "`judge_ppl` is the perplexity of the texts to SmolLM2-135M, which the default model was made of.",
)
SHOWN = (
    "valid_loss", "valid_token", "valid_slot", "valid_stop", "valid_left_to_right_loss", "valid_random_words_loss",
    "int8_minus_bf16", "coverage", "length_ratio", "distinct2", "judge_ppl", "judge_ppl_reference",
    *(f"{mode}_{name}" for mode in MODES for name in ("kept_in_order", "parses", "rounds_per_word")),
)  # fmt: skip
LENGTH_TOLERANCE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("results", type=Path, nargs="*")
    arguments = parser.parse_args()
    headlines = {path: read_json_object(path)["headline"] for path in arguments.results}
    scores = {name: headline[name] for name in SHOWN for headline in headlines.values() if name in headline}
    quantiles = [best_quantile(headline) for path, headline in headlines.items() if path.name == "stopping_small.json"]
    card = pack(
        arguments.run,
        arguments.target,
        data=DATA.format(sum(1 for _ in read_lines(find_split(TEXT, "train")))),
        licence=LICENCE,
        scores=scores,
        limits=LIMITS,
        results=arguments.results,
        eight_bits=True,
        generation={"count_quantile": quantiles[0]} if quantiles else None,
    )
    print(f"{arguments.target}: {card.size_bytes / 2**20:.1f} MiB, scores {', '.join(scores) or 'none'}")


def best_quantile(headline: dict[str, float]) -> float:
    """The quantile of the count whose texts score best, among those that are as long as the originals, give or take
    the 5% that are asked of a model; if there is none, the one that comes closest."""
    quantiles = [int(match[1]) for name in headline if (match := re.fullmatch(r"length_ratio_counted_q(\d+)", name))]
    misses = {quantile: abs(headline[f"length_ratio_counted_q{quantile}"] - 1) for quantile in quantiles}
    right = [quantile for quantile, miss in misses.items() if miss <= LENGTH_TOLERANCE]
    best = max(right, key=lambda q: headline[f"bleu4_counted_q{q}"]) if right else min(misses, key=misses.__getitem__)
    return best / 100


if __name__ == "__main__":
    main()
