"""Calls that a model wrote as text: the dialects, read from one place in a text. Pure.

Models are trained on many markups for a call, and what the server does not parse arrives as words.
All of them are marks (tags, special tokens, code fences) around a unit that names a tool and gives
its arguments: a JSON object, an element, `name {json}`, `name(key="value")`. So one grammar reads
them all, closed or not: marks, a unit, marks, a unit, ... A unit counts only when its name is
on offer and its arguments fit the tool's schema.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.arguments import coerced
from agent.loose_json import as_python, escaped_at, extent, loose, value_at
from agent.schema import problems_with
from agent.types import ToolSpec

Found = tuple[str, Mapping[str, Any]]
"""A call without an id: (name, arguments)."""

_WORDS = r"(?:tool|function)[_ -]?(?:calls?|use|code|request)|tools|functions|antml:\w+|action"
_WORDS += r"|\w+:(?:tool|function)_calls?|(?:start|end)_function_call"
MARKS = re.compile(
    rf"\s+|</?(?:{_WORDS})\s*>|<\|?/?(?:tool|function)_?calls?\|?>|<\|/?[\w.:-]{{1,40}}\|>"
    r"|<｜[^｜<>]{1,40}｜>|\[/?TOOL_(?:CALLS?|REQUEST)\]|\[END_TOOL_REQUEST\]|\[ARGS\]|</s>"
    r"|```[ \t]*[\w-]*|functools(?=\[)|</?(?:function|invoke)\s*>",
    re.IGNORECASE,
)
_CLOSERS = re.compile(r"[\s\]})]*")
_PAIR = re.compile(r"<(?:parameter|param|arg)(?:\s*=\s*|\s+name\s*=\s*)[\"']?([\w.-]+)[\"']?\s*>")
_PAIR_END = re.compile(
    r"\s*(?:</(?:parameter|param|arg)\s*>|(?=</(?:function|invoke|tool_call)|<(?:parameter|param)\b)"
    r"|\Z)"
)
_OBJECT_END = re.compile(r"[\s}]*(?:</(?:arguments|parameters)>|```)?")
_KEY_VALUE = re.compile(
    r"\s*<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|(?=</tool_call>)|\Z)",
    re.DOTALL,
)
_ROUTE = r"(?:assistant)?\s*(?:<\|channel\|>)?\s*(?:commentary|analysis)?\s*to=(?:functions\.)?"
NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
ARGUMENT_KEYS: tuple[str, ...] = (
    *("arguments", "parameters", "args", "input", "params", "kwargs"),
    *("action_input", "tool_input", "tool_args", "tool_arguments"),
)
_BESIDE = {"type", "id", "call_id", "index", "thought", "reasoning"}
_PREFIX = re.compile(r"^(?:functions|default_api|tools)[.:]|:\d+$")
_MOST = 16


@dataclass(frozen=True)
class Reader:
    """Reads calls of these tools."""

    tools: Mapping[str, ToolSpec]

    @classmethod
    def of(cls, specs: Iterable[ToolSpec]) -> Reader:
        """For what is on offer."""
        return cls({spec.name: spec for spec in specs})

    def named(self, raw: Any) -> str | None:
        """The tool that is meant; spelling of case, hyphens and a namespace do not matter."""
        if not isinstance(raw, str) or len(raw) > 200:
            return None
        plain = _PREFIX.sub("", _PREFIX.sub("", raw.strip()))
        if plain in self.tools:
            return plain
        key = plain.casefold().replace("-", "_")
        meant = [name for name in self.tools if name.casefold().replace("-", "_") == key]
        return meant[0] if len(meant) == 1 else None

    def checked(self, raw_name: Any, raw: Any) -> Found | None:
        """The call, if that tool is on offer and takes these arguments."""
        name = self.named(raw_name)
        if name is None:
            return None
        if isinstance(raw, str):
            alone = raw.strip() and raw.lstrip()[:1] not in "{["
            raw = self._single(name, raw) if alone else loose(raw) if raw.strip() else {}
        if raw is None:
            raw = {}
        schema = self.tools[name].parameters
        if not isinstance(raw, dict):
            return None
        arguments = coerced(raw, schema)
        return None if problems_with(arguments, schema) else (name, arguments)

    def units(self, text: str, at: int = 0) -> tuple[list[Found], int]:
        """The calls from `at` on and where they end; nothing if there is no call right here."""
        calls: list[Found] = []
        end = at
        while len(calls) < _MOST:
            start = after_marks(text, end)
            unit = self._unit(text, start)
            if unit is None:
                break
            found, end = unit
            calls += found
            end = after_marks(text, end)
        return (calls, end) if calls else ([], at)

    def _unit(self, text: str, at: int) -> tuple[list[Found], int] | None:
        if text[at : at + 1] in ("{", "["):
            return self._json(text, at) or self._python(text, at)
        for read in (self._element, self._route, self._react, self._python, self._plain):
            unit = read(text, at)
            if unit:
                return unit
        return None

    def _json(self, text: str, at: int) -> tuple[list[Found], int] | None:
        read = value_at(text, at)
        if read is None:
            return None
        value, end = read
        calls = list(self._calls_in(value))
        if not calls or None in calls:
            return None
        closers = _CLOSERS.match(text, end)
        return [c for c in calls if c], closers.end() if closers else end

    def _calls_in(self, value: Any) -> Iterator[Found | None]:
        """The calls that a JSON value spells; None for what is no call."""
        if isinstance(value, list):
            for item in value[:_MOST]:
                yield from self._calls_in(item)
        elif not isinstance(value, dict) or not value:
            yield None
        elif isinstance(value.get("tool_calls"), list) and value["tool_calls"]:
            yield from self._calls_in(value["tool_calls"])
        elif isinstance(value.get("function"), dict):
            yield from self._calls_in(value["function"])
        else:
            yield self._call_in(value)

    def _call_in(self, value: dict[str, Any]) -> Found | None:
        named = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), None)
        if named is None:
            name, inner = next(iter(value.items()))
            one = len(value) == 1 and isinstance(inner, dict)
            return self.checked(name, inner) if one else None
        given = next((key for key in ARGUMENT_KEYS if key in value), None)
        if given is not None:
            return self.checked(value[named], value[given])
        rest = {k: v for k, v in value.items() if k != named and k not in _BESIDE}
        return self.checked(value[named], rest)

    def _element(self, text: str, at: int) -> tuple[list[Found], int] | None:
        """`<function=f>`, `<invoke name="f">` or `<f>`, with what is in it."""
        head = re.compile(
            r"<(?:(?:function|invoke|tool|tool_call)(?:\s*=\s*|\s+name\s*=\s*)[\"']?([\w.:-]+)[\"']?"
            r"|(?:function|name|tool_name)>\s*([\w.:-]+)\s*</(?:function|name|tool_name)"
            r"|([\w-]+))\s*>"
        ).match(text, at)
        if head is None:
            return None
        name = self.named(head[1] or head[2] or head[3])
        if name is None:
            return None
        arguments, end = self._inside(text, head.end(), name)
        close = re.compile(rf"\s*</(?:function|invoke|tool|{re.escape(head[3] or name)})\s*>")
        closed = close.match(text, end)
        found = self.checked(name, arguments)
        return ([found], closed.end() if closed else end) if found else None

    def _inside(self, text: str, at: int, name: str) -> tuple[Any, int]:
        """The arguments inside an element: JSON, parameters with names, or tags of their names."""
        start = re.compile(r"\s*(?:<(?:arguments|parameters)>|```\w*)?\s*").match(text, at)
        start_at = start.end() if start else at
        if text[start_at : start_at + 1] == "{":
            read = value_at(text, start_at)
            if read:
                tail = re.compile(r"[\s}]*(?:</(?:arguments|parameters)>|```)?").match(
                    text, read[1]
                )
                return read[0], tail.end() if tail else read[1]
        pairs = self._pairs(text, start_at, name)
        return pairs or ({}, at)

    def _pairs(self, text: str, at: int, name: str) -> tuple[dict[str, Any], int] | None:
        known = (
            "|".join(map(re.escape, self.tools[name].parameters.get("properties", {}))) or r"(?!)"
        )
        own = re.compile(rf"\s*<({known})>(.*?)</\1>", re.DOTALL)
        found: dict[str, Any] = {}
        while True:
            begin = re.compile(r"\s*").match(text, at)
            here = begin.end() if begin else at
            named = _PAIR.match(text, here)
            if named:
                end = _PAIR_END.search(text, named.end())
                stop = end or re.compile(r"\Z").search(text, here)
                assert stop is not None
                found[named[1]] = text[named.end() : stop.start()].strip()
                at = stop.end()
                continue
            pair = own.match(text, at) or _KEY_VALUE.match(text, at)
            if pair is None:
                break
            found[pair[1]] = pair[2].strip()
            at = pair.end()
        tail = re.compile(r"\s*</(?:arguments|parameters)>").match(text, at)
        return (found, tail.end() if tail else at) if found else None

    def _route(self, text: str, at: int) -> tuple[list[Found], int] | None:
        """`commentary to=functions.f <|constrain|>json<|message|>{...}`."""
        head = re.compile(_ROUTE + r"([\w.:-]+)[^{]{0,80}(?={)").match(text, at)
        return self._with_object(text, head[1], head.end()) if head else None

    def _react(self, text: str, at: int) -> tuple[list[Found], int] | None:
        """`Action: f` and, on the next line, `Action Input: {...}`."""
        head = re.compile(r"Action:\s*([\w.:-]+)\s*\n\s*Action Input:\s*").match(text, at)
        if head is None:
            return None
        if text[head.end() : head.end() + 1] == "{":
            return self._with_object(text, head[1], head.end())
        line = re.compile(r"[^\n]*").match(text, head.end())
        found = self._only_string(head[1], line[0].strip().strip("\"'")) if line else None
        return ([found], line.end()) if line and found else None

    def _plain(self, text: str, at: int) -> tuple[list[Found], int] | None:
        """`f {json}`, also after `call:` or `function`, or `f` and pairs of keys and values."""
        head = re.compile(
            r"(?:call:|function(?:\s|<｜tool▁sep｜>)+)?\s*([\w.:-]+)(?::\d+)?(?=[\s<`\[{])"
        ).match(text, at)
        name = self.named(head[1]) if head else None
        if head is None or name is None:
            return None
        start = after_marks(text, head.end())
        if text[start : start + 1] == "{":
            return self._with_object(text, name, start)
        pairs = self._pairs(text, head.end(), name)
        found = self.checked(name, pairs[0]) if pairs else None
        return ([found], pairs[1]) if pairs and found else None

    def _with_object(self, text: str, name: str, at: int) -> tuple[list[Found], int] | None:
        read = value_at(text, at) or escaped_at(text, at)
        found = self.checked(name, read[0]) if read else None
        return ([found], read[1]) if read and found else None

    def _only_string(self, name: str, value: str) -> Found | None:
        known = self.named(name)
        return self.checked(known, self._single(known, value)) if known else None

    def _single(self, name: str, value: str) -> dict[str, str] | list[str]:
        """The one argument that a tool needs; a list, which is none, where it needs more."""
        required = list(self.tools[name].parameters.get("required", ()))
        return {required[0]: value} if len(required) == 1 else []

    def _python(self, text: str, at: int) -> tuple[list[Found], int] | None:
        """`f(key="value")`, alone, in a list or printed; literals only."""
        opened = re.compile(r"\[?\s*(?:print\(\s*)?").match(text, at)
        at = opened.end() if opened else at
        calls: list[Found] = []
        while head := re.compile(r"(?:await\s+)?([A-Za-z_][\w.-]*)\(").match(text, at):
            if self.named(head[1]) is None:
                break
            end = _balanced(text, head.end() - 1)
            found = self._python_call(head[1], text[head.end() : end - 1]) if end else None
            if found is None:
                return None
            calls.append(found)
            more = re.compile(r"\s*[,;]?\s*").match(text, end or at)
            at = more.end() if more else len(text)
        closed = re.compile(r"[\s)\]]*").match(text, at)
        return (calls, closed.end() if closed else at) if calls else None

    def _python_call(self, name: str, inside: str) -> Found | None:
        try:
            made = ast.parse(f"f({as_python(inside)})", mode="eval").body
            assert isinstance(made, ast.Call)
            keys = {k.arg: ast.literal_eval(k.value) for k in made.keywords if k.arg}
            given = [ast.literal_eval(arg) for arg in made.args]
        except (ValueError, SyntaxError, MemoryError, RecursionError, AssertionError):
            return None
        if len(given) == 1 and isinstance(given[0], dict) and not keys:
            return self.checked(name, given[0])
        if given:
            alone = len(given) == 1 and isinstance(given[0], str) and not keys
            return self._only_string(name, given[0]) if alone else None
        return self.checked(name, keys)


def after_marks(text: str, at: int) -> int:
    """Where the marks and blanks that begin at `at` end."""
    while (mark := MARKS.match(text, at)) and mark.end() > at:
        at = mark.end()
    return at


def _balanced(text: str, at: int) -> int | None:
    end, missing = extent(text, at)
    return None if missing else end
