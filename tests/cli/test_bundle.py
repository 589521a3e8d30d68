"""`searchloop doctor`: each server asked once, and a report that anybody may read."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fakes import FakeServer, json_reply

KEYS = {
    "OPENAI_API_KEY": "sk-planted-0123456789abcdef",
    "OPENAI_CHAT_API_KEY": "planted-chat-9876543210",
    "SEARCHLOOP_TOKEN": "planted-token-0123456789",
    "BRAVE_API_KEY": "BSAplantedplantedplanted",
    "HTTPS_PROXY": "http://me:planted-password@proxy.example:3128",
}
SECRETS = ("planted-0123", "planted-chat", "planted-token", "BSAplanted", "planted-password")
QUESTION = "What is the planted question of a user?"


def test_a_report_has_no_keys_questions_or_answers(cli: Cli, tmp_path: Path) -> None:
    """Wherever they were planted: settings, saved keys, the words of a server that quotes them."""
    said = " ".join([*KEYS.values(), base64.b64encode(KEYS["OPENAI_API_KEY"].encode()).decode()])

    with FakeServer(lambda _: json_reply({"error": {"message": said}}, 400)) as server:
        here = {"OPENAI_CHAT_BASE_URL": f"{server.url}/v1", **KEYS}
        cli(
            "setup",
            "--provider",
            "gemini",
            "--key-stdin",
            "--no-test",
            stdin="AIzaPlantedPlanted12345\n",
        )
        assert cli("ask", "-m", "openai-chat:m", QUESTION, **here).code == 1
        ran = cli("doctor", "--bundle", "report.txt", **here)
    assert (ran.code, "report.txt is written" in ran.out) == (0, True)
    report = (tmp_path / "report.txt").read_text("utf-8")
    for secret in (*SECRETS, "AIzaPlanted", QUESTION, str(tmp_path)):
        assert secret not in report, secret
    assert base64.b64encode(b"sk-planted-0123456789").decode()[:20] not in report
    for there in ("Python 3.", "OPENAI_API_KEY = (set, not shown)", "run_finished", "bad_request"):
        assert there in report
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "report.txt").stat().st_mode) == 0o600


def test_a_report_overwrites_nothing(cli: Cli, tmp_path: Path) -> None:
    """Not a file that happens to have its name."""
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    ran = cli("doctor", "--bundle", "notes.txt")
    assert (ran.code, (tmp_path / "notes.txt").read_text("utf-8")) == (1, "mine")
    assert "notes.txt" in ran.err


@pytest.mark.parametrize(
    ("status", "command"),
    [(401, "searchloop setup --provider openai --key-stdin"), (500, ""), (200, "")],
)
def test_a_server_that_fails_is_told_with_what_mends_it(
    cli: Cli, status: int, command: str
) -> None:
    """A wrong key is seen before the first question."""
    listed = {"data": [{"id": "gpt-9"}]} if status == 200 else {"error": {"message": "No."}}
    with FakeServer(lambda _: json_reply(listed, status)) as server:
        here = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-test-0123456789"}
        found = cli("doctor", "-o", "json", SEARCHLOOP_OFFLINE="", **here).json["findings"]
        asked = [r for r in server.requests if r.path.endswith("/models")]
    own = [f for f in found if f["what"] == "Provider openai"]
    assert [f["command"] for f in own] == ([] if status == 200 else [command])
    assert ("Models of openai" in {f["what"] for f in found}) is (status == 200)
    assert asked
