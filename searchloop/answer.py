"""An answer as a value: typed, printed, and shown in a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Generic, cast

from searchloop.agent.errors import AgentError
from searchloop.agent.log.events import Event, citation_data, citation_from
from searchloop.agent.search.verdict_words import told
from searchloop.agent.types import Citation, RunReason, Source, ToolCall, Usage
from searchloop.agent.types.attachments import Attachment
from searchloop.analysis.characters import visible
from searchloop.render.words import words_of

if TYPE_CHECKING:  # type checkers bring it; until Python 3.13 only there a TypeVar has a default
    from typing_extensions import TypeVar

    from searchloop.events import ChatEvent

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")
_READ = {
    "attachments": lambda each: Attachment(**each),
    "citations": citation_from,
    "sources": lambda each: Source(**each) if isinstance(each, dict) else each,
    "tool_calls": lambda each: ToolCall(**each),
}


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Generic[T]):
    """An answer and how its run ended.

    `text` has marks such as `[1]`; `citations` say what stands at each, with the verdict of the
    check; `sources` is all that was found, opened or cited. `reason` is "stop", "limit" or
    "cancelled", or in an `AnswerError` "error" or "incomplete", with `error` {code, message,
    remedy}. `notices` say what else is to be known, such as an MCP server that did not come.
    `value` is the answer as the type that `schema=` asked for, None without one.

        answer = agent.ask("When does the ferry leave?", search="auto")
        print(answer)                       # the text, then its sources with their verdicts
        answer.citations[0].marks[0].verdict
    """

    text: str
    reason: RunReason
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...]
    usage: Usage
    search_path: str
    session_id: str
    model: str = ""
    error: Mapping[str, str] | None = None
    notices: tuple[str, ...] = ()
    _value: T | None = None

    @property
    def value(self) -> T:
        """The answer as a value. Raises AnswerError where the answer ended before it was whole."""
        if self.reason != "stop":
            what = f"The answer ended early ({self.reason}), so it has no value."
            error = {"code": "no_value", "message": what, "remedy": "Use its text, or ask again."}
            raise AnswerError(replace(self, error=self.error or error))
        return cast("T", self._value)

    @classmethod
    def of(cls, event: Event, before: Iterable[Event] = ()) -> Answer[T]:
        """Reads the data of a `run_finished` event, and the notices among those `before`."""
        data = event.data
        return cls(
            text=data["answer"],
            reason=data["reason"],
            citations=tuple(map(citation_from, data["citations"])),
            sources=tuple(Source(**s) for s in data["sources"]),
            usage=Usage(**data["usage"]),
            search_path=data["search_path"],
            session_id=data["session_id"],
            model=data.get("model", ""),
            error=data.get("error"),
            notices=tuple(
                f"{e.data['message']} {e.data.get('remedy') or ''}".strip()
                for e in before
                if e.type == "notice"
            ),
        )

    def __repr__(self) -> str:
        shown = textwrap.shorten(self.text, 60, placeholder=" ...")
        return f"<Answer {shown!r} {self.reason}, {len(self.citations)} cited>"

    def __str__(self) -> str:
        lines = [visible(self.text), *map(visible, self.notices)]
        for each, data in zip(self.citations, self._cited(), strict=True):
            title = visible(" ".join((each.title or each.url).split()))
            lines.append(f"[{each.n}] {title} {visible(each.url)}")
            lines += [f"    {words}" for words in told(data["marks"], words_of("en"))]
        return "\n".join([lines[0], *([""] if lines[1:] else []), *lines[1:]])

    def _cited(self) -> list[dict[str, Any]]:
        return [citation_data(each) for each in self.citations]

    def _repr_html_(self) -> str:
        name = f"a-{escape(self.session_id)}-{hash(self.text) & 0xFFFFFF:x}"
        from searchloop.render.shared_page import answer_html

        return answer_html(self.text, self._cited(), name)


class AnswerError(AgentError):
    """The model failed or broke off: `ask` raises it, and a stream after its last event.

    `code` is for programs, `message` says what happened and `remedy` what to do; `answer` is what
    came until then.

        try:
            agent.ask("When does the ferry leave?")
        except AnswerError as error:
            print(error.code, error.message, error.remedy, error.answer.text)
    """

    def __init__(self, answer: Answer[Any]) -> None:
        error = answer.error or {}
        super().__init__(*(error.get(name, "") for name in ("code", "message", "remedy")))
        self.answer = answer

    def __reduce__(self) -> tuple[type[AnswerError], tuple[Answer[Any]]]:
        return type(self), (self.answer,)


def typed(event: Event) -> ChatEvent:
    """Returns an event of a log as a value of its class in `searchloop.events`.

    One of a type that this version does not know comes as a `Notice` without words.

        typed(agent.log.last_event(answer.session_id))
    """
    from searchloop.events import CLASSES, Notice

    cls, found = CLASSES.get(event.type, Notice), dict[str, Any]()
    for name in cls.__dataclass_fields__.keys() - _OWN:
        value: Any = event.data.get(name)
        if isinstance(value, list):
            value = tuple(map(_READ[name], value) if name in _READ else value)
        if value is not None:
            found[name] = Usage(**value) if name == "usage" else value
    made: ChatEvent = cls(seq=event.seq, type=event.type, data=event.data, at=event.at, **found)
    return made


_OWN = frozenset(Event.__dataclass_fields__)
