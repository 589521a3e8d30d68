"""The whole web side as one ASGI application: gate, event streams, and Flask on threads."""

from __future__ import annotations

import asyncio
import logging
import re

from searchloop.agent.errors import AgentError, StoreError
from searchloop.web.api import Api
from searchloop.web.api.calls import LoopBridge
from searchloop.web.compose import Services
from searchloop.web.flask_side import SEARCH_PATHS, create_flask
from searchloop.web.gate import MAX_FILES, Gate, Receive, Scope, Send
from searchloop.web.gate.access import Access
from searchloop.web.stream.streams import Streams
from searchloop.web.wsgi import OnThreads

_log = logging.getLogger(__name__)
_WORKERS = 16  # threads for the page and the API; event streams need none
# Searches and pages of others wait for strangers, for many seconds if need be. Threads of their own
# keep that from everybody else. A pool makes its threads when it needs them.
_SEARCHERS = 128
LEAVE_SECONDS = 10.0  # to end or hand over runs, once streams and requests are over
_SLOW = (*SEARCH_PATHS, "/api/check")
_EVENTS = re.compile(r"/api/sessions/([^/]+)/events")
STREAM_PATHS = ("/api/sessions/{id}/events",)  # answered here and not by Flask


class WebApp:
    """The ASGI application. `failure` says why it did not start, `waiting` what the store lacks."""

    def __init__(self, services: Services, access: Access) -> None:
        self._services = services
        self._runner = services.runner
        self._shared = services.settings.database is not None
        self._on_loop = LoopBridge()
        api = Api(services, self._on_loop)
        self._local_models = api.local_models
        self.flask = create_flask(api.handlers(), services.search_app)
        self._pools = OnThreads(self.flask, _WORKERS, MAX_FILES), OnThreads(self.flask, _SEARCHERS)
        self._gate = Gate(self._route, access)
        self.streams = Streams(services.log)
        services.metrics.gauge("followers", "Open event streams.", lambda: len(self.streams))
        self.failure: AgentError | None = None
        self.waiting: AgentError | None = services.log.trouble

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or lives from start to stop. See ASGI."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._gate(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        events = _EVENTS.fullmatch(scope["path"])
        if events:
            await self.streams.serve(events[1], scope, receive, send)
        else:
            self._services.reload()
            await self._pools[scope["path"] in _SLOW](scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Recovers broken runs before the first request, and stops all runs at the end."""
        await receive()
        self._on_loop.begin(asyncio.get_running_loop())
        try:
            await self._runner.recover()
        except StoreError as error:  # the runner recovers them as soon as the store works
            self.waiting = error
        except AgentError as error:
            self.failure = error
            await send({"type": "lifespan.startup.failed", "message": error.message})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.streams.close()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._local_models.aclose()
                await self._runner.aclose(hand_over=self._shared)
        except TimeoutError:  # leases expire by themselves, so another process can take over
            _log.warning("not everything ended within %g s", LEAVE_SECONDS)
        await send({"type": "lifespan.shutdown.complete"})


def create_app(services: Services, access: Access) -> WebApp:
    """Builds the ASGI application that `access` opens."""
    return WebApp(services, access)
