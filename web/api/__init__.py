"""The JSON API: one method a route, without a web framework.

A handler takes a `Call` and returns a `Reply`, or raises an AgentError, whose HTTP status
`calls.status_of` tells. It runs on a thread and hands work of the runner to the server's loop.

Others may import: calls, openapi.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from searchloop.agent.errors import ConfigError
from searchloop.agent.providers import abilities_of
from searchloop.agent.run.prices import PriceTable, load_prices, packaged, search_price
from searchloop.agent.run.question.files import NewFile, checked_files
from searchloop.agent.types import SEARCHES
from searchloop.agent.types.attachments import PDF, Attachment
from searchloop.analysis.told import one_of
from searchloop.compose import Services
from searchloop.compose.check import Source, check_text, read_page, said
from searchloop.render.export import EXPORTS, answer
from searchloop.render.markdown import render
from searchloop.web.api.calls import (
    Call,
    Handler,
    Handlers,
    LoopBridge,
    Reply,
    checked,
    parse_number,
)
from searchloop.web.api.imports import ImportsApi
from searchloop.web.api.mcp import McpApi
from searchloop.web.api.models import LocalModels
from searchloop.web.api.openapi import ANY_FILE, Route, route, routes_of
from searchloop.web.api.projects import ProjectsApi
from searchloop.web.api.providers import ProvidersApi, has_key
from searchloop.web.api.schemas import FORMATS, MODES
from searchloop.web.api.server import ProgramsApi, ServerApi
from searchloop.web.api.sessions import SessionsApi
from searchloop.web.api.settings import (
    AgentsApi,
    LibraryApi,
    PolicyApi,
    SettingsApi,
    TemplatesApi,
    why_held_back,
)
from searchloop.web.gate.access import Access

_PARTS = (
    *(SessionsApi, McpApi, AgentsApi, TemplatesApi, SettingsApi),
    *(PolicyApi, ProvidersApi, LibraryApi, ProjectsApi),
)


class Api(Handlers):
    """All handlers of the API."""

    def __init__(self, services: Services, on_loop: LoopBridge, access: Access) -> None:
        super().__init__(services, on_loop)
        self._access = access
        self._runner = services.runner
        self.local_models = LocalModels(services, on_loop)
        self.imports = ImportsApi(services, on_loop)

    def handlers(self) -> list[tuple[Route, Handler]]:
        """Returns every handler of the API with its route."""
        given = self._services, self._on_loop, self._access
        made = [part(self._services, self._on_loop) for part in _PARTS]
        own = (self, self.local_models, self.imports, ServerApi(*given), ProgramsApi(*given))
        return [found for part in (*own, *made) for found in routes_of(part)]

    @route("get", "/api/models", "Models")
    def models(self, call: Call) -> Reply:
        """Lists models, servers of one's own, and the other choices of a new session."""
        models, servers = self.local_models.look()
        settings = self._services.settings
        tables = _prices(settings.home)
        taken = self._on_loop.do(lambda: [self._options(m.id) for m in models])
        rows = [
            {**asdict(m), "search_usd": search_price(m.id, tables), "options": options}
            | {"keyed": has_key(m.id, settings.env)}
            for m, options in zip(models, taken, strict=True)
        ]
        listed = {"models": rows, "servers": [server._asdict() for server in servers]}
        choice = self._on_loop(self._runner.usual.choose())
        why = {"by": choice.by, "why": choice.why}
        usual = {"default": choice.model, "default_why": why, "search": settings.search}
        choices = {"modes": list(MODES), "searches": list(SEARCHES)}
        return Reply({**listed, **choices, **usual, "held_back": why_held_back(settings.home)})

    def _options(self, model: str) -> list[str]:
        """Returns the names of the options that a model takes."""
        with suppress(ConfigError):
            return list(abilities_of(self._runner.provider(model)[0]).options)
        return []  # it is not set up

    @route("post", "/api/check", "Verdict", "Check")
    def check(self, call: Call) -> Reply:
        """Compares a claim with a text or a page, without a model."""
        claim, text, url = said(call.body["claim"]), call.body.get("text"), call.body.get("url")
        if (text is None) == (not url):
            raise ConfigError("no_source", "There must be one source.", "Send text or url.")
        read = self._on_loop(read_page(url, self._services.backend)) if url else Source(text or "")
        return Reply(asdict(check_text(claim, read)))

    @route("post", "/api/sessions/{id}/messages", "Started", "NewMessage", 202)
    def ask(self, call: Call) -> Reply:
        """Stores the question and starts the run. The event stream shows the answer."""
        body = dict(call.body)
        session = call.session
        seq = self._log.last_seq(session) or 0
        given = body.pop("attachments", ())
        files = [NewFile.decode(checked(each, "NewAttachment", "attachments")) for each in given]
        more = {**body, "files": files} if files else body
        starting = self._runner.start(session, more.pop("text"), **more)
        return Reply({"run_id": self._on_loop(starting), "session_id": session, "seq": seq}, 202)

    @route("post", "/api/attachments", "Attachment", "NewAttachment")
    def look_at(self, call: Call) -> Reply:
        """Checks a file before it is sent with a question; it is kept nowhere."""
        files = [NewFile.decode(call.body)]
        [found] = self._on_loop(checked_files(files, self._services.backend))
        return Reply(found.attachment.as_dict())

    @route("get", "/api/sessions/{id}/attachments/{digest}", ANY_FILE)
    def attachment(self, call: Call) -> Reply:
        """Returns a file of a session's questions."""
        found = self._attached(call)
        data = self._log.attachments.data(call.session, found.digest) or b""
        if found.is_image or found.media_type == PDF:  # shown without running anything of it
            return Reply(data, kind=found.media_type)
        return Reply(data, file=found.name, kind="application/octet-stream")

    @route("get", "/api/sessions/{id}/attachments/{digest}/pages/{page}", "Page")
    def attached_page(self, call: Call) -> Reply:
        """Returns the text of one page of a document, as the model read it."""
        found, number = self._attached(call), parse_number(call.path["page"]) or 1
        texts = self._log.attachments.texts(call.session, found.digest)[number - 1 : number]
        text, length = "".join(texts), sum(map(len, texts))
        known = {"url": found.url(number), "title": found.title(number), "content": text}
        sizes = {"content_length": length, "original_length": length, "next_offset": None}
        return Reply({**known, **sizes, "blocks": render(text), "status": "ok"})

    def _attached(self, call: Call) -> Attachment:
        """Finds a file by its digest, or the beginning of it, as sources have it."""
        wanted = call.path["digest"]
        for event in self._log.read(call.session):
            for each in event.data.get("attachments", ()):
                if len(wanted) >= 16 and each["digest"].startswith(wanted):
                    return Attachment(**each)
        raise ConfigError("no_attachment", "This chat holds no such file.", "Attach it again.")

    @route("post", "/api/sessions/{id}/cancel", "Cancelled", "Nothing")
    def cancel(self, call: Call) -> Reply:
        """Stops the run, if there is one under way."""
        self._log.session(call.session)
        return Reply({"cancelled": self._on_loop(self._runner.cancel(call.session))})

    @route("post", "/api/sessions/{id}/approvals/{call_id}", "Decided", "Decision")
    def approve(self, call: Call) -> Reply:
        """Stores the user's decision on a waiting call, whichever process runs it."""
        self._log.session(call.session)
        body = call.body
        told = (call.path["call_id"], body["decision"], body.get("arguments"))
        data = self._runner.approvals.answer(call.session, *told)
        return Reply({"call_id": data["call_id"], "decision": data["decision"]})

    @route("get", "/api/sessions/{id}/export", ANY_FILE, query=("format", "turn", "lang"))
    def export(self, call: Call) -> Reply:
        """Exports the session as a file; with `turn` one answer of it, as Markdown."""
        wanted = call.query.get("format", "md")
        if wanted not in EXPORTS:
            what = f"There is no format {wanted[:40]!r}."
            raise ConfigError("bad_format", what, one_of(wanted, FORMATS))
        session = self._log.session(call.session)
        export = EXPORTS[wanted]
        events, turn = self._log.read(session.id), call.query.get("turn")
        if turn and wanted == "md":
            text = answer(events, parse_number(turn) or 0, call.language)
        else:
            text = export.write(session, events, call.language)
        return Reply(text, file=f"searchloop-{session.id[:8]}.{export.ending}", kind=export.kind)


def _prices(home: Path) -> tuple[PriceTable, ...]:
    """Returns the prices to show. The next answer reports a table of the user's that is broken."""
    try:
        return load_prices(home)
    except ConfigError:
        return (packaged(),)
