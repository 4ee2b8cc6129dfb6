"""TEXT + REFERENCES -> SCORES: BLEU, NIST, coverage, diversity and length, and the files that report them."""
