"""Why a model cannot be loaded now, though it is known."""


class Unavailable(ValueError):
    """A model's base could not be had, or what was made of it could not be kept."""


class NotFetched(Unavailable):
    """A model's base has not been fetched yet."""
