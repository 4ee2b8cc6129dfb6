"""ADAPTER + BASE -> MODEL FOLDER: a base is downloaded once, checked, and merged into a folder of the cache."""
