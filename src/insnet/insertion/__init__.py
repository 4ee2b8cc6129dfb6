"""TOKENS -> ORDER -> TRAJECTORY -> OFFSETS: the mathematics of insertion, pure tensors without parameters."""
