"""Errors of both sides: a message ends before its remedy begins, whoever wrote it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from searchloop import ErrorCode
from searchloop.agent.errors import (
    AgentError,
    ConfigError,
    IncompleteError,
    ProviderError,
    busy,
    lacking,
)
from searchloop.agent.tools.backend import error_words
from searchloop.search_backend.types import EngineError, SearchBackendError
from tests.tables import each_row

KINDS = (AgentError, ConfigError, IncompleteError, ProviderError, SearchBackendError, EngineError)
WHOLE = (
    "It is.",
    "Is it?",
    "No!",
    "So…",
    'It says "No."',
    "(It is.)",
    "没有。",
    "Here:",
    "`a`.",
    "",
)
OPEN = (
    "unexpected EOF",
    "exit code 2",
    "no such file 'x'",
    "it is (really)",
    "没有",
    "EOF \n",
    "a,",
)


@each_row("kind", KINDS)
@each_row("message", [*WHOLE, *OPEN])
def test_a_message_ends_before_its_remedy(kind: type[AgentError], message: str) -> None:
    """A full stop is added where there is no end, and nowhere else."""
    error = kind("code", message, "Try again.")
    expected = message if message in WHOLE else f"{message.rstrip()}."
    assert error.message == expected
    told = error_words({"message": message, "remedy": "Try again."})
    assert str(error) == told == f"{expected} Try again.".strip()


@given(st.text())
def test_no_message_gets_two_ends(message: str) -> None:
    """What has an end keeps it; made once more, an error says the same."""
    once = AgentError("code", message).message
    assert AgentError("code", once).message == once
    assert once.rstrip(".") == message.rstrip().rstrip(".") or once == message.rstrip()


def test_codes_have_public_names() -> None:
    """Each is its text, so that it can be compared with the code of any error."""
    assert busy().code == ErrorCode.busy == "busy"
    assert {error.code for why in ("length", "refusal", "pause") if (error := lacking(why, ""))} < {
        *ErrorCode
    }
    assert {"declined", "mcp_timeout", "schema_mismatch", "rate"} < {*ErrorCode}
