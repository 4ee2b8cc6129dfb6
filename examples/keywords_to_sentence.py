"""Three sentences from the same keywords: every keyword is in each of them, in the order given.

python examples/keywords_to_sentence.py baker bread market
"""

import sys

import insnet


def main(keywords: list[str]) -> None:
    """Prints three sentences, how many steps each took, and what the model thinks of it."""
    model = insnet.load(fetch=True)
    for result in model.generate(keywords, num_samples=3, seed=7):
        print(f"{result.text}   ({result.steps} steps, log-probability {result.log_prob:.1f})")


if __name__ == "__main__":
    main(sys.argv[1:] or ["baker", "bread", "market"])
