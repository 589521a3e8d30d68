"""Summaries over HTTP: made by hand, edited, refused while a chat is busy; exports keep it all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from searchloop.agent.log.events import messages_from, sent
from tests.agent.scripted import MODEL, Hold, Scripted, reached, says
from tests.web.api.test_attachments_api import with_files
from tests.web.house import Answer


async def test_a_summary_is_made_read_and_edited(tmp_path: Path) -> None:
    """202 at once; the event tells the rest. What is not there is 404, a busy chat is 409."""
    hold = Hold()
    answers = [says(f"Answer {n}.") for n in range(4)]
    model = Scripted([*answers, says("SHORT"), [hold]])
    async with with_files(tmp_path, model) as (send, house, chat):
        session, runner = chat.rpartition("/")[2], house.runner
        await send("PATCH", chat, {"model": MODEL})

        async def ask(method: str, path: str, body: Any = None) -> Answer:
            return await send(method, chat + path, body)

        for n in range(4):
            await ask("POST", "/messages", {"text": f"Question {n}?"})
            await runner.wait(session)
        exported = [await ask("GET", f"/export?format={name}") for name in ("md", "html")]
        assert [each.status for each in exported] == [200, 200]
        assert (await ask("PATCH", "/summary", {"text": "RIGHT"})).status == 404
        made = await ask("POST", "/compact")
        assert made.status == 202
        await runner.wait(session)
        event = house.log.last_event(session)
        assert (event.type, event.data["text"], event.data["by"]) == ("summary", "SHORT", "user")
        edited = await ask("PATCH", "/summary", {"text": "RIGHT"})
        assert (edited.status, edited.data["text"]) == (200, "RIGHT")
        assert (await ask("PATCH", "/summary", {"text": " "})).status == 400
        first, *rest = sent(messages_from(house.log.read(session)))
        assert first.content.endswith("\n\nRIGHT")
        assert [m.content for m in rest if m.role == "user"] == ["Question 2?", "Question 3?"]
        for name, before in zip(("md", "html"), exported, strict=True):
            assert (await ask("GET", f"/export?format={name}")).body == before.body
        await ask("POST", "/messages", {"text": "Wait"})
        await reached(hold)
        for method, path, body in (
            ("POST", "/compact", None),
            ("PATCH", "/summary", {"text": "x"}),
        ):
            busy = await ask(method, path, body)
            assert (busy.status, busy.data["error"]["code"]) == (409, "busy")
        await runner.cancel(session)
