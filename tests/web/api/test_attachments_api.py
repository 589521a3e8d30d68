"""Files of questions over the API: sent, looked at beforehand, returned, exported and deleted."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log import EventLog
from searchloop.agent.run.runner import Runner
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.types import Capabilities
from searchloop.web.gate import MAX_BODY, MAX_FILES
from tests.agent.run.test_attachments import PAGES, Seeing, reading
from tests.agent.scripted import Scripted, says, settings
from tests.attached import LOCKED_PDF, pdf_of, png
from tests.web.house import Answer, FakeHouse, allowed, living, request

Ask = Callable[..., Awaitable[Answer]]


def attachment(name: str, data: bytes, media_type: str = "") -> dict[str, str]:
    """As a client sends it."""
    known = {"media_type": media_type} if media_type else {}
    return {"name": name, "data": base64.b64encode(data).decode(), **known}


PICTURE = attachment("dial.png", png(), "image/png")
REPORT = attachment("übersicht.pdf", pdf_of(PAGES), "application/pdf")


def with_files(
    home: Path,
    scenario: Callable[[Ask, FakeHouse, str], Awaitable[None]],
    *providers: Any,
    **env: str,
) -> None:
    """Runs a scenario with a real runner and the real search backend behind the API."""

    async def run() -> None:
        backend, own = reading(home, **env), settings(home)
        log = EventLog(home / "sessions.sqlite3")
        runner = Runner(own, log, LocalBackend(backend), providers=providers)
        house = FakeHouse(own, log, runner)
        house.search_app = backend  # type: ignore[method-assign]
        async with living(house) as app:

            async def ask(method: str, target: str, body: Any = None, **more: Any) -> Answer:
                return await request(app, method, target, allowed(), body, **more)

            made = await ask("POST", "/api/sessions", {})
            await scenario(ask, house, f"/api/sessions/{made.data['id']}")
        log.close()

    asyncio.run(run())


def test_files_go_with_a_question_and_come_back(tmp_path: Path) -> None:
    """Events refer to them; they are returned as what they are, here alone, and exported."""
    model = Seeing("It weighs 318 kilograms [2].")

    async def scenario(ask: Ask, house: FakeHouse, path: str) -> None:
        body = {"text": "How heavy?", "attachments": [PICTURE, REPORT]}
        assert (await ask("POST", f"{path}/messages", body)).status == 202
        await house.runner.wait(path.rpartition("/")[2])
        exported = (await ask("GET", f"{path}/export?format=json")).data
        asked = next(e for e in exported["events"] if e["type"] == "user_message")
        dial, report = asked["attachments"]
        assert (dial["width"], report["pages"], report["n"]) == (2, 3, 1)
        assert PICTURE["data"] not in str(exported)
        for form in ("md", "html"):
            text = (await ask("GET", f"{path}/export?format={form}")).body.decode()
            assert "Attached: dial.png (1 kB); übersicht.pdf (1 kB)" in text
        for known, sent in ((dial, PICTURE), (report, REPORT)):
            answer = await ask("GET", f"{path}/attachments/{known['digest']}")
            assert answer.body == base64.b64decode(sent["data"])
            assert answer.headers["content-type"] == sent["media_type"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        second = await ask("GET", f"{path}/attachments/{report['digest'][:16]}/pages/2")
        assert (second.data["title"], second.data["content"]) == ("übersicht.pdf, page 2", PAGES[1])
        assert second.data["blocks"]
        other = (await ask("POST", "/api/sessions", {})).data["id"]
        place = f"/api/sessions/{other}/attachments/{dial['digest']}"
        assert (await ask("GET", place)).error["code"] == "no_attachment"
        await ask("DELETE", path)
        gone = await ask("GET", f"{path}/attachments/{dial['digest']}")
        assert gone.status == 404

    with_files(tmp_path, scenario, model)


@pytest.mark.parametrize("name", ['evil".html', "notes.txt", "日程 表.md"])
def test_a_document_is_returned_to_be_saved(tmp_path: Path, name: str) -> None:
    """Never shown as a page of ours, whatever its name says."""

    async def scenario(ask: Ask, house: FakeHouse, path: str) -> None:
        file = attachment(name, b"<p>Some words <script>alert(1)</script></p>", "text/html")
        body = {"text": "Read.", "attachments": [file]}
        assert (await ask("POST", f"{path}/messages", body)).status == 202
        session = path.rpartition("/")[2]
        await house.runner.wait(session)
        [known] = house.log.read(session)[0].data["attachments"]
        answer = await ask("GET", f"{path}/attachments/{known['digest']}")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith('attachment; filename="')
        assert answer.headers["content-disposition"].count('"') == 2

    with_files(tmp_path, scenario, Seeing("Yes."))


def test_a_file_is_looked_at_before_it_is_sent(tmp_path: Path) -> None:
    """Kind and pages for the composer, or one sentence; nothing is kept."""

    async def scenario(ask: Ask, house: FakeHouse, path: str) -> None:
        found = (await ask("POST", "/api/attachments", REPORT)).data
        assert (found["media_type"], found["pages"]) == ("application/pdf", 3)
        assert found["length"] == sum(map(len, PAGES))
        locked = await ask("POST", "/api/attachments", attachment("a.pdf", LOCKED_PDF))
        assert (locked.status, locked.error["code"]) == (400, "bad_attachment")
        assert locked.error["message"] == "a.pdf is damaged or needs a password."
        with house.log._db.reading() as db:
            assert db.execute("SELECT count(*) FROM files").fetchone()[0] == 0

    with_files(tmp_path, scenario, Scripted([]))


def test_what_cannot_be_sent_is_refused_and_the_chat_goes_on(tmp_path: Path) -> None:
    """By size, by encoding, by the model; without attachments a request stays small."""
    blind = Scripted([says("Only words.")], Capabilities())

    async def scenario(ask: Ask, house: FakeHouse, path: str) -> None:
        async def refused(body: Any) -> tuple[int, str]:
            answer = await ask("POST", f"{path}/messages", body)
            assert answer.error["remedy"]
            return answer.status, answer.error["code"]

        def asking(*files: Any) -> dict[str, Any]:
            return {"text": "What is it?", "attachments": list(files)}

        assert await refused(asking(PICTURE)) == (400, "cannot_see")
        assert await refused(asking({**PICTURE, "data": "no base64"})) == (400, "bad_file")
        assert await refused(asking({"name": "a.png"})) == (400, "bad_request")
        assert await refused(asking({**PICTURE, "url": "x"})) == (400, "bad_request")
        large = attachment("a.png", png() + bytes(6_000_000))
        assert await refused(asking(large)) == (413, "attachment_too_large")
        huge = b'{"attachments": "' + b"x" * MAX_FILES
        assert await refused(huge) == (413, "attachment_too_large")
        assert await refused({"text": "x" * (MAX_BODY + 1)}) == (413, "too_large")
        session = path.rpartition("/")[2]
        assert house.log.read(session) == []
        assert (await ask("POST", f"{path}/messages", {"text": "Hello?"})).status == 202
        await house.runner.wait(session)
        assert house.log.last_event(session).data["answer"] == "Only words."

    with_files(tmp_path, scenario, blind)
