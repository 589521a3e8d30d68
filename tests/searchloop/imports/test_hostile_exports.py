"""What somebody may write into an export, beyond what stands in `test_imports`."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchloop.agent.log import EventLog
from searchloop.imports import import_chats
from searchloop.render.export import EXPORTS
from tests.attached import png
from tests.tables import each_row

PDF = b"%PDF-1.7 nothing"
BIDI = "\u202egnp.exe\U000e0041\u2066"


def chat(name: str, kind: str, data: bytes, times: int = 1, **more: Any) -> dict[str, Any]:
    """A chat of our own export with a question that has a file."""
    digest = hashlib.sha256(data).hexdigest()
    file = {"digest": digest, "name": name, "media_type": kind, "width": 9, "pages": 7, **more}
    asked = {
        "seq": 1,
        "type": "user_message",
        "text": f"Why? {BIDI}",
        "attachments": [file] * times,
    }
    said = {"seq": 2, "type": "run_finished", "answer": f"So. {BIDI}", "reason": "stop"}
    kept = {"digest": "0", "data": base64.b64encode(data).decode(), "pages": ["One page."]}
    session = {"id": "", "title": f"{name} {BIDI}"}
    return {"searchloop_chat": 1, "session": session, "events": [asked, said], "files": [kept]}


def shown(log: EventLog) -> list[Mapping[str, Any]]:
    """The files of the questions of all chats."""
    events = (event for session in log.sessions() for event in log.read(session.id))
    return [file for event in events for file in event.data.get("attachments", ())]


# A file that is not what it says would make a provider refuse each question that follows.
@each_row(
    ("name", "kind", "data", "known"),
    [
        ("a.png", "image/png", b"no picture", None),
        ("cut.png", "image/png", png(2, 2)[:-9], None),
        ("wide.png", "image/png", png(9000, 1), None),
        ("a.txt", "image/png", png(1, 1), None),
        ("a.pdf", "application/pdf", b"no pdf", None),
        ("a.svg", "image/svg+xml", b"<svg onload=alert(1)>", None),
        ("large.png", "image/png", png(1, 1) + b"x" * 4_000_000, None),
        ("empty.txt", "text/plain", b"", None),
        ("b.png", "image/png", png(1, 1), ("b.png", "image/png", 1, 0)),
        ("b.pdf", "application/pdf", PDF, ("b.pdf", "application/pdf", 0, 1)),
        ("../../b.html", "text/html\nX: y", b"<b>", ("b.html", "text/htmlx:y", 0, 1)),
        (f"c{BIDI}.txt", "", b"c", ("cgnp.exe.txt", "text/plain", 0, 1)),
    ],
)
def test_a_file_of_an_export_is_what_its_bytes_say(
    name: str, kind: str, data: bytes, known: tuple[str, str, int, int] | None, tmp_path: Path
) -> None:
    """Its name, kind and sizes are ours; what is none of them is counted and left out."""
    log = EventLog(tmp_path / f"{len(list(tmp_path.iterdir()))}.db")
    report = import_chats(io.BytesIO(json.dumps([chat(name, kind, data)]).encode()), log, "m:x")
    [session] = log.sessions()
    found = [(f["name"], f["media_type"], f.get("width", 0), f.get("pages", 0)) for f in shown(log)]
    assert found == ([known] if known else [])
    assert report.left_out == ({} if known else {"attachments": 1})
    stored = log.attachments.data(session.id, hashlib.sha256(data).hexdigest())
    assert stored == (data if known else None)
    log.close()


def test_an_export_cannot_fill_a_question_or_hide_its_words(tmp_path: Path) -> None:
    """At most as many files as a question has here; no sign that turns or hides text; chats
    without an id stay apart."""
    log = EventLog(tmp_path / "log.db")
    items = [chat("many.txt", "text/plain", b"x", times=500), chat("b.txt", "", b"y")]
    assert import_chats(io.BytesIO(json.dumps(items).encode()), log, "m:x").brought == 2
    assert len(shown(log)) == 21
    for session in log.sessions():
        for name, export in EXPORTS.items():
            text = export.write(session, log.read(session.id))
            assert not set(BIDI) & set(text) - set("gnp.exe"), name
    log.close()
