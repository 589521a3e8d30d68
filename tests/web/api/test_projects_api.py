"""Projects, archived chats and standing instructions over the API, with a real runner behind it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from searchloop.agent.providers import Abilities
from searchloop.agent.types import ToolCall, Usage
from searchloop.compose import Services
from searchloop.search_backend.library import Library
from tests.agent.run.test_attachments import Seeing
from tests.agent.scripted import MODEL, Scripted, calls, says
from tests.attached import pdf_of
from tests.web.api.test_attachments_api import PICTURE, REPORT, attachment, with_files
from tests.web.house import Ask


async def project(ask: Ask, **fields: Any) -> dict[str, Any]:
    """A new project."""
    answer = await ask("POST", "/api/projects", {"name": "House", **fields})
    assert answer.status == 201, answer.data
    made: dict[str, Any] = answer.data
    return made


async def asked(ask: Ask, house: Services, chat: str, text: str, **more: Any) -> Any:
    """The events of a chat after a question was answered."""
    started = await ask("POST", f"/api/sessions/{chat}/messages", {"text": text, **more})
    assert started.status == 202, started.data
    await house.runner.wait(chat)
    return house.log.read(chat)


async def test_a_chat_of_a_project_gets_what_the_project_holds(tmp_path: Path) -> None:
    """Instructions stand in the system text; files come once, as sources; defaults at the start."""
    model = Seeing("It weighs 318 kilograms [2].", "Yes.", "No.", "Well.")
    async with with_files(tmp_path, model) as (ask, house, _):
        made = await project(ask, instructions="Answer in metric.", search="local", model=MODEL)
        place = f"/api/projects/{made['id']}"
        for sent in (REPORT, PICTURE, REPORT):
            added = await ask("POST", f"{place}/files", sent)
            assert added.status == 201
        assert [each["name"] for each in added.data["files"]] == ["dial.png", "übersicht.pdf"]
        chat = (await ask("POST", "/api/sessions", {"project": made["id"]})).data
        assert (chat["settings"]["project"], chat["search"]) == (made["id"], "local")
        await ask("PATCH", f"/api/sessions/{chat['id']}", {"search": "off"})
        events = await asked(ask, house, chat["id"], "How heavy?")
        known = events[0].data["attachments"]
        report = next(each for each in known if "pages" in each)
        assert (len(known), report["n"]) == (2, 1)
        done = events[-1].data
        assert [(c["n"], c["title"]) for c in done["citations"]] == [(2, "übersicht.pdf, page 2")]
        assert "Answer in metric." in model.requests[0].system
        # Once in a chat; a file that is added later comes with the next question.
        events = await asked(ask, house, chat["id"], "And now?")
        assert "attachments" not in events[-4].data
        later = attachment("later.pdf", pdf_of(["A later page."]), "application/pdf")
        assert (await ask("POST", f"{place}/files", later)).status == 201
        await ask("PATCH", place, {"instructions": "Answer in stones."})
        events = await asked(ask, house, chat["id"], "And now?")
        [third] = [e for e in events if e.type == "user_message"][2:]
        assert [(f["name"], f["n"]) for f in third.data["attachments"]] == [("later.pdf", 4)]
        assert "Answer in stones." in model.requests[-1].system
        assert "metric" not in model.requests[-1].system
        # Out of it, nothing of it is told any more.
        await ask("PATCH", f"/api/sessions/{chat['id']}", {"project": None})
        await asked(ask, house, chat["id"], "And now?")
        assert "stones" not in model.requests[-1].system
        shown = (await ask("GET", f"{place}/files/{report['digest']}")).body
        assert shown == base64.b64decode(REPORT["data"])
        left = (await ask("DELETE", f"{place}/files/{report['digest']}")).data
        assert [each["name"] for each in left["files"]] == ["dial.png", "later.pdf"]
        gone = await ask("GET", f"{place}/files/{report['digest']}")
        assert (gone.status, gone.error["code"]) == (404, "no_attachment")
        whole = await ask("GET", f"/api/sessions/{chat['id']}/attachments/{report['digest']}")
        assert whole.body == base64.b64decode(REPORT["data"])


async def test_the_library_is_searched_in_the_folders_of_the_project(tmp_path: Path) -> None:
    """From the PATCH to the hits; a folder inside counts; an empty list opens all of it again. A
    question has folders of its own, whatever its chat and project search; asked again from what was
    stored."""
    notes = {"north": "Zwieback of Vik.", "north/deep": "A deep zwieback.", "south": "A zwieback."}
    for name, text in notes.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "note.md").write_text(text)
    north, call = str(tmp_path / "north"), ToolCall("one", "web_search", {"query": "zwieback"})
    model = Scripted([*[calls(call), says("So.")] * 5, says("Well.")])
    async with with_files(tmp_path, model, SEARCHLOOP_OFFLINE="1") as (ask, house, _):
        library = Library(tmp_path)
        for name in reversed(notes):
            library.add(tmp_path / name)
        made = await project(ask, search="local", model=MODEL)
        place = f"/api/projects/{made['id']}"
        chat = (await ask("POST", "/api/sessions", {"project": made["id"]})).data["id"]
        expected = {"(all)": 3, north: 2, "south": 1, "/gone": 0}
        for folder, count in expected.items():
            wanted = [] if folder == "(all)" else [folder, " ", folder]
            told = (await ask("PATCH", place, {"folders": wanted})).data
            assert told["folders"] == wanted[:1]
            events = await asked(ask, house, chat, "Where?")
            done = [e.data for e in events if e.type == "search_finished"][-1]
            found = [e.data for e in events if e.type == "tool_result"][-1]
            assert (done["results"], done["status"]) == (count, "ok" if count else "error")
            assert ("/gone" in found["content"]) is (not count)
        assert (await ask("PATCH", place, {"folders": None})).data["folders"] == []
        await ask("PATCH", place, {"folders": [north]})
        await ask("PATCH", f"/api/sessions/{chat}", {"search": "off"})
        events = await asked(ask, house, chat, "Where?", folders=["south"])
        done = [e.data for e in events if e.type == "search_finished"][-1]
        assert (done["status"], done["results"]) == ("ok", 1)
        question = [e.data for e in events if e.type == "user_message"][-1]
        assert question["folders"] == ["south"]
        assert "south" in [e.data["content"] for e in events if e.type == "tool_result"][-1]
        assert (await ask("GET", f"/api/sessions/{chat}")).data["search"] == "off"
        await asked(ask, house, chat, "And you?")
        assert "web_search" not in [spec.name for spec in model.requests[-1].tools]


async def test_a_project_has_templates_of_its_own(tmp_path: Path) -> None:
    """Read as those of all chats are, and kept with the project alone."""
    async with with_files(tmp_path, Scripted([])) as (ask, _, _):
        kept = [{"command": name, "title": "", "content": "{{x}}"} for name in ("a", "b")]
        place = f"/api/projects/{(await project(ask, templates=kept))['id']}"
        given = [*kept, {"command": "/A", "content": "new"}]
        told = (await ask("PATCH", place, {"templates": given})).data["templates"]
        assert [each["content"] for each in told] == ["new", "{{x}}"]
        assert (await ask("PATCH", place, {"instructions": "Be brief."})).data["templates"] == told
        assert (await ask("GET", "/api/templates")).data["templates"] == []
        refused = await ask("PATCH", place, {"templates": [{"command": "c"}]})
        assert (refused.status, refused.error["code"]) == (400, "bad_template")
        assert (await ask("GET", place)).data["templates"] == told


async def test_what_the_thoughts_cost_is_told_where_a_price_is_known(tmp_path: Path) -> None:
    """As a part of the whole; without a price or a count nothing is made up."""
    (tmp_path / "prices.toml").write_text(f'[models."{MODEL}"]\ninput = 1\noutput = 10')
    thought = Usage(1_000, 1_000_000, reasoning_tokens=400_000)
    model = Scripted([says("So.", usage=usage) for usage in (thought, Usage(1_000, 9))])
    async with with_files(tmp_path, model) as (ask, house, path):
        chat = path.rpartition("/")[2]
        told = []
        for _ in range(2):
            done = (await asked(ask, house, chat, "Why?"))[-1].data
            told.append(done.get("performance", {}).get("thinking_usd"))
        assert told == [4.0, None]


async def test_a_model_that_cannot_see_does_without_a_picture_and_says_so(tmp_path: Path) -> None:
    """A project's picture stops no chat; one that the user attaches does, as before."""
    async with with_files(tmp_path, Scripted([says("I cannot tell.")])) as (ask, house, _):
        made = await project(ask)
        await ask("POST", f"/api/projects/{made['id']}/files", PICTURE)
        chat = (await ask("POST", "/api/sessions", {"project": made["id"]})).data["id"]
        events = await asked(ask, house, chat, "How heavy?")
        assert "attachments" not in events[0].data
        [notice] = [e.data for e in events if e.type == "notice"]
        assert notice["code"] == "file_left_out"
        assert "dial.png" in notice["message"]


async def test_deleting_a_project_asks_what_becomes_of_its_chats(tmp_path: Path) -> None:
    """Without an answer nothing is deleted."""
    async with with_files(tmp_path, Scripted([])) as (ask, _, _):
        for fate in ("keep", "archive", "delete"):
            made = await project(ask)
            place, body = f"/api/projects/{made['id']}", {"project": made["id"]}
            chats = [(await ask("POST", "/api/sessions", body)).data["id"] for _ in "ab"]
            for target in (place, f"{place}?chats=burn"):
                refused = await ask("DELETE", target)
                assert (refused.status, refused.error["code"]) == (409, "chats_undecided")
            assert (await ask("GET", place)).data["chats"] == 2
            assert (await ask("DELETE", f"{place}?chats={fate}")).status == 204
            assert (await ask("GET", place)).error["code"] == "no_project"
            for chat in chats:
                found = await ask("GET", f"/api/sessions/{chat}")
                assert found.status == (404 if fate == "delete" else 200)
                if fate != "delete":
                    assert "project" not in found.data["settings"]
                    assert found.data["settings"].get("archived", False) is (fate == "archive")
        empty = await project(ask)
        assert (await ask("DELETE", f"/api/projects/{empty['id']}")).status == 204


async def test_several_chats_are_archived_at_once(tmp_path: Path) -> None:
    """They leave the list, are found by search, listed by themselves, and come back."""
    async with with_files(tmp_path, Scripted([])) as (ask, house, path):
        made = await project(ask)
        ids = [path.rpartition("/")[2], (await ask("POST", "/api/sessions", {})).data["id"]]
        house.log.append(ids[0], [("user_message", {"text": "Where do puffins nest?"})])

        async def listed(query: str = "") -> set[str]:
            found = (await ask("GET", f"/api/sessions?{query}")).data["sessions"]
            return {each["id"] for each in found}

        changed = await ask("PATCH", "/api/sessions", {"ids": ids, "archived": True})
        assert changed.data == {"changed": 2}
        assert (await listed(), await listed("archived=true")) == (set(), set(ids))
        assert await listed("q=puffins") == {ids[0]}
        both = {"ids": ids, "archived": False, "project": made["id"]}
        await ask("PATCH", "/api/sessions", both)
        assert await listed() == await listed(f"project={made['id']}") == set(ids)
        broken = await ask("PATCH", "/api/sessions", {"ids": [*ids, "none"], "archived": True})
        assert (broken.status, await listed()) == (404, set(ids))


async def test_standing_instructions_and_options_reach_the_model(tmp_path: Path) -> None:
    """In the user's own words; an option of the chat goes where the model takes it."""
    model = Scripted([says("Yes."), says("Yes."), says("No.")])
    model.abilities = Abilities(options=("temperature", "max_tokens"))
    async with with_files(tmp_path, model) as (ask, house, path):
        chat = path.rpartition("/")[2]
        assert (await ask("GET", "/api/instructions")).data == {"about": "", "answer": ""}
        words = {"about": "I am a nurse.\nIn Graz."}
        assert (await ask("PATCH", "/api/instructions", words)).status == 200
        saved = await ask("PATCH", "/api/instructions", {"answer": "Be brief."})
        assert saved.data == {**words, "answer": "Be brief."}
        options = {"temperature": 0.2, "seed": 7, "max_tokens": 50}
        assert (await ask("PATCH", path, {"options": options})).status == 200
        wrong = await ask("PATCH", path, {"options": {"temperature": 9}})
        assert (wrong.status, wrong.error["code"]) == (400, "bad_option")
        await asked(ask, house, chat, "Really?")
        first = model.requests[0]
        assert "I am a nurse.\nIn Graz." in first.system
        assert "Be brief." in first.system
        assert (first.options, first.max_output_tokens) == ({"temperature": 0.2}, 50)
        await ask("PATCH", path, {"options": None})
        await ask("PATCH", "/api/instructions", {"about": "", "answer": ""})
        await asked(ask, house, chat, "Really?")
        assert model.requests[1].options == {}
        assert "own words" not in model.requests[1].system
        long = await ask("PATCH", "/api/instructions", {"about": "x" * 20_001})
        assert (long.status, long.error["code"]) == (400, "bad_instructions")
        (house.settings.home / "instructions.json").write_text("[1, 2")
        broken = await ask("POST", f"{path}/messages", {"text": "Really?"})
        assert broken.error["code"] == "bad_instructions"


async def test_a_wrong_project_is_refused(tmp_path: Path) -> None:
    """Nothing is stored; a long name is one line, as people paste them."""
    async with with_files(tmp_path, Scripted([])) as (ask, _, path):
        for body, code in (
            ({}, "bad_request"),
            ({"name": " \u200b "}, "empty_title"),
            ({"name": "x", "search": "maybe"}, "bad_request"),
            ({"name": "x", "agent": "nobody"}, "no_agent"),
            ({"name": "x", "model": "nothing"}, "bad_model"),
            ({"name": "x", "instructions": "y" * 20_001}, "bad_instructions"),
            ({"name": "x", "chats": 3}, "bad_request"),
            ({"name": "x", "folders": "/notes"}, "bad_request"),
            ({"name": "x", "folders": [*map(str, range(21))]}, "bad_folders"),
            ({"name": "x", "folders": ["y" * 4_097]}, "bad_folders"),
        ):
            answer = await ask("POST", "/api/projects", body)
            assert (answer.status // 100, answer.error["code"]) == (4, code)
        assert (await ask("GET", "/api/projects")).data == {"projects": []}
        assert (await ask("POST", "/api/sessions", {"project": "none"})).status == 404
        assert (await ask("PATCH", path, {"project": "none"})).status == 404
        made = await project(ask, name="A\nvery " + "long " * 40)
        assert made["name"].startswith("A very long")
        assert len(made["name"]) <= 100


async def test_a_question_brings_system_text_options_and_a_schema(tmp_path: Path) -> None:
    """For itself alone; an answer that does not fit is asked for once more."""
    model = Scripted([says("Forty."), says('{"n": 40}'), says("Yes.")])
    model.abilities = Abilities(options=("temperature", "max_tokens"))
    form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with with_files(tmp_path, model) as (ask, house, path):
        chat = path.rpartition("/")[2]
        more = {"system": "Count.", "options": {"temperature": 0.2}, "schema": form}
        for wrong in ({"options": {"heat": 1}}, {"schema": {"type": "nothing"}}):
            refused = await ask("POST", f"{path}/messages", {"text": "How many?", **wrong})
            assert refused.status == 400
        events = await asked(ask, house, chat, "How many?", **more)
        first = model.requests[0]
        assert "Count." in first.system
        assert first.options == {"temperature": 0.2}
        [ended] = [e.data for e in events if e.type == "run_finished"]
        assert json.loads(ended["answer"]) == {"n": 40}
        await asked(ask, house, chat, "Really?")
        assert (model.requests[2].options, "Count." in model.requests[2].system) == ({}, False)
