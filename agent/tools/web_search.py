"""`web_search`: searches with the search backend, for models without a search of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from searchloop.agent.search.source_numbers import private_mark
from searchloop.agent.text import neutral
from searchloop.agent.tools import Tool, ToolContext, object_schema, text_schema
from searchloop.agent.tools.backend import Backend, domain_limits, error_words, stays_here
from searchloop.agent.tools.dispatcher import Fence, noted
from searchloop.agent.types import ANYWHERE, NativeSearch, Notice, ToolResult, ToolSpec, Usage

SEARCHED = Usage(searches=1)
_WHY = 200  # characters of what an engine said
_OLD = 10  # minutes after which it matters that an answer is of an earlier search
_WEB = ("http://", "https://")
_RESULTS = 6
_SPEC = ToolSpec(
    name="web_search",
    description=(
        "Search the web. Returns numbered results with title, address and a short extract. "
        "Search with a few specific words, then read the best pages with open_page."
    ),
    parameters=object_schema(
        {
            "query": text_schema("What to search for, a few words"),
            "time_range": {
                "type": "string",
                "enum": ["d", "w", "m", "y"],
                "description": "Only results of the last day, week, month or year",
            },
        },
        "query",
    ),
    effect="network",
)


def web_search(
    backend: Backend,
    fence: Fence,
    options: NativeSearch = ANYWHERE,
    today: Callable[[], date] = date.today,
) -> Tool:
    """Returns the tool, on this backend and limited by `options`. It numbers what it finds."""
    limits = domain_limits(options)
    if options.country:
        limits["country"] = options.country
    if options.folders:
        limits["folders"] = list(options.folders)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        query = " ".join(str(arguments["query"]).split())
        when = f"Searched on {today().isoformat()}."
        about = {"query": query}
        await context.emit.event("search_started", {**about, "by": "local"})
        payload: dict[str, Any] = {"query": query, "max_results": _RESULTS, **limits}
        if arguments.get("time_range"):
            payload["time_range"] = arguments["time_range"]
        try:
            answer = await backend.ask("/api/web-search", payload)
        except BaseException as error:
            data = {**about, "by": "local", "status": "error", "results": 0, "attempts": []}
            words = str(error) or type(error).__name__
            await context.emit.event("search_finished", {**data, "error": words})
            raise
        await context.emit.event("search_finished", {**about, **_outcome(answer)})
        if answer["status"] != "ok":
            return _unfound(query, answer, context)
        return _found(query, answer, context, fence, when)

    async def stays(arguments: Mapping[str, Any]) -> bool:
        return await stays_here(backend)

    return Tool(_SPEC, run, origin="ours", untrusted=True, fenced=True, web=True, stays=stays)


def _outcome(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the data of `search_finished`."""
    unseen = sum(result.get("invisible", 0) for result in answer["results"])
    some = {"invisible": unseen, "notes": search_notes(answer)}
    return {
        **{name: value for name, value in some.items() if value},
        "by": f"local:{answer['engine']}" if answer["engine"] else "local",
        "status": answer["status"],
        "results": len(answer["results"]),
        "attempts": answer["attempts"],
        "filtered": answer.get("filtered"),
    }


def search_notes(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns what changes the meaning of a search's answer, for the model and for the user."""
    notes = []
    if told := answer.get("filtered"):
        rule, dropped = told["rule"], told["dropped"]
        lifted = (
            f"Nothing was found with {rule}, so the search was repeated without. "
            "What came may be older or from elsewhere."
        )
        one, more = f"1 result left out by {rule}.", f"{dropped} results left out by {rule}."
        left = Notice("left_out", one if dropped == 1 else more)
        notes.append(Notice("widened", lifted) if told["lifted"] else left)
    sites = [f"{a['engine']} ({a['why']})" for a in answer["attempts"] if a.get("why")]
    if sites:
        notes.append(Notice("asked_sites", f"Also asked: {', '.join(sites)}."))
    if missed := ", ".join(answer.get("not_applied", ())):
        notes.append(Notice("not_applied", f"Not every engine could respect {missed}."))
    if (minutes := answer.get("age", 0) // 60) >= _OLD:
        words = f"These results are of a search {minutes} minutes ago."
        notes.append(Notice("earlier_search", words))
    return noted(notes)


def _with_notes(head: str, answer: Mapping[str, Any]) -> str:
    """Returns the head of a result with the notes, and who was asked in vain."""
    lines = [head, *[each["message"] for each in search_notes(answer)]]
    if any(r["source"] == "library" or not r["url"].startswith(_WEB) for r in answer["results"]):
        lines.append("Some results are documents or stored pages of this machine, not of the web.")
    if in_vain := "; ".join(trail(answer)):
        lines.append(f"Engines without results: {in_vain}")
    return neutral("\n".join(lines))


def trail(answer: Mapping[str, Any]) -> list[str]:
    """Returns `engine: why` for each engine that failed, rests or found nothing."""
    return [
        f"{a['engine']}: {' '.join((error_words(a.get('error')) or a['status']).split())[:_WHY]}"
        for a in answer["attempts"]
        if a["status"] != "ok" and a["engine"] != answer.get("engine")
        if (a.get("error") or {}).get("code") != "overtaken"
    ]


def _found(
    query: str, answer: Mapping[str, Any], context: ToolContext, fence: Fence, when: str
) -> ToolResult:
    sources, lines, rows = [], [], []
    for result in answer["results"]:
        published, engine = result.get("published"), result["source"]
        source = context.sources.meet(result["url"], result["title"], published=published)
        sources.append(source)
        rows.append({"n": source.n, "url": source.url, "title": source.title})
        marks = (published, engine if engine != answer["engine"] else "")
        dated = f" ({', '.join(filter(None, marks))})" if any(marks) else ""
        lines.append(f"[{source.n}] {result['title']}{dated}\n{result['url']}\n{result['snippet']}")
    number = f"{len(rows)} result{'s' if len(rows) > 1 else ''}"
    head = f"{number} for {query!r} from {answer['engine']}. {when}"
    told = _with_notes(f"{head} Cite them as [n].", answer)
    return ToolResult(
        context.call_id,
        "web_search",
        f"{told}\n{fence.around(chr(10).join(lines), 'search results')}",
        details={
            "kind": "search",
            "query": query,
            "status": "ok",
            "results": rows,
            **private_mark(source.url for source in sources),
        },
        sources=tuple(sources),
        usage=SEARCHED,
        bounded=True,
    )


def _unfound(query: str, answer: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """Returns the result of a search that found nothing, or that failed: two different things."""
    status = answer["status"]
    text = f"No results for {query!r}. Try other words, or say that nothing was found."
    if status != "empty":
        text = (
            f"SEARCH FAILED for {query!r}. Nothing was searched: do not claim otherwise, and say "
            "that the answer is without web results."
        )
    return ToolResult(
        context.call_id,
        "web_search",
        _with_notes(text, answer),
        is_error=status != "empty",
        details={"kind": "search", "query": query, "status": status, "trail": trail(answer)},
        usage=SEARCHED,
    )
