"""A chat of another program as a tree of messages, and the events of our log that it becomes.

A question with each of its answers is a turn; turns behind the same turn are siblings, as in
`agent.log.session`. Everything in a chat is text of strangers: it brings no right, no folder, no
setting and no tool call along.
"""

from __future__ import annotations

import math
import re
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from searchloop.agent.log.events import citation_data, source_data
from searchloop.agent.text import well_formed
from searchloop.agent.types import Citation, Mark, Source
from searchloop.agent.types.attachments import Attachment
from searchloop.analysis.characters import visible

_TITLE = 200  # characters
_WITHIN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
Page = tuple[str, str]  # address and title of a source
Said = tuple[str, dict[str, Any], float]  # the type of an event, its data, its time


@dataclass(slots=True)
class Node:
    """A message, or a step that says nothing. `parts` are texts, and the pages cited there."""

    id: str
    parent: str | None
    role: str = ""  # user, assistant, or nothing
    parts: list[str | tuple[Page, ...]] = field(default_factory=list)
    at: float = 0.0
    model: str = ""
    thinking: str = ""
    pages: list[Page] = field(default_factory=list)  # found, and cited nowhere
    attachments: list[Attachment] = field(default_factory=list)

    def attach(self, names: Iterable[object], unknown: Unknown) -> None:
        """Names the files of a message that are not in the export, in its text."""
        if told := [clean(name)[:200] or "file" for name in names]:
            unknown["files"] += len(told)
            self.parts.append(f"\n\n[Attached: {', '.join(told)}]")


@dataclass(slots=True)
class ImportedChat:
    """A chat of a file."""

    origin: str
    id: str
    title: str = ""
    created: float = 0.0
    updated: float = 0.0
    nodes: Mapping[str, Node] = field(default_factory=dict)
    current: str | None = None  # the last message of the branch on show
    pinned: bool = False
    archived: bool = False
    files: Sequence[tuple[str, bytes, str]] = ()  # digest, content, texts of the pages as JSON

    def as_dict(self) -> dict[str, Any]:
        """Returns what is stored of it, as JSON."""
        events = _Writer(self).events()
        updated = self.updated or max((at for *_, at in events), default=0.0) or time.time()
        flags = {"pinned": self.pinned, "archived": self.archived}
        files = [(digest, b64encode(data).decode(), texts) for digest, data, texts in self.files]
        return {
            "origin": self.origin,
            "id": self.id or f"{self.title}\0{self.created}\0{len(self.nodes)}",
            "title": title_of(self),
            "created": min(self.created or updated, updated),
            "updated": updated,
            "settings": {"imported": self.origin, **{k: True for k, v in flags.items() if v}},
            "events": events,
            "files": files,
        }


def clean(value: object) -> str:
    """Returns a text without control and invisible characters; of anything else nothing."""
    return _WITHIN.sub("", visible(well_formed(value))) if isinstance(value, str) else ""


def not_read(error: Exception) -> str:
    """Returns the sentence about a chat that could not be read."""
    why = str(error) if type(error) is ValueError else "it is damaged"
    return f"One chat was not read: {why[:200]}."


def title_of(chat: ImportedChat) -> str:
    """Returns the title on one line, or the first words of the first question."""
    words = " ".join(clean(chat.title).split())
    if not words:
        asked = (n for n in chat.nodes.values() if n.role == "user")
        words = " ".join(" ".join(p for p in n.parts if isinstance(p, str)) for n in asked)
        words = " ".join(words[: 4 * _TITLE].split())[:60]
    return words[:_TITLE]


def moment(value: object) -> float:
    """Returns seconds since 1970 of a number or an ISO date; 0 for what is neither, or ahead."""
    at = 0.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        at = float(value) if abs(value) < 1e17 else 0.0
        at = at / 1e9 if at > 1e14 else at / 1e3 if at > 1e11 else at  # ns and ms
    elif isinstance(value, str):
        try:
            at = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            at = 0.0
    return at if math.isfinite(at) and 0 < at <= time.time() + 86_400 else 0.0


def page(url: object, title: object = "") -> Page | None:
    """Returns an address of the web with its title; None for every other kind of address."""
    text = clean(url).strip()
    if not re.match(r"https?://[^\s/]", text, re.IGNORECASE) or len(text) > 4000:
        return None
    return text, " ".join(clean(title).split())[:300]


class _Writer:
    """Writes the events of one chat."""

    def __init__(self, chat: ImportedChat) -> None:
        self._chat = chat
        self._events: list[Said] = []
        self._first: dict[int, int] = {}  # of each turn, the first that follows it
        self._end = 0  # the last turn of the branch on show
        self._at = chat.created or chat.updated or time.time()
        self._numbers: dict[str, Source] = {}
        self._last = 0  # the highest number of a source
        self._children: dict[str | None, list[Node]] = {}
        for node in chat.nodes.values():
            parent = node.parent if node.parent in chat.nodes else None
            self._children.setdefault(parent, []).append(node)

    def events(self) -> list[Said]:
        """Writes all turns, depth first, and shows the branch that was on show."""
        on_show, shown = self._on_show(), 0
        # What a circle of parents keeps from every root comes last.
        roots = [*self._children.get(None, []), *self._chat.nodes.values()]
        # (node, turn before it, question under way, its answer so far)
        waiting: list[tuple[Node, int, Node | None, list[Node]]] = [
            (node, 0, None, []) for node in reversed(roots)
        ]
        seen: set[str] = set()
        while waiting:
            node, before, question, answer = waiting.pop()
            if node.id in seen:
                continue
            seen.add(node.id)
            if node.role == "user":
                if question:  # two in a row: the first one has no answer
                    before = self._turn(question, answer, before)
                question, answer = node, []
            else:
                answer = [*answer, node] if node.role else answer
            below = [each for each in self._children.get(node.id, []) if each.id not in seen]
            ends = not below or (bool(answer) and any(c.role == "user" for c in below))
            if ends and (question or answer):
                asked = question or Node("", None, "user", ["…"], answer[0].at)
                before = self._turn(asked, answer, before)
                question, answer = None, []
            shown = before if node.id in on_show else shown
            waiting += [(child, before, question, answer) for child in reversed(below)]
        if shown and shown != self._end:
            self._add("branch_chosen", {"turn": shown})
        return self._events

    def _on_show(self) -> set[str]:
        ids, node = set[str](), self._chat.nodes.get(self._chat.current or "")
        while node and node.id not in ids:
            ids.add(node.id)
            node = self._chat.nodes.get(node.parent or "")
        return ids

    def _turn(self, question: Node, answer: Sequence[Node], parent: int) -> int:
        """Writes a question and its answer behind the turn `parent`, 0 for none; returns the turn's
        number.
        """
        first = self._first.get(parent)
        if first is None and parent and parent != self._end:
            self._add("branch_chosen", {"turn": parent})
        self._at = question.at or self._at
        text = "".join(part for part in question.parts if isinstance(part, str)).strip()
        asked: dict[str, Any] = {"text": text or "…", "imported": True}
        if question.attachments:
            asked["attachments"] = list(map(self._attached, question.attachments))
        if first:
            asked["replaces"] = first
        number = self._end = self._add("user_message", asked)
        self._first.setdefault(parent, number)
        self._answer(answer, number)
        return number

    def _answer(self, nodes: Sequence[Node], number: int) -> None:
        self._at = next((node.at for node in nodes if node.at), self._at)
        model = next((node.model for node in reversed(nodes) if node.model), "") or "-"
        text, citations, sources = self._written(nodes)
        path = "native" if sources else "off"
        run = f"imported-{number}"
        started = {"run_id": run, "model": model, "mode": "ask", "imported": True}
        self._add("run_started", {**started, "search": path, "search_path": path})
        if nodes:
            thinking = "\n\n".join(node.thinking for node in nodes if node.thinking)
            said = {"text": text, "thinking": thinking, "tool_calls": [], "sources": sources}
            step = {"step": 1, "stop_reason": "stop", "details": {"imported": True}}
            self._at = next((node.at for node in reversed(nodes) if node.at), self._at)
            self._add("message", {**said, **step, "citations": citations})
        else:
            told = {"code": "no_answer", "message": "The file holds no answer to this question."}
            self._add("notice", told)
        ended = {"run_id": run, "reason": "stop" if nodes else "incomplete", "model": model}
        self._add("run_finished", {**ended, "search_path": path})  # with what its message says

    def _written(self, nodes: Sequence[Node]) -> tuple[str, list[Any], list[Any]]:
        """Returns the answer with our numbers in it, its citations, and its sources, as JSON."""
        text, marks, touched = "", dict[str, list[Mark]](), dict[str, Source]()
        for node in nodes:
            parts = [part for part in node.parts if part]
            text = f"{text.rstrip()}\n\n" if text and parts else text
            for part in parts:
                if isinstance(part, str):
                    text += part
                    continue
                for url, title in dict.fromkeys(part):
                    source = self._number(url, title)
                    written = f"[{source.n}]"
                    marks.setdefault(url, []).append(Mark((len(text), len(text) + len(written))))
                    touched[url] = Source(url, source.title, "cited", source.n)
                    text += written
            for url, title in node.pages:
                touched.setdefault(url, self._number(url, title))
        cited = [
            citation_data(Citation(touched[url].n or 0, url, touched[url].title, tuple(places)))
            for url, places in marks.items()
        ]
        return text, cited, [source_data(source) for source in touched.values()]

    def _number(self, url: str, title: str) -> Source:
        known = self._numbers.get(url)
        if known is None:
            self._last += 1
            known = self._numbers[url] = Source(url, title, "found", self._last)
        return known

    def _attached(self, file: Attachment) -> dict[str, Any]:
        """Returns a file as JSON, with a number for each of its pages."""
        numbers = [self._number(file.url(n), file.title(n)).n for n in range(1, file.pages + 1)]
        return replace(file, n=numbers[0] or 0 if numbers else 0).as_dict()

    def _add(self, kind: str, data: dict[str, Any]) -> int:
        self._events.append((kind, data, self._at))
        return len(self._events)


def dicts(value: object) -> Iterator[dict[str, Any]]:
    """Yields the dicts of a list; nothing of anything else."""
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each


Unknown = Counter[str]  # parts of chats that are not brought along, by their name
