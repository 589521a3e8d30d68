"""The part of the JSON API that gets, unloads and deletes models of a server of one's own.

A request names a model and nothing else: which server that means is in the settings, and from
where it may load is the provider's to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from agent.errors import AgentError, ConfigError, Conflict
from agent.hosting import Hosts, Server, hosting
from agent.models import ModelInfo
from agent.providers import names
from agent.runner import Runner
from web.calls import Call, Handler, OnLoop, Reply
from web.pulls import Pull, Pulls


class LocalModels:
    """The handlers, and the pulls that they started."""

    def __init__(self, runner: Runner, on_loop: OnLoop) -> None:
        self._runner = runner
        self._on_loop = on_loop
        self._pulls = Pulls()

    def handlers(self) -> dict[tuple[str, str], Handler]:
        """(method, path as in `openapi.ROUTES`) -> handler."""
        return {
            ("delete", "/api/models"): self.remove,
            ("get", "/api/models/pull"): self.pulls,
            ("post", "/api/models/pull"): self.pull,
            ("delete", "/api/models/pull"): self.cancel,
            ("post", "/api/models/unload"): self.unload,
        }

    def look(self) -> tuple[list[ModelInfo], list[Server]]:
        """The models there are, and the servers of one's own, asked together."""
        return self._on_loop(self._look())

    def pulls(self, call: Call) -> Reply:
        """How far each model is."""
        return Reply({"pulls": self._on_loop(self._list())})

    def pull(self, call: Call) -> Reply:
        """Begins to get a model; one that is on its way already goes on."""
        return Reply(self._on_loop(self._start(call.body["model"])), 202)

    def cancel(self, call: Call) -> Reply:
        """Stops getting a model."""
        model = _named(call.query)
        if not self._on_loop(self._pulls.cancel(model)):
            raise Conflict(
                "no_pull",
                f"{model[:100]} is not on its way.",
                "GET /api/models/pull lists what is.",
            )
        return Reply(status=204)

    def unload(self, call: Call) -> Reply:
        """Takes a model out of memory."""
        self._on_loop(self._do("unload", call.body["model"]))
        return Reply(status=204)

    def remove(self, call: Call) -> Reply:
        """Deletes a model."""
        self._on_loop(self._do("remove", _named(call.query)))
        return Reply(status=204)

    async def aclose(self) -> None:
        """Stops what is on its way."""
        await self._pulls.aclose()

    async def _look(self) -> tuple[list[ModelInfo], list[Server]]:
        return await asyncio.gather(self._runner.models(), self._servers())

    async def _servers(self) -> list[Server]:
        hosts: list[Hosts] = []
        for name in names():
            with suppress(AgentError):
                provider, _ = self._runner.provider(f"{name}:any")
                if isinstance(provider, Hosts):
                    hosts.append(provider)
        return await asyncio.gather(*(host.server() for host in hosts))

    async def _list(self) -> list[dict[str, Any]]:
        return [asdict(pull) for pull in self._pulls.list()]

    async def _start(self, model: str) -> dict[str, Any]:
        pull: Pull | None = self._pulls.running(model)
        if pull is None:
            host, name = self._host(model)
            pull = self._pulls.start(model, host.pull(name))
        return asdict(pull)

    async def _do(self, what: str, model: str) -> None:
        host, name = self._host(model)
        await (host.unload(name) if what == "unload" else host.remove(name))

    def _host(self, model: str) -> tuple[Hosts, str]:
        provider, name = self._runner.provider(model)
        return hosting(provider, model.partition(":")[0]), name


def _named(query: Mapping[str, str]) -> str:
    model = query.get("model", "")
    if not model:
        raise ConfigError("no_model", "No model is named.", "Add ?model=provider:model.")
    return model
