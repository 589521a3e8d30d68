"""Settings changed on the page: what is taken, what is refused, and when it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.settings import load_environment
from searchloop.agent.settings.config_file import change_config
from searchloop.agent.settings.keys import KeyStore
from searchloop.agent.tools.backend import call_wsgi
from searchloop.compose import every_setting, open_services, sent_to
from tests.web.house import Answer, asking, living, make_house, request, with_api


def shown(data: Any) -> dict[str, dict[str, Any]]:
    """Settings by name."""
    return {setting["name"]: setting for setting in data["settings"]}


async def test_a_change_is_kept_and_holds_at_once(tmp_path: Path) -> None:
    """The file has it, the answer says where it comes from, and the next turn is held to it."""
    changes = {"SEARCHLOOP_MODEL": "m:y", "SEARCHLOOP_LIMITS": "steps=3"}
    changes |= {"SEARCHLOOP_SEARCH": "auto", "SEARCH_ENGINES": "library"}
    async with with_api(tmp_path) as (ask, house):
        answer = await ask("PATCH", "/api/settings", {"settings": changes})
        assert answer.status == 200
        model = shown(answer.data)["SEARCHLOOP_MODEL"]
        told = (model["value"], model["origin"], model["changeable"])
        assert told == ("m:y", "config.toml", True)
        assert (house.settings.model, house.settings.limits.steps) == ("m:y", 3)
        assert 'SEARCHLOOP_MODEL = "m:y"' in (tmp_path / "config.toml").read_text("utf-8")
        assert "SEARCHLOOP_TOKEN" not in shown(answer.data)
        answer = await ask("PATCH", "/api/settings", {"settings": dict.fromkeys(changes)})
        assert shown(answer.data)["SEARCHLOOP_MODEL"]["origin"] == "default"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"SEARCHLOOP_LIMITS": "steps=none"}, "bad_limit"),
        ({"SEARCHLOOP_SEARCH": "sometimes"}, "bad_search"),
        ({"SEARCHLOOP_MODEL": "nope:x"}, "unknown_provider"),
        ({"SEARCHLOOP_LIMITS": 3}, "bad_setting"),
        ({"SEARCHLOOP_LIMITS": "steps=3", "SEARCHLOOP_TOKEN": "mine"}, "unknown_setting"),
        ({"SEARCHLOOP_OFFLINE": ""}, "not_changeable"),
        ({"SEARCHLOOP_TITLES": "1"}, "not_changeable"),
        ({"PATH": "/"}, "unknown_setting"),
        ({"SEARCH_ENGINES": "nope"}, "config"),
        ({"SEARCH_ALLOWED_DOMAINS": "http://x"}, "bad_search_option"),
    ],
)
async def test_what_cannot_be_used_changes_nothing(
    tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    """One bad value refuses all, in the words of the part that it is for; what is set elsewhere, or
    a secret, is not changed here."""
    house = make_house(tmp_path, SEARCHLOOP_TITLES="0")
    async with asking(house) as ask:
        refused = await ask("PATCH", "/api/settings", {"settings": changes})
    assert (refused.status, refused.error["code"]) == (400, code)
    assert refused.error["remedy"]
    assert not (tmp_path / "config.toml").exists()
    assert house.settings.limits.steps == 12


async def test_folders_of_the_library(tmp_path: Path) -> None:
    """Added, listed with their state, paused, forgotten; what is not there or not read is named."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.md", "b.md", "c.png"):
        (folder / name).write_text("They run at night.", "utf-8")
    async with with_api(tmp_path / "home") as (ask, _):
        path, place = {"path": str(folder)}, "/api/library"

        async def row() -> dict[str, Any]:
            listed = (await ask("GET", place)).data["collections"]
            [found] = [each for each in listed if each["path"] == str(folder)]
            return dict(found)

        added = (await ask("POST", place, {**path, "exclude": ["b.*"]})).data
        assert (added["state"], added["added"], added["kept"]) == ("", 1, 0)
        told = {each["path"]: each["why"] for each in added["skipped_files"]}
        assert told == {
            "b.md": "left out by your patterns",
            "c.png": "not a kind of file that is read",
        }
        named = (await ask("GET", f"{place}?q=SWITCH.md")).data["documents"]
        assert [each["url"] for each in named] == ["library://docs/search-switch.md"]
        missing = await ask("POST", place, {"path": str(tmp_path / "nowhere")})
        assert (missing.status, missing.error["code"]) == (400, "bad_path")
        paused = await ask("PATCH", place, {**path, "paused": True})
        assert (paused.status, paused.data) == (200, path)
        now = await row()
        shown = [now[name] for name in ("state", "documents", "skipped", "exclude")]
        assert shown == ["", 1, 2, ["b.*"]]
        folder.rename(tmp_path / "away")
        again = (await ask("POST", place, path)).data
        assert (again["kept"], again["kept_files"][0]["path"]) == (1, "a.md")
        assert (await ask("DELETE", place, path)).data == {"removed": 1}


def test_keys_are_bound_to_the_addresses_of_their_owners() -> None:
    """Every key that is sent anywhere says where; a key of two owners is bound to both."""
    bound = {s.name: [a.names[0] for a in sent_to(s.name)] for s in every_setting() if s.secret}
    unbound = {name for name, addresses in bound.items() if not addresses}
    assert unbound == {"SEARCHLOOP_TOKEN", "SEARCHLOOP_DATABASE_URL"}
    assert bound["JINA_API_KEY"] == ["JINA_SEARCH_BASE_URL", "JINA_READER_BASE_URL"]
    assert bound["OLLAMA_API_KEY"] == ["OLLAMA_SEARCH_BASE_URL"]
    (chat,) = sent_to("OPENAI_CHAT_API_KEY")
    assert chat.names == ("OPENAI_CHAT_BASE_URL", "OPENAI_BASE_URL")


async def test_a_key_goes_in_and_never_comes_out(tmp_path: Path) -> None:
    """Saved, in force at once, forgotten; what is no key, or no name of one, is refused."""
    home = str(tmp_path / "home")
    house = open_services(load_environment({"SEARCHLOOP_HOME": home}, {}, tmp_path))
    secret = "sk-" + "q7" * 20
    async with living(house) as app:

        async def keys(method: str, name: str = "", value: Any = None) -> Answer:
            body = {"value": value} if value is not None else None
            return await request(app, method, f"/api/keys{name}", body=body)

        def state(answer: Answer) -> tuple[bool, bool]:
            (key,) = [k for k in answer.data["keys"] if k["name"] == "BRAVE_API_KEY"]
            return key["set"], key["saved"]

        assert state(await keys("GET")) == (False, False)
        saved = await keys("PUT", "/BRAVE_API_KEY", secret)
        assert state(saved) == (True, True)
        assert house.settings.env["BRAVE_API_KEY"] == secret
        everything = [saved, await keys("GET"), await request(app, "GET", "/api/settings")]
        assert not [a for a in everything if secret.encode() in a.body]
        assert (await keys("PUT", "/BRAVE_API_KEY", " ")).error["code"] == "bad_key"
        for name in ("SEARCHLOOP_TOKEN", "PATH"):
            assert (await keys("PUT", f"/{name}", secret)).error["code"] == "unknown_key"
        assert state(await keys("DELETE", "/BRAVE_API_KEY")) == (False, False)


async def test_what_another_process_saves_holds_without_a_new_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A key and a setting saved beside a server are in force at its next request, in the agent and
    in the search backend; what cannot be used changes nothing and is logged."""
    home = tmp_path / "home"
    env = load_environment({"SEARCHLOOP_HOME": str(home)}, {}, tmp_path)
    house = open_services(env)

    def ready() -> list[str]:
        _, told = call_wsgi(house.search_app, "/api/engines", None)
        return [engine["name"] for engine in told["engines"] if engine["available"]]

    async with living(house) as app:

        async def steps() -> str:
            shown_now = (await request(app, "GET", "/api/settings")).data
            return str(shown(shown_now)["SEARCHLOOP_LIMITS"]["value"])

        assert (await steps(), "brave" in ready()) == ("", False)
        KeyStore(home).save("BRAVE_API_KEY", "k-0123456789", (), env, file=True)
        change_config(home / "config.toml", {"SEARCHLOOP_LIMITS": "steps=3"})
        assert (await steps(), "brave" in ready()) == ("steps=3", True)
        assert (env["BRAVE_API_KEY"], house.settings.limits.steps) == ("k-0123456789", 3)
        made = house.settings
        (home / "config.toml").write_text("SEARCHLOOP_LIMITS = 'steps=none'\n")
        assert (await steps(), house.settings) == ("steps=3", made)
        (home / "config.toml").write_text("no TOML at all")
        assert (await steps(), house.settings) == ("steps=3", made)
        KeyStore(home).forget("BRAVE_API_KEY")
        (home / "config.toml").unlink()
        assert (await steps(), "brave" in ready()) == ("", False)
    told = [("steps is" in words, "cannot be read" in words) for words in caplog.messages]
    assert told == [(True, False), (False, True)]


async def test_templates_are_kept_imported_and_removed(tmp_path: Path) -> None:
    """Open WebUI's prompts too, in place of those of the same name; all of them or none."""
    async with with_api(tmp_path) as (ask, _):
        theirs = {"command": "/Sum-up", "title": "Short", "content": "{{what}} /sum-up", "id": 7}
        path, ours = "/api/templates", {"command": "b", "content": "B"}
        for given in ([ours, {"command": "a b", "content": "C"}], [{"command": "c"}]):
            refused = await ask("POST", path, {"templates": given})
            assert (refused.status, refused.error["code"]) == (400, "bad_template")
        for given in ([theirs, ours], [{**ours, "content": "new"}]):
            await ask("POST", path, {"templates": given})
        kept = (await ask("GET", path)).data["templates"]
        assert [(each["command"], each["content"]) for each in kept] == [
            ("b", "new"),
            ("sum-up", "{{what}} /sum-up"),
        ]
        left = (await ask("DELETE", f"{path}/b")).data["templates"]
        assert [each["title"] for each in left] == ["Short"]
