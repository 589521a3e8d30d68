"""Chats of other programs, brought in as a file, and all chats as one file.

The file comes as it is, in a request of its own kind, and goes to disk while it arrives: it may be
larger than memory. Reading it is a task on a thread; the page polls its progress.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from typing import IO, Any, Literal

from searchloop.agent.errors import AgentError, ConfigError, Conflict, StoreError
from searchloop.compose import Services
from searchloop.imports import Report, import_chats
from searchloop.imports.own import everything
from searchloop.web.api.calls import Call, Handlers, LoopBridge, Reply, refuse_error
from searchloop.web.api.openapi import route
from searchloop.web.asgi import JSON, Receive, Scope, Send, answer, more
from searchloop.web.gate import MAX_IMPORT

_SILENCE = 60.0  # seconds for which a file may stop arriving


class _Stopped(Exception):
    """The user stopped the import; the chats so far stay."""


@dataclass(slots=True)
class Import:
    """An import: what its `report` says so far. `error` says why it failed."""

    state: Literal["none", "running", "done", "failed", "cancelled"] = "none"
    report: Report = field(default_factory=Report)
    error: dict[str, str] | None = None
    stop: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Returns it as JSON."""
        error = {"error": self.error} if self.error else {}
        return {"state": self.state, **self.report.as_dict(), **error}


class ImportsApi(Handlers):
    """The handlers of one person, who has one import at a time."""

    def __init__(self, services: Services, on_loop: LoopBridge) -> None:
        super().__init__(services, on_loop)
        self._now = Import()
        self._arriving = False
        self._task: asyncio.Task[None] | None = None

    @route("get", "/api/sessions/import", "Import")
    def look(self, call: Call) -> Reply:
        """Tells how far the import is, or what came of the last one."""
        return Reply(self._now.as_dict())

    @route("delete", "/api/sessions/import", "Import")
    def cancel(self, call: Call) -> Reply:
        """Stops the import; the chats so far stay."""
        self._now.stop = True
        return Reply(self._now.as_dict())

    async def receive(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers the request that carries the file: 202 once it is whole, and is being read."""
        try:
            await self._take(receive)
            await answer(send, 202, self._now.as_dict())
        except AgentError as error:
            await refuse_error(error, scope, send)

    async def _take(self, receive: Receive) -> None:
        if self._arriving or self._now.state == "running":
            raise Conflict("busy", "An import is under way.", "Wait for its end, or stop it.")
        self._arriving = True
        try:
            file = await self._saved(receive)
            try:
                usual = await self._services.runner.usual.choose()
            except BaseException:
                file.close()
                raise
            self._now = Import("running")
            self._task = asyncio.create_task(self._read(file, self._now, usual.model))
        finally:
            self._arriving = False

    async def _saved(self, receive: Receive) -> IO[bytes]:
        """Returns the file, once all of it is on disk, where it has no name that could outlive us.

        Raises ConfigError and StoreError.
        """
        try:
            file = tempfile.TemporaryFile(dir=self._services.settings.home)  # noqa: SIM115
            try:
                if not await _arrived(receive, file):
                    what = "No file came with the request."
                    raise ConfigError("empty_file", what, "Send the export as the request's body.")
                file.seek(0)
            except BaseException:
                file.close()
                raise
        except OSError as error:
            what = f"The file cannot be kept while it is read: {error.strerror}."
            raise StoreError("no_room", what, "Make room on the disk, and try again.") from error
        return file

    async def _read(self, file: IO[bytes], now: Import, model: str) -> None:
        def look() -> None:
            if now.stop:
                raise _Stopped

        def heard(report: Report) -> None:
            now.report = report
            look()

        try:
            now.report = await asyncio.to_thread(import_chats, file, self._log, model, heard, look)
            now.state = "done"
        except _Stopped:
            now.state = "cancelled"
        except AgentError as error:
            now.state, now.error = "failed", error.as_dict()
        finally:
            if now.state == "running":
                now.state = "cancelled"
            file.close()

    async def send_all(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with all chats as one file, one chat at a time."""
        day = time.strftime("%Y-%m-%d")
        named = f'attachment; filename="searchloop-chats-{day}.json"'.encode()
        head = (JSON, (b"content-disposition", named))
        await send({"type": "http.response.start", "status": 200, "headers": head})
        pieces = everything(self._log)
        while piece := await asyncio.to_thread(next, pieces, b""):
            await send(more(piece))
        await send({"type": "http.response.body", "body": b""})

    async def aclose(self) -> None:
        """Stops the import and waits for its end."""
        self._now.stop = True
        if self._task:
            await asyncio.wait([self._task])


async def _arrived(receive: Receive, file: Any) -> int:
    """Writes the request's body to `file` as it comes; returns its bytes. Raises ConfigError."""
    size, more = 0, True
    while more:
        try:
            async with asyncio.timeout(_SILENCE):
                message = await receive()
        except TimeoutError:
            message = {"type": "http.disconnect"}
        if message["type"] == "http.disconnect":
            raise ConfigError("cut_upload", "The file did not arrive whole.", "Send it again.")
        piece, more = message.get("body", b""), message.get("more_body", False)
        size += len(piece)
        if size > MAX_IMPORT:
            what = f"The file is larger than {MAX_IMPORT >> 30} GB."
            raise ConfigError("too_large", what, "`searchloop sessions import FILE` takes it.")
        await asyncio.to_thread(file.write, piece)
    return size
