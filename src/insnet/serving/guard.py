"""What stands in front of the service: the size of a body, the token, counting, and no stack trace for anyone."""

import hmac
import json
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from insnet.serving.metrics import Metrics
from insnet.serving.settings import ServiceConfig

_LOG = logging.getLogger("insnet.serving")
_OPEN_PATHS = ("/healthz", "/readyz")


class TooLargeError(Exception):
    """A body larger than is allowed."""


class Guard:
    """Lets pass what is allowed, and counts it."""

    def __init__(self, app: ASGIApp, config: ServiceConfig, metrics: Metrics, paths: frozenset[str]) -> None:
        self.app, self.config, self.metrics = app, config, metrics
        self.paths = paths
        """What is counted by name; all else is one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.monotonic(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._pass(scope, receive, sent)
        except TooLargeError as error:
            if not status:
                await _refuse(sent, 413, str(error))
        except Exception:
            _LOG.exception("a request failed")
            if not status:
                await _refuse(sent, 500, "something went wrong here; the log of the service says what")
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.metrics.count(path, status, time.monotonic() - start)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if not self._has_leave(scope["path"], headers.get(b"authorization", b"")):
            await _refuse(send, 401, "give the service's token: Authorization: Bearer TOKEN")
            return
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.config.most_bytes:
            raise TooLargeError(self._too_large())
        await self.app(scope, await self._read(receive), send)

    async def _read(self, receive: Receive) -> Receive:
        """The body, read as far as it is allowed, and then whatever comes."""
        body, is_more = b"", True
        while is_more:
            message = await receive()
            body += message.get("body", b"")
            is_more = message["type"] == "http.request" and message.get("more_body", False)
            if len(body) > self.config.most_bytes:
                raise TooLargeError(self._too_large())
        is_told = False

        async def told() -> Message:
            nonlocal is_told
            if is_told:
                return await receive()
            is_told = True
            return {"type": "http.request", "body": body, "more_body": False}

        return told

    def _has_leave(self, path: str, header: bytes) -> bool:
        if self.config.token is None or path in _OPEN_PATHS:
            return True
        return hmac.compare_digest(header, b"Bearer " + self.config.token.encode())

    def _too_large(self) -> str:
        return f"the request is larger than {self.config.most_bytes} bytes"


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
