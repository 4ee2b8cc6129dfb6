"""The service's paths."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response, StreamingResponse

from insnet.model import Model, Result
from insnet.serving.asked import check
from insnet.serving.desk import SharedDesk, StoppedError
from insnet.serving.guard import Guard
from insnet.serving.metrics import CONTENT_TYPE, Metrics
from insnet.serving.office import ClosedError, FullError, Office
from insnet.serving.schemas import Answer, Asked, AskedForBlanks, AskedForKeywords, AskedForScore, Problem, Scored
from insnet.serving.settings import ServiceConfig
from insnet.serving.ticket import CalledOffError, DeadlineError

_DESCRIPTION = "Words that must appear become fluent text."
_GONE = 499  # nobody reads it
_TOLD: dict[int | str, dict[str, Any]] = {status: {"model": Problem} for status in (401, 413, 422, 429, 503, 504)}
_STATUS = {ValueError: 422, DeadlineError: 504, CalledOffError: _GONE, ClosedError: 503, StoppedError: 503}


def create_app(model: Model, config: ServiceConfig | None = None) -> FastAPI:
    """The service of one model, whose steps are from then on made for all clients together."""
    config = config or ServiceConfig()
    office = Office(config.most_requests)
    metrics = Metrics(lambda: office.requests)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        own, desk = model.scribe, SharedDesk()
        model.scribe = replace(own, desk=desk)
        yield
        await office.close()
        desk.stop()
        model.scribe = own

    app = FastAPI(title="insnet", description=_DESCRIPTION, lifespan=lifespan)
    _say_what_is_wrong(app)
    _add_health(app, office, metrics)
    _add_writing(app, Clerk(model, config, office, metrics))
    if config.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(config.origins), allow_methods=["POST"], allow_headers=["*"]
        )
    paths = frozenset(route.path for route in app.routes if hasattr(route, "path"))
    app.add_middleware(Guard, config=config, metrics=metrics, paths=paths)
    return app


class Clerk:
    """Does what is asked for, within the service's limits."""

    def __init__(self, model: Model, config: ServiceConfig, office: Office, metrics: Metrics) -> None:
        self.model, self.config, self.office, self.metrics = model, config, office, metrics

    async def write(self, asked: Asked, request: Request, work: Callable[[], list[Result]]) -> Any:
        """The texts that some work comes to."""
        check(asked, self.config)
        results = await self.office.answer(work, self._seconds(asked.timeout), lambda: _disconnected(request))
        if results is None:
            return Response(status_code=_GONE)
        self.metrics.count_texts(len(results))
        return {"model": self.model.name, "results": [each.as_dict(trace=asked.trace) for each in results]}

    async def score(self, asked: AskedForScore, request: Request) -> Any:
        """How likely a text is."""
        check(asked, self.config)

        def work() -> dict[str, Any]:
            with self.model.scribe.desk.turn():
                return asdict(self.model.score(asked.text))

        score = await self.office.answer(work, self._seconds(asked.timeout), lambda: _disconnected(request))
        return Response(status_code=_GONE) if score is None else score

    def stream(self, asked: AskedForKeywords) -> AsyncIterator[Any]:
        """One trace entry per step of a text."""
        check(asked, self.config)
        given = {name: value for name, value in asked.options().items() if name != "candidates"}
        return self.office.stream(lambda: self.model.stream(asked.keywords, **given), self._seconds(asked.timeout))

    def _seconds(self, wanted: float | None) -> float:
        return min(wanted or self.config.seconds, self.config.seconds)


def _add_writing(app: FastAPI, clerk: Clerk) -> None:
    model = clerk.model

    @app.post("/v1/generate", response_model=Answer, response_model_exclude_none=True, responses=_TOLD)
    async def generate(asked: AskedForKeywords, request: Request) -> Any:
        """Texts that hold every keyword."""
        options = {**asked.options(), "any_order": asked.any_order}
        return await clerk.write(
            asked, request, lambda: model.generate(asked.keywords, num_samples=asked.samples, **options)
        )

    @app.post("/v1/infill", response_model=Answer, response_model_exclude_none=True, responses=_TOLD)
    async def infill(asked: AskedForBlanks, request: Request) -> Any:
        """The text with its blanks filled and all else kept."""
        return await clerk.write(
            asked, request, lambda: model.infill(asked.text, num_samples=asked.samples, **asked.options())
        )

    @app.post("/v1/score", response_model=Scored, responses=_TOLD)
    async def score(asked: AskedForScore, request: Request) -> Any:
        """How likely a text is."""
        return await clerk.score(asked, request)

    @app.post("/v1/stream", responses={**_TOLD, 200: {"content": {"text/event-stream": {}}}})
    async def stream(asked: AskedForKeywords) -> StreamingResponse:
        """A first draft as it grows: server-sent events, each an entry of a trace, the last one named `end`."""
        steps = clerk.stream(asked)
        first = await anext(steps, None)  # what is wrong is said before the answer begins
        return StreamingResponse(_events(first, steps), media_type="text/event-stream", headers=_UNBUFFERED)


_UNBUFFERED = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


async def _events(first: Any, steps: AsyncIterator[Any]) -> AsyncIterator[str]:
    try:
        if first is not None:
            yield _event("step", first)
            async for step in steps:
                yield _event("step", step)
        yield _event("end", {})
    except Exception as error:  # the answer has begun: its status cannot say so any more
        yield _event("error", {"error": str(error) if type(error) in _STATUS else "something went wrong here"})


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


async def _disconnected(request: Request) -> None:
    """Returns when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _add_health(app: FastAPI, office: Office, metrics: Metrics) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the process lives."""
        return {"status": "alive"}

    @app.get("/readyz", responses={503: {"model": Problem}})
    async def readyz() -> Any:
        """Whether it takes requests."""
        if office.is_open:
            return {"status": "ready"}
        return JSONResponse({"error": "the service is shutting down"}, 503)

    @app.get("/metrics")
    async def numbers() -> Response:
        """What Prometheus reads."""
        return Response(metrics.page(), media_type=CONTENT_TYPE)


def _say_what_is_wrong(app: FastAPI) -> None:
    """Errors as one line each."""

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
        return JSONResponse({"error": f"{where}: {first['msg']}"}, 422)

    async def full(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, FullError)
        return JSONResponse({"error": str(error)}, 429, {"Retry-After": str(error.seconds)})

    async def known(_: Request, error: Exception) -> JSONResponse:
        status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
        return JSONResponse({"error": str(error)}, status)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(FullError, full)
    for kind in _STATUS:
        app.add_exception_handler(kind, known)
