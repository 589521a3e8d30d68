"""`open_page`: read a page that the user named, a search found or a page linked to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.backend import Backend, error_words
from agent.errors import ToolError
from agent.fence import Fence
from agent.neutral import neutral
from agent.search_path import ANYWHERE
from agent.sources import private_mark
from agent.tools import Tool, ToolContext
from agent.types import NativeSearch, ToolResult, ToolSpec, Usage

READ = Usage(pages=1)
_LENGTH = 8000
_LINKS = 200
_HERE = "local"
_WEB = ("http://", "https://")
_SPEC = ToolSpec(
    name="open_page",
    description=(
        "Read a web page as text. Only addresses from the user, from search results or from links "
        "of pages already read. Long pages come in parts: continue with offset, or look up words "
        "with find."
    ),
    parameters={
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "The full address"},
            "find": {"type": "string", "description": "Return the passages around these words"},
            "offset": {"type": "integer", "minimum": 0, "description": "Where to go on"},
            "max_length": {"type": "integer", "minimum": 200, "maximum": 40000},
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    effect="network",
)


def open_page(backend: Backend, fence: Fence, options: NativeSearch = ANYWHERE) -> Tool:
    """The tool, on this backend, held to these options. The gate asks before an address is
    opened that nobody met."""
    held = {
        "allowed_domains": list(options.allowed_domains),
        "blocked_domains": list(options.blocked_domains),
    }
    held = {name: value for name, value in held.items() if value}

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        asked = str(arguments["url"]).strip()
        url = context.sources.met(asked) or asked
        payload = {"max_length": _LENGTH, **arguments, "url": url, **held}
        try:
            page = await backend.ask("/api/open-page", payload)
        except ToolError as error:
            data = {"url": url, "status": "error", "error": error.message}
            await context.emit.event("page_opened", data)
            raise
        data = {"url": url, "status": page["status"], "title": page["title"]}
        if page.get("invisible"):
            data["invisible"] = page["invisible"]
        if page.get("reader", _HERE) != _HERE:  # somebody else was told the address
            data["reader"] = page["reader"]
        await context.emit.event("page_opened", {**data, "error": error_words(page["error"])})
        if page["status"] != "ok":
            why = error_words(page["error"]) or "no readable text"
            text = neutral(f"PAGE NOT READ ({page['status']}): {why}")
            details = {"kind": "page", "url": url, "status": page["status"], "why": why}
            return ToolResult(context.call_id, "open_page", text, is_error=True, details=details)
        return _page(url, page, context, fence)

    return Tool(_SPEC, run, origin="ours", untrusted=True, fenced=True, web=True, opens="url")


def _page(url: str, page: Mapping[str, Any], context: ToolContext, fence: Fence) -> ToolResult:
    source = context.sources.meet(url, page["title"], "opened", published=page.get("published"))
    links = page.get("links", [])[:_LINKS]
    if not url.startswith(_WEB):  # what a file on this machine links to is not met on the web
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
        usage=READ,
    )


def _extent(page: Mapping[str, Any]) -> str:
    if "matches" in page:
        return _places(page)
    if not page["truncated"]:
        return f"The whole page, {page['original_length']} characters."
    rest = page["next_offset"]
    more = f"; go on with offset {rest}" if rest is not None else ""
    return f"{page['content_length']} of {page['original_length']} characters{more}."


def _places(page: Mapping[str, Any]) -> str:
    """What a look-up of words came to."""
    length = page["original_length"]
    if not page["match_count"]:
        return f"These words are not in its {length} characters; try one of them, or read it whole."
    rest = page["next_offset"]
    more = f"; more from offset {rest}" if rest is not None else ""
    return f"The passages round {page['match_count']} places, of {length} characters{more}."
