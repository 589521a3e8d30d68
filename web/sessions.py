"""Sessions made, changed and removed, what an answer did to files undone, and plans carried out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from agent.afterwards import make_plan, undo_files
from agent.errors import AgentError, ConfigError, StoreError
from agent.log import EventLog
from agent.opening import change_session, open_session
from agent.plans import find_plan, run_text
from agent.runner import Runner
from agent.session import Session
from agent.settings import Settings
from agent.workspace import Workspace
from web.calls import Call, Handler, OnLoop, Reply, whole

_TITLE = 200  # characters
_JOINERS = "\u200c\u200d"  # invisible, but words and emoji are made with them
_DAY = 86_400  # seconds
_LISTED, _MOST_LISTED = 200, 100_000  # sessions


class House(Protocol):
    """What sessions need of the house."""

    @property
    def settings(self) -> Settings:
        """What was set."""

    @property
    def log(self) -> EventLog:
        """Sessions and events."""

    @property
    def runner(self) -> Runner:
        """Runs; belongs to the server's loop."""


class SessionsApi:
    """The handlers. `on_loop` waits for a coroutine of the runner."""

    def __init__(self, house: House, on_loop: OnLoop) -> None:
        self._house = house
        self._log = house.log
        self._on_loop = on_loop

    def handlers(self) -> dict[tuple[str, str], Handler]:
        """(method, path as in `openapi.ROUTES`) -> handler."""
        session = "/api/sessions/{id}"
        return {
            ("get", "/api/sessions"): self.list,
            ("post", "/api/sessions"): self.create,
            ("get", session): lambda call: Reply(self._told(self._log.session(call.session))),
            ("patch", session): self.change,
            ("delete", session): self.delete,
            ("post", f"{session}/undo"): self.undo,
            ("post", f"{session}/plans"): self.make_plan,
            ("post", session + "/plans/{plan}/run"): self.run_plan,
        }

    def list(self, call: Call) -> Reply:
        """Newest first, up to `limit` and pinned ones however old, but for temporary ones."""
        limit = whole(call.query.get("limit", str(_LISTED)))
        if not limit or limit > _MOST_LISTED:
            words = f"A list has from 1 to {_MOST_LISTED:,} sessions."
            raise ConfigError("bad_limit", words, "Give another limit, or search with q.")
        found = self._log.sessions(call.query.get("q") or None, limit)
        passing = [session for session in found if session.settings.get("temporary")]
        for session in passing:  # a page that was closed in peace has forgotten its own
            if session.updated < time.time() - _DAY and not session.running:
                with suppress(StoreError):  # a store that can only be read
                    self._forget(session.id)
        listed = [session for session in found if session not in passing]
        native = self._on_loop(self._native({session.model for session in listed}))
        return Reply({"sessions": [_told(session, native) for session in listed]})

    def create(self, call: Call) -> Reply:
        """A new session; what is not named is as its agent or the settings say."""
        self._check_model(call.body)
        made = open_session(self._log, self._house.settings, call.body)
        return Reply(self._told(made), 201)

    def change(self, call: Call) -> Reply:
        """Title, model, mode, search, workspace, agent, and whether it is pinned."""
        changes = dict(call.body)
        self._check_model(changes)
        if "title" in changes:
            changes["title"] = _title(changes["title"])
        session = change_session(self._log, self._house.settings, call.session, changes)
        return Reply(self._told(session))

    def delete(self, call: Call) -> Reply:
        """Stops what runs, then forgets everything."""
        self._log.session(call.session)
        self._on_loop(self._house.runner.cancel(call.session))
        self._forget(call.session)
        return Reply(status=204)

    def _forget(self, session: str) -> None:
        self._log.delete_session(session)
        Workspace.of(self._house.settings).forget(session)

    def undo(self, call: Call) -> Reply:
        """Takes back what the last answer that changed files did to them."""
        return Reply({"files": undo_files(self._log, self._house.settings, call.session)})

    def make_plan(self, call: Call) -> Reply:
        """Makes a plan of the list in the last answer, because the user asks for that."""
        return Reply(make_plan(self._log, call.session), 201)

    def run_plan(self, call: Call) -> Reply:
        """Hands a plan to agent mode, in the same session."""
        session = call.session
        self._log.session(session)
        plan = find_plan(self._log.read(session), call.path["plan"])
        seq = self._log.last_seq(session) or 0
        started = self._house.runner.start(session, run_text(plan), mode="agent", plan=plan)
        return Reply({"run_id": self._on_loop(started), "session_id": session, "seq": seq}, 202)

    def _told(self, session: Session) -> dict[str, Any]:
        return _told(session, self._on_loop(self._native([session.model])))

    async def _native(self, models: Iterable[str]) -> dict[str, bool | None]:
        """Whether each model has a search of its own, also one that is in no list of models."""
        found: dict[str, bool | None] = {}
        for model in models:
            try:
                provider, name = self._house.runner.provider(model)
                found[model] = provider.capabilities(name).native_search
            except AgentError:  # nobody answers to that name any more
                found[model] = None
        return found

    def _check_model(self, body: Mapping[str, Any]) -> None:
        if body.get("model") is not None:
            self._on_loop(self._known(body["model"]))

    async def _known(self, model: str) -> None:
        self._house.runner.provider(model)


def _told(session: Session, native: Mapping[str, bool | None]) -> dict[str, Any]:
    """A session as it is told, with what the switch has to know of its model."""
    return {**session.as_dict(), "native_search": native[session.model]}


def _title(text: str) -> str:
    plain = "".join(ch if ch.isprintable() or ch in _JOINERS else " " for ch in text)
    title = " ".join(plain.split())[:_TITLE]
    if not title:
        raise ConfigError("empty_title", "The title is empty.", "Write a few words.")
    return title
