"""LOSSES -> WEIGHTS: recipes, prepared data, the one training loop and what it leaves on disk."""
