"""`insnet serve`."""

import ipaddress
from typing import Annotated

import typer

from insnet.cli import options, terminal
from insnet.cli.writer import load_writer


def serve(
    host: Annotated[
        str, typer.Option(help="The address to listen at; other machines reach all but 127.0.0.1.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at.")] = 8000,
    requests: Annotated[int, typer.Option(min=1, help="Requests at a time; more are told to come again.")] = 128,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long a request may take.")] = 60.0,
    token: Annotated[
        str | None,
        typer.Option(envvar="INSNET_TOKEN", help="What requests must carry: Authorization: Bearer TOKEN."),
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="Another page whose scripts may ask; several may be given.")
    ] = None,
    model: options.ModelOption = None,
    device: options.DeviceOption = options.Device.auto,
    offline: options.OfflineOption = False,
) -> None:
    """Answer requests over HTTP: /v1/generate, /v1/infill, /v1/score, /v1/stream; /docs describes them.

    insnet serve --port 8000
    """
    import uvicorn

    from insnet.serving.app import create_app
    from insnet.serving.settings import ServiceConfig

    config = ServiceConfig(most_requests=requests, seconds=seconds, token=token, origins=tuple(origin or ()))
    if not _is_own_machine(host) and token is None:
        terminal.note(f"anyone who reaches {host} can ask this service: give a --token, or leave --host out")
    app = create_app(load_writer(model, device, offline=offline), config)
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=int(seconds) + 1)


def _is_own_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
