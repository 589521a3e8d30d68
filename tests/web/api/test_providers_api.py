"""Keys that are tested before they are saved, addresses of own servers, and folders to choose."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.providers import names
from searchloop.agent.settings import load_environment
from searchloop.compose import open_services
from searchloop.web.api.schemas import SCHEMAS
from tests.fakes import FakeServer, Reply, json_reply
from tests.ports import closed_address
from tests.web.house import Answer, Ask, asking

KEY = "sk-canary-0123456789abcdef"
LIST = {"data": [{"id": "gpt-6-sol"}, {"id": "claude-x"}], "models": [{"name": "models/gemini-9"}]}
LIST["models"][0]["supportedGenerationMethods"] = ["generateContent"]  # type: ignore[assignment]
_GEMINI = {"code": 400, "status": "INVALID_ARGUMENT", "message": f"API key not valid: {KEY}"}
_GEMINI["details"] = [{"reason": "API_KEY_INVALID"}]  # type: ignore[assignment]
_CLAUDE = {"type": "authentication_error", "message": f"invalid x-api-key {KEY}"}
_OPENAI = {"code": "invalid_api_key", "message": f"Incorrect API key provided: {KEY}."}
# The key's setting, the address's setting, and how each server refuses a key.
VENDORS: dict[str, tuple[str, str, int, Any]] = {
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", 401, {"error": _OPENAI}),
    "openai-chat": ("OPENAI_CHAT_API_KEY", "OPENAI_CHAT_BASE_URL", 401, {"error": _OPENAI}),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", 401, {"error": _CLAUDE}),
    "gemini": ("GEMINI_API_KEY", "GEMINI_BASE_URL", 400, {"error": _GEMINI}),
    "xai": ("XAI_API_KEY", "XAI_BASE_URL", 400, {"error": f"Incorrect API key provided: {KEY}"}),
}


def served(home: Path, **env: str) -> AbstractAsyncContextManager[Ask]:
    """Asks the whole application with these settings of the environment."""
    return asking(open_services(load_environment({"SEARCHLOOP_HOME": str(home)}, env, home)))


def row(answer: Answer, name: str) -> dict[str, Any]:
    """A provider in the list of all."""
    found: dict[str, Any] = next(r for r in answer.data["providers"] if r["name"] == name)
    return found


async def test_every_provider_that_needs_something_is_listed(tmp_path: Path) -> None:
    """With its key and where it is; no address of a vendor, and nobody's key in the answer."""
    async with served(tmp_path, GEMINI_API_KEY=KEY) as ask:
        answer = await ask("GET", "/api/providers")
        assert [r["name"] for r in answer.data["providers"]] == [
            name for name in names() if name != "builtin"
        ]
        assert KEY.encode() not in answer.body
        gemini, other = row(answer, "gemini"), row(answer, "openai-chat")
        assert set(gemini) == set(SCHEMAS["Provider"]["properties"])
        assert (gemini["key"]["origin"], gemini["key"]["set"]) == ("environment", True)
        assert (gemini["address"], other["address"]["changeable"]) == (None, True)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_key_that_works_is_saved_and_told_to_nobody(tmp_path: Path, vendor: str) -> None:
    """It goes to the server of the provider, into the store, and into no answer. One that is
    refused is not saved; the answer says so without the key that the server may quote."""
    key, address, status, refusal = VENDORS[vendor]
    replies = [json_reply(refusal, status)]
    with FakeServer(lambda _: replies.pop() if replies else json_reply(LIST)) as server:
        async with served(tmp_path, **{address: server.url}) as ask:
            path = f"/api/providers/{vendor}/test"
            refused = await ask("POST", path, {"key": KEY, "save": True})
            assert (refused.status, refused.error["code"]) == (502, "unauthorized")
            assert refused.error["remedy"]
            assert not row(await ask("GET", "/api/providers"), vendor)["key"]["set"]
            assert not (tmp_path / "keys.json").exists()
            looked = await ask("POST", path, {"key": KEY})
            assert (looked.status, looked.data["saved"]) == (200, False)
            assert not row(await ask("GET", "/api/providers"), vendor)["key"]["saved"]
            kept = await ask("POST", path, {"key": f" {KEY}\n", "save": True})
            assert (kept.status, kept.data["saved"]) == (200, True)
            assert kept.data["models"] > 0
            listed = await ask("GET", "/api/providers")
            assert row(listed, vendor)["key"]["saved"]
            assert KEY.encode() not in refused.body + looked.body + kept.body + listed.body
            assert (await ask("POST", path, {})).data == {**kept.data, "saved": False}
            assert all(KEY in str(received.headers) for received in server.requests)
            assert (await ask("GET", "/api/models")).status == 200
    assert json.loads((tmp_path / "keys.json").read_text())[key]["value"] == KEY


# What a list is read from is each provider's own; that nobody answers is the same for all.
FAULTS = [(vendor, how) for vendor in VENDORS for how in ("garbage", "shape")]
FAULTS += [("openai", how) for how in ("silent", "error", "gone")]


@pytest.mark.parametrize(("vendor", "how"), FAULTS)
async def test_a_server_that_does_not_list_is_named_and_nothing_is_saved(
    tmp_path: Path, vendor: str, how: str
) -> None:
    """Whatever goes wrong has a code and a remedy, and is no refusal of the key."""
    replies = {"garbage": Reply(b"<html>"), "error": json_reply({}, 503), "shape": json_reply([1])}
    replies["silent"] = Reply(before="reset")
    with FakeServer(lambda received: replies.get(how, Reply(b""))) as server:
        url = closed_address() if how == "gone" else server.url
        async with served(tmp_path, **{VENDORS[vendor][1]: url}) as ask:
            body = {"key": KEY, "save": True}
            failed = await ask("POST", f"/api/providers/{vendor}/test", body)
            assert failed.status in (400, 502), failed.body
            assert failed.error["code"] != "unauthorized"
            assert failed.error["message"]
    assert not (tmp_path / "keys.json").exists()


async def test_an_address_of_ones_own_moves_and_its_key_stays_behind(tmp_path: Path) -> None:
    """Tested first; a key that was saved for the old address is not sent to the new one."""
    with (
        FakeServer(lambda r: json_reply(LIST)) as one,
        FakeServer(lambda r: json_reply(LIST)) as two,
    ):
        async with served(tmp_path) as ask:
            path = "/api/providers/openai-chat/test"
            nowhere = {"address": closed_address(), "save": True}
            assert (await ask("POST", path, nowhere)).status == 502
            first = {"address": one.url, "key": KEY, "save": True}
            assert (await ask("POST", path, first)).data["saved"]
            second = await ask("POST", path, {"address": two.url, "save": True})
            assert second.data["saved"]
            assert not any(KEY in str(r.headers) for r in two.requests[1:])
            moved = row(await ask("GET", "/api/providers"), "openai-chat")
            assert moved["address"]["value"] == two.url
            assert (moved["key"]["set"], moved["key"]["strayed"]) == (False, "OPENAI_CHAT_BASE_URL")
            assert (await ask("POST", path, {"address": None, "save": True})).status == 400


@pytest.mark.parametrize(
    ("vendor", "env"),
    [
        ("openai", {}),
        ("anthropic", {}),
        ("openai-chat", {"OPENAI_CHAT_API_KEY": KEY}),
        ("openai-chat", {"OPENAI_CHAT_BASE_URL": "http://127.0.0.1:9/v1"}),
        ("ollama", {"OLLAMA_BASE_URL": "http://127.0.0.1:9"}),
    ],
)
async def test_an_address_that_keys_go_to_stays(
    tmp_path: Path, vendor: str, env: dict[str, str]
) -> None:
    """A vendor's own, one that the environment sets, or one that its key would follow."""
    async with served(tmp_path, **env) as ask:
        with FakeServer(lambda received: json_reply(LIST)) as server:
            body = {"address": server.url, "save": True}
            refused = await ask("POST", f"/api/providers/{vendor}/test", body)
            assert (refused.status, refused.error["code"]) == (400, "not_changeable")
            assert server.requests == []


async def test_folders_are_offered_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of folders alone; hidden ones, those of keys and the system's are not looked into. The
    way to the home folder comes first: of very many only some are shown."""
    for name in ("notes", "b ö", ".ssh", "secrets.json", ".git"):
        (tmp_path / "h" / name).mkdir(parents=True)
    (tmp_path / "h" / "file.md").write_text("x")
    (tmp_path / "h" / "out").symlink_to(tmp_path / "h" / ".ssh")
    async with served(tmp_path / "data") as ask:
        answer = await ask("GET", f"/api/folders?path={tmp_path / 'h'}")
        assert set(answer.data) == set(SCHEMAS["Folders"]["properties"])
        assert [f["name"] for f in answer.data["folders"]] == ["b ö", "notes", "out"]
        assert answer.data["parent"] == str(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path / "h" / "notes"))
        assert (await ask("GET", "/api/folders")).data["path"] == str(tmp_path / "h" / "notes")
        answer = await ask("GET", f"/api/folders?path={tmp_path / 'h'}")
        assert [f["name"] for f in answer.data["folders"]] == ["notes", "b ö", "out"]
        for path in (".ssh", "out", "secrets.json", ".git"):
            assert (await ask("GET", f"/api/folders?path={tmp_path / 'h' / path}")).status == 400
        for path in ("/etc", "/proc/self", "relative", f"{tmp_path}/none", f"{tmp_path}/h/file.md"):
            refused = await ask("GET", f"/api/folders?path={path}")
            assert (refused.status, bool(refused.error["remedy"])) == (400, True), path


async def test_a_setting_that_its_provider_cannot_read_is_refused(tmp_path: Path) -> None:
    """Before it is saved: afterwards the provider would answer nobody."""
    async with served(tmp_path) as ask:
        for value, status in (("many", 400), ("8192", 200)):
            changes = {"settings": {"OLLAMA_CONTEXT_LENGTH": value}}
            answer = await ask("PATCH", "/api/settings", changes)
            assert answer.status == status
        assert "8192" in (tmp_path / "config.toml").read_text()
