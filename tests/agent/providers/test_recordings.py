"""What each recorded answer means, and how it goes back: the expected values stand beside it.

An exchange of `tests/recordings` may have two members of ours. `means` is what the answer gives:
what is shown and told on the way, calls, citations by the words that they mark, sources, counts, or
our error. `goes_back` is the conversation so far as further requests hold it: one that goes on with
an answer that paused, and those with the next question to the same model, to it without its search,
and to another model.

    python -m tests.agent.providers.test_recordings    writes them anew: read the difference
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.types import Finished, Message, NativeSearch, TextDelta, ThinkingDelta
from tests.agent.providers.test_codecs import asked, decode
from tests.agent.providers.vendors import BY_NAME, USER, Vendor, results
from tests.recorded import OURS, exchanges
from tests.tables import each_row

WORDS: Mapping[type, str] = {TextDelta: "text", ThinkingDelta: "thinking"}
FILES = [path for name in BY_NAME for path in sorted((OURS / name.replace("-", "_")).glob("*"))]


def meanings(path: Path) -> Iterator[dict[str, Any]]:
    """What each exchange of a recording means; an answer is read with those before it."""
    vendor = BY_NAME[path.parent.name.replace("_", "-")]
    told: list[Message] = [USER]
    for exchange in exchanges(path):
        found, message = meaning(vendor, exchange, told)
        if message is None:
            yield {"means": found}
            continue
        told += [message, *results(message)]
        more, paused = asked(vendor, exchange), found["stop"] == "pause"
        back = {"goes on": carried(vendor, told, more)} if paused else {}
        yield {"means": found, "goes_back": back | going_back(vendor, [*told, USER], more)}
        told += [USER] if found["stop"] == "stop" else []


def meaning(
    vendor: Vendor, exchange: Mapping[str, Any], before: list[Message]
) -> tuple[dict[str, Any], Message | None]:
    """What an answer gives, and its message if it is one."""
    *events, end = decode(vendor, exchange, 1 << 20, *before)
    told: list[list[Any]] = []
    for event in events:
        name = WORDS.get(type(event))
        if name and told and told[-1][0] == name:
            told[-1][1] += event.text  # type: ignore[union-attr]
        else:
            values = [getattr(event, field) for field in type(event).__slots__]
            told.append([name or type(event).__name__, *values])
    if isinstance(end, Finished):
        return {"told": told, **end_of(end)}, end.message
    assert isinstance(end, ProviderError)
    refused = (exchange["response"].get("status") or 200) >= 400
    return ({} if refused else {"told": told}) | fault(end), None


def fault(error: ProviderError) -> dict[str, Any]:
    """Our error as JSON, and whether another try may help."""
    return {**error.as_dict(), "retryable": error.retryable, "retry_after": error.retry_after}


def end_of(end: Finished) -> dict[str, Any]:
    """The last event as JSON; what is empty or unknown is left out."""
    message = end.message
    said = message.content
    cited = [
        [c.n, c.url, c.title, [[m.span and said[slice(*m.span)], m.quote] for m in c.marks]]
        for c in message.citations
    ]
    found = {
        "stop": end.stop_reason,
        "calls": [[c.name, c.arguments, c.problem] for c in message.tool_calls],
        "citations": cited,
        "sources": [[*source] for source in message.sources],
        "usage": {name: n for name, n in end.usage.as_dict().items() if n is not None},
        "details": dict(message.details),
    }
    return {name: value for name, value in found.items() if value}


def going_back(vendor: Vendor, told: list[Message], more: dict[str, Any]) -> dict[str, Any]:
    """The conversation so far in further requests; one like that before it is left out."""
    found = {"same": carried(vendor, told, more)}
    if more["native_search"] and vendor.searches:
        found["search off"] = carried(vendor, told, {**more, "native_search": None})
    found["other model"] = carried(vendor, told, {"model": vendor.other})
    text = json.dumps(found)
    for number, call in enumerate((c for m in told for c in m.tool_calls), 1):
        if re.fullmatch(r"(call_|gemini-|toolu_)[0-9a-f]{16,32}", call.id):
            text = text.replace(call.id, f"ours {number}")
    found, before = json.loads(text), None
    for name, value in [*found.items()]:
        found, before = found if value != before else found | {name: None}, value
    return {name: value for name, value in found.items() if value is not None}


def carried(vendor: Vendor, told: list[Message], more: dict[str, Any]) -> Any:
    """The conversation in a request; of a model that decides itself, with its search or without."""
    try:
        vendor.codec.encode(vendor.request(**more))
    except ConfigError:
        more = {**more, "native_search": None if more.get("native_search") else NativeSearch()}
    sent = json.loads(vendor.codec.encode(vendor.request(*told, **more)))
    kept = ("messages", "input", "contents", "continuationToken")
    return {name: sent[name] for name in kept if name in sent}


@each_row("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_a_recording_means_and_how_it_goes_back(path: Path) -> None:
    """As it was written down when the recording came in."""
    for exchange, found in zip(exchanges(path), meanings(path), strict=True):
        assert json.loads(json.dumps(found["means"])) == exchange["means"]
        assert found.get("goes_back") == exchange.get("goes_back")


def write(path: Path) -> None:
    """Writes what is expected of a recording, a line for each message."""
    whole = json.loads(path.read_text("utf-8"))
    lines: list[str] = []

    def lined(value: Any, depth: int) -> Any:
        if depth and isinstance(value, dict):
            return {name: lined(inner, depth - 1) for name, inner in value.items()}
        if depth and isinstance(value, list):
            return [lined(inner, 0) for inner in value]
        lines.append(json.dumps(value, ensure_ascii=False))
        return f"line {len(lines)}!"

    for exchange, found in zip(whole["exchanges"], meanings(path), strict=True):
        exchange.update({name: lined(value, 3) for name, value in found.items()})
    text = json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
    for number, line in enumerate(lines, 1):
        text = text.replace(f'"line {number}!"', line)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    for each in FILES:
        write(each)
