"""What an agent, a chat and a question come with, and how that becomes a turn of the agent."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from searchloop.agent.bare_agent import BareAgent, Turn, Usual
from searchloop.agent.calls.caller import Approval, Hooks
from searchloop.agent.errors import ConfigError
from searchloop.agent.guard.approvals import Approve
from searchloop.agent.log import EventLog
from searchloop.agent.log.events import Event
from searchloop.agent.mcp import McpServers
from searchloop.agent.mcp.server import McpServer
from searchloop.agent.providers import Provider
from searchloop.agent.run.question import open_session
from searchloop.agent.run.question.files import NewFile
from searchloop.agent.search.switch import search_options
from searchloop.agent.settings import IN_MEMORY, Settings
from searchloop.agent.tools import Tool, ToolSource, tool
from searchloop.agent.tools.backend import Wsgi
from searchloop.agent.tools.workspace import Workspace
from searchloop.agent.types import ANYWHERE, DEFAULT_LIMITS, Mode, Search
from searchloop.analysis.told import did_you_mean, one_of
from searchloop.answer import typed
from searchloop.answer_types import Read, form_of
from searchloop.compose import search_app

if TYPE_CHECKING:
    from searchloop.events import ApprovalRequested
    from searchloop.search_backend.engines import Engine

T = TypeVar("T")
JsonSchema = Mapping[str, Any] | None


class AgentOptions(Usual, total=False):
    """What an agent is made with, beside the usual options of its turns.

    `model` is `provider:model`, or a provider. `tools` are functions or `Tool`s, `engines` the
    search engines to ask, in order: an `Engine` or the name of one. `hooks` are told of each step.
    `mcp` are MCP servers by name; those of `mcp.json` come with `bring=[McpServers(settings)]`.
    `providers` come beside those of searchloop; `bring` are sources of tools by session, by default
    the files of a chat's workspace. `search_backend` is another WSGI application with the contract
    of ours. Chats are kept in memory, unless `store` says where: a path, the address of a
    PostgreSQL database, or an `EventLog` that several agents share.

        Agent(model="ollama:qwen3:8b", tools=[stock], engines=[wiki, "ddg"], store="chats.sqlite3")
    """

    model: str | Provider | None
    tools: Iterable[Tool | Callable[..., Any]]
    engines: Iterable[Engine | str]
    mcp: Mapping[str, McpServer] | None
    hooks: Hooks | None
    providers: Iterable[Provider]
    bring: Iterable[ToolSource] | None
    search_backend: Wsgi | None
    store: EventLog | str | Path | None


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


_CHOICES = {"mode": get_args(Mode), "search": get_args(Search), "approve": get_args(Approve)}
_FORMED: Mapping[str, Any] = {"limits": DEFAULT_LIMITS, "search_options": ANYWHERE}
_OF_TURN = ("question", "schema", *AskOptions.__annotations__)
_OF_CHAT = ("session", *NewChat.__annotations__)
_OF_AGENT = ("settings", *AgentOptions.__annotations__)


def _checked(method: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    """Raises TypeError for a keyword that the method does not take, ConfigError for a value that
    is none of the choices.
    """
    for name, value in given.items():
        if name not in known:
            takes = ", ".join(sorted(known))
            near = did_you_mean(name, known)
            raise TypeError(f"{method}() takes no keyword {name!r}. {near}It takes: {takes}.")
        kind, fits = _TAKES.get(name, ("", None))
        for each in _listed(value) if name in _LISTS else (value,):
            if fits and not fits(each) and (each is not None or name in ("question", *_LISTS)):
                raise TypeError(f"{method}({name}=...) takes {kind}, not {each!r:.200}.")
        choices = _CHOICES.get(name)
        if choices and value is not None and not callable(value) and value not in choices:
            what = f"There is no {name} {value!r}."
            raise ConfigError(f"bad_{name}", what, one_of(value, choices))
        if name in _FORMED:
            _formed(name, value, _FORMED[name])


def _formed(name: str, value: Any, base: T) -> T | None:
    """Makes limits or search options of a mapping; what it leaves out is as in `base`."""
    if value is None:
        return None
    for each in type(base).__annotations__ if isinstance(value, type(base)) else ():
        number = getattr(value, each)
        if isinstance(number, int | float) and not 0 < number < math.inf:
            what = f"{name} cannot have {number:g} as {each}."
            raise ConfigError(f"bad_{name}", what, "Give a number above 0, or None for no bound.")
    if isinstance(value, type(base)):
        return value
    from pydantic import TypeAdapter, ValidationError  # slow to import, seldom needed

    known, given = type(base).__annotations__, value if isinstance(value, Mapping) else {value: 0}
    unknown = next((each for each in given if each not in known), None)
    wrong = f"takes no {unknown!r}"
    try:
        if unknown is None:
            held = {each: getattr(base, each) for each in known}
            return _formed(name, TypeAdapter(type(base)).validate_python({**held, **given}), base)
    except ValidationError as error:
        first = error.errors()[0]
        wrong = f"cannot have {first['input']!r} as {first['loc'][0]}: {first['msg']}"
    near = "" if unknown is None else did_you_mean(unknown, known)
    remedy = f"{near}Give a {type(base).__name__}, or a mapping with some of: {', '.join(known)}."
    raise ConfigError(f"bad_{name}", f"{name} {wrong}.", remedy)


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


# What an option takes, and how that is known; of those in _LISTS each one, or a single one.
_TAKES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "question": ("a text", _is(str)),
    "settings": ("a Settings; a model is model=...", _is(Settings)),
    "model": ("provider:model or a Provider", lambda m: isinstance(m, str) or _provides(m)),
    "tools": ("functions or Tools", lambda each: isinstance(each, Tool) or callable(each)),
    "engines": ("Engines or names of some", lambda e: isinstance(e, str) or hasattr(e, "search")),
    "providers": ("Providers", lambda each: _provides(each)),
    "bring": (
        "sources of tools, such as McpServers(settings)",
        lambda each: hasattr(each, "tools"),
    ),
    "mcp": ("servers by their names", _is(Mapping)),
    "hooks": ("an object of a class of Hooks", _is(Hooks)),
    "search_backend": ("a WSGI application", callable),
    "store": ("a path, an address or an EventLog", _is(str, Path, EventLog)),
    "files": ("paths or NewFiles", _is(str, Path, NewFile)),
    "options": ("a mapping", _is(Mapping)),
    "workspace": ("a path", _is(str, Path)),
    **dict.fromkeys(("system", "session", "agent", "check_with"), ("a text", _is(str))),
}
_LISTS = ("tools", "engines", "providers", "bring", "files")


def _provides(value: Any) -> bool:
    return hasattr(value, "stream") and not isinstance(value, type)


def _listed(value: Any) -> tuple[Any, ...]:
    """Returns the parts of a list of any kind; one that stands alone is a list of one."""
    if value is None:
        return ()
    alone = isinstance(value, str | Path) or not isinstance(value, Iterable)
    return (value,) if alone else tuple(value)


def made(face: type, settings: Settings | None, options: AgentOptions) -> Asker:
    """Makes the agent of both faces. Raises TypeError, ConfigError and StoreError."""
    given: dict[str, Any] = dict(options)
    lists = {name: _listed(given.pop(name, None)) for name in ("tools", "engines", "providers")}
    _checked(face.__name__, {**given, **lists, "settings": settings}, _OF_AGENT)
    settings = settings or Settings.load()
    model, bring, mcp = (given.pop(name, None) for name in ("model", "bring", "mcp"))
    servers = [McpServers(settings, given=mcp)] if mcp else []
    parts = {name: given.pop(name, None) for name in ("hooks", "search_backend")}
    providers = list(lists["providers"])
    if model is not None and not isinstance(model, str):
        providers.append(model)
        model = getattr(model, "model", f"{model.name}:default")
    parts["search_backend"] = parts["search_backend"] or search_app(settings, lists["engines"])
    tools = [each if isinstance(each, Tool) else tool(each) for each in lists["tools"]]
    bring = (Workspace.of(settings),) if bring is None else _listed(bring)
    store = given.pop("store", None) or IN_MEMORY
    parts["store"] = os.path.expanduser(store) if isinstance(store, str | Path) else store
    core = BareAgent(settings, tools=tools, providers=providers, bring=(*bring, *servers), **parts)
    for each in servers:
        each.window = core.runner.window
    usual: Any = {**given, **({"model": model} if model else {})}
    return Asker(face, core, usual)


class _Typed:
    """An approval handler that gets the event as a value."""

    def __init__(self, handler: Callable[[ApprovalRequested], Any]) -> None:
        self._handler = handler
        self.__wrapped__ = handler  # by which `called` sees whether it is an `async def`

    def __call__(self, data: Mapping[str, Any]) -> Approval | Awaitable[Approval]:
        event: Any = typed(Event.of(0, "approval_requested", data, 0.0))
        said: Approval | Awaitable[Approval] = self._handler(event)
        return said


def _home(folder: str | Path | None) -> str | None:
    return os.path.expanduser(folder) if folder else None


_OF_SESSION = ("model", "mode", "search", "workspace", "agent", "temporary")


class Asker:
    """What asks for an agent, or for one of its chats, which has a `session`.

    `face` is the class that its program works with.
    """

    def __init__(
        self, face: type, core: BareAgent, usual: Turn, session: str | None = None
    ) -> None:
        self._face, self._usual = face.__name__, usual
        self.core, self.session = core, session

    def turn(
        self, method: str, question: str, turn: AskOptions, schema: Any
    ) -> tuple[str | None, Turn, Read[Any]]:
        """Returns the session of a question, its options over the usual ones, and what reads the
        answer's value. An approval handler gets typed events.
        """
        _checked(f"{self._face}.{method}", {**turn, "question": question}, _OF_TURN)
        form, read = form_of(schema)
        merged: Any = {**self._usual, **turn, "schema": form}
        merged["files"] = _listed(merged.get("files"))
        session = merged.pop("session", None)
        settings = self.core.settings
        bases = {"limits": settings.limits, "search_options": search_options(settings.env)}
        for name in bases.keys() & merged:
            merged[name] = _formed(name, merged[name], bases[name])
        if callable(handler := merged.get("approve")):
            merged["approve"] = _Typed(handler)
        return self.session or session, merged, read

    async def opened(self, face: type, session: str | None, options: NewChat) -> Asker:
        """Opens a chat. Options of its turns that stand in the session are not repeated."""
        _checked(f"{self._face}.chat", options, _OF_CHAT)
        given: dict[str, Any] = {**self._usual, **options}
        wanted = {name: given.pop(name, None) for name in _OF_SESSION}
        wanted["workspace"] = _home(wanted["workspace"])
        core, usual = self.core, cast(Turn, given)
        if session:
            known = (await core.log.aside(core.log.session, session)).id
            given |= {
                name: options[name] for name in ("model", "mode", "search") if name in options
            }
            return Asker(face, core, usual, known)
        if not wanted["model"] and not wanted["agent"]:
            wanted["model"] = (await core.runner.usual.choose()).model
        made = await core.log.aside(open_session, core.log, core.settings, wanted)
        return Asker(face, core, usual, made.id)
