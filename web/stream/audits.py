"""Answers POST /api/audit: as events while the pages come in, or as one JSON object.

An audit takes as long as its slowest page, so no thread waits for it. Who leaves stops it.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from mimetypes import guess_type
from typing import Any

from searchloop.agent.errors import AgentError, ConfigError, Conflict
from searchloop.agent.tools.backend import error_words
from searchloop.auditing.results import AuditedPage
from searchloop.auditing.run import Auditor
from searchloop.auditing.writers import as_html, as_text, citations, reason
from searchloop.compose import Services
from searchloop.compose.check import read_page
from searchloop.render.markdown import render
from searchloop.render.words import LANGUAGES, words_of
from searchloop.web.api.calls import checked_body, refuse_error
from searchloop.web.asgi import (
    EVENTS,
    Message,
    Receive,
    Scope,
    Send,
    answer,
    more,
    read_body,
    unless_left,
)

AUDIT_PATH = "/api/audit"
_MOST = 4  # audits of one person at a time
_BUSY = "Several audits are under way."


class Audits:
    """The audits of one person."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._running = 0

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["method"] != "POST":
            error = ConfigError("method_not_allowed", "A report is sent with POST.", "Use POST.")
            await refuse_error(error, scope, send, ((b"allow", b"POST"),))
            return
        body = await read_body(receive)
        if body is None:
            return
        self._running += 1
        try:
            if self._running > _MOST:
                raise Conflict("busy", _BUSY, "Wait for the end of one, or stop it.")
            asked = checked_body("NewAudit", body)
            auditor = await self._auditor(asked)
            accept = dict(scope["headers"]).get(b"accept", b"")
            work = self._told if b"application/json" in accept else self._streamed
            await unless_left(work(auditor, asked, send), receive)
        except AgentError as error:
            await refuse_error(error, scope, send)
        finally:
            self._running -= 1

    async def _auditor(self, asked: Mapping[str, Any]) -> Auditor:
        """Returns an auditor with the text of the report. Raises ConfigError."""
        given = {name: asked[name] for name in ("text", "url", "data") if asked.get(name)}
        if len(given) != 1:
            what = "There must be one report."
            raise ConfigError("no_source", what, "Send one of text, url and data.")
        backend, title, text = self._services.backend, "", asked.get("text") or ""
        kind = asked.get("media_type") or ""
        if url := asked.get("url"):
            read = await read_page(url, backend)
            text, title = read.text, read.title
        elif asked.get("data") or kind not in ("", "text/plain", "text/markdown"):
            data = asked.get("data") or base64.b64encode(text.encode()).decode()
            name = asked.get("name") or "report"
            kind = kind or guess_type(name)[0] or "application/octet-stream"
            file = {"name": name, "media_type": kind, "data": data}
            found = await backend.ask("/api/read-file", file)
            if why := error_words(found["error"]):
                raise ConfigError("no_source", f"The report cannot be read: {why}")
            text, title = "\n\n".join(found["pages"]), found["title"]
        if not text.strip():
            remedy = "Give a text with its sources."
            raise ConfigError("no_source", "The report is empty.", remedy)
        model = asked.get("model")
        reader = self._services.runner.reader(model, "") if model else None
        offline = bool(asked.get("offline"))
        return Auditor(text, backend, offline, title=title, reader=reader)

    async def _told(self, auditor: Auditor, asked: Mapping[str, Any], send: Send) -> None:
        await auditor.run()
        await answer(send, 200, await asyncio.to_thread(_result, auditor, asked))

    async def _streamed(self, auditor: Auditor, asked: Mapping[str, Any], send: Send) -> None:
        """Sends `page_opened` for each page, and `audit_finished` with the whole."""

        async def tell(event: Mapping[str, Any]) -> None:
            await send(_frame(event))

        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        async with asyncio.TaskGroup() as group:

            def told(page: AuditedPage, done: int, of: int) -> None:
                known = {"url": page.url, "state": page.state, "problem": page.problem}
                event = {"type": "page_opened", **known, "done": done, "of": of}
                group.create_task(tell(event))

            auditor.told = told
            await auditor.run()
        found = await asyncio.to_thread(_result, auditor, asked)
        await tell({"type": "audit_finished", **found})
        await send({"type": "http.response.body", "body": b""})


def _result(auditor: Auditor, asked: Mapping[str, Any]) -> dict[str, Any]:
    audit = auditor.result()
    language = asked.get("html")
    made: dict[str, Any] = {"text": audit.text, **audit.as_dict()}
    if language in LANGUAGES:
        words, cited = words_of(language), citations(audit)
        made |= {"html": as_html(audit, words), "plain": as_text(audit, words)}
        made |= {"cited": cited, "blocks": render(audit.text, cited)}
        for sentence, found in zip(made["sentences"], audit.sentences, strict=True):
            for each, citation in zip(sentence["citations"], found.citations, strict=True):
                each["why"] = reason(citation, words)
    return made


def _frame(event: Mapping[str, Any]) -> Message:
    return more(f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode("utf-8", "replace"))
