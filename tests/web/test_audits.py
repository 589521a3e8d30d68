"""POST /api/audit: one JSON object, or events while the pages come in."""

from __future__ import annotations

import asyncio
import base64
import json
from itertools import count
from pathlib import Path
from typing import Any

from searchloop.agent.tools.backend import LocalBackend
from searchloop.compose import search_app
from searchloop.testing import offline
from tests.searchloop.auditing.pages import Pages
from tests.web.house import allowed, living, make_house, request

REPORT = (
    "The council approved 46 million crowns for the outer wall [1]. It has 12 bells [2].\n\n"
    "[1]: https://council.example/wall\n[2]: https://gone.example/\n"
)


async def test_a_report_is_audited_as_json_and_as_events(tmp_path: Path) -> None:
    """The same findings; of the events one a page, and the whole at the end. Others are served
    while those of a long report are written."""
    house, turns, seen = make_house(tmp_path), [0], dict[int, int]()
    house.backend = LocalBackend(Pages())

    async def turn() -> None:
        for turns[0] in count():
            await asyncio.sleep(0)

    def noted(got: bytes) -> bool:
        return seen.setdefault(len(got), turns[0]) < 0

    async with living(house) as app:

        async def ask(accept: str, **body: Any) -> Any:
            head = {**allowed(), "accept": accept}
            return await request(app, "POST", "/api/audit", head, body=body)

        told = (await ask("application/json", text=REPORT, html="de")).data
        assert [each["verdict"] for each in told["sentences"]] == ["contradicted", "unread"]
        assert told["sentences"][1]["citations"][0]["problem"] == "dead"
        assert told["html"].startswith("<!doctype html>")
        streamed = await ask("text/event-stream", text=REPORT)
        assert streamed.headers["content-type"].startswith("text/event-stream")
        frames = streamed.body.decode().strip().split("\n\n")
        *pages, last = [json.loads(frame.removeprefix("data: ")) for frame in frames]
        assert [(p["type"], p["done"], p["of"]) for p in pages] == [
            ("page_opened", 1, 2),
            ("page_opened", 2, 2),
        ]
        assert last["type"] == "audit_finished"
        assert last["summary"] == told["summary"]
        page = (await ask("application/json", url="https://council.example/wall")).data
        assert page["title"] == "A page"
        two = {"text": "a", "data": "YQ=="}, {"text": "a", "url": "https://a.example/"}
        for body in ({}, {"text": " "}, {"url": ""}, *two, {"x": 1}):
            refused = await ask("application/json", **body)
            assert refused.status == 400
            assert refused.error["message"]
        turning = asyncio.create_task(turn())
        long = {"text": "It has 12 bells ([s](https://gone.example/)). " * 500, "html": "en"}
        await request(app, "POST", "/api/audit", body=long, enough=noted)
        turning.cancel()
    opened, finished = seen.values()
    assert finished - opened > 50


async def test_a_file_is_read_as_what_it_is(tmp_path: Path) -> None:
    """Markup is no part of a report; its links are its sources. What cannot be read is named."""
    house = make_house(tmp_path)
    house.backend = LocalBackend(search_app(offline(tmp_path / "own")))
    async with living(house) as app:
        head = {**allowed(), "accept": "application/json"}
        html = "<p>It costs 46 crowns (<a href='http://127.0.0.1:9/'>bank</a>). It is old.</p>"
        data = base64.b64encode(html.encode()).decode()
        for body in ({"text": html, "media_type": "text/html"}, {"data": data, "name": "r.html"}):
            told = (await request(app, "POST", "/api/audit", head, body=body)).data
            assert [each["text"] for each in told["sentences"]] == ["It costs 46 crowns."]
        zipped = base64.b64encode(b"PK\x03\x04" + bytes(range(256))).decode()
        body = {"data": zipped, "name": "r.docx"}
        refused = await request(app, "POST", "/api/audit", head, body=body)
        assert refused.status == 400
        assert "cannot be read" in refused.error["message"]
