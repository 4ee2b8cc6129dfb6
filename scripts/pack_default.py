"""A trained adapter made ready for the shelf: python -m scripts.pack_default RUN [RESULT.json ...].

The adapter in eight bits, and a card with those scores of the results files that a card shows.
"""

import argparse
from pathlib import Path

from insnet.files import read_json_object
from insnet.shelf import DEFAULT, SHELF, pack
from insnet.text.shards import TokenShards
from insnet.training.recipe import load_recipe

DATA = "{sentences:,} everyday English sentences ({tokens:,} tokens) of eleven kinds, mixed by scripts/make_everyday.py"
LICENCE = "adapter CC BY-SA 4.0, as is some of the text it has learned from; its base is under Apache-2.0"
LIMITS = (
    "135 million parameters: it is good at plain sentences of 8 to 16 words around two to five everyday words; words "
    "that form no scene together give odd sentences.",
    "What it writes is invented. It keeps any word in any script, but writes English around it.",
    "It was not trained to write paragraphs. Texts of more than about 40 words drift.",
    "`usable`, `grammar` and `sense` are from a blind reading; its file says what was read and how it was scored.",
)
ATTRIBUTIONS = (
    "SmolLM2-135M-Instruct, the base: Hugging Face TB, Apache-2.0.",
    "Tatoeba.org contributors, CC BY 2.0 FR (changed: other people's names in place of the most frequent ones).",
    "Wikipedia contributors, CC BY-SA 4.0; Wikivoyage contributors, CC BY-SA 3.0; Wikinews contributors, CC BY 2.5.",
    "Mozilla Common Voice, CC0.",
    "Schema-Guided Dialogue by Google Research, CC BY-SA 4.0; Taskmaster-4 by Google Research, CC BY 4.0.",
    "STAR by Rasa, MIT; the Self-dialogue Corpus by Joachim Fainberg and others, BSD 3-clause.",
    "MedQuAD by Asma Ben Abacha and Dina Demner-Fushman, from websites of the NIH and CDC, CC BY 4.0.",
    "Digital.gov by the US General Services Administration, public domain and CC0; PostHog's published pages, MIT.",
    "Novels from Project Gutenberg by authors who died in or before 1955, public domain.",
)
SHOWN = (
    "usable_first", "usable_of_five", "grammar", "sense", "words_mean", "parses", "loops", "valid_token",
    "valid_close",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("results", type=Path, nargs="*")
    parser.add_argument("--output", type=Path, default=SHELF / DEFAULT)
    arguments = parser.parse_args()
    headlines = [read_json_object(path)["headline"] for path in arguments.results]
    scores = {name: headline[name] for name in SHOWN for headline in headlines if name in headline}
    text = TokenShards(Path(load_recipe(arguments.run / "recipe.toml").data.prepared) / "train").summary
    card = pack(
        arguments.run,
        arguments.output,
        data=DATA.format(sentences=text.sentences, tokens=text.tokens),
        licence=LICENCE,
        scores=scores,
        limits=LIMITS,
        attributions=ATTRIBUTIONS,
        results=arguments.results,
    )
    print(f"{arguments.output}: {card.size_bytes / 2**20:.1f} MiB, scores {', '.join(scores) or 'none'}")


if __name__ == "__main__":
    main()
