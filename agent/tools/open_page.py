"""`open_page`: reads a page that the user named, a search found or a page linked to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchloop.agent.errors import ToolError
from searchloop.agent.search.source_numbers import private_mark
from searchloop.agent.text import neutral
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.tools.backend import Backend, domain_limits, error_words, stays_here
from searchloop.agent.tools.results import Fence
from searchloop.agent.types import ANYWHERE, NativeSearch, ToolResult, ToolSpec, Usage

_LENGTH = 8000
_LINKS = 200
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

    The gate asks the user before it opens an address that this session has not met.
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
        data = {"url": url, "status": page["status"], "title": page["title"]}
        if page.get("invisible"):
            data["invisible"] = page["invisible"]
        if page.get("reader", "local") != "local":  # a service read it and knows the address
            data["reader"] = page["reader"]
        await context.emit.event("page_opened", {**data, "error": error_words(page["error"])})
        if page["status"] != "ok":
            why = error_words(page["error"]) or "no readable text"
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
    head = f"[{source.n}] {neutral(url)}\n{_extent(page)} Cite it as [{source.n}].\n"
    content, start, end = fence.around_at(f"{page['title']}\n\n{page['content']}", "page", head)
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
    )


def _extent(page: Mapping[str, Any]) -> str:
    """Describes the part of the page that was read, or the places where the words were found."""
    length, rest = page["original_length"], page.get("next_offset")
    if "matches" in page:
        if not page["match_count"]:
            hint = "try one of them, or read it whole"
            return f"These words are not in its {length} characters; {hint}."
        more = f"; more from offset {rest}" if rest is not None else ""
        return f"The passages round {page['match_count']} places, of {length} characters{more}."
    if not page["truncated"]:
        return f"The whole page, {length} characters."
    more = f"; go on with offset {rest}" if rest is not None else ""
    return f"{page['content_length']} of {length} characters{more}."
