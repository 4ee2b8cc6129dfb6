"""TEXT -> WORDS AND PLACES -> REQUEST -> TEXT: a text that is edited and written on, in turns."""
