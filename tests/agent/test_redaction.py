"""A key is taken out of what servers say, however they cut or encode it; other words stay."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Observers
from searchloop.agent.observe.logs import Redactor
from searchloop.analysis.redaction import LEAST, redacted
from searchloop.search_backend.plugin import without_keys

KEYS = st.text(string.ascii_letters + string.digits + "-_+/=.", min_size=20, max_size=60)
WORDS = "The server said: something is wrong with this request, and nobody knows what it was."


def plain_base64(text: str) -> str:
    """As in the header of a basic login."""
    return base64.b64encode(text.encode()).decode()


# An encoding, and how many of its letters stand for one of the key at most.
ENCODINGS: Mapping[str, tuple[Callable[[str], str], float]] = {
    "as it is": (str, 1),
    "in capitals": (str.upper, 1),
    "reversed": (lambda key: key[::-1], 1),
    "base64": (plain_base64, 1.5),
    "base64 behind a name": (lambda key: plain_base64(f"me:{key}"), 1.5),
    "base64 before more": (lambda key: plain_base64(f"{key}, and more"), 1.5),
    "base64 for addresses": (lambda key: base64.urlsafe_b64encode(key.encode()).decode(), 1.5),
    "base64 of the reversed": (lambda key: plain_base64(key[::-1]), 1.5),
    "reversed base64": (lambda key: plain_base64(key)[::-1], 1.5),
    "hexadecimal": (lambda key: key.encode().hex(), 2),
    "hexadecimal in capitals": (lambda key: key.encode().hex().upper(), 2),
    "hexadecimal with colons": (lambda key: key.encode().hex(":"), 3),
    "hexadecimal escapes": (lambda key: "".join(f"\\x{b:02x}" for b in key.encode()), 4),
    "escaped for JSON": (lambda key: "".join(f"\\u{b:04x}" for b in key.encode()), 6),
    "escaped for HTML": (lambda key: "".join(f"&#{b};" for b in key.encode()), 6),
    "URL-encoded": (lambda key: quote(key, safe=""), 3),
    "URL-encoded as a form": (quote_plus, 3),
    "URL-encoded letter by letter": (lambda key: "".join(f"%{b:02X}" for b in key.encode()), 3),
    "base64 in hexadecimal": (lambda key: plain_base64(key).encode().hex(), 3),
    "URL-encoded base64": (lambda key: quote(plain_base64(key), safe=""), 3),
}


@pytest.mark.parametrize("name", ENCODINGS)
@given(key=KEYS, data=st.data())
def test_no_piece_of_a_key_stays(name: str, key: str, data: st.DataObject) -> None:
    """Whole or cut anywhere, at both ends; what stands around it is left."""
    encode, letters = ENCODINGS[name]
    coded = encode(key)
    # With this many letters, eight of the key are whole wherever the cut lies.
    least = min(len(coded), int((LEAST + 2) * letters) + 4)
    start = data.draw(st.integers(0, len(coded) - least))
    end = data.draw(st.integers(start + least, len(coded)))
    if name.startswith("base64 be"):  # the cut may leave only what is no key
        start, end = 0, len(coded)
    piece = coded[start:end]
    cleaned = redacted(f'before "{piece}" after', [key])
    assert piece not in cleaned
    assert "[secret]" in cleaned
    assert cleaned.startswith("before")
    assert cleaned.endswith("after")


@given(KEYS, st.text(max_size=300))
def test_what_holds_no_key_stays_as_it_is(key: str, text: str) -> None:
    """Other words, other keys, and pieces that are shorter than eight letters."""
    for other in (text, WORDS, key[:7], f"{plain_base64(WORDS)} {WORDS.encode().hex()}"):
        if key.casefold()[:1] not in other.casefold() or other in (WORDS, key[:7]):
            assert redacted(other, [key]) == other


def test_logs_engines_and_events_use_it(tmp_path: Path) -> None:
    """A line of the log, an engine's message, the words of a failure in the log of a chat."""
    key = "kq7Zx-0123456789abcdefXYZ"
    said = f"wrong key {plain_base64(key)} or {key[5:16]} or {key[::-1]}"
    redactor = Redactor(lambda: [key])
    for cleaned in (redactor(said), redactor.known(said), without_keys(said, [key])):
        assert cleaned.count("[") == 3
    log = EventLog(tmp_path / "log.sqlite3", observer=Observers(redact=redactor.known))
    session = log.create_session(model="m:x").id
    events = [
        ("user_message", {"text": said}),
        ("search_finished", {"attempts": [{"error": {"message": said}}], "query": "x"}),
        ("tool_result", {"is_error": True, "content": said, "details": {"why": said}}),
        ("notice", {"code": "x", "message": said, "remedy": ""}),
        ("run_finished", {"error": {"code": "x", "message": said, "remedy": ""}, "answer": "x"}),
    ]
    log.append(session, events)
    stored = log.read(session)
    log.close()
    assert stored[0].data["text"] == said  # what a person writes is stored as it is
    for event in stored[1:]:
        assert "[secret]" in str(event.data)
        assert not any(part in str(event.data) for part in (key[5:16], key[::-1], "a3E3Wngt"))
