"""`python -m insnet.tour FOLDER` writes the tour's corpus into a folder."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from insnet.tour.corpus import write_corpus


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 failed; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(prog="python -m insnet.tour", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the files go; made if it is not there")
    parser.add_argument("--train", type=int, default=6000, help="sentences to learn from (%(default)s)")
    parser.add_argument("--valid", type=int, default=400, help="sentences to choose settings on (%(default)s)")
    parser.add_argument("--test", type=int, default=400, help="sentences to judge on (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, another corpus (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        paths = write_corpus(
            options.folder, train=options.train, valid=options.valid, test=options.test, seed=options.seed
        )
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
