"""`web_search`: our own search, for models that have none and for users who want ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from agent.backend import Backend, error_words
from agent.dates import strange_years
from agent.fence import Fence
from agent.neutral import neutral
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


def web_search(
    backend: Backend,
    fence: Fence,
    options: NativeSearch = ANYWHERE,
    said: str = "",
    today: Callable[[], date] = date.today,
) -> Tool:
    """The tool, on this backend, held to these options. Found sources get their numbers here.

    `said` is what the user wrote in this session: past years in a query that are not in it are
    the model's own idea, which the events and the model are told.
    """
    held = _held(options)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        query = " ".join(str(arguments["query"]).split())
        now = today()
        years = strange_years(query, said, now.year)
        about = {"query": query, **({"years": years} if years else {})}
        await context.emit.event("search_started", {**about, "by": "local"})
        payload: dict[str, Any] = {"query": query, "max_results": _RESULTS, **held}
        if arguments.get("time_range"):
            payload["time_range"] = arguments["time_range"]
        try:
            answer = await backend.ask("/api/web-search", payload)
        except BaseException as error:
            data = {**about, "by": "local", "status": "error", "results": 0, "attempts": []}
            await context.emit.event("search_finished", {**data, "error": _words(error)})
            raise
        await context.emit.event("search_finished", {**about, **_outcome(answer)})
        if answer["status"] != "ok":
            return _unfound(query, answer, context)
        return _found(query, answer, context, fence, _dated(now, years))

    return Tool(_SPEC, run, origin="ours", untrusted=True, fenced=True, web=True)


def _held(options: NativeSearch) -> dict[str, Any]:
    """What every search is held to."""
    held = {
        "allowed_domains": list(options.allowed_domains),
        "blocked_domains": list(options.blocked_domains),
        "country": options.country,
    }
    return {name: value for name, value in held.items() if value}


def _outcome(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the log keeps of an answer."""
    unseen = sum(result.get("invisible", 0) for result in answer["results"])
    return {
        **({"invisible": unseen} if unseen else {}),
        "by": f"local:{answer['engine']}" if answer["engine"] else "local",
        "status": answer["status"],
        "results": len(answer["results"]),
        "attempts": answer["attempts"],
        "filtered": answer.get("filtered"),
    }


def _dated(now: date, years: list[str]) -> str:
    """When this was searched, and that the model chose a year that nobody asked for."""
    if not years:
        return f"Searched on {now.isoformat()}."
    return (
        f"Searched on {now.isoformat()}. The user did not ask for {' or '.join(years)}: for what "
        "is true now, search again without it."
    )


def _found(
    query: str, answer: Mapping[str, Any], context: ToolContext, fence: Fence, when: str
) -> ToolResult:
    sources, lines, rows = [], [], []
    for result in answer["results"]:
        published = result.get("published")
        source = context.sources.meet(result["url"], result["title"], published=published)
        sources.append(source)
        rows.append({"n": source.n, "url": source.url, "title": source.title})
        dated = f" ({published})" if published else ""
        lines.append(f"[{source.n}] {result['title']}{dated}\n{result['url']}\n{result['snippet']}")
    head = f"{len(rows)} results for {query!r} from {answer['engine']}. {when} Cite them as [n]."
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


def _unfound(query: str, answer: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """A search without results; failed is not empty."""
    status = answer["status"]
    return ToolResult(
        context.call_id,
        "web_search",
        neutral(_failure(query, answer)),
        is_error=status != "empty",
        details={"kind": "search", "query": query, "status": status, "trail": _trail(answer)},
        usage=SEARCHED,
    )


def _trail(answer: Mapping[str, Any]) -> list[str]:
    """Who was asked, and why each failed."""
    return [
        f"{a['engine']}: {error_words(a.get('error')) or a['status']}" for a in answer["attempts"]
    ]


def _failure(query: str, answer: Mapping[str, Any]) -> str:
    """What the model reads when there are no results; failed is not empty."""
    if answer["status"] == "empty":
        return f"No results for {query!r}. Try other words, or say that nothing was found."
    return (
        f"SEARCH FAILED for {query!r} ({'; '.join(_trail(answer))}). Nothing was searched: do not "
        "claim otherwise, and say that the answer is without web results."
    )


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
