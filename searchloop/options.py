"""What an agent, a chat and a question come with, and how that becomes a turn of the agent."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from searchloop.agent.bare_agent import Approval, BareAgent, Turn, Usual
from searchloop.agent.calls.caller import Hooks
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.providers import Provider
from searchloop.agent.run.question import open_session
from searchloop.agent.run.question.files import NewFile
from searchloop.agent.settings import Settings
from searchloop.agent.tools import Tool, ToolSource, tool
from searchloop.agent.tools.backend import Wsgi
from searchloop.agent.tools.workspace import Workspace
from searchloop.answer import typed
from searchloop.answer_types import Read, form_of
from searchloop.events import ApprovalRequested
from searchloop.web.compose import search_app

JsonSchema = Mapping[str, Any] | None


class AgentOptions(Usual, total=False):
    """What an agent is made with, beside the usual options of its turns.

    `model` is `provider:model`, or a provider. `tools` are functions or `Tool`s, `engines` the
    search engines to ask, in order: an `Engine` or the name of one. `hooks` are told of each step.
    `providers` come beside those of searchloop; `bring` are sources of tools by session, by default
    the files of a chat's workspace. `search_backend` is another WSGI application with the contract
    of ours, `log` another place for the sessions.

        Agent(model="ollama:qwen3:8b", tools=[stock], engines=[wiki, "ddg"], hooks=Log())
    """

    model: str | Provider | None
    tools: Iterable[Tool | Callable[..., Any]]
    engines: Iterable[Any]
    hooks: Hooks | None
    providers: Iterable[Provider]
    bring: Iterable[ToolSource] | None
    search_backend: Wsgi | None
    log: EventLog | None


class AskOptions(Usual, total=False):
    """What a question comes with; those of its agent or chat are in force where it says nothing.

    `model` is `provider:model`, `files` are paths, or `NewFile`s. `session` goes on with an earlier
    chat; `plan` is the data of the plan that the question carries out.

        agent.ask("What does it say?", files=["notes.pdf"], model="ollama:qwen3:8b")
    """

    model: str | None
    files: Sequence[NewFile | str | Path]
    plan: Mapping[str, Any] | None
    session: str | None


class NewChat(Usual, total=False):
    """A chat: the usual options of its turns, a folder for file tools, the name of an agent.

    A `temporary` chat is in no list and deleted after a day.

        agent.chat(workspace="~/notes", agent="coder", model="ollama:qwen3:8b")
    """

    model: str | None
    workspace: str | Path | None
    agent: str | None
    temporary: bool


def made(settings: Settings | None, options: AgentOptions) -> tuple[BareAgent, Turn]:
    """Makes the agent of both faces, and the options of its turns."""
    settings = settings or Settings.load()
    given: dict[str, Any] = dict(options)
    model, bring = given.pop("model", None), given.pop("bring", None)
    parts = {name: given.pop(name, None) for name in ("log", "hooks", "search_backend")}
    engines, providers = tuple(given.pop("engines", ())), list(given.pop("providers", ()))
    if model is not None and not isinstance(model, str):
        providers.append(model)
        model = getattr(model, "model", f"{model.name}:default")
    parts["search_backend"] = parts["search_backend"] or search_app(settings, engines)
    tools = [each if isinstance(each, Tool) else tool(each) for each in given.pop("tools", ())]
    bring = [Workspace.of(settings)] if bring is None else bring
    core = BareAgent(settings, tools=tools, providers=providers, bring=bring, **parts)
    usual: Any = {**given, **({"model": model} if model else {})}
    return core, usual


def turn_of(usual: Turn, turn: AskOptions, schema: Any) -> tuple[str | None, Turn, Read[Any]]:
    """Returns the session that a question names, its options over the usual ones, and what reads
    the answer's value.

    An approval handler gets typed events.
    """
    form, read = form_of(schema)
    merged: Any = {**usual, **turn, "schema": form}
    session = merged.pop("session", None)
    if callable(handler := merged.get("approve")):
        merged["approve"] = _Typed(handler)
    return session, merged, read


class _Typed:
    """An approval handler that gets the event as a value."""

    def __init__(self, handler: Callable[[ApprovalRequested], Any]) -> None:
        self._handler = handler
        self.__wrapped__ = handler  # by which `called` sees whether it is an `async def`

    def __call__(self, data: Mapping[str, Any]) -> Approval | Awaitable[Approval]:
        event: Any = typed(Event(0, "approval_requested", data, 0.0))
        said: Approval | Awaitable[Approval] = self._handler(event)
        return said


def _home(folder: str | Path | None) -> str | None:
    return os.path.expanduser(folder) if folder else None


_OF_SESSION = ("model", "mode", "search", "workspace", "agent", "temporary")


async def opened(
    core: BareAgent, usual: Turn, session: str | None, options: NewChat
) -> tuple[str, Turn]:
    """Opens a chat and returns the options of its turns; those in the session are not repeated."""
    given: dict[str, Any] = {**usual, **options}
    wanted = {name: given.pop(name, None) for name in _OF_SESSION}
    wanted["workspace"] = _home(wanted["workspace"])
    if session:
        known = (await core.log.aside(core.log.session, session)).id
        kept = {name: options[name] for name in ("model", "mode", "search") if name in options}
        return known, {**given, **kept}  # type: ignore[typeddict-item]
    if not wanted["model"] and not wanted["agent"]:
        wanted["model"] = (await core.runner.usual.choose()).model
    opened = await core.log.aside(open_session, core.log, core.settings, wanted)
    return opened.id, given  # type: ignore[return-value]
