"""The whole web side as one ASGI application: gate, event streams, and Flask on threads."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from typing import Any

from agent.errors import AgentError, StoreError
from web.access import Access
from web.api import Api, House
from web.asgi import App, Receive, Scope, Send
from web.calls import OnLoop
from web.gate import Gate
from web.pages import SEARCH_PATHS, create_pages
from web.streams import Streams
from web.wsgi import OnThreads

_log = logging.getLogger(__name__)
_WORKERS = 16  # threads for pages and the API; event streams need none
# Searches and pages of others wait for strangers, for many seconds if need be. Threads of their own
# keep that from everybody else; they are made when they are needed.
_SEARCHERS = 128
LEAVE_SECONDS = 10.0  # to end or hand over runs, once streams and requests are over
_EVENTS = re.compile(r"/api/sessions/([^/]+)/events")
STREAM_PATHS = ("/api/sessions/{id}/events",)  # what is answered here and not by Flask


class Web:
    """The application. `failure` says why it could not start, `waiting` why it does little yet."""

    def __init__(self, house: House, access: Access) -> None:
        self._house = house
        self._runner = house.runner
        self._shared = house.settings.database is not None
        self._on_loop = OnLoop()
        api = Api(house, self._on_loop)
        self._local_models = api.local_models
        self._make = functools.partial(create_pages, api.handlers(), house.search_app)
        self._gate = Gate(self._route, access)
        self.streams = Streams(house.log)
        house.metrics.gauges["followers"] = ("Open event streams.", lambda: len(self.streams))
        self.failure: AgentError | None = None
        self.waiting: AgentError | None = house.log.trouble

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._gate(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        events = _EVENTS.fullmatch(scope["path"])
        if events:
            await self.streams.serve(events[1], scope, receive, send)
        else:
            self._house.look_again()
            app = self._for_searches if scope["path"] in SEARCH_PATHS else self._on_threads
            await app(scope, receive, send)

    @functools.cached_property
    def flask(self) -> Any:
        """The Flask application, made when it is first needed."""
        return self._make()

    @functools.cached_property
    def _on_threads(self) -> App:
        return OnThreads(self.flask, _WORKERS)

    @functools.cached_property
    def _for_searches(self) -> App:
        return OnThreads(self.flask, _SEARCHERS)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Recovers broken runs before the first request, and stops all runs at the end."""
        await receive()
        self._on_loop.begin(asyncio.get_running_loop())
        try:
            await self._runner.recover()
        except StoreError as error:  # it goes on with runs as soon as the store works
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
        except TimeoutError:  # the leases run out by themselves, so others go on all the same
            _log.warning("not everything ended within %g s", LEAVE_SECONDS)
        await send({"type": "lifespan.shutdown.complete"})


def create_app(house: House, access: Access) -> Web:
    """The ASGI application for this house, reached and opened as `access` says."""
    return Web(house, access)
