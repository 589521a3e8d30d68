"""The classes of events: made from the table, one for each type, readable by `match`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

from searchloop import Event, events, typed
from searchloop.agent.log import events as table
from searchloop.agent.log.session import EventData
from searchloop.agent.types import Citation, Source, Usage
from searchloop.events import CLASSES, ChatEvent
from searchloop.testing import RecordedSearch, call
from tests.searchloop.both_faces import opened
from tests.source_tree import ROOT
from tests.tables import each_row


def test_every_event_that_the_code_writes_has_a_class() -> None:
    """No type is missing from the table, and no field from the types of what events hold."""
    rows = re.findall(r"^\| ([a-z_, ]+) \|", table.__doc__ or "", re.M)
    told = set(re.findall(r"[a-z_]+", " ".join(rows)))
    assert set(CLASSES) == told - {"type"}
    assert set(CLASSES.values()) == set(get_args(ChatEvent))
    fields = {field for each in CLASSES.values() for field in each.__annotations__}
    assert fields - {"type"} == EventData.__annotations__.keys() - {"provider_data"}
    for folder in ("agent", "searchloop", "web"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            written = re.findall(r"""(?:emit|recorder|self)\.event\(\s*"([a-z_]+)",""", text)
            assert set(written) <= set(CLASSES), path


@each_row("name", sorted(CLASSES))
def test_an_event_without_data_is_a_value_with_empty_fields(name: str) -> None:
    """A log of an earlier version may lack a field; nothing is None that the class does not say."""
    made = typed(Event(3, name, {}, 1.5))
    assert type(made) is CLASSES[name]
    assert (made.seq, made.type, made.at, isinstance(made, Event)) == (3, name, 1.5, True)
    hash(made.type)
    for field, kind in type(made).__annotations__.items():
        assert getattr(made, field) is not None or "None" in kind


def test_an_unknown_event_is_a_notice() -> None:
    """A newer process may have written it; its data are there."""
    made = typed(Event(1, "from_the_future", {"x": 1}, 0.0))
    assert isinstance(made, events.Notice)
    assert (made.type, made.data, made.message) == ("from_the_future", {"x": 1}, "")


def test_values_inside_are_typed(tmp_path: Path) -> None:
    """Usage, sources, citations and calls are values, as in an answer; `match` takes fields; each
    field is what its annotation says."""
    steps = (call("open_page", url="https://a.example/"), "It opened in 1932 [1].")
    search = RecordedSearch({"https://a.example/": "The bridge opened in 1932."})
    with opened("Agent", tmp_path, *steps, search_backend=search) as agent:
        got = list(agent.stream("Read https://a.example/", search="local"))
    seen = []
    for event in got:
        hints = get_type_hints(type(event))
        for name in type(event).__annotations__.keys() - {"type"}:
            held = get_origin(hints[name]) or hints[name]
            assert isinstance(getattr(event, name), held), name
        match event:
            case events.TextDelta(text):
                seen.append("text")
                assert text
            case events.Message(text=text, usage=Usage(), tool_calls=calls) if calls:
                seen.append(calls[0].name)
            case events.RunFinished(sources=sources, citations=citations):
                assert all(isinstance(s, Source) for s in sources)
                assert all(isinstance(c, Citation) for c in citations)
                seen.append(event.reason)
    assert list(dict.fromkeys(seen)) == ["open_page", "text", "stop"]
