"""uvicorn as this project uses it, apart from what is served with it.

The search backend alone is served from here without the page, the agent and all that they load.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Literal

from web.asgi import App
from web.pipe import with_pipes
from web.quick import Quick

if TYPE_CHECKING:
    from uvicorn import Config

STOP_SECONDS = 5  # how long an ordinary request may go on once we are told to stop


def run_server(app: App, listener: socket.socket) -> None:
    """Serves whole answers of an application without a start or an end of its own, until Ctrl-C."""
    import uvicorn

    with contextlib.suppress(SystemExit, KeyboardInterrupt), contextlib.closing(listener):
        uvicorn.Server(config(app, lifespan="off", http=Quick)).run([listener])


def config(app: App, *, lifespan: Literal["on", "off"], http: type[Quick] | None = None) -> Config:
    """The library's own settings: our gate decides, our program speaks, nothing is logged twice."""
    import uvicorn

    return uvicorn.Config(
        app,
        http=http or with_pipes(),
        ws="none",
        loop="asyncio",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
