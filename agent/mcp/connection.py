"""Connects one server when it is first needed, and again, after a pause, when it has failed.

One task enters and leaves the SDK's client, because the client's scopes belong to one task. Every
failure of a server ends in a state and an error of ours, within the time that the user has set.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from searchloop.agent import __version__
from searchloop.agent.errors import AgentError, ConfigError, ToolError
from searchloop.agent.mcp.definitions import Definition, list_tools
from searchloop.agent.mcp.login import OriginGuard, first_of, open_http
from searchloop.agent.mcp.questions import Questions, called
from searchloop.agent.mcp.server import Server, clean, line
from searchloop.agent.mcp.stdio import Said, launch_of, open_stdio
from searchloop.agent.settings import Settings
from searchloop.agent.tools import Ask, nobody

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, ElicitResult, Prompt, ReadResourceResult


def lost(server: Server, said: Said) -> AgentError:
    """Returns the error for a connection that has ended."""
    if said.fault:
        return said.fault
    how = f"ended with exit code {said.code}" if said.code is not None else "broke off"
    what = f"The connection to the MCP server {server.name!r} {how}."
    return ToolError("mcp_lost", what, server.see_why())


def meaning(
    server: Server, error: BaseException, ended: AgentError | None, status: int | None
) -> AgentError:
    """Returns our error for an exception of the SDK.

    `ended` is the error of a connection that has ended; `status` is the last one over HTTP.
    """
    error = first_of(error)
    if isinstance(error, AgentError):
        return error
    who, why = f"The MCP server {server.name!r}", server.see_why()
    if isinstance(error, ValueError):  # of the SDK's validation: lines 2 and 3 say where
        said = " ".join(str(error).splitlines()[1:3]).partition(" [type=")[0]
        what = f"{who} breaks the protocol: {line(said or str(error), 300)}."
        return ToolError("mcp_bad_answer", what, "Tell its authors; until then disable it.")
    if isinstance(error, TimeoutError):
        within = f"{server.startup_seconds:g}"
        what = f"The MCP server {server.name!r} was not ready within {within} seconds."
        return ToolError("mcp_timeout", what, why)
    if ended:
        return ended
    if status in (401, 403):
        what = f"The MCP server {server.name!r} wants a login (status {status})."
        return ConfigError("mcp_login", what, server.log_in())
    if server.kind == "http":
        told = f" (status {status})" if status else ""
        what = f"{who} cannot be reached{told}: {type(error).__name__}."
        return ToolError("mcp_unreachable", what, f"Check its address: {server.shown[0]}")
    what = f"{who} cannot be used: {line(f'{type(error).__name__}: {error}', 300)}"
    return ToolError("mcp_failed", what, why)


T = TypeVar("T")
State = Literal["idle", "connecting", "ready", "failed"]
LONGEST = 60.0  # seconds between two attempts at most
_PROMPT = 100_000  # characters
_RELIST = 60.0  # seconds after which its tools are listed again, also if it says no change
_CLOSE = 8.0  # seconds for a connection to end
_CLOSED = -32000  # the SDK's error code for a connection that is closed

_log = logging.getLogger(__name__)


class Connection:
    """A server and the way to it. `listing` are the tools that it listed last, by name."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self.server = server
        self.state: State = "idle"
        self.error: AgentError | None = None
        self.listing: dict[str, Definition] = {}
        self.oddities: tuple[str, ...] = ()
        self.suspended: dict[str, str] = {}  # changed tools, and what has changed
        self.protocol = self.title = self.version = ""
        self.resources = False  # whether it has any
        self.said = Said()
        self.on_listing: Callable[[Connection], None] = lambda connection: None
        self._settings = settings
        self._client: Client | None = None
        self._questions: list[Questions] = []  # one of each call that is under way
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._over = asyncio.Event()
        self._changed = False  # as it says
        self._listed = 0.0
        self._watch: OriginGuard | None = None
        self._failures = 0
        self._again = 0.0
        self._wanted = time.monotonic()
        self._closed = False

    @property
    def idle(self) -> float:
        """Seconds since it was last needed."""
        return time.monotonic() - self._wanted

    @property
    def retry_in(self) -> float | None:
        """Seconds until the next attempt; None unless it waits for one."""
        wait = self._again - time.monotonic()
        return round(wait, 1) if self.state == "failed" and wait > 0 else None

    async def ready(self, patience: float) -> bool:
        """Tries to connect for `patience` seconds. Returns True once it can be used."""
        self._wanted = time.monotonic()
        self._begin()
        if self.state == "connecting":
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._settled.wait()
        await self._list_again()
        return self.state == "ready"

    def retry_now(self) -> None:
        """Ends the pause after a failure."""
        self._again = 0.0

    async def call(
        self, tool: str, arguments: Mapping[str, Any], ask: Ask = nobody
    ) -> CallToolResult:
        """Calls a tool; `ask` puts the server's questions to the user. Raises ToolError.

        If it is cancelled, the server is informed.
        """
        questions = Questions(self.server.name, ask)
        self._questions.append(questions)
        try:
            return await self._answered(lambda client: called(client, tool, arguments, questions))
        finally:
            self._questions.remove(questions)
            questions.close()

    async def _elicited(self, context: object, params: Any) -> ElicitResult:
        """Answers a question on a connection of the older protocol, which names no call."""
        if len(self._questions) != 1:  # it could be meant for another chat
            return Questions(self.server.name, nobody).no()
        return await self._questions[0].asked(params)

    async def read(self, uri: str) -> ReadResourceResult:
        """Reads a resource. Raises ToolError."""
        return await self._answered(lambda client: client.read_resource(uri))

    async def prompts(self) -> Sequence[Prompt]:
        """Returns the prompts that the server has. Raises ToolError."""
        return (await self._answered(lambda client: client.list_prompts())).prompts

    async def told_prompts(self) -> list[dict[str, str]]:
        """Describes the prompts of a server that runs; one that has none may refuse."""
        found: Sequence[Prompt] = ()
        with suppress(AgentError):
            found = await self.prompts() if self.state == "ready" else ()
        return [
            {
                "name": f"{self.server.name}:{each.name}",
                "takes": line(" ".join(wanted.name for wanted in each.arguments or ()), 200),
                "about": line(each.description or each.title or "", 200),
            }
            for each in found
        ]

    async def prompt(self, name: str, words: Sequence[str]) -> str:
        """Returns a prompt of the server as text, its arguments filled from words in their order.

        What is over belongs to the last one. Raises ConfigError, ToolError.
        """
        known = await self.prompts()
        found = next((each for each in known if each.name == name), None)
        if found is None:
            names = line(", ".join(each.name for each in known), 500) or "none"
            what = f"The MCP server {self.server.name!r} has no prompt {name[:80]!r}."
            raise ConfigError("no_prompt", what, f"There are: {names}.")
        wanted = [each.name for each in found.arguments or ()]
        most = max(0, len(wanted) - 1)
        filled = zip(wanted, [*words[:most], " ".join(words[most:])], strict=False)
        given = {each: text for each, text in filled if text}
        needed = [each.name for each in found.arguments or () if each.required]
        if lacking := [each for each in needed if each not in given]:
            what = f"The prompt {line(name, 80)} needs {line(', '.join(lacking), 200)}."
            shown = line(" ".join(wanted), 200)
            raise ConfigError("no_value", what, f"Write /{self.server.name}:{name} {shown}")
        made = await self._answered(lambda client: client.get_prompt(name, given))
        texts = (getattr(message.content, "text", "") for message in made.messages)
        return clean("\n\n".join(filter(None, texts)), _PROMPT)

    async def _answered(self, send: Callable[[Client], Awaitable[T]]) -> T:
        """Sends a request once the server is ready. Raises ToolError."""
        if not await self.ready(self.server.startup_seconds):
            raise self._trouble()
        from mcp.shared.exceptions import MCPError

        assert self._client
        try:
            return await send(self._client)
        except MCPError as error:
            if error.error.code == _CLOSED:
                raise await self._why_lost() from error
            words = line(error.error.message, 2000)
            raise ToolError("mcp_error", f"{self.server.name} answered: {words}") from error
        except ValueError as error:
            words = f"{self.server.name} sent an answer that breaks the protocol."
            raise ToolError("mcp_bad_answer", words, "Try something else.") from error
        except RuntimeError as error:  # the client was closed meanwhile
            raise await self._why_lost() from error

    async def aclose(self) -> None:
        """Closes the connection for good."""
        self._closed = True
        task, self._task = self._task, None
        self._over.set()
        if task:
            if self.state != "ready":  # no call can still succeed
                self.said.hurry = True
                task.cancel()
            await asyncio.wait([task], timeout=_CLOSE)
            task.cancel()
            await asyncio.wait([task], timeout=_CLOSE)
        self.state = "idle"

    def _begin(self) -> None:
        if self._closed or (self._task and not self._task.done()):
            return
        if self.state == "failed" and time.monotonic() < self._again:
            return
        self.state, self.error, self.said = "connecting", None, Said()
        self._settled.clear()
        self._over.clear()
        self._task = asyncio.create_task(self._live(), name=f"mcp {self.server.name}")

    async def _live(self) -> None:
        began = time.monotonic()
        try:
            await asyncio.to_thread(_load)  # outside the server's time limit
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.server.startup_seconds):
                    client = await self._open(stack)
                    await self._list(client)
                self._client, self.state = client, "ready"
                self._settled.set()
                await self._over.wait()
            self._failed(lost(self.server, self.said), began)
        except Exception as error:
            over = self._over.is_set() or self.said.fault
            ended = lost(self.server, self.said) if over else None
            status = self._watch.status if self._watch else None
            self._failed(meaning(self.server, error, ended, status), began)
        finally:
            self._client = None
            self._settled.set()

    async def _open(self, stack: AsyncExitStack) -> Client:
        from mcp import Client
        from mcp.types import Implementation

        server = self.server
        if server.kind == "stdio":
            launch = launch_of(server, self._settings.env)
            transport: Any = open_stdio(launch, self.said, self._over.set)
        else:
            home, offline = self._settings.home, self._settings.offline
            opened = open_http(server, home, offline=offline)
            transport, self._watch = await stack.enter_async_context(opened)
        info = Implementation(name="searchloop", version=__version__)
        client = Client(
            transport,
            client_info=info,
            message_handler=self._heard,
            elicitation_callback=self._elicited,
            cache=None,
        )
        await stack.enter_async_context(client)
        self.protocol = client.protocol_version
        self.resources = client.server_capabilities.resources is not None
        about = client.server_info
        self.title = line(about.title or about.name, 100) if about else ""
        self.version = line(about.version, 40) if about else ""
        return client

    async def _list_again(self) -> None:
        """Looks whether the tools have changed; not every server says so."""
        due = self._changed or time.monotonic() > self._listed + _RELIST
        if due and self.state == "ready":
            self._changed, self._listed = False, time.monotonic()
            with suppress(AgentError, TimeoutError):  # a call will tell the user
                async with asyncio.timeout(self.server.startup_seconds):
                    await self._answered(self._list)

    async def _heard(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        self._changed = self._changed or isinstance(message, ToolListChangedNotification)

    async def _list(self, client: Client) -> None:
        self.listing, self.oddities = await list_tools(client)
        self._listed = time.monotonic()
        self.on_listing(self)

    def _failed(self, error: AgentError, began: float) -> None:
        """Notes a failure. A server that was ready is tried again at once, then pauses double."""
        lasted = time.monotonic() - began
        self._failures = 1 if lasted > LONGEST else self._failures + 1
        pauses = self._failures - (2 if self.listing else 1)
        self._again = time.monotonic() + (min(LONGEST, 2.0**pauses) if pauses >= 0 else 0.0)
        self.state, self.error = "failed", error
        _log.info("MCP server %s: %s", self.server.name, error.message)

    async def _why_lost(self) -> ToolError:
        """Waits until the cause of the lost connection is known, and returns its error."""
        self._over.set()
        if self._task:
            await asyncio.wait([self._task], timeout=_CLOSE)
        return self._trouble()

    def _trouble(self) -> ToolError:
        """Returns the error for the model; `error` is the one for the user."""
        wait = self.retry_in
        later = f" It is tried again in {wait:g} s." if wait else ""
        words = self.error.message if self.error else "It is still starting."
        return ToolError("mcp_unavailable", f"{words}{later}", "Go on without it.")


def _load() -> None:
    """Imports the SDK, which takes a good part of a second."""
    import mcp
    import mcp.client.streamable_http  # noqa: F401

    for name in ("mcp", "client"):  # they log what servers send, tokens included
        logging.getLogger(name).setLevel(logging.CRITICAL)
