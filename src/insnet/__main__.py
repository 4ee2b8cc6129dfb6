"""`python -m insnet` is `insnet`."""

from insnet.cli import main

if __name__ == "__main__":
    main()
