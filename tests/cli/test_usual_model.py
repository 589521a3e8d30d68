"""Which model answers at a terminal when none is named."""

from __future__ import annotations

from tests.cli.conftest import Cli
from tests.fake_ollama import FakeOllama, Model, say

HERE = [
    Model("tiny:1b", disk=400_000_000),
    Model("qwen3:4b", disk=900_000_000),
    Model("mute:1b", ("completion",), disk=1_000_000_000),
    Model("embed", ("embedding",), disk=1_200_000_000),
    Model("huge", disk=10**15),
    Model("glm-5:cloud", disk=1_500_000_000, remote_host="https://ollama.com"),
    Model("short", disk=1_100_000_000, trained=512),
]


def test_the_best_model_of_ollama_answers(cli: Cli) -> None:
    """It is told once, as nobody chose it; then it is the one used last, until another is."""
    with FakeOllama(HERE, lambda body: say(f"I am {body['model']}.")) as server:
        here = {"OLLAMA_HOST": server.url, "SEARCHLOOP_OFFLINE": ""}
        first = cli("ask", "Who?", **here)
        assert (first.code, first.out.strip()) == (0, "I am qwen3:4b.")
        assert "Model: ollama:qwen3:4b (the largest of 2 that call tools and fit " in first.err
        assert "-m" in first.err
        second = cli("ask", "Who?", **here)
        assert (second.out.strip(), "Model:" in second.err) == ("I am qwen3:4b.", False)
        assert cli("ask", "-m", "tiny:1b", "Who?", **here).out.strip() == "I am tiny:1b."
        assert cli("ask", "Who?", **here).out.strip() == "I am tiny:1b."
        assert cli("chat", stdin="Who?\n", **here).out.strip() == "I am tiny:1b."
        listed = cli("models", "-o", "json", **here).json
        assert listed["default"] == {"model": "ollama:tiny:1b", "by": "last", "why": "used last"}
        named = cli("ask", "Who?", SEARCHLOOP_MODEL="ollama:mute:1b", **here)
        assert named.out.strip() == "I am mute:1b."
        assert "Without -m: ollama:mute:1b (used last)" in cli("models", **here).out


def test_a_model_that_cannot_answer_is_no_habit(cli: Cli) -> None:
    """A name with a slip in it does not stick."""
    with FakeOllama(HERE, lambda body: say(f"I am {body['model']}.")) as server:
        assert cli("ask", "-m", "ollama:tinny", "Who?", OLLAMA_HOST=server.url).code == 1
        assert cli("ask", "Who?", OLLAMA_HOST=server.url).out.strip() == "I am qwen3:4b."


def test_a_bare_name_says_which_provider_it_found(cli: Cli) -> None:
    """On stderr; a whole name says nothing."""
    with FakeOllama(HERE, lambda body: say("Yes.")) as server:
        bare = cli("ask", "-m", "tiny:1b", "Who?", OLLAMA_HOST=server.url)
        whole = cli("ask", "-m", "ollama:tiny:1b", "Who?", OLLAMA_HOST=server.url)
    assert (bare.out, "Model: ollama:tiny:1b" in bare.err) == ("Yes.\n", True)
    assert "Model:" not in whole.err


def test_a_model_that_no_server_has_is_told_with_near_names(cli: Cli) -> None:
    """Who was asked, who does not answer, and what is written like it; or how to get it."""
    with FakeOllama(HERE, lambda body: say("Yes.")) as server:
        here = {"OLLAMA_HOST": server.url, "SEARCHLOOP_OFFLINE": ""}
        near = cli("ask", "-m", "qwen4:4b", "Who?", **here)
        far = cli("ask", "-m", "gemma9:27b", "Who?", **here)
    assert (near.code, far.code) == (2, 2)
    assert "There is no model 'qwen4:4b'. Asked: builtin, ollama. Did you mean qwen3:4b" in near.err
    assert "Without a key or an address: anthropic, gemini, " in near.err
    assert "`searchloop models pull gemma9:27b` may get it." in far.err
    gone = cli("ask", "-m", "qwen3:4b", "Who?", **here).err
    assert "Asked: builtin. " in gone
    assert f"Ollama is not running at {server.url}. Start it with `ollama serve`" in gone


def test_the_default_is_chosen_and_shown(cli: Cli) -> None:
    """It is saved; a setting of the shell wins over it, and that is said."""
    with FakeOllama(HERE, lambda body: say(f"I am {body['model']}.")) as server:
        here = {"OLLAMA_HOST": server.url, "SEARCHLOOP_OFFLINE": ""}
        assert "qwen3:4b (the largest" in cli("models", "default", **here).out
        chosen = cli("models", "default", "tiny:1b", **here)
        assert chosen.out.strip() == "ollama:tiny:1b (set by config.toml)"
        assert cli("ask", "Who?", **here).out.strip() == "I am tiny:1b."
        other = cli("models", "default", "mute:1b", SEARCHLOOP_MODEL="ollama:short", **here)
        assert "does not hold now" in other.err
        assert "ollama:mute:1b" in cli("models", "default", **here).out
        cli("models", "default", "none", **here)
        assert "mute" not in cli("models", "default", **here).out
        assert cli("models", "default", "tinny", **here).code == 2
