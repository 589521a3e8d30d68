"""Files of questions over the API: sent, looked at beforehand, returned, exported and deleted."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from searchloop.agent.run.runner import Runner
from searchloop.agent.tools.backend import LocalBackend
from searchloop.agent.types import Capabilities
from searchloop.web.gate import MAX_BODY, MAX_FILES
from tests.agent.run.test_attachments import PAGES, Seeing, reading
from tests.agent.scripted import Scripted, says, settings
from tests.attached import LOCKED_PDF, pdf_of, png
from tests.web.house import Ask, asking, make_house


def attachment(name: str, data: bytes, media_type: str = "") -> dict[str, str]:
    """As a client sends it."""
    known = {"media_type": media_type} if media_type else {}
    return {"name": name, "data": base64.b64encode(data).decode(), **known}


PICTURE = attachment("dial.png", png(), "image/png")
REPORT = attachment("übersicht.pdf", pdf_of(PAGES), "application/pdf")


@asynccontextmanager
async def with_files(home: Path, *providers: Any, **env: str) -> AsyncIterator[tuple[Ask, str]]:
    """A real runner and the real search backend behind the API, and the path of a new chat."""
    house, backend, own = make_house(home), reading(home, **env), settings(home)
    house.runner = Runner(own, house.log, LocalBackend(backend), providers=providers)
    house.search_app = backend  # type: ignore[assignment]
    async with asking(house) as ask:
        made = await ask("POST", "/api/sessions", {})
        yield ask, house, f"/api/sessions/{made.data['id']}"


async def test_files_go_with_a_question_and_come_back(tmp_path: Path) -> None:
    """Events refer to them; they are returned as what they are, here alone, and exported."""
    model = Seeing("It weighs 318 kilograms [2].")
    async with with_files(tmp_path, model) as (ask, house, path):
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


async def test_a_document_is_returned_to_be_saved(tmp_path: Path) -> None:
    """Never shown as a page of ours, whatever its name says."""
    async with with_files(tmp_path, Seeing("Yes.")) as (ask, house, path):
        content = b"<p>Some words <script>alert(1)</script></p>"
        names = ['evil".html', "notes.txt", "日程 表.md"]
        files = [attachment(name, content + name.encode(), "text/html") for name in names]
        body = {"text": "Read.", "attachments": files}
        assert (await ask("POST", f"{path}/messages", body)).status == 202
        session = path.rpartition("/")[2]
        await house.runner.wait(session)
        for known in house.log.read(session)[0].data["attachments"]:
            answer = await ask("GET", f"{path}/attachments/{known['digest']}")
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"].startswith('attachment; filename="')
            assert answer.headers["content-disposition"].count('"') == 2


async def test_a_file_is_looked_at_before_it_is_sent(tmp_path: Path) -> None:
    """Kind and pages for the composer, or one sentence; nothing is kept."""
    async with with_files(tmp_path, Scripted([])) as (ask, house, _):
        found = (await ask("POST", "/api/attachments", REPORT)).data
        assert (found["media_type"], found["pages"]) == ("application/pdf", 3)
        assert found["length"] == sum(map(len, PAGES))
        for name, data, words in (
            ("a.pdf", LOCKED_PDF, "a.pdf is damaged or needs a password."),
            ("cut.png", png()[:-9], "cut.png is damaged"),
            ("words.png", b"just words", "words.png is not what it says"),
            ("tool.exe", b"MZ\0\0" + bytes(300), "tool.exe is neither an image nor a document"),
        ):
            refused = await ask("POST", "/api/attachments", attachment(name, data))
            assert (refused.status, refused.error["code"]) == (400, "bad_attachment"), name
            assert refused.error["message"].startswith(words)
        with house.log._db.reading() as db:
            assert db.execute("SELECT count(*) FROM files").fetchone()[0] == 0


async def test_what_cannot_be_sent_is_refused_and_the_chat_goes_on(tmp_path: Path) -> None:
    """By size, by encoding, by the model; a question has its own most, with files or without."""
    blind = Scripted([says("Only words.")], Capabilities())
    async with with_files(tmp_path, blind) as (ask, house, path):

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
        assert await refused(huge) == (413, "too_large")
        assert await refused({"text": "x" * (MAX_BODY + 1)}) == (413, "question_too_long")
        session = path.rpartition("/")[2]
        assert house.log.read(session) == []
        assert (await ask("POST", f"{path}/messages", {"text": "Hello?"})).status == 202
        await house.runner.wait(session)
        assert house.log.last_event(session).data["answer"] == "Only words."
