"""A trained general model made ready for the shelf: python -m scripts.pack_general RUN TARGET [RESULT.json ...].

Weights in eight bits, and a card with those scores of the results files that a card shows. Of the stopping rules
compared in stopping_rules.json, the best quantile whose texts are as long as the originals becomes the model's own.
"""

import argparse
import re
from pathlib import Path

from insnet.files import read_json_object
from insnet.shelf import pack

DATA = "890,000 sentences of English Wikipedia and 66,000 of Common Voice, 30 million tokens"
LICENCE = "weights CC BY-SA 4.0, as is the Wikipedia text they were trained on; Common Voice is CC0"
LIMITS = (
    "20 million parameters: sentences are mostly grammatical, but what they say is invented, and long ones lose "
    "their thread.",
    "Sentences of about 4 to 50 words, in the manner of an encyclopaedia; 1 to 10 keywords work best, any number is "
    "kept.",
    'Rare words it makes up from pieces may not exist ("Büningtau"); yours are kept letter by letter.',
    "English only. Other languages and scripts are kept as keywords, but the text around them makes little sense.",
    "`valid_*` are nats per decision on 2,150 sentences held out of the same sources, in both orders as in training, "
    "the length (`valid_stop`) being decided once a sentence; `int8_minus_bf16` is what storing the weights in eight "
    "bits costs, in nats per insertion.",
    "The other scores are from 1,000 Wikipedia sentences it has not seen, four keywords each; `judge_ppl` is the "
    "perplexity of the texts to SmolLM2-135M, `judge_ppl_reference` that of the originals.",
)
SHOWN = (
    "valid_loss", "valid_token", "valid_slot", "valid_stop", "valid_left_to_right_loss", "valid_random_words_loss",
    "int8_minus_bf16", "bleu2", "bleu4", "nist4", "coverage", "length_ratio", "distinct2", "judge_ppl",
    "judge_ppl_reference",
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
    quantiles = [best_quantile(headline) for path, headline in headlines.items() if path.name == "stopping_rules.json"]
    card = pack(
        arguments.run,
        arguments.target,
        data=DATA,
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
