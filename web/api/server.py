"""Handlers for the server itself and who may ask it: health, numbers, token, use, programs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from xml.sax.saxutils import escape

from searchloop.agent import __version__
from searchloop.agent.errors import ConfigError, Conflict
from searchloop.agent.observe.metrics import CONTENT_TYPE
from searchloop.compose import Services
from searchloop.protocols.programs import Program, Programs
from searchloop.web.api.calls import Call, Handlers, LoopBridge, Reply
from searchloop.web.api.openapi import document, route
from searchloop.web.gate.access import Access

_EVERY = 10**9  # more sessions than there are
_MERMAID = "https://cdn.jsdelivr.net/npm/mermaid@12.3.0/dist/mermaid.min.js"

_OPENSEARCH = """<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>searchloop</ShortName>
<Description>Opens searchloop with the question in its box; you send it.</Description>
<InputEncoding>UTF-8</InputEncoding>
<Image width="192" height="192" type="image/png">{base}/static/app/icon-192.png</Image>
<Url type="text/html" method="get" template="{base}/?q={{searchTerms}}"/>
</OpenSearchDescription>
"""


class ServerApi(Handlers):
    """Health, numbers and description; who is asking, the token, what was used; all sessions."""

    def __init__(self, services: Services, on_loop: LoopBridge, access: Access) -> None:
        super().__init__(services, on_loop)
        self._access = access

    @route("get", "/api/health", "Health")
    def health(self, call: Call) -> Reply:
        """Says that the server is up. Anybody on this machine may ask, so it says nothing else."""
        return Reply({"name": "searchloop", "status": "ok", "version": __version__})

    @route("get", "/opensearch.xml", "application/opensearchdescription+xml")
    def opensearch(self, call: Call) -> Reply:
        """Describes the question box as a search engine of the browser.

        https://github.com/dewitt/opensearch, 1.1 draft 6
        """
        base = self._access.public or f"http://{call.host}"
        kind = "application/opensearchdescription+xml"
        return Reply(_OPENSEARCH.format(base=escape(base)), kind=kind)

    @route("get", "/api/mermaid", "text/javascript")
    def mermaid(self, call: Call) -> Reply:
        """Returns the library that draws Mermaid's diagrams, where somebody has put it."""
        path = self._services.settings.home / "mermaid.min.js"
        try:
            return Reply(path.read_bytes(), kind="text/javascript")
        except OSError as error:
            command = f"curl -Lo '{path}' {_MERMAID}"
            what = f"Diagrams stay code until Mermaid's library is there. To get it: `{command}`"
            raise ConfigError("no_mermaid", what, "Then press again.") from error

    @route("get", "/metrics", "text/plain", whose="admin")
    def metrics(self, call: Call) -> Reply:
        """Counters since the start, as Prometheus reads them."""
        return Reply(self._services.metrics.text(), kind=CONTENT_TYPE)

    @route("get", "/api/openapi.json", "application/json")
    def openapi(self, call: Call) -> Reply:
        """Describes the API."""
        return Reply(document())

    @route("get", "/api/me", "Me")
    def me(self, call: Call) -> Reply:
        """Says who is asking, and how the server lets people in."""
        person, access = call.person, self._access
        token = "kept" if access.kept else "set"
        shown = {"name": person.name, "admin": person.admin, "token": token}
        return Reply({**shown, "people": access.people is not None})

    @route("post", "/api/sign-out", None, "Nothing")
    def sign_out(self, call: Call) -> Reply:
        """Removes this browser's cookie. A proxy signs its own people out."""
        return Reply(status=204, cookie=self._access.set_cookie(call.host.encode(), end=True))

    @route("post", "/api/new-token", None, "Nothing", whose="operator")
    def new_token(self, call: Call) -> Reply:
        """Replaces the token: every other browser and program has to sign in again."""
        if self._access.kept is None:
            what = "The token is set where the server is started, by SEARCHLOOP_TOKEN."
            raise ConfigError("fixed_token", what, "Change it there, then start searchloop again.")
        self._access.kept.renew()
        return Reply(status=204, cookie=self._access.set_cookie(call.host.encode()))

    @route("get", "/api/usage", "Uses", whose="admin")
    def usage(self, call: Call) -> Reply:
        """Lists what each person used on each day: counts, no content. Newest first."""
        return Reply({"uses": self._services.log.used()})

    @route("delete", "/api/sessions", "Deleted")
    def delete_all(self, call: Call) -> Reply:
        """Stops every run, then deletes all chats of the person, and all pages that were kept.

        Projects, folders of the library, keys, settings, agents and rules stay.
        """
        services, count = self._services, 0
        for session in services.log.sessions(limit=_EVERY):
            with suppress(Conflict):  # deleted meanwhile
                self._delete_session(session.id)
            count += 1
        services.forget_pages()
        return Reply({"deleted": count})


class ProgramsApi(Handlers):
    """/api/programs: those of the person who asks, with keys of their own."""

    def __init__(self, services: Services, on_loop: LoopBridge, access: Access) -> None:
        super().__init__(services, on_loop)
        self._programs = access.programs or Programs(services.log)

    @route("get", "/api/programs", "Programs")
    def list(self, call: Call) -> Reply:
        """Lists programs with what each used in its period; keys are not kept."""
        shown = [self._shown(each) for each in self._programs.of(call.person.name)]
        return Reply({"programs": shown})

    @route("post", "/api/programs", "MadeProgram", "NewProgram", 201)
    def add(self, call: Call) -> Reply:
        """Adds a program. Its key is in this answer and in no other."""
        rights = _rights(call.body)
        made, key = self._programs.add(call.person.name, rights.pop("name").strip(), **rights)
        return Reply({**self._shown(made), "key": key}, 201)

    @route("patch", "/api/programs/{program}", "Programs", "ProgramChanges")
    def change(self, call: Call) -> Reply:
        """Changes what a program may do, from its next request on."""
        self._programs.change(call.person.name, call.path["program"], **_rights(call.body))
        return self.list(call)

    @route("delete", "/api/programs/{program}", None)
    def remove(self, call: Call) -> Reply:
        """Takes a program's key back."""
        self._programs.remove(call.person.name, call.path["program"])
        return Reply(status=204)

    def _shown(self, program: Program) -> dict[str, Any]:
        rows = self._services.log.used(program=program.name)
        shown = {k: v for k, v in program._asdict().items() if k not in ("owner", "digest")}
        last = rows[0]["day"] if rows else None
        return {**shown, "used": program.spent(rows), "last_used": last}


def _rights(body: Mapping[str, Any]) -> dict[str, Any]:
    models = {"models": tuple(body["models"])} if "models" in body else {}
    return {**body, **models}
