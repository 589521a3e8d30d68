"""`open_page`: reads a page that the user named, a search found or a page linked to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from searchloop.agent.errors import ToolError
from searchloop.agent.log.events import day_of
from searchloop.agent.search.source_numbers import private_mark
from searchloop.agent.text import neutral
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.tools.backend import Backend, domain_limits, error_words, stays_here
from searchloop.agent.tools.dispatcher import Fence, noted
from searchloop.agent.types import ANYWHERE, NativeSearch, Notice, ToolResult, ToolSpec, Usage
from searchloop.analysis.addresses import url_key

_LENGTH = 8000
_SLICE, _WHOLE = 40_000, 400_000  # characters of one request, and of a page
_LINKS = 200
_OLD = 3600  # seconds for which a stored page is as good as the page
_WEB = ("http://", "https://")
_SPEC = ToolSpec(
    name="open_page",
    description=(
        "Read a web page as text. Only addresses from the user, from search results or from links "
        "of pages already read. Long pages come in parts: continue with offset, or look up words "
        "with find."
    ),
    parameters=object_schema(
        {
            "url": text_schema("The full address"),
            "find": text_schema("Return the passages around these words"),
            "offset": {"type": "integer", "minimum": 0, "description": "Where to go on"},
            "max_length": {"type": "integer", "minimum": 200, "maximum": 40000},
        },
        "url",
    ),
    effect="network",
)


def open_page(backend: Backend, fence: Fence, options: NativeSearch = ANYWHERE) -> Tool:
    """Returns the tool, on this backend and limited to the domains of `options`.

    The guard asks the user before it opens an address that this session has not met.
    """
    limits = domain_limits(options)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        asked = str(arguments["url"]).strip()
        url = context.sources.met(asked) or asked
        payload = {"max_length": _LENGTH, **arguments, "url": url, **limits}
        try:
            page = await backend.ask("/api/open-page", payload)
        except ToolError as error:
            data = {"url": url, "status": "error", "error": error.message}
            await context.emit.event("page_opened", data)
            raise
        why = error_words(page["error"])
        known = {"url": url, "status": page["status"], "title": page["title"], "error": why}
        some = {"notes": page_notes(url, page), "invisible": page.get("invisible")}
        if page.get("reader", "local") != "local":  # a service read it and knows the address
            some["reader"] = page["reader"]
        told = known | {name: value for name, value in some.items() if value}
        await context.emit.event("page_opened", told)
        if page["status"] != "ok":
            why = why or "no readable text"
            text = neutral(f"PAGE NOT READ ({page['status']}): {why}")
            details = {"kind": "page", "url": url, "status": page["status"], "why": why}
            return ToolResult(context.call_id, "open_page", text, is_error=True, details=details)
        return _page(url, page, context, fence)

    async def stays(arguments: Mapping[str, Any]) -> bool:
        return await stays_here(backend, str(arguments["url"]).strip())

    return Tool(
        _SPEC, run, origin="ours", untrusted=True, fenced=True, web=True, opens="url", stays=stays
    )


def _page(url: str, page: Mapping[str, Any], context: ToolContext, fence: Fence) -> ToolResult:
    source = context.sources.meet(url, page["title"], "opened", published=page.get("published"))
    links = page.get("links", [])[:_LINKS]
    if not url.startswith(_WEB):  # a file on this machine vouches for no address on the web
        links = [link for link in links if not link.startswith(_WEB)]
    context.sources.see(links)
    told = "".join(f"{each['message']}\n" for each in page_notes(url, page))
    day = f" Published {neutral(str(page['published'])[:10])}." if page.get("published") else ""
    part = f"{extent(page)}{day} Cite it as [{source.n}]."
    head = f"[{source.n}] {neutral(url)}\n{part}\n{told}"
    shown = f"{page['title']}\n\n{page['content']}"
    content, start, end = fence.around_at(shown, "page", head)
    context.sources.read(url, content[start:end])
    return ToolResult(
        context.call_id,
        "open_page",
        content,
        details={
            "kind": "page",
            "n": source.n,
            "url": url,
            "title": page["title"],
            "status": "ok",
            "text": [start, end],
            "links": links,
            **private_mark([url]),
        },
        sources=(source,),
        usage=Usage(pages=1),
        bounded=True,
    )


async def whole_page(url: str, backend: Backend, **options: Any) -> dict[str, Any]:
    """Returns the answer to /api/open-page with all of the page's `content`, and `notes` on it.

    Raises ToolError without a search backend.
    """
    parts: list[str] = []
    first: dict[str, Any] = {}
    offset, length, notes = 0, 0, dict[str, None]()
    while length <= _WHOLE:
        asked = {"url": url, "offset": offset, "max_length": _SLICE, **options}
        page = await backend.ask("/api/open-page", asked)
        if page["status"] != "ok":
            return page
        first = first or page
        notes |= dict.fromkeys(note["message"] for note in page_notes(url, page))
        parts.append(page["content"])
        length += len(parts[-1])
        if page["next_offset"] is None or page["next_offset"] <= offset:
            break
        offset = page["next_offset"]
    return {**first, "content": "".join(parts), "notes": tuple(notes)}


def page_notes(url: str, page: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns what changes the meaning of a page's text, for the model and for the user."""
    notes = []
    final, web = page.get("final_url") or url, url.startswith(_WEB)
    if web and url_key(final) != url_key(url):
        notes.append(Notice("redirected", f"This address led to another: {final}"))
    stale, age = page.get("stale"), page.get("age", 0)
    if stale:
        words = f"The page could not be loaded now: {stale['message']}"
        notes.append(Notice("site_down", words))
    if stale or (web and (age >= _OLD or page.get("origin") == "library")):
        day, days = day_of(time.time() - age), age // 86_400
        words = f"This is a stored copy of {day}."
        words = words if days < 2 else f"This is a stored copy of {day}, {days} days old."
        notes.append(Notice("stored_copy", words))
    if page.get("cut"):
        notes.append(Notice("cut", "The source is longer than what can be read of it."))
    return noted(notes)


def extent(page: Mapping[str, Any]) -> str:
    """Describes the part of the page that was read, or the places where the words were found."""
    length, rest = page["original_length"], page.get("next_offset")
    if "matches" in page:
        if not page["match_count"]:
            hint = "try one of them, or read it whole"
            return f"These words are not in its {length} characters; {hint}."
        more = f"; more from offset {rest}" if rest is not None else ""
        return f"The passages round {page['match_count']} places, of {length} characters{more}."
    if not page["truncated"]:
        return (
            f"{'What can be read' if page.get('cut') else 'The whole page'}, {length} characters."
        )
    start = page.get("offset", 0)
    part = f"Characters {start} to {start + page['content_length']} of {length}"
    return f"{part}; go on with offset {rest}." if rest is not None else f"{part}."
