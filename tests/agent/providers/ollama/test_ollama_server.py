"""Ollama end to end: provider, transport and a server that keeps the real one's rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import pytest

from searchloop.agent.errors import ConfigError, ProviderError
from searchloop.agent.providers import ModelServer
from searchloop.agent.providers.ollama import Ollama, create
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, Finished, Loaded, Message, ModelInfo, Request
from tests.agent.providers.vendors import asked, using
from tests.fake_ollama import FakeOllama, Model, say
from tests.fakes import FakeServer, Reply, json_reply
from tests.ports import closed_address
from tests.tables import each_row

QWEN = Model("qwen3:8b", ("completion", "tools", "thinking"))
CLOUD = Model("big:cloud", remote_host="https://ollama.com:443")
T = TypeVar("T")


def ask(server: FakeServer, model: str = "qwen3:8b", **env: str) -> str:
    """The answer to a question, through the ordinary settings."""
    flags = {"OLLAMA_HOST": server.url, **env}
    end = asked("ollama", flags, Request(model, [Message("user", "Hello")]))[-1]
    assert isinstance(end, Finished)
    return end.message.content


def host(server: FakeServer | str, work: Callable[[Ollama], Awaitable[T]], **env: str) -> T:
    """What `work` gives with this server's provider."""
    url = server if isinstance(server, str) else server.url
    return using("ollama", {"OLLAMA_HOST": url, **env}, work)


def models(server: FakeServer | str, **env: str) -> list[ModelInfo]:
    """What the picker shows for this server."""
    return host(server, Ollama.models, **env)


@pytest.mark.parametrize("setting", ["SEARCHLOOP_OFFLINE", "OLLAMA_NO_CLOUD"])
def test_no_cloud_means_none(setting: str) -> None:
    """A model that the server runs in the cloud gets no request, however it is called."""
    disguised = Model("innocent", remote_host="https://ollama.com:443")
    with FakeOllama([QWEN, disguised, CLOUD], [say("Hi")]) as server:
        for name in ("innocent", "big:cloud"):
            with pytest.raises(ConfigError, match=setting):
                ask(server, name, **{setting: "1"})
        assert not server.chats
        assert ask(server, **{setting: "1"}) == "Hi"
        listed = {m.id: m for m in models(server, **{setting: "1"})}
    assert listed["ollama:qwen3:8b"].available
    for name in ("ollama:innocent:latest", "ollama:big:cloud"):
        assert not listed[name].available
        assert setting in str(listed[name].missing)


# --- the picker -------------------------------------------------------------------------------


def test_models_and_what_they_can_do() -> None:
    """Capabilities come from the list; no embedders."""
    installed = [
        Model("qwen3:8b", ("completion", "tools", "thinking")),
        Model("tiny", ("completion",)),
        Model("nomic-embed-text", ("embedding",)),
        Model("big:cloud", remote_host="https://ollama.com:443", trained=131072),
    ]
    with FakeOllama(installed) as server:
        found = {model.id: model for model in models(server)}
    assert list(found) == ["ollama:qwen3:8b", "ollama:tiny:latest", "ollama:big:cloud"]
    thinks = Capabilities(tools=True, thinking=True, efforts=("off", "on"))
    assert found["ollama:qwen3:8b"].capabilities == thinks
    assert found["ollama:qwen3:8b"].title == "qwen3:8b (8.2B)"
    assert found["ollama:tiny:latest"].capabilities.tools is False
    assert found["ollama:big:cloud"].capabilities.context == 131072
    assert [m.local for m in found.values()] == [True, True, False]
    assert all(m.available and not m.capabilities.native_search for m in found.values())
    assert [m.calls for m in found.values()] == ["native", "envelope", "native"]
    assert found["ollama:qwen3:8b"].disk == 1_000_000


def test_the_window_is_the_one_that_is_there() -> None:
    """A loaded model has the window the server gave it; a setting decides for the others."""

    async def window(provider: Ollama) -> int | None:
        await provider.models()
        return provider.capabilities("qwen3:8b").context

    with FakeOllama([Model("qwen3:8b", trained=40960)], [say("Hi")]) as server:
        assert host(server, window) is None
        assert host(server, window, OLLAMA_CONTEXT_LENGTH="8192") == 8192
        assert host(server, window, OLLAMA_CONTEXT_LENGTH="99999") == 40960
        ask(server)
        assert host(server, window) == 4096


# --- memory, disk and the server itself --------------------------------------------------------


def loaded(server: FakeServer, model: str = "ollama:qwen3:8b") -> Loaded | None:
    """What the picker says of a model's place in memory."""
    return {m.id: m for m in models(server)}[model].loaded


def test_a_loaded_model_is_shown_and_can_leave() -> None:
    """Size, GPU share, window and time to leave are told; unloading empties the memory."""
    with FakeOllama([QWEN], [say("Hi"), say("Hi")]) as server:
        assert loaded(server) is None
        ask(server)
        now = loaded(server)
        host(server, lambda provider: provider.unload("qwen3:8b"))
        assert loaded(server) is None
    assert now == Loaded(6_000_000_000, 3_000_000_000, 4096, 1795194300.123456)


def test_a_model_can_be_deleted() -> None:
    """It is gone from the list; the second time the server's refusal is passed on."""
    with FakeOllama([QWEN, Model("tiny")]) as server:
        host(server, lambda provider: provider.remove("tiny"))
        assert [m.id for m in models(server)] == ["ollama:qwen3:8b"]
        with pytest.raises(ProviderError, match="has no model 'tiny'"):
            host(server, lambda provider: provider.remove("tiny"))
        with pytest.raises(ProviderError, match="has no model 'tiny'"):
            host(server, lambda provider: provider.unload("tiny"))


def test_a_model_with_a_slip_in_its_name_is_told_with_the_one_that_is_there() -> None:
    """Once the server's list is known, which the page and `searchloop models` ask for."""

    async def work(provider: Ollama) -> None:
        await provider.models()
        async for _ in provider.stream(Request("qwen4:8b", [Message("user", "hi")])):
            pass

    refused = pytest.raises(ProviderError, match="has no model 'qwen4:8b'")
    with FakeOllama([QWEN], [say("Hi")]) as server, refused as caught:
        host(server, work)
    assert caught.value.remedy.startswith("Did you mean qwen3:8b? Get it with `ollama pull qwen4")


@pytest.mark.parametrize(
    ("settings", "env", "cloud"),
    [
        ({}, {}, True),
        ({"cloud_disabled": True}, {}, False),
        ({}, {"OLLAMA_NO_CLOUD": "1"}, False),
        ({}, {"SEARCHLOOP_OFFLINE": "1"}, False),
    ],
)
def test_which_server_it_is(settings: dict[str, Any], env: dict[str, str], cloud: bool) -> None:
    """Address, version, and whether a question may go on to a cloud."""
    with FakeOllama([QWEN], version="0.33.1", **settings) as server:
        told = host(server, Ollama.server, **env)
    assert told == ModelServer("ollama", "Ollama", server.url, "0.33.1", cloud)


def test_a_switched_off_cloud_is_seen_before_a_question() -> None:
    """Cloud models of a server whose cloud is off are not offered."""
    with FakeOllama([QWEN, CLOUD], cloud_disabled=True) as server:
        listed = {m.id: m for m in models(server)}
    assert listed["ollama:qwen3:8b"].available
    assert "switched off" in str(listed["ollama:big:cloud"].missing)


@each_row(
    "name",
    [
        *("http://evil.example/m", "evil.example/user/m", "evil.example:8080/user/m", "../m"),
        *("localhost/m", "127.0.0.1:5000/m", "user/../m", "", "a b", "m\n", "//m", "m:", "-m"),
        *("hf.co/user/m/more", "evil.example/hf.co/m:x/y", "hf.co.evil.example/u/m"),
    ],
)
def test_only_the_library_s_own_names_are_got(name: str) -> None:
    """A name that would make the server load from elsewhere is refused before it is asked."""
    with FakeOllama([QWEN]) as server:

        async def pull(provider: Ollama) -> None:
            async for _ in provider.pull(name):
                pass

        for work in (pull, lambda p: p.unload(name), lambda p: p.remove(name)):
            with pytest.raises(ConfigError) as caught:
                host(server, work)
            assert caught.value.code == "bad_model_name"
    assert not server.requests


def missing(server: FakeServer | str, **env: str) -> str:
    """What the only entry says is missing, and its remedy."""
    (found,) = models(server, **env)
    assert (found.id, found.available) == ("ollama:", False)
    return f"{found.missing} {found.remedy}"


def test_no_server_is_one_entry_in_the_picker() -> None:
    """Not running, or a wrong setting: the entry says so and what to do."""
    url = closed_address()
    start = "Start it with `ollama serve`, or set OLLAMA_HOST to where it runs."
    assert missing(url) == f"Ollama is not running at {url}. {start}"
    assert "OLLAMA_CONTEXT_LENGTH" in missing("", OLLAMA_CONTEXT_LENGTH="many")


@each_row(
    ("reply", "words"),
    [
        *((json_reply(odd), "not Ollama") for odd in ({"data": []}, [1], {"models": 3})),
        (json_reply({"error": "no"}, 500), "no"),
        (Reply([b"<html>"], headers={"content-type": "text/html"}), "as its API says"),
        (json_reply({"models": None}), "`ollama pull"),
    ],
)
def test_something_else_is_one_entry_in_the_picker(reply: Reply, words: str) -> None:
    """Another server at that address, or one without a model: said, never raised."""
    with FakeServer(lambda _: reply) as server:
        assert words in missing(server)


def test_odd_entries_do_not_break_the_list() -> None:
    """Entries without a name, or of a server that tells names alone, are no reason to fail."""
    odd = [{"model": "m", "details": None, "capabilities": "x"}, {}, None, {"name": 3}]
    odd += [{"name": name} for name in ("qwen3:8b", "nomic-embed-text")]
    with FakeServer(lambda r: json_reply({"models": odd}, 200 if "tags" in r.path else 404)) as s:
        assert [m.id for m in models(s)] == ["ollama:m", "ollama:qwen3:8b"]


@each_row(
    ("env", "code"),
    [
        ({"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": "gpu-box"}, "offline"),
        ({"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": "http://127.0.0.1.evil.example"}, "offline"),
        ({"SEARCHLOOP_OFFLINE": "1", "model": "gpt-oss:120b-cloud"}, "cloud_refused"),
        ({"OLLAMA_NO_CLOUD": "1", "model": "kimi-k2:cloud"}, "cloud_refused"),
        ({"OLLAMA_NO_CLOUD": "1", "OLLAMA_HOST": "ollama.com"}, "cloud_refused"),
        ({"OLLAMA_HOST": "https://ollama.com"}, "missing_key"),
        ({"OLLAMA_HOST": "http://ollama.com", "OLLAMA_API_KEY": "k"}, "missing_key"),
        ({"OLLAMA_HOST": "http://x:99999"}, "bad_ollama_host"),
        ({"OLLAMA_CONTEXT_LENGTH": "many"}, "bad_context_length"),
        *(({}, ""), ({"OLLAMA_HOST": "gpu-box"}, ""), ({"SEARCHLOOP_OFFLINE": "1"}, "")),
        ({"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": "http://localhost:1"}, ""),
        ({"SEARCHLOOP_OFFLINE": "1", "OLLAMA_HOST": "[::ffff:127.0.0.1]:1"}, ""),
        ({"OLLAMA_HOST": "https://ollama.com", "OLLAMA_API_KEY": "k"}, ""),
    ],
)
def test_check_says_what_is_missing(env: dict[str, str], code: str) -> None:
    """What forbids or lacks is named before anything is sent; a server of one's own needs nothing,
    and offline means this machine, by any of its names."""
    model = env.pop("model", "qwen3:8b")
    with pytest.raises(ConfigError) if code else nullcontext() as caught:
        create(env, Transport()).check(model)
    assert caught is None or (caught.value.code, bool(caught.value.remedy)) == (code, True)
