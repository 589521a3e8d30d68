"""The search backend as the command line asks it: in this process, or at SEARCH_BACKEND_URL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agent.backend import backend_for
from agent.settings import Settings
from agent.transport import Transport
from web.compose import search_app


def ask(path: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One request of the backend's contract; raises AgentError with what to do."""
    settings = Settings.load()

    async def once() -> dict[str, Any]:
        transport = Transport(offline=settings.offline)
        try:
            return await backend_for(settings, transport, search_app(settings)).ask(path, payload)
        finally:
            await transport.aclose()

    return asyncio.run(once())
