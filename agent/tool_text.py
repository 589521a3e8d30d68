"""Calls that a model prints as text, taken out of the answer while it streams.

What could still become a call is held back and never shown; what can no longer be one is shown at
once. Marks that mean nothing else (`<tool_call>`, `[TOOL_CALLS]`, special tokens) count wherever
they stand outside code. Bare or fenced JSON and `name(...)` could as well be an answer *about*
calls: they count only when they end the text and a short lead-in at most stands before them.
The outcome is the same however the text is cut. How calls are written: `agent.tool_dialects`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent.tool_dialects import NAME_KEYS, Found, Reader, after_marks
from agent.types import ToolSpec

_LEAD_IN = 280  # characters of prose before a call that is not marked as one
_EXPLAINS = re.compile(
    r"\b(?:examples?|e\.g\.|for instance|such as|syntax|formats?|looks? like|would (?:be|look)"
    r"|schema|documentation|beispiel|exemple|ejemplo)\b",
    re.IGNORECASE,
)
_TAGS = (
    *("<tool_call>", "<tool_calls>", "<toolcall>", "<tool-call>", "<tool_use>", "<tool_code>"),
    *("<function_call>", "<function_calls>", "<functioncall>", "<function-call>", "<tools>"),
    *("<function=", "<function name=", "<tool_request>"),
    *("<invoke name=", "<|tool_call|>", "<|tool_call>", "<|tool_calls|>", "<|python_tag|>"),
    *("<|channel|>", "<|start|>", "<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
    *("<|tool_call_start|>", "<|action_start|>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
    *("<minimax:tool_call>", "<seed:tool_call>", "<start_function_call>"),
    *("<tool name=", "[TOOL_CALLS]", "[TOOL_CALL]", "[TOOL_REQUEST]", "</tool_call>", "<tool="),
)
_LINES = ("Action:", "commentary to=", "to=functions.", "assistantcommentary to=", "functools[")
_SPACES = ("", *(f"{s}{m}" for s in ("functions", "default_api", "tools") for m in ".:"))
_CHANNELS = frozenset(
    (
        *("functions", "default_api", "call", "function", "assistant", "commentary", "analysis"),
        *("print", "await", "to", "json"),
    )
)
_WORDS = re.compile(r"[\w-]+")
_FENCED = re.compile(r"```[ \t]*(?:json|tool_call|tool_calls|tool_code|python|xml|text|)[ \t]*\n")
_INFO = ("json", "tool_call", "tool_calls", "tool_code", "python", "xml", "text")
_MAY_BEGIN = re.compile(r"[<{\[`\n]")
_AFTER = re.compile(r"[\s;]*(?:Observation:.*)?", re.DOTALL)  # a result that the model made up
_ALIVE_LENGTH = 4096  # characters after which a call that may be one is waited for to its end


class TextCalls:
    """One answer's text in pieces; the visible text comes out, the calls are in `calls`."""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._reader = Reader.of(tools)
        self.calls: list[Found] = []
        self._held = ""
        self._line = ""  # of the current line: a dot if it has words, and its last character
        self._shown = 0
        self._lead: list[str] = []
        self._code = False
        names = list(self._reader.tools)
        self._names = [s + n.casefold().replace("-", "_") for s in _SPACES for n in names]
        self._tags = tuple(t.lower() for t in (*_TAGS, *(f"<{name}>" for name in names)))
        heads = [f"{p}{name}" for name in names for p in ("", "functions.", "default_api.")]
        heads += [f"print({head}" for head in heads] + [f"await {name}" for name in names]
        alone = (f"{name}\n{{" for name in names)
        self._starts = (*(f"{head}(" for head in heads), *alone, *_LINES)
        first = "".join(sorted({re.escape(start[0]) for start in self._starts}))
        self._find = re.compile(rf"[<{{\[`]|^[ \t]*[{first}]", re.MULTILINE)

    def feed(self, piece: str) -> str:
        """The part of the text that is now certain to be no call."""
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
        """What was held back and is no call, at the end of the text."""
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
            self._code = self._at_line_start() and self._held.startswith("```")
            self._show(3 if self._code else self._dead(alive), out)
        return "".join(out)

    def _dead(self, alive: bool) -> int:
        """How much of what is held is text for certain, now that no call begins here."""
        marks = after_marks(self._held, 0) if alive else 1
        return 1 if "`" in self._held[:marks] else max(1, marks)

    def _candidate(self) -> int:
        """Where in what is held a call, a fence or the end of a fence may begin."""
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
        """How much prose stands before what may come, and which, while that matters."""
        self._shown += len(text)
        if self._shown <= _LEAD_IN:
            self._lead.append(text)

    def _at_line_start(self) -> bool:
        return not self._line.strip()

    def _alive(self, text: str) -> bool:
        """Whether this may be the beginning of a call. Once False, more text changes nothing."""
        match text[0]:
            case "<":
                return self._tag_alive(text)
            case "[":
                return self._tag_alive(text) or self._list_alive(text)
            case "{":
                return self._object_alive(text)
            case "`":
                return self._fence_alive(text)
        if text.startswith("Action:"):
            rest = text[len("Action:") :].lstrip()
            return not rest or self._word_alive(rest)
        return any(s.startswith(text) or text.startswith(s) for s in self._starts)

    def _tag_alive(self, text: str) -> bool:
        low = text.lower()
        for tag in self._tags:
            if tag.startswith(low):
                return True
            if low.startswith(tag):
                rest = text[len(tag) :].lstrip()
                return tag.endswith("=") or not rest or rest[0] in "{[<`" or self._word_alive(rest)
        return False

    def _word_alive(self, rest: str) -> bool:
        """After a mark, words count only as the name of a tool or of a channel."""
        word = _WORDS.match(rest)
        if word is None:
            return False
        known = {
            *map(str.lower, self._reader.tools),
            "functions",
            "default_api",
            "call",
            "function",
        }
        known |= {"assistant", "commentary", "analysis", "print", "await", "to", "json"}
        whole = word.end() < len(rest)
        low = word[0].lower()
        return low in known if whole else any(k.startswith(low) for k in known)

    def _list_alive(self, text: str) -> bool:
        inner = text[1:].lstrip()
        if not inner or inner[0] == "{":
            return not inner or self._object_alive(inner)
        return any(s.startswith(inner) or inner.startswith(s) for s in self._starts)

    def _object_alive(self, text: str) -> bool:
        """An object whose first key is one of a call's keys, or names a tool."""
        key = re.match(r"\{\s*(?:[\"']([\w-]*)([\"']?)|\Z)", text)
        if key is None:
            return False
        keys = {*NAME_KEYS, "type", "id", "tool_calls", "arguments", "parameters", "thought"}
        keys |= {*self._reader.tools, "call_id", "args", "input", "action_input", "index"}
        if key[1] is None or not key[2]:
            return any(k.startswith(key[1] or "") for k in keys)
        if key[1] not in keys:
            return False
        value = re.compile(r"\s*:\s*[\"']([^\"']*)([\"']?)").match(text, key.end())
        if value is None or key[1] not in NAME_KEYS:
            return True
        if value[2]:
            return self._reader.named(value[1]) is not None
        low = value[1].casefold().replace("-", "_").lstrip()
        return any(name.startswith(low) for name in self._names)

    def _fence_alive(self, text: str) -> bool:
        if not self._at_line_start():
            return False
        opened = _FENCED.match(text)
        if opened is None:
            info = text[3:].lstrip(" \t")
            partial = "```".startswith(text[:3]) and "\n" not in text
            return partial and any(i.startswith(info) for i in _INFO)
        body = text[opened.end() :].lstrip()
        return not body or (body[0] != "`" and self._alive(body))

    def _read(self) -> tuple[list[Found], int]:
        """The calls that what is held begins with, at the end of the text; ([], 0) for none."""
        calls, end = self._reader.units(self._held)
        if not calls or self._marked():
            return calls, end
        return (calls, len(self._held)) if self._unmarked_counts(end) else ([], 0)

    def _marked(self) -> bool:
        text = self._held.lower()
        return text.startswith((*self._tags, *_LINES[1:4]))

    def _unmarked_counts(self, end: int) -> bool:
        if not _AFTER.fullmatch(self._held, end) or self._shown > _LEAD_IN:
            return False
        return not _EXPLAINS.search("".join(self._lead))


def rescue(text: str, tools: Iterable[ToolSpec]) -> tuple[str, list[Found]]:
    """(what is no call, the calls) of a whole text."""
    reading = TextCalls(tools)
    visible = reading.feed(text) + reading.close()
    return visible, reading.calls
