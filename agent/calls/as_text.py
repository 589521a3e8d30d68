"""Takes the calls that a model prints as text out of its answer while it streams.

`TextCalls` holds back text that may still become a call and shows other text at once. Marks with no
other meaning (`<tool_call>`, `[TOOL_CALLS]`, special tokens) count anywhere outside code. Bare or
fenced JSON and `name(...)` may belong to an answer *about* calls: they count only at the end of the
text, after a short lead-in at most. The dialects are those of vendors' chat templates.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from searchloop.agent.calls.arguments import coerced, extent, loose, value_at
from searchloop.agent.types import ToolSpec
from searchloop.analysis.schema_check import problems_with

_LEAD_IN = 280  # characters of prose before a call that is not marked as one
_EXPLAINS = re.compile(
    r"\b(?:examples?|e\.g\.|for instance|such as|syntax|formats?|looks? like|would (?:be|look)"
    r"|schema|documentation|beispiel|exemple|ejemplo)\b",
    re.IGNORECASE,
)
_TAG_WORDS = """
    <tool_call> <tool_calls> <tool_code> <function_call> <function_calls> <functioncall> <tools>
    <function= <|tool_call|> <|tool_call> <|tool_calls|> <|python_tag|> <|channel|> <|start|>
    <|tool_calls_section_begin|> <|tool_call_begin|> <|tool_call_start|> <|action_start|>
    <｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> <minimax:tool_call> <seed:tool_call>
    <start_function_call> [tool_calls] [tool_request] </tool_call> <toolcall> <|python_start|>
    <|tools_prefix|>
"""
_TAGS = (*_TAG_WORDS.split(), "<function name=", "<invoke name=")
_LINES = ("commentary to=", "to=functions.", "assistantcommentary to=", "functools[")
_SPACES = ("", *(f"{s}{m}" for s in ("functions", "default_api", "tools") for m in ".:"))
_INFO = ("json", "tool_call", "tool_calls", "tool_code", "python", "xml", "text")
_FENCED = re.compile(rf"```[ \t]*(?:{'|'.join(_INFO)}|)[ \t]*\n")
_MAY_BEGIN = re.compile(r"[<{\[`\n]")
_AFTER = re.compile(r"[\s;]*")
_ALIVE_LENGTH = 4096  # characters that decide if text may be a call; a longer one runs to its end


class TextCalls:
    """Splits one answer's text into visible text, which it returns, and `calls`."""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._reader = Reader({tool.name: tool for tool in tools})
        self.calls: list[Found] = []
        self._held = ""
        self._line = ""  # of the current line: a dot if it has words, and its last character
        self._shown = 0
        self._lead: list[str] = []
        self._code = False
        names = list(self._reader.tools)
        self._names = [s + n.casefold().replace("-", "_") for s in _SPACES for n in names]
        heads = [f"{p}{name}" for name in names for p in ("", "functions.", "default_api.")]
        heads += [f"print({head}" for head in heads] + [f"await {name}" for name in names]
        alone = (f"{name}\n{{" for name in names)
        self._starts = (*(f"{head}(" for head in heads), *alone, *_LINES)
        first = "".join(sorted({re.escape(start[0]) for start in self._starts}))
        self._find = re.compile(rf"[<{{\[`]|^[ \t]*[{first}]", re.MULTILINE)

    def feed(self, piece: str) -> str:
        """Returns the text that is now certain to be no call."""
        if not self._reader.tools:
            return piece
        idle = piece and not (self._held or self._code) and self._line[:1] == "."
        if idle and _MAY_BEGIN.search(piece) is None:  # the usual case: words within a line
            self._line = f".{piece[-1]}"
            self._count(piece)
            return piece
        self._held += piece
        return self._advance(last=False)

    def close(self) -> str:
        """Returns the held text that is no call, at the end of the answer."""
        return self._advance(last=True)

    def _advance(self, *, last: bool) -> str:
        out: list[str] = []
        while self._held:
            start = self._candidate()
            self._show(start, out)
            if not self._held:
                break
            if self._code:
                if not last and "```".startswith(self._held):
                    break
                self._code = not self._held.startswith("```")
                self._show(3 if not self._code else 1, out)
                continue
            alive = self._alive(self._held[:_ALIVE_LENGTH])
            if alive and not last:
                break
            calls, end = self._read() if alive else ([], 0)
            if calls:
                self.calls += calls
                self._held = self._held[end:]
                continue
            self._code = not self._line.strip() and self._held.startswith("```")
            self._show(3 if self._code else self._dead(alive), out)
        return "".join(out)

    def _dead(self, alive: bool) -> int:
        """Counts the held characters that are text for certain: no call begins here."""
        marks = after_marks(self._held, 0) if alive else 1
        return 1 if "`" in self._held[:marks] else max(1, marks)

    def _candidate(self) -> int:
        """Finds where a call, a fence or the end of a fence may begin in the held text."""
        at = 0
        while found := self._find.search(self._held, at):
            start, letter = found.end() - 1, self._held[found.end() - 1]
            line = (self._line + self._held[:start]).rpartition("\n")[2]
            fresh = not line.strip()
            quoted = line[-1:] in ("`", '"', "'", "“")
            if self._code or letter == "`":
                if letter == "`" and fresh:
                    return start
            elif letter in "<{[":
                if not quoted:
                    return start
            elif fresh:
                return start
            at = found.end()
        return len(self._held)

    def _show(self, count: int, out: list[str]) -> None:
        text, self._held = self._held[:count], self._held[count:]
        if not text:
            return
        out.append(text)
        line = (self._line + text).rpartition("\n")[2]
        self._line = f".{line[-1]}" if line.strip() else line[-1:]
        self._count(text)

    def _count(self, text: str) -> None:
        """Counts the prose before a call, and keeps as much as a lead-in may have."""
        self._shown += len(text)
        if self._shown <= _LEAD_IN:
            self._lead.append(text)

    def _alive(self, text: str) -> bool:
        """Returns True if a call may begin like this. Once False, more text changes nothing."""
        match text[0]:
            case "<":
                return self._tag_alive(text)
            case "[":
                return self._tag_alive(text) or self._list_alive(text)
            case "{":
                return self._object_alive(text)
            case "`":
                return self._fence_alive(text)
        return self._start_alive(text)

    def _start_alive(self, text: str) -> bool:
        return any(s.startswith(text) or text.startswith(s) for s in self._starts)

    def _tag_alive(self, text: str) -> bool:
        low = text.lower()
        return any(tag.startswith(low) or low.startswith(tag) for tag in _TAGS)

    def _list_alive(self, text: str) -> bool:
        inner = text[1:].lstrip()
        if not inner or inner[0] == "{":
            return not inner or self._object_alive(inner)
        return self._start_alive(inner)

    def _object_alive(self, text: str) -> bool:
        """Returns True for an object whose first key is a key of calls, or names a tool."""
        key = _FIRST_KEY.match(text)
        if key is None:
            return False
        keys = _CALL_KEYS | self._reader.tools.keys()
        if key[1] is None or not key[2]:
            return any(k.startswith(key[1] or "") for k in keys)
        if key[1] not in keys:
            return False
        value = _FIRST_VALUE.match(text, key.end())
        if value is None or key[1] not in NAME_KEYS:
            return True
        if value[2]:
            return self._reader.named(value[1]) is not None
        low = value[1].casefold().replace("-", "_").lstrip()
        return any(name.startswith(low) for name in self._names)

    def _fence_alive(self, text: str) -> bool:
        if self._line.strip():
            return False
        opened = _FENCED.match(text)
        if opened:
            body = text[opened.end() :].lstrip()
            return not body or (body[0] != "`" and self._alive(body))
        partial = "```".startswith(text[:3]) and "\n" not in text
        return partial and any(i.startswith(text[3:].lstrip(" \t")) for i in _INFO)

    def _read(self) -> tuple[list[Found], int]:
        """Returns the calls at the beginning of the held text and their end; ([], 0) for none."""
        calls, end = self._reader.units(self._held)
        if not calls or self._held.lower().startswith((*_TAGS, *_LINES)):
            return calls, end
        over = self._shown > _LEAD_IN or not _AFTER.fullmatch(self._held, end)
        about = over or _EXPLAINS.search("".join(self._lead))
        return ([], 0) if about else (calls, len(self._held))


def rescue(text: str, tools: Iterable[ToolSpec]) -> tuple[str, list[Found]]:
    """Returns (visible text, calls) of a whole text."""
    reading = TextCalls(tools)
    visible = reading.feed(text) + reading.close()
    return visible, reading.calls


Found = tuple[str, Mapping[str, Any]]
"""A call without an id: (name, arguments)."""

_WRAPPERS = r"(?:tool|function)[_ -]?(?:calls?|use|code|request)|tools|functions|antml:\w+|action"
_WRAPPERS += r"|\w+:(?:tool|function)_calls?|(?:start|end)_function_call"
MARKS = re.compile(
    rf"\s+|</?(?:{_WRAPPERS})\s*>|<\|?/?(?:tool|function)_?calls?\|?>|<\|/?[\w.:-]{{1,40}}\|>"
    r"|<｜[^｜<>]{1,40}｜>|\[/?TOOL_(?:CALLS?|REQUEST)\]|\[END_TOOL_REQUEST\]|(?:\[CALL_ID\]\w+)?\[ARGS\]|</s>"
    r"|```[ \t]*[\w-]*|functools(?=\[)|</?(?:function|invoke)\s*>",
    re.IGNORECASE,
)
_CLOSERS = re.compile(r"[\s\]})]*")
# `<function=f>`, `<invoke name="f">`; `to=functions.f ... {`; `call:f`, `function f`, `f`.
_HEAD = re.compile(
    r"<(?:function|invoke)(?:\s*=\s*|\s+name\s*=\s*)[\"']?(?P<element>[\w.:-]+)[\"']?\s*>"
    r"|(?:assistant)?\s*(?:<\|channel\|>)?\s*(?:commentary|analysis)?\s*to=(?:functions\.)?"
    r"([\w.:-]+)[^{]{0,80}(?={)"
    r"|(?:call:|function(?:\s|<｜tool▁sep｜>)+)?\s*([\w.:-]+)(?::\d+)?(?=[\s<`\[{])"
)
_ELEMENT_END = re.compile(r"(?:\s{0,99}</(?:function|invoke|tool)\s*>)?")
_BEFORE_CALL = re.compile(r"\[?\s*(?:print\(\s*)?")
_CALL = re.compile(r"(?:await\s+)?([A-Za-z_][\w.-]*)\(")
_BETWEEN_CALLS = re.compile(r"\s*[,;]?\s*")
_OBJECT = re.compile(r"\s*(?:<(?:arguments|parameters)>|```\w*)?\s*")
_PAIR = re.compile(r"\s*<parameter(?:\s*=\s*|\s+name\s*=\s*)[\"']?([\w.-]+)[\"']?\s*>")
_PAIR_END = re.compile(
    r"\s{0,99}(?:</parameter\s*>|(?=</(?:function|invoke|tool_call)|<parameter\b)|\Z)"
)
_PAIRS_END = re.compile(r"\s{0,99}</(?:arguments|parameters)>")
_OBJECT_END = re.compile(r"[\s}]*(?:</(?:arguments|parameters)>|```)?")
_KEY_VALUE = re.compile(
    r"\s*<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|(?=</tool_call>)|\Z)",
    re.DOTALL,
)
NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
ARGUMENT_KEYS: tuple[str, ...] = (
    *("arguments", "parameters", "args", "input", "params", "kwargs"),
    *("action_input", "tool_input", "tool_args", "tool_arguments"),
)
_BESIDE = {"type", "id", "call_id", "index", "thought", "reasoning"}
_CALL_KEYS = frozenset(
    {*NAME_KEYS, "type", "id", "call_id", "index", "thought", "tool_calls", "arguments"}
    | {"parameters", "args", "input", "action_input"}
)
_FIRST_KEY = re.compile(r"\{\s*(?:[\"']([\w-]*)([\"']?)|\Z)")
_FIRST_VALUE = re.compile(r"\s*:\s*[\"']([^\"']*)([\"']?)")
# `{key:<escape>text<escape>,other:7}`, also with `<|"|>` around texts.
_VALUE = re.compile(r'(?s)[\s,]{0,20}(?<![\w-])([\w-]++):(?:(<escape>|<\|"\|>)(.*?)\2|([\w.+-]++))')
_PREFIX = re.compile(r"^(?:functions|default_api|tools)[.:]|:\d+$")
_MOST = 16


@dataclass(frozen=True)
class Reader:
    """Reads calls of these tools."""

    tools: Mapping[str, ToolSpec]

    def named(self, raw: Any) -> str | None:
        """Finds a tool by name; ignores case, hyphens and a namespace. None for an unknown tool."""
        if not isinstance(raw, str) or len(raw) > 200:
            return None
        plain = _PREFIX.sub("", _PREFIX.sub("", raw.strip()))
        if plain in self.tools:
            return plain
        key = plain.casefold().replace("-", "_")
        meant = [name for name in self.tools if name.casefold().replace("-", "_") == key]
        return meant[0] if len(meant) == 1 else None

    def checked(self, raw_name: Any, raw: Any) -> Found | None:
        """Returns the call if that tool is on offer and takes these arguments."""
        name = self.named(raw_name)
        if name is None:
            return None
        schema = self.tools[name].parameters
        if isinstance(raw, str) and raw.strip():
            required = schema.get("required") or []
            alone = {required[0]: raw} if len(required) == 1 else []
            raw = loose(raw) if raw.lstrip()[0] in "{[" else alone
        if not isinstance(raw, dict | str | None):
            return None
        arguments = coerced(raw if isinstance(raw, dict) else {}, schema)
        return None if problems_with(arguments, schema) else (name, arguments)

    def units(self, text: str, at: int = 0) -> tuple[list[Found], int]:
        """Returns the calls from `at` on and their end; ([], at) if no call begins here."""
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
        return self._python(text, at) or self._headed(text, at)

    def _json(self, text: str, at: int) -> tuple[list[Found], int] | None:
        read = value_at(text, at)
        calls = list(self._calls_in(read[0])) if read else []
        if read is None or not calls or None in calls:
            return None
        return [call for call in calls if call], _end(_CLOSERS, text, read[1])

    def _calls_in(self, value: Any) -> Iterator[Found | None]:
        """Yields the calls in a JSON value; None for anything that is no call."""
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
            return (
                self.checked(name, inner) if len(value) == 1 and isinstance(inner, dict) else None
            )
        given = next((key for key in ARGUMENT_KEYS if key in value), None)
        rest = {k: v for k, v in value.items() if k != named and k not in _BESIDE}
        return self.checked(value[named], rest if given is None else value[given])

    def _headed(self, text: str, at: int) -> tuple[list[Found], int] | None:
        """Reads a name between marks, then JSON or pairs of keys and values: see `_HEAD`."""
        head = _HEAD.match(text, at)
        name = self.named(head[head.lastindex or 0]) if head else None
        if head is None or name is None:
            return None
        start = _end(_OBJECT, text, after_marks(text, head.end()))
        braced = text[start : start + 1] == "{"
        if braced and (escaped := _escaped(text, start + 1)):
            arguments, end = escaped
        elif braced and (read := value_at(text, start)):
            arguments, end = read[0], _end(_OBJECT_END, text, read[1])
        else:
            arguments, end = _pairs(text, head.end())
        if not arguments and not head["element"] and not braced:
            return None
        found = self.checked(name, arguments)
        return ([found], _end(_ELEMENT_END, text, end)) if found else None

    def _python(self, text: str, at: int) -> tuple[list[Found], int] | None:
        """Reads `f(key="value")`, alone, in a list or printed; literals only."""
        at = _end(_BEFORE_CALL, text, at)
        calls: list[Found] = []
        while (head := _CALL.match(text, at)) and self.named(head[1]):
            end, missing = extent(text, head.end() - 1)
            inside = text[head.end() : end - 1] if end and not missing else None
            found = None if inside is None else self._python_call(head[1], inside)
            if found is None or end is None:
                return None
            calls.append(found)
            at = _end(_BETWEEN_CALLS, text, end)
        return (calls, _end(_CLOSERS, text, at)) if calls else None

    def _python_call(self, name: str, inside: str) -> Found | None:
        try:
            made = ast.parse(f"f({inside})", mode="eval").body
            assert isinstance(made, ast.Call)
            keys = {k.arg: ast.literal_eval(k.value) for k in made.keywords if k.arg}
            given = [ast.literal_eval(arg) for arg in made.args]
        except (ValueError, SyntaxError, MemoryError, RecursionError, AssertionError):
            return None
        if not given:
            return self.checked(name, keys)
        alone = len(given) == 1 and isinstance(given[0], str | dict) and not keys
        return self.checked(name, given[0]) if alone else None


def _escaped(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """Reads the pairs of an object whose texts stand between marks, behind its brace."""
    found: dict[str, Any] = {}
    while pair := _VALUE.match(text, at):
        found[pair[1]] = pair[3] or pair[4] or ""
        at = pair.end()
    return (found, at + 1) if found and text[at : at + 1] == "}" else None


def _pairs(text: str, at: int) -> tuple[dict[str, Any], int]:
    """Reads `<parameter=key>value</parameter>` or `<arg_key>` pairs; ({}, at) if there are none."""
    found: dict[str, Any] = {}
    while True:
        named = _PAIR.match(text, at)
        pair = None if named else _KEY_VALUE.match(text, at)
        if named:
            end = _PAIR_END.search(text, named.end())
            stop, at = end.span() if end else (len(text), len(text))
            found[named[1]] = text[named.end() : stop].strip()
        elif pair:
            found[pair[1]] = pair[2].strip()
            at = pair.end()
        else:
            return found, _end(_PAIRS_END, text, at) if found else at


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Returns the end of a match at `at`; `at` without one."""
    found = pattern.match(text, at)
    return found.end() if found else at


def after_marks(text: str, at: int) -> int:
    """Returns the end of the marks and blanks that begin at `at`."""
    while (mark := MARKS.match(text, at)) and mark.end() > at:
        at = mark.end()
    return at
