"""Pretrained language models from others: read from their files, brought from a package index, kept in a cache."""
