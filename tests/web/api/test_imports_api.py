"""A file of chats over HTTP: streamed to disk, read aside, told as it goes; and all chats again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.log import EventLog
from searchloop.compose import Services
from searchloop.web.app import WebApp
from tests.web.house import allowed, living, make_house, request

IMPORT, EXPORT = "/api/sessions/import", "/api/sessions/export"


def chats(count: int) -> list[dict[str, Any]]:
    """An export with this many chats."""
    messages = [{"sender": "human", "text": "Hi"}, {"sender": "assistant", "text": "Hello."}]
    return [{"uuid": f"c{n}", "name": f"Chat {n}", "chat_messages": messages} for n in range(count)]


def zipped(**more: str) -> dict[str, str]:
    """The headers of a file."""
    return allowed(**{"content-type": "application/zip", **more})


async def ended(app: WebApp) -> Any:
    """The import's last word."""
    while True:
        now = (await request(app, "GET", IMPORT)).data
        if now["state"] != "running":
            return now
        await asyncio.sleep(0)


@pytest.fixture
def house(tmp_path: Path) -> Services:
    """A house with an empty log."""
    return make_house(tmp_path)


async def test_a_file_is_brought_in_and_told(house: Services) -> None:
    """In pieces, with no chat twice; nothing of it stays on disk but the chats."""
    data = json.dumps(chats(30)).encode()
    pieces = [data[i : i + 500] for i in range(0, len(data), 500)]
    async with living(house) as app:
        assert (await request(app, "GET", IMPORT)).data["state"] == "none"
        for brought, known in ((30, 0), (0, 30)):
            begun = await request(app, "POST", IMPORT, zipped(), chunks=pieces)
            assert begun.status == 202
            assert begun.data["state"] in ("running", "done")
            now = await ended(app)
            assert (now["state"], now["brought"], now["known"]) == ("done", brought, known)
        assert len((await request(app, "GET", "/api/sessions")).data["sessions"]) == 30
    assert list(house.settings.home.glob("import-*")) == []


async def test_the_gate_lets_only_a_file_in(house: Services) -> None:
    """Not a form's kinds, not more than a file may be, not without a body."""
    data = json.dumps(chats(1)).encode()
    async with living(house) as app:
        for kind in ("text/plain", "multipart/form-data; boundary=x", ""):
            answer = await request(app, "POST", IMPORT, zipped(**{"content-type": kind}), data)
            assert (answer.status, answer.error["code"]) == (415, "not_an_export")
        large = zipped(**{"content-length": str(3 << 30)})
        assert (await request(app, "POST", IMPORT, large, chunks=[b"x"])).status == 413
        empty = await request(app, "POST", IMPORT, zipped())
        assert (empty.status, empty.error["code"]) == (400, "empty_file")
        assert house.log.sessions() == []
    assert list(house.settings.home.glob("import-*")) == []


async def test_everything_comes_out_and_in_again(house: Services, tmp_path: Path) -> None:
    """The export of all chats is a file that an empty house takes."""
    async with living(house) as app:
        await request(app, "POST", IMPORT, zipped(), json.dumps(chats(3)).encode())
        await ended(app)
        whole = await request(app, "GET", EXPORT)
    assert whole.headers["content-disposition"].startswith('attachment; filename="searchloop-chats')
    (tmp_path / "other").mkdir()
    other = make_house(tmp_path / "other")
    async with living(other) as app:
        await request(app, "POST", IMPORT, zipped(), whole.body)
        assert (await ended(app))["brought"] == 3
    mine, theirs = EventLog(house.log.where), EventLog(other.log.where)
    assert {s.id: s.title for s in mine.sessions()} == {s.id: s.title for s in theirs.sessions()}
    mine.close()
    theirs.close()
