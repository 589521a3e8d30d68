"""What the codecs of the protocols share: checked fields, contents, calls and the extension."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any, NamedTuple

from searchloop.agent.calls.arguments import read_arguments
from searchloop.agent.calls.instructions import Instructions
from searchloop.agent.errors import ConfigError
from searchloop.agent.run.question.files import NewFile
from searchloop.agent.search.switch import domains
from searchloop.agent.tools.backend import error_words
from searchloop.agent.types import USAGE_FIELDS, Message, NativeSearch, Search, ToolCall, ToolSpec
from searchloop.protocols.runs import Wish

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,(.*)", re.DOTALL)
_UNSEEN = "[A file was here. It cannot be read: only those of questions are passed on.]"
_SHOWN = 80  # characters of a strange value in an error
_KEPT = ("error", "search_path", "citations", "sources")
_USED = ("searches", "pages", "seconds", "cost_usd")
_TEXTS = ("text", "input_text", "output_text", "summary_text", "refusal")

EFFORT = {"effort": "effort"}
FILTERS = ("allowed_domains", "blocked_domains")
SEARCH_TOOL = "web_search"
_TOOL = ("type", "name", "description", "parameters", "input_schema")
_NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}}
_FREE = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}

# An event on the wire: its name, where the protocol has one, and its data.
Frame = tuple[str, dict[str, Any]]


class Asked(NamedTuple):
    """A decoded request: what is wanted, whether as a stream, and what the answer repeats.

    `ignored` names the fields that have no effect here.
    """

    wish: Wish
    stream: bool
    body: Mapping[str, Any]
    ignored: tuple[str, ...] = ()


class Encoder:
    """Turns the events of a run into those of a protocol; pure, one for each answer.

    `error` is that of a run that failed.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked, self._wish = asked, asked.wish
        self._finished: Mapping[str, Any] = {}
        self.error: Mapping[str, Any] | None = None

    def begin(self) -> list[Frame]:
        """Returns what stands before the first event."""
        raise NotImplementedError

    def take(self, type: str, data: Mapping[str, Any]) -> list[Frame]:
        """Returns what an event of the run becomes."""
        raise NotImplementedError

    def whole(self) -> dict[str, Any]:
        """Returns the answer as one object, once the run is over."""
        raise NotImplementedError

    def _over(self, data: Mapping[str, Any]) -> str:
        """Takes `run_finished`; returns the words of its error, nothing for an answer."""
        self._finished = data
        self.error = data["error"] if data["reason"] == "error" else None
        return error_words(self.error)

    def _why(self) -> str:
        """Says why the answer ended: stop, length, refusal, tool_calls."""
        return "length" if self._finished.get("limit") else str(self._finished.get("stop_reason"))

    def _counts(self) -> dict[str, int]:
        """Returns what was used, nothing for what is not known."""
        usage = self._finished.get("usage", {})
        return {name: usage.get(name) or 0 for name in USAGE_FIELDS}

    def _extension(self) -> dict[str, Any]:
        """Returns what no protocol has words for: path, verdicts, sources, seconds and cost.

        `ignored` names the fields of the request that had no effect.
        """
        kept = {name: self._finished[name] for name in _KEPT}
        used = {name: self._finished["usage"].get(name) for name in _USED}
        return {"ignored": list(self._asked.ignored), **kept, **used}


def bad(field: str, what: str, remedy: str = "") -> ConfigError:
    """Returns the error for a field, whose name is `param` in protocols that have one."""
    error = ConfigError("bad_request", f"{field}: {what}", remedy or f"Change {field}.")
    error.param = field  # type: ignore[attr-defined]
    return error


def typed(body: Mapping[str, Any], name: str, kind: type | tuple[type, ...], else_: Any) -> Any:
    """Returns a field of this type, `else_` where it is missing or null. Raises ConfigError."""
    value = body.get(name)
    if value is None:
        return else_
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise bad(name, f"{str(value)[:_SHOWN]!r} is of the wrong type.")
    return value


def choice_of(body: Mapping[str, Any]) -> Any:
    """Returns the choice of a tool, a word or an object. Raises ConfigError."""
    return typed(body, "tool_choice", (str, dict), "auto")


def options_of(body: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the options of a model that are given, by the names of `Instructions.of`.

    Raises ConfigError that names the field.
    """
    options = dict[str, Any]()
    for name in (name for name in names if body.get(name) not in (None, [])):
        try:
            options |= Instructions.of(None, {names[name]: body[name]}, None).options
        except ConfigError as error:
            raise bad(name, error.message, error.remedy) from None
    return options


class Content:
    """A message's text and files, gathered from its parts."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.files: list[NewFile] = []
        self.lost: list[str] = []  # fields without an effect

    @property
    def text(self) -> str:
        """The texts, one after the other."""
        return "\n".join(filter(None, self.texts))

    def file(self, address: Any, name: Any, field: str) -> None:
        """Adds a file from a data: address. Raises ConfigError: no other address is opened."""
        found = _DATA.fullmatch(address) if isinstance(address, str) else None
        if found is None:
            raise bad(field, "only data: addresses with base64 are read.", "Send the bytes.")
        self.add(found[2], found[1] or "", name, field)

    def add(self, data: Any, media_type: str, name: Any, field: str) -> None:
        """Adds a file from base64. Raises ConfigError."""
        try:
            content = b64decode(data, validate=True)
        except (ValueError, TypeError):
            raise bad(field, "this is not base64.", "Send the bytes in base64.") from None
        self.files.append(NewFile(str(name or "file"), content, media_type))


def kind_of(part: Any) -> str:
    """Returns the type of a part, an item or a tool; nothing for what is no object."""
    return str(part.get("type") or "") if isinstance(part, Mapping) else ""


def listed(given: Any, field: str, kind: type = object) -> list[Any]:
    """Returns a list of things of this kind, an empty one for null. Raises ConfigError."""
    found = [] if given is None else given
    if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
        what = " of objects" if kind is Mapping else " of texts" if kind is str else ""
        raise bad(field, f"this is no list{what}.")
    return found


def parts_of(given: Any, field: str) -> list[Any]:
    """Returns a content as parts; it is a text, or parts already. Raises ConfigError."""
    return [{"type": "text", "text": given}] if isinstance(given, str) else listed(given, field)


def content_of(given: Any, field: str) -> Content:
    """Reads a content, in the parts of any of the protocols. Raises ConfigError."""
    content = Content()
    for part in parts_of(given, field):
        kind = kind_of(part)
        if kind in _TEXTS:
            content.texts += (typed(part, name, str, "") for name in ("text", "refusal"))
        elif kind in ("image_url", "input_image"):
            image = part.get("image_url")
            address = image.get("url") if isinstance(image, Mapping) else image
            content.file(address, "image", f"{field}.image_url")
        elif kind in ("file", "input_file"):
            file = part.get("file") if isinstance(part.get("file"), Mapping) else part
            content.file(file.get("file_data"), file.get("filename"), f"{field}.file_data")
        elif kind in ("image", "document") and isinstance(part.get("source"), Mapping):
            _from_source(content, part["source"], part.get("title") or kind, field)
            content.lost += [
                f"document.{name}" for name in ("citations", "context") if part.get(name)
            ]
        elif kind == "compaction" and isinstance(part.get("content"), str):
            content.texts.append(part["content"])
        elif kind != "tool_reference":
            raise bad(field, f"a part of type {kind[:40]!r} cannot be read here.")
    return content


def _from_source(content: Content, source: Mapping[str, Any], name: str, field: str) -> None:
    if source.get("type") == "text":
        content.texts.append(str(source.get("data", "")))
    elif source.get("type") == "base64":
        content.add(source.get("data"), str(source.get("media_type", "")), name, field)
    else:
        raise bad(field, "only files with their bytes are read.", "Send base64.")


class Transcript:
    """Gathers a client's messages, and the files of its questions.

    `ignored` are fields that have no effect here.
    """

    def __init__(
        self, body: Mapping[str, Any], met: Iterable[str], without_effect: Iterable[str]
    ) -> None:
        """Raises ConfigError for a field that is unknown."""
        given = {name for name, value in body.items() if value is not None}
        for name in given - {*met, *without_effect}:
            raise bad(name[:_SHOWN], "this field is not known here.", f"Leave out {name[:_SHOWN]}.")
        self.body = body
        self.ignored = [n for n in without_effect if body.get(n) or body.get(n) is False]
        self.messages: list[Message] = []
        self.system: list[str] = []
        self.files: dict[int, list[NewFile]] = {}  # by the place of their message
        self._names: dict[str, str] = {}
        self._searches = 0

    def part(self, holder: Mapping[str, Any], name: str, *met: str) -> Mapping[str, Any]:
        """Returns an object in another, of which only some fields have an effect."""
        found: Mapping[str, Any] = typed(holder, name, dict, {})
        self.only(found, name, *met)
        return found

    def only(self, found: Mapping[str, Any], name: str, *met: str) -> None:
        """Takes note of an object's fields that have no effect: all but these."""
        self.ignored += [f"{name}.{key}" for key in found if found[key] and key not in met]

    def sites(self, tool: Mapping[str, Any], limits: Mapping[str, Any]) -> NativeSearch:
        """Returns where a client's search may look; `limits` holds its domains.

        Raises ConfigError.
        """
        place = self.part(tool, "user_location", "type", "country", "approximate")
        place = place if "country" in place else self.part(place, "approximate", "country")
        self._searches += 1
        if self._searches > 1:
            raise bad("tools", "two of them search the web.", "Leave one out.")
        country = typed(place, "country", str, "")
        if country and not re.fullmatch("[A-Za-z]{2}", country):
            raise bad("country", f"{country[:_SHOWN]!r} is no country.", "Write two letters: DE.")
        uses = typed(tool, "max_uses", int, None)
        if uses is not None and uses < 1:
            raise bad("max_uses", f"{uses} is no number of searches.", "Leave out the tool.")
        lists = (domains(",".join(listed(limits.get(each), each, str)), each) for each in FILTERS)
        allowed, blocked = lists
        return NativeSearch(allowed, blocked, country or None, uses)

    def asked(self, *wanted: Any, **more: Any) -> Asked:
        """Returns the request, whose messages are all here; `wanted` as a Wish has it: tools,
        search, sites, options, schema."""
        model, system = typed(self.body, "model", str, ""), "\n\n".join(self.system)
        tools, search, *_ = wanted
        names = [*(spec.name for spec in tools), *((SEARCH_TOOL,) if search != "off" else ())]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise bad("tools", f"two of them are called {twice}.", "Give each a name of its own.")
        more["files"] = self.files
        wish = Wish(model, tuple(self.messages), system, *wanted, **more)
        ignored = tuple(dict.fromkeys(self.ignored))
        return Asked(wish, typed(self.body, "stream", bool, False), self.body, ignored)

    def remember(self, messages: Sequence[Message]) -> None:
        """Takes messages of before, whose calls may get their results now."""
        self._names |= {call.id: call.name for each in messages for call in each.tool_calls}

    def tool(self, name: Any, tool: Mapping[str, Any]) -> ToolSpec:
        """Returns a client's tool; one without a schema takes a text. Raises ConfigError."""
        if not isinstance(name, str) or not re.fullmatch(r"[\w.:-]{1,128}", name):
            raise bad("tools", f"{str(name)[:_SHOWN]!r} is no name of a tool.")
        self.only(tool, "tools", *_TOOL)
        given = tool.get("parameters") or tool.get("input_schema")
        schema = given or (_FREE if kind_of(tool) == "custom" else _NOTHING)
        if not isinstance(schema, Mapping):
            raise bad("tools", f"the schema of {name} is no object.")
        return ToolSpec(name, str(tool.get("description") or ""), schema)

    def texts(self, given: Content, where: str, between: str = "\n") -> str:
        """Returns the text of what is no question. Its files go, and model and client are told."""
        if given.files:
            self.ignored.append(f"{where}.files")
            given.texts.append(_UNSEEN)
        return between.join(filter(None, given.texts))

    def user(self, content: Content) -> None:
        """Adds a question, or more to the one before."""
        if content.files:
            self.files[len(self.messages)] = content.files
        self.messages.append(Message("user", content.text))
        self.ignored += content.lost

    def assistant(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        """Adds an answer; its calls join those of an answer just before."""
        self._names |= {call.id: call.name for call in calls}
        last = self.messages[-1] if self.messages else None
        if last and last.role == "assistant" and (calls or not last.tool_calls):
            text = "\n".join(filter(None, (last.content, text)))
            calls = (*last.tool_calls, *calls)
            self.messages.pop()
        if len({call.id for call in calls}) < len(calls):
            raise bad("tool calls", "two calls of an answer have the same id.")
        self.messages.append(Message("assistant", text, tool_calls=tuple(calls)))

    def result(self, call: str, given: Content, *, is_error: bool = False) -> None:
        """Adds the result of a call, without its files. Raises ConfigError where none waits."""
        text = self.texts(given, "tool results")
        if call not in self._names:
            raise bad("tool results", f"no call {call[:_SHOWN]!r} waits for this result.")
        name = self._names.pop(call)
        self.messages.append(
            Message("tool", text, tool_call_id=call, tool_name=name, is_error=is_error)
        )


def call_of(id: Any, name: Any, arguments: Any) -> ToolCall:
    """Returns a call from a client's history; arguments are JSON text or an object."""
    if not (isinstance(id, str) and id and isinstance(name, str) and name):
        raise bad("tool calls", "a call needs an id and a name.")
    given, problem = read_arguments(arguments if arguments is not None else "{}")
    return ToolCall(id, name, given, problem)


def schema_of(form: Any, named: Any, field: str) -> Mapping[str, Any] | None:
    """Returns the schema of an answer's form, which `named` holds; None for plain text."""
    kind = form.get("type") if isinstance(form, Mapping) else form
    if not form or kind == "text":
        return None
    schema = {"type": "object"} if kind == "json_object" else None
    if kind == "json_schema" and isinstance(named, Mapping):
        schema = named.get("schema")
    if not isinstance(schema, Mapping):
        what = f"there is no form {str(kind)[:40]!r}."
        raise bad(field, "its schema is no object." if kind == "json_schema" else what)
    return schema


def allowed(tools: tuple[ToolSpec, ...], names: Sequence[Any]) -> tuple[ToolSpec, ...]:
    """Returns the tools that a choice allows. Raises ConfigError for one that is not there."""
    if lost := next((name for name in names if name not in {s.name for s in tools}), None):
        raise bad("tool_choice", f"there is no tool {str(lost)[:_SHOWN]!r}.")
    return tuple(spec for spec in tools if spec.name in names)


def chosen(
    kind: str, name: Any, tools: tuple[ToolSpec, ...], search: Search, system: list[str]
) -> tuple[tuple[ToolSpec, ...], Search]:
    """Returns the tools and the search that a choice leaves: auto, none, required, or one `tool`.

    A forced choice becomes a sentence of the system text, since not every provider takes one.
    Raises ConfigError.
    """
    if kind == "none":
        return (), "off"
    if kind == "required" and (tools or search != "off"):
        system.append("Call a tool before you answer.")
    elif kind == "tool" and name == SEARCH_TOOL and search != "off":
        system.append("Search the web before you answer.")
    elif kind == "tool" and str(name) in {spec.name for spec in tools}:
        system.append(f"Call the tool {name} before you answer.")
    elif kind != "auto":
        raise bad("tool_choice", f"{str(name or kind)[:40]!r} fits none of the tools.")
    return tools, search


def theirs(data: Mapping[str, Any], wish: Wish) -> list[dict[str, Any]]:
    """Returns the calls of a `message` event that the client is to run."""
    names = {spec.name for spec in wish.tools}
    return [c for c in data["tool_calls"] if c["name"] in names and not c.get("problem")]


def placed(data: Mapping[str, Any], shown: str) -> list[dict[str, Any]]:
    """Returns the marks of a `message` event: {start, end, url, title, verdict, quote, passage}.

    Places are in `shown`, the text that the client has: streamed text may still hold a mark that
    the final text has lost.
    """
    text, marks = data["text"], []
    moved = None if text == shown else SequenceMatcher(None, text, shown, autojunk=False)
    blocks = moved.get_matching_blocks() if moved else ()
    for cited in data["citations"]:
        for mark in cited["marks"]:
            if mark.get("span") is None:
                continue
            start, end = mark["span"]
            if moved:
                start, end = _moved(start, blocks), _moved(end, blocks)
            about = {name: mark.get(name) for name in ("verdict", "by", "quote", "passage")}
            where = {"start": start, "end": max(start, end)}
            marks.append({**where, "url": cited["url"], "title": cited["title"], **about})
    return sorted(marks, key=lambda mark: (mark["start"], mark["end"]))


def parted(
    data: Mapping[str, Any], before: Sequence[str], shown: str, *, as_shown: bool = False
) -> tuple[str, list[list[dict[str, Any]]]]:
    """Returns the last part of a step's text, behind those of it `before` a search or a thought,
    and the marks of each part, with their places in it. A client has the last part as `shown`."""
    text, head = str(data["text"]), "".join(before)
    last = shown if as_shown or not text.startswith(head) else text[len(head) :]
    ends = list(accumulate(map(len, before), initial=0))
    parts: list[list[dict[str, Any]]] = [[] for _ in ends]
    for mark in placed(data, head + last):
        part = bisect_right(ends, mark["start"]) - 1
        start, end = mark["start"] - ends[part], mark["end"] - ends[part]
        parts[part].append({**mark, "start": start, "end": end})
    return last, parts


def _moved(at: int, blocks: Sequence[Any]) -> int:
    place = 0
    for block in blocks:
        if at < block.a:
            break
        place = block.b + min(at - block.a, block.size)
    return int(place)


# JSON on one line.
compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
