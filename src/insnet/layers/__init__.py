"""TENSORS -> TENSORS: attention, transformer, slots and heads; they know nothing of text, orders or families."""
