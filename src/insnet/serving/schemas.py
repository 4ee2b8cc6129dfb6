"""What clients send and receive. Limits that a service can set are checked in `insnet.serving.asked`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_LARGEST_SEED = 2**63 - 1
Words = Annotated[int, Field(ge=0, le=10_000)]


class Asked(BaseModel):
    """What all requests for texts may say."""

    model_config = ConfigDict(extra="forbid")

    samples: int = Field(1, ge=1, le=1000, description="How many different texts, best first.")
    seed: int | None = Field(None, ge=0, le=_LARGEST_SEED, description="The same seed gives the same text.")
    length: Words | tuple[Words | None, Words | None] | None = Field(
        None, description="Words of the text: a number, or the fewest and the most, either of which may be null."
    )
    banned: list[str] = Field([], max_length=200, description="Words and phrases that are not to be written.")
    mode: Literal["sequential", "parallel"] | None = Field(None, description="One insertion per step, or several.")
    candidates: int | None = Field(None, ge=1, le=10_000, description="Write so many texts for one, keep the best.")
    temperature: float | None = Field(None, gt=0, le=10, description="Below 1 plainer, above 1 more varied.")
    decent: bool | None = Field(None, description="False lets slurs and sexual words in that were not given.")
    trace: bool = Field(False, description="Also tell every step of every text.")
    timeout: float | None = Field(None, gt=0, le=3600, description="Seconds after which the answer is of no use.")

    def options(self) -> dict[str, Any]:
        """As `Model.generate` takes them."""
        given = {
            "seed": self.seed,
            "length": (self.length, self.length) if isinstance(self.length, int) else self.length,
            "banned": tuple(self.banned) or None,
            "mode": self.mode,
            "candidates": self.candidates,
            "temperature": self.temperature,
            "decent": self.decent,
        }
        return {name: value for name, value in given.items() if value is not None}


class AskedForKeywords(Asked):
    """A text around keywords."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"keywords": ["dog", "park", "ball"], "samples": 3, "seed": 1}]},
    )

    keywords: list[str] = Field(description="Words and phrases that must appear, in this order.")
    any_order: bool = Field(False, description="Let them come in whatever order reads best.")


class AskedForBlanks(Asked):
    """A text with blanks."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "Dear Sam, thank you for ___.", "seed": 1}]},
    )

    text: str = Field(description="The text, with ___ for each blank; all else is kept.")


class AskedForScore(BaseModel):
    """How likely a text is."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "The castle was built by the king."}]}
    )

    text: str
    timeout: float | None = Field(None, gt=0, le=3600)


class Written(BaseModel):
    """One text."""

    keywords: list[str]
    text: str
    tokens: int
    steps: int
    log_prob: float
    finished: bool
    seed: int
    model: str | None
    trace: list[dict[str, Any]] | None = None


class Answer(BaseModel):
    """Texts, best first."""

    model: str | None
    results: list[Written]


class Scored(BaseModel):
    """How likely a text is, in nats."""

    text: str
    log_prob: float
    tokens: int
    nats_per_token: float
    is_exact: bool
    unknown_tokens: int


class Problem(BaseModel):
    """What is wrong, in one line."""

    error: str
