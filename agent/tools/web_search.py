"""`web_search`: our own search, for models that have none and for users who want ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.backend import Backend, error_words
from agent.fence import Fence
from agent.search_path import ANYWHERE
from agent.sources import private_mark
from agent.tools import Tool, ToolContext
from agent.types import NativeSearch, ToolResult, ToolSpec, Usage

SEARCHED = Usage(searches=1)
_RESULTS = 6
_SPEC = ToolSpec(
    name="web_search",
    description=(
        "Search the web. Returns numbered results with title, address and a short extract. "
        "Search with a few specific words, then read the best pages with open_page."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to search for, a few words"},
            "time_range": {
                "type": "string",
                "enum": ["d", "w", "m", "y"],
                "description": "Only results of the last day, week, month or year",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    effect="network",
)


def web_search(backend: Backend, fence: Fence, options: NativeSearch = ANYWHERE) -> Tool:
    """The tool, on this backend, held to these options. Found sources get their numbers here."""
    held = {
        "allowed_domains": list(options.allowed_domains),
        "blocked_domains": list(options.blocked_domains),
        "country": options.country,
    }
    held = {name: value for name, value in held.items() if value}

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        query = " ".join(str(arguments["query"]).split())
        await context.emit.event("search_started", {"query": query, "by": "local"})
        payload: dict[str, Any] = {"query": query, "max_results": _RESULTS, **held}
        if arguments.get("time_range"):
            payload["time_range"] = arguments["time_range"]
        try:
            answer = await backend.ask("/api/web-search", payload)
        except BaseException as error:
            data = {"query": query, "by": "local", "status": "error", "results": 0, "attempts": []}
            await context.emit.event("search_finished", {**data, "error": _words(error)})
            raise
        results = answer["results"]
        await context.emit.event(
            "search_finished",
            {
                "query": query,
                "by": f"local:{answer['engine']}" if answer["engine"] else "local",
                "status": answer["status"],
                "results": len(results),
                "attempts": answer["attempts"],
                "filtered": answer.get("filtered"),
            },
        )
        if answer["status"] != "ok":
            return ToolResult(
                context.call_id,
                "web_search",
                _failure(query, answer),
                is_error=answer["status"] != "empty",
                details={
                    "kind": "search",
                    "query": query,
                    "status": answer["status"],
                    "trail": _trail(answer),
                },
                usage=SEARCHED,
            )
        return _found(query, answer, context, fence)

    return Tool(_SPEC, run, origin="ours", untrusted=True, fenced=True, web=True)


def _found(query: str, answer: Mapping[str, Any], context: ToolContext, fence: Fence) -> ToolResult:
    sources, lines, rows = [], [], []
    for result in answer["results"]:
        source = context.sources.meet(result["url"], result["title"])
        sources.append(source)
        rows.append({"n": source.n, "url": source.url, "title": source.title})
        dated = f" ({result['published']})" if result.get("published") else ""
        lines.append(f"[{source.n}] {result['title']}{dated}\n{result['url']}\n{result['snippet']}")
    head = f"{len(rows)} results for {query!r} from {answer['engine']}. Cite them as [n]."
    return ToolResult(
        context.call_id,
        "web_search",
        f"{head}\n{fence.around(chr(10).join(lines), 'search results')}",
        details={
            "kind": "search",
            "query": query,
            "status": "ok",
            "results": rows,
            **private_mark(source.url for source in sources),
        },
        sources=tuple(sources),
        usage=SEARCHED,
    )


def _trail(answer: Mapping[str, Any]) -> str:
    """Who was asked, and why each failed."""
    return "; ".join(
        f"{a['engine']}: {error_words(a.get('error')) or a['status']}" for a in answer["attempts"]
    )


def _failure(query: str, answer: Mapping[str, Any]) -> str:
    """What the model reads when there are no results; failed is not empty."""
    if answer["status"] == "empty":
        return f"No results for {query!r}. Try other words, or say that nothing was found."
    return (
        f"SEARCH FAILED for {query!r} ({_trail(answer)}). Nothing was searched: do not claim "
        "otherwise, and say that the answer is without web results."
    )


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
