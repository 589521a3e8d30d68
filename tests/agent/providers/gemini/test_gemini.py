"""Gemini: what is sent, and that no history can be refused."""

from __future__ import annotations

from typing import Any

import pytest

from searchloop.agent.errors import NativeSearchRejected
from searchloop.agent.types import NativeSearch, ToolSpec
from tests.agent.providers.vendors import GEMINI

MODEL, ask, ours = GEMINI.model, GEMINI.ask, GEMINI.recorded
SCHEMA = {
    "type": "object",
    "properties": {"day": {"type": "string"}},
    "additionalProperties": False,
}
FERRY = ToolSpec("ferry_times", "When ferries leave.", SCHEMA)


# --- requests ---


@pytest.mark.parametrize(
    ("model", "tools"),
    [
        ("gemini-2.0-flash", [{"googleSearch": {}}]),
        ("gemini-2.5-pro", [{"googleSearch": {}, "urlContext": {}}]),
        (MODEL, [{"googleSearch": {}, "urlContext": {}}]),
    ],
)
def test_the_search_tool(model: str, tools: list[Any]) -> None:
    """Search, and reading of pages where the model can; the flag only where it is needed."""
    sent = ask(model=model, native_search=NativeSearch())
    assert sent["tools"] == tools
    assert "toolConfig" not in sent


def test_search_and_functions_together() -> None:
    """One tool object with the flag on newer models; an older one is not even asked."""
    sent = ask(tools=(FERRY,), native_search=NativeSearch())
    (tool,) = sent["tools"]
    assert set(tool) == {"googleSearch", "urlContext", "functionDeclarations"}
    assert sent["toolConfig"] == {"includeServerSideToolInvocations": True}
    with pytest.raises(NativeSearchRejected) as caught:
        ask(model="gemini-2.5-flash", tools=(FERRY,), native_search=NativeSearch())
    assert "local search" in caught.value.remedy


def test_what_this_search_cannot_do() -> None:
    """A limit to domains would be lost without a word, so it is refused."""
    for search in (NativeSearch(("a.example",)), NativeSearch((), ("b.example",))):
        with pytest.raises(NativeSearchRejected) as caught:
            ask(native_search=search)
        assert "domains" in caught.value.message


def test_thoughts_are_asked_for_where_they_exist() -> None:
    """A model without thinking would refuse the setting."""
    assert "generationConfig" not in ask(model="gemini-2.0-flash")
    assert "generationConfig" in ask(model="gemini-2.5-flash")
    assert "generationConfig" not in ask(model="stranger-1")
