"""A text edited and written on: some words stay, others are written anew, and the draft travels as JSON in between.

python examples/edit_and_continue.py "The dog runs around the park."
"""

import sys

import insnet


def main(text: str) -> None:
    """Prints the text with its third word written anew, and then with nothing but its second kept."""
    model = insnet.load(fetch=True)
    draft = model.draft(text).lock(1).delete(2).refill(seed=1)
    print(draft)
    content = draft.to_json()  # what a page sends and a service sends back, neither of which keeps anything
    print(model.draft(insnet.Draft.from_json(content)).rewrite(seed=2))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "The dog runs around the park.")
