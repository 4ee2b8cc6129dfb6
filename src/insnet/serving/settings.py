"""What a service allows, and where it listens."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceConfig:
    """Limits of a service."""

    most_requests: int = 128
    """Requests at a time, those that wait included; more are told to come again."""
    seconds: float = 60.0
    """How long a request may take; one may ask for less."""
    most_bytes: int = 64 * 1024
    """Of a request's body."""
    most_keywords: int = 64
    """Of a request."""
    most_characters: int = 4000
    """Of a text with blanks, or of all keywords together."""
    most_words: int = 200
    """Of a text that is written."""
    most_samples: int = 10
    """Texts of a request."""
    most_candidates: int = 128
    """Texts of which one is kept."""
    token: str | None = None
    """What requests must carry in their header, Authorization: Bearer TOKEN; None: anyone may ask."""
    origins: tuple[str, ...] = ()
    """Other pages whose scripts may ask."""

    def __post_init__(self) -> None:
        for name in ("most_requests", "seconds", "most_bytes", "most_samples", "most_candidates"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected more than 0")
        if self.token is not None and not self.token.strip():
            raise ValueError("the token is empty; leave it out, or give one that nobody guesses")
