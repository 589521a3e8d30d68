"""`doctor` and `models pull`: what is missing is named, with a command that can be copied."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import Cli
from tests.fake_ollama import FakeOllama, Model
from tests.fakes import FakeServer, json_reply
from tests.ports import closed_address

TINY = Model("tiny:1b", ("completion",), num_ctx=4096)


def findings(cli: Cli, **settings: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the findings by what they are about."""
    ran = cli("doctor", "-o", "json", **settings)
    return ran.code, {f["what"]: f for f in ran.json["findings"]}


def test_a_bare_machine_is_well(cli: Cli) -> None:
    """Without a key and without a server everything needed is there, and nothing is hidden."""
    code, found = findings(cli, OLLAMA_HOST=closed_address())
    assert code == 0
    assert found["Default model"]["said"] == "builtin:extractive, quotes only: no other found"
    assert found["Search"]["state"] == "ok"
    assert found["Models of openai"] == {
        "state": "hint",
        "what": "Models of openai",
        "said": "OPENAI_API_KEY is not set",
        "command": "export OPENAI_API_KEY=...",
    }
    assert "Ollama is not running" in found["Models of ollama"]["said"]
    assert found["Models of ollama"]["command"] == "ollama serve"


def test_what_other_users_can_read_is_named(cli: Cli) -> None:
    """A file of the data folder, and a `.env`, that others may read: each with its command."""
    home = Path(cli("config", "-o", "json").json["settings"][0]["value"])
    home.mkdir(mode=0o755, exist_ok=True)
    home.chmod(0o755)
    (home / "config.toml").write_text("")
    (home / "config.toml").chmod(0o644)
    told = cli("doctor", OLLAMA_HOST=closed_address()).out
    said = f"other users of this machine can read {home / 'config.toml'}"
    assert said in told
    subprocess.run(["chmod", "600", str(home / "config.toml")], check=True)
    assert f"chmod 600 {home / 'config.toml'}" in told
    assert "Privacy" not in cli("doctor", OLLAMA_HOST=closed_address()).out


def test_an_environment_that_cannot_be_used_stands_in_the_way(cli: Cli) -> None:
    """Certificates that are not there and a proxy that is none are named, without its password."""
    wrong = {
        "SSL_CERT_FILE": "/nowhere/ca.pem",
        "HTTPS_PROXY": "http://me:secret@[::1",
        "NO_PROXY": "",
    }
    code, found = findings(cli, OLLAMA_HOST=closed_address(), **wrong)
    assert code == 1
    assert found["Certificates"]["said"].startswith("SSL_CERT_FILE names '/nowhere/ca.pem'")
    assert "Check HTTPS_PROXY" in found["Proxy"]["said"]
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("model", "there", "said", "command"),
    [
        ("ollama:qwen3:8b", False, "", "ollama serve"),
        ("ollama:qwen3:8b", True, "", "ollama pull qwen3:8b"),
        ("qwen3", False, "not a model name", ""),
    ],
)
def test_a_model_that_is_not_there_stands_in_the_way(
    cli: Cli, model: str, there: bool, said: str, command: str
) -> None:
    """No server, a server without models, no name of one: exit code 1, and what mends it."""
    with FakeOllama() as server:
        where = server.url if there else closed_address()
        code, found = findings(cli, OLLAMA_HOST=where, SEARCHLOOP_MODEL=model)
    assert (code, found["Default model"]["state"]) == (1, "missing")
    assert said in found["Default model"]["said"]
    assert command in found["Default model"]["command"]


def test_a_missing_model_has_its_command(cli: Cli) -> None:
    """The chosen model is not installed: the command that gets it, which then works."""
    wanted = Model("qwen3:8b", num_ctx=32768)
    with FakeOllama([TINY], library=[wanted]) as server:
        here = {"OLLAMA_HOST": server.url, "SEARCHLOOP_MODEL": "ollama:qwen3:8b"}
        code, found = findings(cli, **here)
        assert (code, found["Default model"]["command"]) == (1, "searchloop models pull qwen3:8b")
        _, *command = found["Default model"]["command"].split()
        assert cli(*command, **here, SEARCHLOOP_OFFLINE="").code == 0
        assert findings(cli, **here)[0] == 0


def test_small_windows_and_missing_calls_are_hints(cli: Cli) -> None:
    """A window too small for pages and a model without calls are told, and are no fault."""
    with FakeOllama([TINY]) as server:
        here = {"OLLAMA_HOST": server.url, "OLLAMA_CONTEXT_LENGTH": "4096"}
        told = cli("doctor", **here)
        listed = cli("models", **here).out
    assert told.code == 0
    assert "its window is 4,096 tokens" in told.out
    assert "export OLLAMA_CONTEXT_LENGTH=16384" in told.out
    assert "it searches by envelope" in told.out
    assert "calls: envelope" in listed


def test_a_small_window_of_another_server(cli: Cli) -> None:
    """A setting of Ollama does not help there: the server itself is started with more."""
    listed = {"data": [{"id": "small", "meta": {"n_ctx": 2048}}]}
    with FakeServer(lambda _: json_reply(listed)) as server:
        here = {"OPENAI_CHAT_BASE_URL": f"{server.url}/v1", "SEARCHLOOP_MODEL": "openai-chat:small"}
        _, found = findings(cli, OLLAMA_HOST=closed_address(), **here)
    assert "-c 16384" in found["openai-chat:small"]["said"]
    assert not found["openai-chat:small"]["command"]


def test_a_model_of_two_providers_needs_its_provider(cli: Cli) -> None:
    """The error names both, and nothing is asked."""
    listed = json_reply({"object": "list", "data": [{"id": "tiny:1b", "object": "model"}]})
    with FakeOllama([TINY]) as server, FakeServer(lambda _: listed) as other:
        here = {"OLLAMA_HOST": server.url, "OPENAI_CHAT_BASE_URL": other.url}
        ran = cli("ask", "-m", "tiny:1b", "Hi", **here)
        none = cli("ask", "-m", "huge", "Hi", **here)
    assert (ran.code, none.code) == (2, 2)
    assert "2 providers have a model tiny:1b. Choose one of" in ran.err
    assert "ollama:tiny:1b" in ran.err
    assert "openai-chat:tiny:1b" in ran.err
    assert "There is no model 'huge'. Asked: " in none.err


def test_a_model_is_got_with_progress(cli: Cli) -> None:
    """Each stage is told once, then the name; the server is asked for that model."""
    with FakeOllama(library=[Model("qwen3:8b")]) as server:
        here = {"OLLAMA_HOST": server.url, "SEARCHLOOP_OFFLINE": ""}
        ran = cli("models", "pull", "qwen3:8b", **here)
        same = cli("models", "pull", "ollama:qwen3:8b", "-o", "json", **here)
    assert (ran.code, ran.out) == (0, "ollama:qwen3:8b\n")
    assert ran.err.split("\n")[:2] == ["pulling manifest", "pulling aa"]
    assert ran.err.endswith("success\n")
    assert same.json == {"pulled": "ollama:qwen3:8b"}
    assert server.requests[0].json == {"model": "qwen3:8b", "stream": True}


def test_a_model_that_cannot_be_got(cli: Cli) -> None:
    """An unknown name, an absent server, a provider without models here, no network: a sentence."""
    with FakeOllama() as server:
        wrong = cli("models", "pull", "nope", OLLAMA_HOST=server.url, SEARCHLOOP_OFFLINE="")
        offline = cli("models", "pull", "qwen3:8b", OLLAMA_HOST=server.url)
    absent = cli("models", "pull", "qwen3:8b", OLLAMA_HOST=closed_address(), SEARCHLOOP_OFFLINE="")
    elsewhere = cli("models", "pull", "openai:gpt-6-luna", SEARCHLOOP_OFFLINE="")
    assert (wrong.code, "has no model 'nope'" in wrong.err) == (1, True)
    assert (offline.code, "SEARCHLOOP_OFFLINE is on" in offline.err) == (2, True)
    assert (absent.code, "`ollama serve`" in absent.err) == (1, True)
    assert (elsewhere.code, "nothing to get" in elsewhere.err) == (2, True)


def test_what_is_in_memory_is_shown(cli: Cli) -> None:
    """As any client of that server has loaded it."""
    with FakeOllama([TINY, Model("qwen3:8b")]) as server:
        body = json.dumps({"model": "qwen3:8b"}).encode()
        with urlopen(Request(f"{server.url}/api/chat", body, {"content-type": "application/json"})):
            listed = cli("models", OLLAMA_HOST=server.url).out.splitlines()
    (line,) = [line for line in listed if line.startswith("ollama:qwen3:8b")]
    assert "calls: native, loaded" in line


def test_settings_are_printed_as_json(cli: Cli) -> None:
    """Name, value and origin of each setting, at most 40 beside the keys; a key is never shown, an
    address only where it is set, and a name that is no setting is reported.
    """
    url = "http://127.0.0.1:9"
    here = {"SEARCH_COUNTRY": "de", "BRAVE_API_KEY": "k-0123456789", "SEARCHLOOP_LIMIT": "steps=3"}
    told = cli("config", "-o", "json", BRAVE_BASE_URL=url, **here)
    rows = {row["name"]: row for row in told.json["settings"]}
    assert rows["SEARCH_COUNTRY"]["value"] == "de"
    assert rows["SEARCH_COUNTRY"]["origin"] == "environment"
    assert rows["BRAVE_API_KEY"]["value"] == "(set, not shown)"
    assert rows["TAVILY_API_KEY"]["value"] is None
    addresses = {name: row["value"] for name, row in rows.items() if name.endswith("_BASE_URL")}
    assert addresses == {"BRAVE_BASE_URL": url}
    assert len([name for name in rows if not name.endswith(("_API_KEY", "_BASE_URL"))]) <= 40
    _, found = findings(cli, **here)
    said = found["SEARCHLOOP_LIMIT"]
    assert (said["state"], "it has no effect" in said["said"]) == ("hint", True)
    assert [name for name in found if name.startswith("SEARCHLOOP_")] == ["SEARCHLOOP_LIMIT"]
    assert "k-0123456789" not in told.out


def test_each_engine_is_asked_once(cli: Cli) -> None:
    """One that refuses or is down is named with what mends it; the others are the search."""
    found_page = {"results": [{"url": "https://a.example/", "title": "A", "content": "a"}]}
    with (
        FakeServer(lambda received: json_reply(found_page)) as good,
        FakeServer(lambda received: json_reply({"detail": "bad key"}, 401)) as bad,
    ):
        settings = {
            "SEARCH_ENGINES": "searxng,brave,tavily",
            "SEARXNG_URL": good.url,
            "BRAVE_BASE_URL": bad.url,
            "BRAVE_API_KEY": "k-0123456789",
            "TAVILY_BASE_URL": closed_address(),
            "TAVILY_API_KEY": "k-0123456789",
            "SEARCHLOOP_OFFLINE": "",
            "OLLAMA_HOST": closed_address(),
        }
        code, found = findings(cli, **settings)
        only = {**settings, "SEARCH_ENGINES": "brave,tavily"}
        none, without = findings(cli, **only)
    assert (code, found["Search"]["said"]) == (0, "searxng")
    assert len(good.requests) == 1
    assert len(bad.requests) == 2, "once for each report"
    for name in ("brave", "tavily"):
        engine = found[f"Search engine {name}"]
        assert (engine["state"], engine["command"]) == ("hint", f"searchloop setup --engine {name}")
        assert engine["said"].endswith(".")
        assert "k-0123456789" not in engine["said"]
    assert (none, without["Search"]["state"]) == (1, "missing")
    assert without["Search"]["command"] == "export SEARCH_ENGINES=ddg,library"


def test_a_new_token_is_kept_and_not_shown(cli: Cli) -> None:
    """`config --new-token` replaces the file and says what follows; one that is set elsewhere is
    changed there."""
    path = Path(cli("config", "-o", "json").json["settings"][0]["value"]) / "token"
    first = cli("config", "--new-token")
    before = path.read_text().strip()
    again = cli("config", "--new-token", "-o", "json")
    after = path.read_text().strip()
    assert (first.code, again.code, len(after) >= 32, before != after) == (0, 0, True, True)
    assert str(path) in first.out
    assert again.json == {"token_file": str(path)}
    assert not {before, after} & set((first.out + again.out).split())
    fixed = cli("config", "--new-token", SEARCHLOOP_TOKEN="set elsewhere for good")
    assert (fixed.code, path.read_text().strip()) == (2, after)
    assert "set by environment" in fixed.err


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


def test_what_cannot_be_typed_is_no_command(cli: Cli, tmp_path: Path) -> None:
    """A folder that cannot be made has a remedy in words."""
    (tmp_path / "file").touch()
    _, found = findings(cli, OLLAMA_HOST=closed_address(), SEARCHLOOP_HOME=str(tmp_path / "file"))
    assert (found["Sessions"]["state"], found["Sessions"]["command"]) == ("missing", "")
    assert "SEARCHLOOP_HOME" in found["Sessions"]["said"]
