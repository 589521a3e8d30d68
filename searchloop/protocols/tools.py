"""The tools that other programs may call: search, read, check and ask.

`SEARCHLOOP_CLIENT_SEARCH` is their switch. `auto` searches the web, `offline` only the library and
pages already read, and `off` refuses. What comes back says what was found and what was opened, and
tells a search that failed from one that found nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from searchloop.agent.calls.schema import takes
from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.guard.egress import Secrets, forms
from searchloop.agent.settings.secrets import secrets_of
from searchloop.agent.text import neutral
from searchloop.agent.tools import object_schema, text_schema
from searchloop.agent.tools.backend import Backend, ChatBackend, NoBackend, error_words
from searchloop.agent.tools.dispatcher import Fence
from searchloop.agent.tools.open_page import extent, page_notes
from searchloop.agent.tools.web_search import search_notes, trail
from searchloop.agent.types import Message, Search
from searchloop.analysis.schema_check import problems_with
from searchloop.analysis.told import ended
from searchloop.auditing.results import AuditedPage
from searchloop.auditing.run import Auditor
from searchloop.auditing.writers import as_text, look_first
from searchloop.compose.check import Source, check_text, read_page, said
from searchloop.protocols.programs import Counted, Program
from searchloop.protocols.runs import PROGRAMS, ClientRuns, Wish, search_off, switch
from searchloop.render.words import words_of

MCP_PATH = "/mcp"  # of the running server
_RESULTS, _LENGTH, _MOST_LENGTH = 8, 8000, 40_000
_STEPS = {"search_started": "query", "page_opened": "url", "tool_call": "name"}

# Tells how far a call is: (steps so far, words).
Progress = Callable[[int, str], Coroutine[Any, Any, None]]


class Result(NamedTuple):
    """What a call gives: `text` for a model, `data` for a program."""

    text: str
    data: dict[str, Any]
    is_error: bool = False


class ToolInfo(NamedTuple):
    """What a client is told of a tool; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


_COUNT = {"type": "integer", "minimum": 0}
_DOMAINS = {"type": "array", "items": {"type": "string"}}
TOOLS = (
    ToolInfo(
        "web_search",
        "Search the web. Results are found, not read: open_page reads one.",
        object_schema(
            {
                "query": text_schema("A few words"),
                "max_results": {"type": "integer", "minimum": 1, "maximum": 20},
                "time_range": {"type": "string", "enum": ["d", "w", "m", "y"]},
                "allowed_domains": _DOMAINS,
                "blocked_domains": _DOMAINS,
            },
            "query",
        ),
    ),
    ToolInfo(
        "open_page",
        "Read a web page, PDF or library document as text, in parts.",
        object_schema(
            {
                "url": text_schema("Its address"),
                "find": text_schema("Only the passages around these words"),
                "offset": {**_COUNT, "description": "Where to go on"},
                "max_length": {**_COUNT, "minimum": 200, "maximum": _MOST_LENGTH},
            },
            "url",
        ),
    ),
    ToolInfo(
        "check_claim",
        "Compare a claim with a text or a page, word by word, without a model. Returns a verdict "
        "(supported, contradicted, quoted, misquoted, unclear) and the passage it rests on.",
        object_schema(
            {
                "claim": text_schema("One sentence"),
                "text": text_schema("The source, or"),
                "url": text_schema("its address"),
            },
            "claim",
        ),
    ),
    ToolInfo(
        "audit",
        "Check a whole text against what it cites: opens each cited page once and returns the "
        "sentences that need a look, dead links, and numbers without a source.",
        object_schema({"text": text_schema("The text with its links or footnotes")}, "text"),
    ),
    ToolInfo(
        "ask",
        "Let searchloop's agent answer with checked citations. Slow; costs what its model costs.",
        object_schema(
            {
                "question": text_schema("The question"),
                "model": text_schema("provider:model; default: the user's usual one"),
                "search": {"type": "string", "enum": ["auto", "native", "local", "offline", "off"]},
            },
            "question",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ClientTools:
    """The tools of one user, for a program that sent a key of its own."""

    runs: ClientRuns
    program: Program | None = None
    counted: Backend = field(default_factory=NoBackend)  # of one call

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> Result:
        """Runs one tool. What goes wrong is a result with the error's words, never an exception.

        Raises KeyError for a tool that is not there.
        """
        schema = next(tool.schema for tool in TOOLS if tool.name == name) if name in _RUN else None
        if schema is None:
            raise KeyError(name)
        given = {key: value for key, value in arguments.items() if value is not None}
        if problem := problems_with(given, schema):
            return _failed("bad_arguments", problem, takes(schema))
        purse, used = await self.runs.purse(self.program), Counter[str]()
        tools = replace(self, counted=Counted(self.runs.services.backend, purse, used))
        try:
            return await _RUN[name](tools, given, progress)
        except AgentError as error:
            return _failed(error.code, error.message, error.remedy)
        finally:
            if used:
                await self.runs.called(name, self.program, used)

    @property
    def _position(self) -> Search:
        return switch(self.runs.services.settings, self.program)

    def backend(self, *leaving: str) -> ChatBackend:
        """Returns the search backend, as far as the switch allows, for these texts.

        Raises ConfigError where the switch is off, or where a text holds a key of this machine.
        """
        position = self._position
        if position == "off":
            raise search_off(position)
        env = self.runs.services.settings.env
        if name := Secrets(secrets_of(env)).found_in(forms(" ".join(leaving))):
            what = f"It would send the user's {name} out."
            raise ConfigError("own_key", what, "Leave it out.")
        offline = position == "offline"
        return ChatBackend(self.counted, PROGRAMS, {}, offline=offline)

    async def web_search(self, given: Mapping[str, Any], progress: Progress) -> Result:
        """Searches; see `TOOLS`."""
        query = " ".join(str(given["query"]).split())
        backend = self.backend(query)
        await progress(0, f"Searching: {query}")
        asked = {"max_results": _RESULTS, **given, "query": query}
        answer = await backend.ask("/api/web-search", asked)
        kept = ("title", "url", "snippet", "source", "published")
        rows = [
            {**{k: row[k] for k in kept if row.get(k)}, "state": "found"}
            for row in answer["results"]
        ]
        notes = [each["message"] for each in search_notes(answer)]
        status, failed = answer["status"], trail(answer)
        path = f"local:{answer['engine']}" if answer["engine"] else "local"
        path = "offline" if backend.offline else path
        data = {"query": query, "status": status, "search_path": path, "results": rows}
        data |= {"failed": failed, "notes": notes}
        lines = [
            {
                "ok": f"{len(rows)} found by {path}, none of them read yet.",
                "empty": f"Nothing was found for {query!r} ({path}).",
            }.get(status, f"SEARCH FAILED for {query!r}. Nothing was searched.")
        ]
        lines += [*notes, *([f"Without results: {'; '.join(failed)}"] if failed else [])]
        head = neutral("\n".join(lines))
        shown = "\n\n".join(
            "\n".join(filter(None, (row.get("title"), row["url"], row.get("snippet"))))
            for row in rows
        )
        text = f"{head}\n{Fence().around(shown, 'search results')}" if rows else head
        return Result(text, data, status not in ("ok", "empty"))

    async def open_page(self, given: Mapping[str, Any], progress: Progress) -> Result:
        """Reads a page; see `TOOLS`."""
        url = str(given["url"]).strip()
        backend = self.backend(*map(str, given.values()))
        await progress(0, f"Reading {url}")
        page = await backend.ask("/api/open-page", {"max_length": _LENGTH, **given, "url": url})
        notes = [each["message"] for each in page_notes(url, page)]
        kept = ("final_url", "title", "content", "published", "original_length", "match_count")
        data = {"url": url, "status": page["status"], "notes": notes}
        if page["status"] != "ok":
            why = error_words(page["error"]) or "There is no readable text."
            text = neutral(f"PAGE NOT READ ({page['status']}): {why}")
            return Result(text, {**data, "state": "found", "error": page["error"]}, True)
        data |= {"state": "opened", "next_offset": page["next_offset"]}
        data |= {name: page.get(name) for name in kept}
        head = [neutral(str(page["final_url"])), extent(page), *map(neutral, notes)]
        shown = f"{page['title']}\n\n{page['content']}"
        return Result("\n".join([*head, Fence().around(shown, "page")]), data)

    async def check_claim(self, given: Mapping[str, Any], progress: Progress) -> Result:
        """Compares a claim with a source; see `TOOLS`."""
        claim, text, url = said(str(given["claim"])), given.get("text"), given.get("url")
        if (text is None) == (url is None):
            raise ConfigError("no_source", "There must be one source.", "Send text or url.")
        if url is None:
            source = Source(str(text))
        else:
            backend = self.backend(str(url))
            await progress(0, f"Reading {url}")
            source = await read_page(str(url), backend)
        verdict = await asyncio.to_thread(check_text, claim, source)
        data = {**asdict(verdict), "notes": list(verdict.notes)}
        passage = f"\n{Fence().around(verdict.passage, 'passage')}" if verdict.passage else ""
        return Result(f"{verdict.verdict}: {neutral(verdict.reason)}{passage}", data)

    async def audit(self, given: Mapping[str, Any], progress: Progress) -> Result:
        """Audits a text; see `TOOLS`. What holds is counted, not listed."""
        report = str(given["text"])
        if not report.strip():
            raise ConfigError("no_source", "The text is empty.", "Send a text with its sources.")
        backend = self.backend(report)
        async with asyncio.TaskGroup() as telling:

            def told(page: AuditedPage, done: int, of: int) -> None:
                telling.create_task(progress(done, f"{done} of {of}: {page.url}"))

            auditor = Auditor(report, backend, backend.offline, told)
            await auditor.run()
        audit = auditor.result()
        wanted = {each.span for each in look_first(audit)}
        whole = audit.as_dict()
        look = [each for each in whole["sentences"] if tuple(each["span"]) in wanted]
        unread = [page for page in whole["pages"] if page["problem"]]
        data = {"summary": whole["summary"], "needs_a_look": look, "pages_not_read": unread}
        return Result(Fence().around(as_text(audit, words_of("en")), "audit"), data)

    async def ask(self, given: Mapping[str, Any], progress: Progress) -> Result:
        """Lets the agent answer; see `TOOLS`."""
        question = str(given["question"])
        asked = (Message("user", question),) if question.strip() else ()
        search = given.get("search") or self._position
        wish = Wish(given.get("model") or "", asked, search=search, keep=False, client="MCP")
        wish = replace(wish, program=self.program)
        runs, steps = self.runs, 0
        data: Mapping[str, Any] = {}
        async with runs.answer(await runs.ready(wish)) as events:
            async for type, data in (each async for batch in events for each in batch):
                if (name := _STEPS.get(type)) and data.get(name):
                    steps += 1
                    await progress(steps, f"{type}: {data[name]}")
        error = data["error"]
        kept = ("answer", "reason", "citations", "usage", "search_path", "error")
        shown = {name: data[name] for name in kept}
        for state in ("opened", "found"):
            rows = [s for s in data["sources"] if (s["state"] == "found") == (state == "found")]
            shown[state] = [{"url": row["url"], "title": row["title"]} for row in rows]
        lines = [data["answer"], *([error_words(error)] if error else [])]
        lines += [_cited(each) for each in data["citations"]]
        return Result("\n\n".join(filter(None, lines)), shown, bool(error))


def _cited(citation: Mapping[str, Any]) -> str:
    """Returns a source with what its marks are worth: `[1] Title URL: supported by words`."""
    told = dict.fromkeys(
        f"{mark['verdict']} by {mark['by']}" if mark.get("by") else str(mark["verdict"])
        for mark in citation["marks"]
    )
    title = f"{citation['title']} " if citation["title"] else ""
    return neutral(f"[{citation['n']}] {title}{citation['url']}: {', '.join(told)}")


def _failed(code: str, message: str, remedy: str) -> Result:
    error = {"code": code, "message": message, "remedy": remedy}
    return Result(f"{ended(message)} {remedy}".strip(), {"error": error}, is_error=True)


_RUN: Mapping[str, Callable[[ClientTools, Mapping[str, Any], Progress], Awaitable[Result]]] = {
    tool.name: getattr(ClientTools, tool.name) for tool in TOOLS
}
