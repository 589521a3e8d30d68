"""Handlers that pull, unload and delete models of a user's own server.

A pull is a task on the server's loop; the page polls its progress. The next pull of the same model
continues where a broken one stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal

from searchloop.agent.errors import AgentError, ConfigError, Conflict
from searchloop.agent.providers import (
    Hosts,
    ModelServer,
    PullProgress,
    abilities_of,
    hosting,
    names,
)
from searchloop.agent.types import ModelInfo
from searchloop.compose import Services
from searchloop.web.api.calls import Call, Handlers, LoopBridge, Reply
from searchloop.web.api.openapi import route


@dataclass(slots=True)
class Pull:
    """A model being loaded: `done` of `total` bytes. `error` says why it failed."""

    model: str
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    status: str = ""
    done: int = 0
    total: int = 0
    error: dict[str, str] | None = None


class LocalModels(Handlers):
    """The handlers, and the pulls that they started: one task each, by model, on the loop."""

    def __init__(self, services: Services, on_loop: LoopBridge) -> None:
        super().__init__(services, on_loop)
        self._runner = services.runner
        self._pulls: dict[str, Pull] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def look(self) -> tuple[list[ModelInfo], list[ModelServer]]:
        """Asks all providers for their models and all of one's own servers, concurrently."""

        async def ask() -> tuple[list[ModelInfo], list[ModelServer]]:
            return await asyncio.gather(self._runner.registry.models(), self._servers())

        return self._on_loop(ask())

    @route("get", "/api/models/pull", "Pulls")
    def pulls(self, call: Call) -> Reply:
        """Lists the pulls and their progress."""
        return Reply({"pulls": self._on_loop.do(lambda: [asdict(p) for p in self._pulls.values()])})

    @route("post", "/api/models/pull", "Pull", "ModelName", 202, whose="operator")
    def pull(self, call: Call) -> Reply:
        """Starts to pull a model; a pull that is under way goes on."""
        return Reply(self._on_loop.do(lambda: self._start(call.body["model"])), 202)

    @route("delete", "/api/models/pull", None, query=("model",), whose="operator")
    def cancel(self, call: Call) -> Reply:
        """Stops a pull."""
        model = _named(call.query)
        if not self._on_loop(self._stop(model)):
            what = f"{model[:100]} is not on its way."
            raise Conflict("no_pull", what, "GET /api/models/pull lists what is.")
        return Reply(status=204)

    @route("post", "/api/models/unload", None, "ModelName", whose="operator")
    def unload(self, call: Call) -> Reply:
        """Takes a model out of memory."""
        host, name = self._host(call.body["model"])
        self._on_loop(host.unload(name))
        return Reply(status=204)

    @route("delete", "/api/models", None, query=("model",), whose="operator")
    def remove(self, call: Call) -> Reply:
        """Deletes a model."""
        host, name = self._host(_named(call.query))
        self._on_loop(host.remove(name))
        return Reply(status=204)

    async def aclose(self) -> None:
        """Stops all pulls."""
        for model in list(self._tasks):
            await self._stop(model)

    async def _stop(self, model: str) -> bool:
        """Stops a pull and waits until it has stopped. Returns False when there is none."""
        task = self._tasks.get(model)
        if task is None:
            return False
        task.cancel()
        await asyncio.wait([task])
        return True

    async def _servers(self) -> list[ModelServer]:
        hosts: list[Hosts] = []
        for name in names():
            with suppress(AgentError):
                provider, _ = self._runner.provider(f"{name}:any")
                if hosted := abilities_of(provider).hosts:
                    hosts.append(hosted)
        return await asyncio.gather(*(host.server() for host in hosts))

    def _start(self, model: str) -> dict[str, Any]:
        """Returns the model's pull, started if need be."""
        if model in self._tasks:
            return asdict(self._pulls[model])
        provider, name = self._runner.provider(model)
        steps = hosting(provider, model.partition(":")[0]).pull(name)
        self._pulls.pop(model, None)  # a new pull is the last in the list
        pull = self._pulls[model] = Pull(model)
        task = self._tasks[model] = asyncio.create_task(_follow(pull, steps), name=f"pull {model}")
        task.add_done_callback(lambda _: self._ended(pull))
        return asdict(pull)

    def _ended(self, pull: Pull) -> None:
        del self._tasks[pull.model]
        if pull.state == "running":
            pull.state = "cancelled"

    def _host(self, model: str) -> tuple[Hosts, str]:
        provider, name = self._on_loop.do(lambda: self._runner.provider(model))
        return hosting(provider, model.partition(":")[0]), name


async def _follow(pull: Pull, steps: AsyncGenerator[PullProgress, None]) -> None:
    try:
        async with aclosing(steps):
            async for step in steps:
                pull.status, pull.done, pull.total = step.status, step.done, step.total
        pull.state = "done"
    except AgentError as error:
        pull.state, pull.error = "failed", error.as_dict()


def _named(query: Mapping[str, str]) -> str:
    model = query.get("model", "")
    if not model:
        raise ConfigError("no_model", "No model is named.", "Add ?model=provider:model.")
    return model
