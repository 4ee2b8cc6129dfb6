"""PROMPT -> EDITS -> TEXT: one decode loop, the choices it makes, and the trace it leaves."""
