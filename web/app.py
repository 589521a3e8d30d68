"""The whole web side as one ASGI application: gate, event streams, and Flask on threads."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial

from flask import Flask

from searchloop.agent.errors import AgentError, ConfigError, StoreError
from searchloop.compose import Services
from searchloop.protocols.programs import Programs
from searchloop.protocols.runs import ClientRuns
from searchloop.web.api import Api
from searchloop.web.api.calls import LoopBridge, refuse_error
from searchloop.web.asgi import Receive, Scope, Send
from searchloop.web.flask_app import SEARCH_PATHS, create_flask
from searchloop.web.gate import IMPORT_PATH, PERSON, Gate
from searchloop.web.gate.access import Access
from searchloop.web.gateway import answer_program, is_client_path, refusal_body
from searchloop.web.stream.audits import AUDIT_PATH, Audits
from searchloop.web.stream.streams import Streams
from searchloop.web.wsgi import OnThreads

_log = logging.getLogger(__name__)
_WORKERS = 16  # threads for the page and the API; event streams need none
# Searches and pages of others wait for strangers, for many seconds if need be. Threads of their own
# keep that from everybody else. A pool makes its threads when it needs them.
_SEARCHERS = 128
INDEX_SECONDS = 3.0  # after the start, which it would slow down
LEAVE_SECONDS = 10.0  # to end or hand over runs, once streams and requests are over
_LOOK_SECONDS = 5.0  # between looks at who has a run that this process does not know of
_IDLE_SECONDS = 900.0  # after which a person's tenant is closed
_SLOW = (*SEARCH_PATHS, "/api/check")
_EVENTS = re.compile(r"/api/sessions/([^/]+)/events")
EXPORT_PATH = "/api/sessions/export"
STREAMED = (  # answered here and not by Flask
    *(("GET", "/api/sessions/{id}/events"), ("GET", EXPORT_PATH), ("POST", IMPORT_PATH)),
    ("POST", AUDIT_PATH),
)


class Tenant:
    """Answers one person. Tenants share the store, the threads, and the frames of streams."""

    def __init__(
        self,
        services: Services,
        on_loop: LoopBridge,
        access: Access,
        streams: Streams,
        pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
    ) -> None:
        api = Api(services, on_loop, access)
        self.services, self.client_runs = services, ClientRuns(services)
        self.local_models, self.imports = api.local_models, api.imports
        self.flask = create_flask(api.handlers(), services.search_app)
        self.streams = streams.of(services.log)
        self._audits = Audits(services)
        self._pools = [OnThreads(self.flask, pool) for pool in pools]
        self._inside = 0
        self._left = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        self._inside += 1
        try:
            events = _EVENTS.fullmatch(scope["path"])
            if events:
                await self.streams.serve(events[1], scope, receive, send)
            elif scope["path"] == AUDIT_PATH:
                await self._audits.serve(scope, receive, send)
            elif scope["path"] == IMPORT_PATH and scope["method"] == "POST":
                await self.imports.receive(scope, receive, send)
            elif scope["path"] == EXPORT_PATH and scope["method"] == "GET":
                await self.imports.send_all(scope, receive, send)
            else:
                self.services.reload()
                await self._pools[scope["path"] in _SLOW](scope, receive, send)
        finally:
            self._inside -= 1
            self._left = time.monotonic()

    def idle(self) -> bool:
        """Is true when nobody has been here for long."""
        return not self._inside and time.monotonic() - self._left > _IDLE_SECONDS

    async def aclose(self, *, hand_over: bool) -> None:
        """Ends pulls, imports and runs."""
        await self.local_models.aclose()
        await self.imports.aclose()
        await self.services.runner.aclose(hand_over=hand_over)


class WebApp:
    """The ASGI application. `waiting` says what the store lacks."""

    def __init__(self, services: Services, access: Access) -> None:
        """Raises ConfigError where people share one search backend."""
        if access.people and services.settings.backend_url:
            what = "SEARCH_BACKEND_URL names a backend that has one library and one cache for all."
            remedy = "Unset it, or unset SEARCHLOOP_USER_HEADER."
            raise ConfigError("shared_backend", what, remedy)
        access = replace(access, programs=Programs(services.log))
        self._services, self._access = services, access
        self._shared = services.settings.database is not None
        self._on_loop = LoopBridge()
        self._pools = ThreadPoolExecutor(_WORKERS, "wsgi"), ThreadPoolExecutor(_SEARCHERS, "slow")
        self.streams = Streams(services.log)
        self._tenants = {"": self._tenant_of(services)}  # the holder of the token has the first
        self._opening = asyncio.Lock()
        self._gate = Gate(self._route, access, refusal_body=refusal_body)
        services.metrics.gauge("followers", "Open event streams.", lambda: len(self.streams))
        self._looking: asyncio.Task[None] | None = None
        self.waiting: AgentError | None = services.log.trouble

    @property
    def flask(self) -> Flask:
        """The first tenant's application."""
        return self._tenants[""].flask

    def end_streams(self) -> None:
        """Ends event streams and the answers that programs wait for, which may never end."""
        self.streams.close()
        for tenant in self._tenants.values():
            tenant.client_runs.stop()

    def _tenant_of(self, services: Services) -> Tenant:
        return Tenant(services, self._on_loop, self._access, self.streams, self._pools)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, between `begin` and `aclose`. See ASGI."""
        await self._gate(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, program = scope[PERSON].name, scope[PERSON].program
        tenant = self._tenants.get(name)
        if tenant is None:
            try:
                tenant = await self._open(name)
            except AgentError as error:
                await refuse_error(error, scope, send)
                return
        if program or is_client_path(scope["path"]):  # a program's key is for nothing else
            await answer_program(tenant.client_runs, scope, receive, send)
        else:
            await tenant(scope, receive, send)

    async def _open(self, name: str) -> Tenant:
        """Opens a person's tenant and resumes their broken runs. Raises AgentError."""
        async with self._opening:
            if name in self._tenants:
                return self._tenants[name]
            services = await asyncio.to_thread(self._services.of_person, name)
            tenant = self._tenants[name] = await asyncio.to_thread(self._tenant_of, services)
            with suppress(StoreError):  # the runner recovers them as soon as the store works
                await services.runner.recover()
            return tenant

    async def _look_after_tenants(self) -> None:
        """Opens the tenants of people whose runs nobody may have, and closes those left empty."""
        while True:
            try:
                for name in await asyncio.to_thread(self._services.log.people_running):
                    await self._open(name)
            except AgentError as error:
                _log.warning("a person's runs cannot be looked after: %s", error)
            await self._close_idle()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _close_idle(self) -> None:
        for name, tenant in list(self._tenants.items()):
            if name and tenant.idle():
                runs = await asyncio.to_thread(tenant.services.log.leases.held)
                if tenant.idle() and not runs:
                    await self._tenants.pop(name).aclose(hand_over=True)

    async def begin(self) -> None:
        """Recovers broken runs, before the first request. Raises AgentError."""
        loop, log = asyncio.get_running_loop(), self._services.log
        self._on_loop.begin(loop)
        try:
            await self._services.runner.recover()
        except StoreError as error:  # the runner recovers them as soon as the store works
            self.waiting = error
        # What an earlier version has not indexed, or another process; on a thread of its own.
        index = partial(loop.run_in_executor, None, log.chat_search.index, 0.0)
        self._later = loop.call_later(INDEX_SECONDS, index)
        if self._access.people:
            self._looking = loop.create_task(self._look_after_tenants())

    async def aclose(self) -> None:
        """Stops all runs, or hands them over."""
        self._later.cancel()
        self.end_streams()
        if self._looking:
            self._looking.cancel()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                tenants = self._tenants.values()
                await asyncio.gather(*(each.aclose(hand_over=self._shared) for each in tenants))
        except TimeoutError:  # leases expire by themselves, so another process can take over
            _log.warning("not everything ended within %g s", LEAVE_SECONDS)
