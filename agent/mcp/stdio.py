"""Runs a server that is a program, under `supervisor`, and speaks over its pipes.

The SDK's own stdio client inherits variables, buffers a line of any length, and leaves children
behind when we are killed; this one does not. It yields a stream pair of the SDK
(`mcp.client.Transport`): newline-delimited JSON-RPC, MCP specification, "Transports".
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from searchloop.agent.errors import ConfigError, ToolError
from searchloop.agent.mcp.server import Pace, Server, clean

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

_log = logging.getLogger(__name__)
# A server gets these of our environment; any other variable has to be in its `env`.
INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
)
LINE = 8 * 1024 * 1024  # bytes of one message
GRACE = 2.0  # seconds that a server has to end by itself once its input is closed
_TAIL = 16_384  # bytes that are kept of stderr
_LAST_WORDS = 1.0  # seconds to read the stderr of a server that has ended
_END = 4.0  # seconds that the supervisor has to end everything
_CHUNK = 65_536


class Launch(NamedTuple):
    """A program to run, with all of its environment."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None


def launch_of(server: Server, ours: Mapping[str, str]) -> Launch:
    """Checks the server's command and folder. Raises ConfigError."""
    clear = {key: ours[key] for key in INHERITED if ours.get(key)} | dict(server.env)
    name = server.name
    found = shutil.which(os.path.expanduser(server.command), path=clear.get("PATH"))
    if found is None:
        program = server.command
        what = f"The MCP server {name!r} cannot be started: there is no program {program!r}."
        raise ConfigError("missing_command", what, "Install it, or write its full path.")
    folder = os.path.expanduser(server.cwd) if server.cwd else None
    if folder and not Path(folder).is_dir():
        what = f"The MCP server {name!r} cannot be started: there is no folder {folder!r}."
        raise ConfigError("missing_folder", what, 'Correct its "cwd".')
    return Launch(found, server.args, clear, folder)


class Said:
    """The end of a server's stderr, its exit code, and why we closed the connection.

    `hurry` gives it no time to end by itself.
    """

    def __init__(self) -> None:
        self._tail = bytearray()
        self.fault: ToolError | None = None
        self.code: int | None = None
        self.hurry = False

    def add(self, data: bytes) -> None:
        """Adds bytes of stderr."""
        self._tail += data
        del self._tail[:-_TAIL]

    @property
    def tail(self) -> str:
        """The end of stderr without hidden characters."""
        return clean(self._tail.decode("utf-8", "replace"), _TAIL)


def open_stdio(
    launch: Launch, said: Said, gone: Callable[[], None]
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    """Runs the program; calls `gone` at the end of its output. Raises OSError."""
    if sys.platform == "win32":
        return _open_in_job(launch)
    return _open_supervised(launch, said, gone)


@asynccontextmanager
async def _open_in_job(launch: Launch) -> AsyncGenerator[tuple[Any, Any]]:
    """On Windows the SDK makes a job, which ends together with our process."""
    from mcp import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=launch.command, args=list(launch.args), env=dict(launch.env), cwd=launch.cwd
    )
    with open(os.devnull, "w", encoding="utf-8") as nothing:  # noqa: ASYNC230 - it does not block
        async with stdio_client(server, errlog=nothing) as streams:
            yield streams


@asynccontextmanager
async def _open_supervised(
    launch: Launch, said: Said, gone: Callable[[], None]
) -> AsyncGenerator[tuple[Any, Any]]:
    from mcp.shared.memory import create_client_server_memory_streams

    process, life = await _start(launch)
    async with create_client_server_memory_streams() as (ours, (receiving, sending)):
        pumps = [
            asyncio.create_task(_read(process, sending, said, gone)),
            asyncio.create_task(_write(process, receiving)),
            asyncio.create_task(_listen(process, said)),
        ]
        try:
            yield ours
        finally:
            try:
                for stream in ours:
                    stream.close()
                if not (said.fault or said.hurry):
                    await _let_go(process)
            finally:
                os.close(life)  # now the supervisor ends all processes
                try:
                    await _reap(process, pumps)
                finally:
                    said.code = process.returncode


async def _start(launch: Launch) -> tuple[asyncio.subprocess.Process, int]:
    supervisor = str(Path(__file__).with_name("supervisor.py"))
    theirs, life = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", supervisor, str(theirs), launch.command, *launch.args),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(launch.env),
            cwd=launch.cwd,
            pass_fds=(theirs,),
            limit=LINE,
            start_new_session=True,
        )
    except BaseException:
        os.close(life)
        raise
    finally:
        os.close(theirs)
    return process, life


async def _let_go(process: asyncio.subprocess.Process) -> None:
    """Closes the server's input and gives it time to end by itself."""
    assert process.stdin
    with suppress(OSError, RuntimeError):
        process.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await process.wait()


async def _reap(process: asyncio.subprocess.Process, pumps: list[asyncio.Task[None]]) -> None:
    try:
        async with asyncio.timeout(_END):
            await process.wait()
        await asyncio.wait(pumps[2:], timeout=_LAST_WORDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        process._transport.close()  # type: ignore[attr-defined]  # there is no public way


async def _read(
    process: asyncio.subprocess.Process, into: Any, said: Said, gone: Callable[[], None]
) -> None:
    """Passes the lines of stdout on as messages, and ignores those that are none."""
    assert process.stdout
    pace = Pace()
    try:
        async with into:
            while data := await process.stdout.readline():
                if (message := _message(data)) is not None:
                    await into.send(message)
                await pace.spend(len(data), 1)
    except ValueError:
        words = f"The server sent a message of more than {LINE >> 20} MB."
        said.fault = ToolError("mcp_flood", words, "Ask it for less.")
    except Exception as error:  # of anyio, whose streams the SDK has closed
        _log.debug("no more messages are read: %r", error)
    finally:
        gone()
    while await process.stdout.read(_CHUNK):  # a full pipe would keep the server from ending
        await pace.spend(_CHUNK)


def _message(line: bytes) -> SessionMessage | None:
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        return None


async def _write(process: asyncio.subprocess.Process, outgoing: Any) -> None:
    assert process.stdin
    with suppress(ConnectionError, OSError, RuntimeError):
        async with outgoing:
            async for each in outgoing:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()


async def _listen(process: asyncio.subprocess.Process, said: Said) -> None:
    assert process.stderr
    pace = Pace()
    while data := await process.stderr.read(_CHUNK):
        said.add(data)
        await pace.spend(len(data))
