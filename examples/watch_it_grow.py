"""A sentence growing from its keywords, one line per step.

python examples/watch_it_grow.py captain ship harbour
"""

import sys

import insnet


def main(keywords: list[str]) -> None:
    """Prints the canvas after every step."""
    model = insnet.load(fetch=True)
    for step in model.stream(keywords, seed=7):
        print(f"{step['step']:>3}  {step['text']}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["captain", "ship", "harbour"])
