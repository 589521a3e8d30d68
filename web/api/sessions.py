"""Handlers for sessions and their turns: create, change, delete, undo files, run plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from searchloop.agent.errors import AgentError, ConfigError, Conflict, busy
from searchloop.agent.log.session import Session, Turns, no_turn
from searchloop.agent.run.question import change_session, open_session
from searchloop.agent.run.summary import edit_summary
from searchloop.agent.run.undo import undo_files
from searchloop.agent.text import one_line
from searchloop.agent.tools.present_plan import find_plan, run_text
from searchloop.web.api.calls import Call, Handlers, Reply, parse_number
from searchloop.web.api.openapi import route

_TITLE = 200  # characters
_DAY = 86_400  # seconds
_LISTED, _MOST_LISTED = 200, 100_000  # sessions
_MOST_FOUND = 50
_BRIEFLY = ("id", "name", "chats")


class SessionsApi(Handlers):
    """/api/sessions, apart from questions and answers."""

    @route("get", "/api/sessions", "Sessions", query=("q", "limit", "project", "archived"))
    def list(self, call: Call) -> Reply:
        """Lists sessions, newest first: up to `limit`, plus all pinned ones, no temporary ones.

        With `q` those whose turns hold these words, the best first, and the places (`found`), also
        archived ones; else only with `archived` those, and with `project` all of that one.
        """
        limit = parse_number(call.query.get("limit", str(_LISTED)))
        if not limit or limit > _MOST_LISTED:
            words = f"A list has from 1 to {_MOST_LISTED:,} sessions."
            raise ConfigError("bad_limit", words, "Give another limit, or search with q.")
        # A page that was closed in order has deleted its own.
        for old in self._log.left_over(_DAY):
            with suppress(AgentError):  # a read-only store, a backend that is down
                self._delete_session(old)
        if call.query.get("q"):
            return self._find(call.query["q"], min(limit, _MOST_FOUND))
        project = call.query.get("project")
        archived = None if project else call.query.get("archived") == "true"
        found = self._log.sessions(limit, project=project, archived=archived)
        listed = [session for session in found if not session.settings.get("temporary")]
        native = self._native({session.model for session in listed})
        told = {"sessions": [_shown(session, native) for session in listed]}
        projects = [{n: getattr(p, n) for n in _BRIEFLY} for p in self._log.projects.all()]
        return Reply({**told, "projects": projects, "archived": self._log.projects.archived()})

    def _find(self, words: str, limit: int) -> Reply:
        listed, places = list[Session](), self._log.find(words, limit)
        for session in places:
            with suppress(Conflict):  # deleted meanwhile
                listed.append(self._log.session(session))
        native = self._native({session.model for session in listed})
        told = [
            {**_shown(session, native), "found": [asdict(place) for place in places[session.id]]}
            for session in listed
        ]
        more = {"indexing": True} if self._log.chat_search.is_busy else {}
        return Reply({"sessions": told, **more})

    @route("get", "/api/sessions/{id}", "Session")
    def read(self, call: Call) -> Reply:
        """Returns one session."""
        return Reply(self._shown(self._log.session(call.session)))

    @route("post", "/api/sessions", "Session", "NewSession", 201)
    def create(self, call: Call) -> Reply:
        """Creates a session. Its agent or the settings decide what the body leaves out."""
        self._check_model(call.body)
        settings = self._services.settings
        if not call.body.get("model"):
            usual = self._on_loop(self._services.runner.usual.choose())
            settings = replace(settings, model=usual.model)
        made = open_session(self._log, settings, call.body)
        return Reply(self._shown(made), 201)

    @route("patch", "/api/sessions/{id}", "Session", "SessionChanges")
    def change(self, call: Call) -> Reply:
        """Changes those settings of a session that the body names."""
        changes = dict(call.body)
        self._check_model(changes)
        if "title" in changes:
            changes["title"] = _title(changes["title"])
        session = change_session(self._log, self._services.settings, call.session, changes)
        return Reply(self._shown(session))

    @route("patch", "/api/sessions", "Changed", "ChangesOfMany")
    def change_many(self, call: Call) -> Reply:
        """Archives or tags several sessions, brings them back, moves them to a project or out."""
        changes = {name: value for name, value in call.body.items() if name != "ids"}
        ids = dict.fromkeys(call.body["ids"])
        for session in ids:  # all of them or none
            self._log.session(session)
        for session in ids:
            change_session(self._log, self._services.settings, session, changes)
        return Reply({"changed": len(ids)})

    @route("delete", "/api/sessions/{id}", None)
    def delete(self, call: Call) -> Reply:
        """Stops a live run, then deletes everything of the session."""
        self._log.session(call.session)
        self._delete_session(call.session)
        return Reply(status=204)

    @route("post", "/api/sessions/{id}/undo", "Undone", "Nothing")
    def undo(self, call: Call) -> Reply:
        """Undoes the file changes of the last answer that made any."""
        return Reply({"files": undo_files(self._log, self._services.settings, call.session)})

    @route("post", "/api/sessions/{id}/plans/{plan}/run", "Started", "Nothing", 202)
    def run_plan(self, call: Call) -> Reply:
        """Runs a plan in agent mode, in the same session."""
        session = call.session
        self._log.session(session)
        plan = find_plan(self._log.read(session), call.path["plan"])
        seq = self._log.last_seq(session) or 0
        started = self._services.runner.start(session, run_text(plan), mode="agent", plan=plan)
        return Reply({"run_id": self._on_loop(started), "session_id": session, "seq": seq}, 202)

    @route("patch", "/api/sessions/{id}/turns/{turn}", "ShownTurns", "TurnChange")
    def change_turn(self, call: Call) -> Reply:
        """Shows, removes, restores or rates a turn, and returns the turns shown."""
        if len(call.body) != 1:
            what = "A turn is either shown, removed or rated."
            raise ConfigError("bad_request", what, "Send one of them.")
        kind, data = "branch_chosen", {"turn": parse_number(call.path["turn"]) or 0}
        if "removed" in call.body:
            kind = "turn_removed" if call.body["removed"] else "turn_restored"
        if "rating" in call.body:
            kind, data = "turn_rated", {**data, "rating": max(-1, min(1, call.body["rating"]))}
        # On the loop that starts runs, so that none begins in between.
        return Reply({"shown": self._on_loop.do(lambda: self._record(call.session, kind, data))})

    @route("post", "/api/sessions/{id}/check", "Checking", "WantedCheck", 202)
    def check(self, call: Call) -> Reply:
        """Reads cited pages that nobody has read, and judges the marks: a `check` event for each.

        `turn` is by default the last; `model` reads what words alone leave unclear.
        """
        wanted = call.body.get("turn"), call.body.get("model")
        begun = self._on_loop(self._services.runner.check(call.session, *wanted))
        if begun is None:
            words = "Every mark of this answer is checked, or it has none."
            raise ConfigError("nothing_to_check", words, "Choose another answer.")
        return Reply(begun, 202)

    @route("post", "/api/sessions/{id}/compact", "Nothing", "Nothing", 202)
    def compact(self, call: Call) -> Reply:
        """Starts to summarise the older turns for the model: a `summary` event."""
        self._on_loop(self._services.runner.compact(call.session))
        return Reply({}, 202)

    @route("patch", "/api/sessions/{id}/summary", "Summary", "SummaryText")
    def edit_summary(self, call: Call) -> Reply:
        """Replaces the text of the summary that the model gets."""
        text = call.body["text"]
        # On the loop, as in `change_turn`.
        return Reply(self._on_loop.do(lambda: edit_summary(self._log, call.session, text)))

    def _record(self, session: str, kind: str, data: dict[str, int]) -> Iterable[int]:
        if self._log.session(session).running:
            raise busy()
        events = self._log.read(session)
        if data["turn"] not in Turns.of(events):
            raise no_turn(data["turn"])
        return Turns.of([*events, *self._log.append(session, [(kind, data)])]).shown()

    def _shown(self, session: Session) -> dict[str, Any]:
        check = self._services.settings.env.get("SEARCHLOOP_CHECK") or "ask"
        return {**_shown(session, self._native([session.model])), "check": check}

    def _native(self, models: Iterable[str]) -> dict[str, bool | None]:
        """Returns for each model if it has a search of its own; None if no provider knows it."""

        def look() -> dict[str, bool | None]:
            found: dict[str, bool | None] = {}
            for model in models:
                try:
                    provider, name = self._services.runner.provider(model)
                    found[model] = provider.capabilities(name).native_search
                except AgentError:
                    found[model] = None
            return found

        return self._on_loop.do(look)

    def _check_model(self, body: Mapping[str, Any]) -> None:
        """Raises an AgentError for a model that no provider has."""
        if body.get("model") is not None:
            self._on_loop.do(lambda: self._services.runner.provider(body["model"]))


def _shown(session: Session, native: Mapping[str, bool | None]) -> dict[str, Any]:
    """Returns a session as JSON, with what the search switch needs to know of its model."""
    return {**session.as_dict(), "native_search": native[session.model]}


def _title(text: str) -> str:
    title = one_line(text, _TITLE)
    if not title:
        raise ConfigError("empty_title", "The title is empty.", "Write a few words.")
    return title
