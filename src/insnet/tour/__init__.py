"""A corpus of our own: sentences about a small town by the sea, for tests and for the README's tour."""

from insnet.tour.corpus import write_corpus
from insnet.tour.grammar import sentences
from insnet.tour.notices import domain_sentences

__all__ = ["domain_sentences", "sentences", "write_corpus"]
