"""The JSON API: one method a route, without a web framework.

A handler gets path parameters, the query and the checked body, and gives a Reply. It runs on a
thread; what belongs to the runner is handed over to the server's loop and waited for. Whatever is
wrong with a request is an AgentError, and `status_of` says which HTTP status that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from agent import __version__
from agent.backend import Wsgi
from agent.errors import AgentError, ConfigError, Conflict, ProviderError, StoreError, ToolError
from agent.keys import Address
from agent.log import EventLog
from agent.mcp import McpServers
from agent.metrics import CONTENT_TYPE, Metrics
from agent.prices import PriceTable, load_prices, packaged, search_price
from agent.runner import Runner
from agent.search_path import SEARCHES
from agent.settings import Environment, Setting, Settings
from web.agents_api import AgentsApi
from web.calls import Call, Handler, OnLoop, Reply, whole
from web.export import EXPORTS, answer
from web.keys_api import KeysApi
from web.library_api import LibraryApi
from web.local_models import LocalModels
from web.mcp_api import McpApi
from web.openapi import document
from web.policy_api import PolicyApi
from web.preferences import PreferencesApi
from web.schemas import FORMATS, MODES
from web.sessions import SessionsApi
from web.turns import TurnsApi

_STATUS: Mapping[str, int] = {
    "no_session": 404,
    "no_turn": 404,
    "no_plan": 404,
    "no_agent": 404,
    "busy": 409,
    "nothing_to_approve": 409,
    "agent_exists": 409,
    "no_pull": 404,
    "no_server": 404,
    "no_tool": 404,
    "question_too_long": 413,
}
_KINDS: tuple[tuple[type[AgentError], int], ...] = (
    (ConfigError, 400),
    (Conflict, 409),
    (ToolError, 400),
    (ProviderError, 502),
    (StoreError, 503),
)


class House(Protocol):
    """The parts that the web side is given."""

    @property
    def settings(self) -> Settings:
        """What was set."""

    @property
    def log(self) -> EventLog:
        """Sessions and events."""

    @property
    def runner(self) -> Runner:
        """Runs; belongs to the server's loop."""

    @property
    def search_app(self) -> Wsgi:
        """The search backend."""

    @property
    def mcp(self) -> McpServers:
        """MCP servers; they belong to the same loop."""

    @property
    def metrics(self) -> Metrics:
        """What is counted."""

    def close(self) -> None:
        """Closes the log; nothing more will be asked."""

    def sent_to(self, name: str) -> tuple[Address, ...]:
        """Where the key of this setting goes."""

    def declared(self) -> Iterable[Setting]:
        """Every setting there is."""

    def check(self, env: Environment) -> Settings:
        """What these settings come to, or ConfigError."""

    def use(self, settings: Settings) -> None:
        """Puts settings in force."""

    def look_again(self) -> None:
        """Puts in force what another process has saved meanwhile."""

    def library(self) -> AbstractContextManager[Any]:
        """The library's index, while it is used."""


class Api:
    """The handlers. `on_loop` waits for a coroutine of the runner."""

    def __init__(self, house: House, on_loop: OnLoop) -> None:
        self._log = house.log
        self._runner = house.runner
        self._house = house
        self._preferences = PreferencesApi(house, on_loop)
        self._library = LibraryApi(house)
        self._keys = KeysApi(house, on_loop)
        self._policy = PolicyApi(house.settings.home)
        self._on_loop = on_loop
        self.local_models = LocalModels(house.runner, on_loop)

    def handlers(self) -> dict[tuple[str, str], Handler]:
        """(method, path as in `openapi.ROUTES`) -> handler."""
        session = "/api/sessions/{id}"
        return {
            ("get", "/api/health"): self.health,
            ("get", "/metrics"): self.metrics,
            ("get", "/api/openapi.json"): lambda call: Reply(document()),
            ("get", "/api/models"): self.models,
            **self.local_models.handlers(),
            **SessionsApi(self._house, self._on_loop).handlers(),
            **McpApi(self._house, self._on_loop).handlers(),
            **AgentsApi(self._house.settings.home).handlers(),
            ("post", f"{session}/messages"): self.ask,
            ("post", f"{session}/cancel"): self.cancel,
            ("post", session + "/approvals/{call_id}"): self.approve,
            ("get", f"{session}/export"): self.export,
            ("get", "/api/settings"): self._preferences.read,
            ("patch", "/api/settings"): self._preferences.change,
            ("get", "/api/policy"): self._policy.read,
            ("put", "/api/policy"): self._policy.write,
            ("get", "/api/keys"): self._keys.show,
            ("put", "/api/keys/{name}"): self._keys.save,
            ("delete", "/api/keys/{name}"): self._keys.forget,
            ("get", "/api/library"): self._library.list,
            ("post", "/api/library"): self._library.add,
            ("delete", "/api/library"): self._library.remove,
            ("patch", session + "/turns/{turn}"): TurnsApi(self._log, self._on_loop).change,
        }

    def health(self, call: Call) -> Reply:
        """Open to everybody on this machine, so it tells nothing but that we are here."""
        return Reply({"name": "searchloop", "status": "ok", "version": __version__})

    def metrics(self, call: Call) -> Reply:
        """What was counted since the start."""
        return Reply(self._house.metrics.text(), kind=CONTENT_TYPE)

    def models(self, call: Call) -> Reply:
        """What can be chosen."""
        models, servers = self.local_models.look()
        settings = self._house.settings
        tables = _prices(settings.home)
        rows = [{**asdict(m), "search_usd": search_price(m.id, tables)} for m in models]
        listed = {"models": rows, "servers": list(map(asdict, servers))}
        usual = {"default": settings.model, "search": settings.search}
        choices = {"modes": list(MODES), "searches": list(SEARCHES)}
        return Reply({**listed, **choices, **usual, "held_back": self._policy.held_back()})

    def ask(self, call: Call) -> Reply:
        """Stores the question and starts the answer, which the event stream shows."""
        body = dict(call.body)
        session = call.session
        seq = self._log.last_seq(session) or 0
        run_id = self._on_loop(self._runner.start(session, body.pop("text"), **body))
        return Reply({"run_id": run_id, "session_id": session, "seq": seq}, 202)

    def cancel(self, call: Call) -> Reply:
        """Stops the answer, if there is one under way."""
        self._log.session(call.session)
        return Reply({"cancelled": self._on_loop(self._runner.cancel(call.session))})

    def approve(self, call: Call) -> Reply:
        """The user's decision on a call that waits, wherever its run lives."""
        self._log.session(call.session)
        body = call.body
        data = self._runner.approvals.answer(
            call.session, call.path["call_id"], body["decision"], body.get("arguments")
        )
        return Reply({"call_id": data["call_id"], "decision": data["decision"]})

    def export(self, call: Call) -> Reply:
        """The session as a file; with `turn` one answer of it, as Markdown."""
        wanted = call.query.get("format", "md")
        if wanted not in EXPORTS:
            choices = ", ".join(FORMATS)
            raise ConfigError(
                "bad_format", f"There is no format {wanted[:40]!r}.", f"Choose one of {choices}."
            )
        session = self._log.session(call.session)
        export = EXPORTS[wanted]
        events, turn = self._log.read(session.id), call.query.get("turn")
        if turn and wanted == "md":
            text = answer(events, whole(turn) or 0)
        else:
            text = export.write(session, events)
        return Reply(text, file=f"searchloop-{session.id[:8]}.{export.ending}", kind=export.kind)


def status_of(error: AgentError) -> int:
    """The HTTP status that says the same as this error."""
    known = next((status for kind, status in _KINDS if isinstance(error, kind)), 500)
    return _STATUS.get(error.code, known)


def _prices(home: Path) -> tuple[PriceTable, ...]:
    """The prices to tell; that the user's table cannot be read is said by the next answer."""
    try:
        return load_prices(home)
    except ConfigError:
        return (packaged(),)
