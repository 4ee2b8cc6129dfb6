"""Blanks filled in: the text around them is kept word for word.

python examples/infill.py "The river flows through ___ into the ___ Sea."
"""

import sys

import insnet


def main(template: str) -> None:
    """Prints one way to fill the blanks for each of three seeds."""
    model = insnet.load(fetch=True)
    for seed in (1, 2, 3):
        print(model.infill(template, seed=seed).text)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "The river flows through ___ into the ___ Sea.")
