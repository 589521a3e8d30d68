"""Asks the provider's redirect host where its links lead; never the pages themselves."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from agent.errors import AgentError
from agent.providers.gemini.redirects import is_redirect, is_redirect_of, links_of, resolved, target
from agent.transport import Transport
from agent.types import Message
from agent.wire import Redirected

SECONDS = 2.0
_AT_ONCE = 8
_KEPT = 2048


class Links:
    """Targets of redirect links, remembered. `base` is asked in the provider's stead, if given."""

    def __init__(self, transport: Transport, base: str | None, *, ask: bool) -> None:
        self._transport = transport
        self._base = base
        self._ask = ask
        self._targets: OrderedDict[str, str] = OrderedDict()

    async def resolve(self, message: Message) -> Message:
        """The message with the pages behind its links, as far as they are known in time."""
        links = [url for url in links_of(message) if self._redirects(url)]
        if self._ask:
            await self._learn([url for url in links if url not in self._targets])
        known = {url: self._targets[url] for url in links if url in self._targets}
        return resolved(message, known, mark=self._base is None)

    def _redirects(self, url: str) -> bool:
        # A server of one's own is asked for its own links only: no other host learns of them.
        return is_redirect(url) if self._base is None else is_redirect_of(url, self._base)

    async def _learn(self, links: list[str]) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)
        try:
            async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
                for url in links:
                    group.create_task(self._follow(url, gate))
        except TimeoutError:
            return  # what is not known by now keeps its link

    async def _follow(self, url: str, gate: asyncio.Semaphore) -> None:
        async with gate:
            try:
                await self._transport.get_json(url, timeout=SECONDS)
            except Redirected as found:
                page = target(found.location)
            except AgentError:
                return
            else:
                return
        if page is not None:
            self._targets[url] = page
            while len(self._targets) > _KEPT:
                self._targets.popitem(last=False)
