"""The tables of what models can do: whole, and read by the longest prefix."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from searchloop.agent import providers
from searchloop.agent.providers import ProviderRegistry
from searchloop.agent.providers._keyed import ModelTable
from searchloop.agent.settings import Environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import Capabilities, ModelInfo
from tests.fakes import FakeServer, json_reply
from tests.tables import each_row

FILES = sorted(Path(providers.__file__).parent.glob("*/models.toml"))


def entries() -> Iterator[tuple[str, str]]:
    """Each table and prefix of a name in it."""
    for path in FILES:
        for prefix in tomllib.loads(path.read_text("utf-8"))["models"]:
            yield path.parent.name, prefix


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_table_offers_what_it_would_list(path: Path) -> None:
    """Each offered name would be kept of a list, and a stranger's name has an entry, too."""
    table = ModelTable(str(path), lambda able, **rest: able)
    assert table.offered
    if "listed" in tomllib.loads(path.read_text("utf-8")):
        assert [name for name in table.offered if not table.answers_questions(name)] == []
    assert table.of("somebody-elses-model") == table.of("")


@pytest.mark.parametrize(("vendor", "prefix"), tuple(entries()))
def test_every_entry_can_be_read(vendor: str, prefix: str) -> None:
    """What it is exists, and its own values win."""
    path = next(path for path in FILES if path.parent.name == vendor)
    raw = tomllib.loads(path.read_text("utf-8"))["models"][prefix]
    entry = {name: tuple(v) if isinstance(v, list) else v for name, v in raw.items()}
    table = ModelTable(str(path), lambda able, **rest: (able, rest))
    able, rest = table.of(f"{prefix}\0")
    known = {name: getattr(able, name) for name in Capabilities.__dataclass_fields__} | rest
    assert entry.items() - {("is", entry.get("is"))} <= known.items()


# What keeps a model away -> the setting that it waits for.
WAITS = {
    ("openai:gpt-5", "OPENAI_API_KEY"): "OPENAI_API_KEY",
    ("gemini:flash", "OPENAI_API_KEY"): "",
    ("openai:gpt-5", "INVALID_KEY"): "",
    ("openai-chat:", "NOT FOUND"): "",
    ("ollama:qwen3:8b", None): "",
}


@each_row("model, missing", WAITS)
def test_a_word_of_a_server_is_no_setting(model: str, missing: str | None) -> None:
    """Only what the provider declares is: neither capitals nor the lack of blanks tell."""
    lacking = ModelInfo(model, available=False, missing=missing)
    assert providers.unset(lacking) == WAITS[model, missing]


FOREIGN = [
    *({"id": name} for name in ("qwen3-8b", "Llama-3.3-70B-Instruct", "gpt-6-luna", "e5x-chat")),
    *({"id": name} for name in ("whisper-1", "text-embedding-3-small", "dall-e-3", "bge-m3")),
    *({"id": name} for name in ("tts-1-hd", "flux.1-schnell", "gpt-image-1", "jina-reranker-v2")),
    *({"id": name} for name in ("omni-moderation-latest", "sora-2", "stable-diffusion-xl")),
    *({"id": name} for name in ("gpt-4o-transcribe", "gpt-realtime", "kokoro-82m", "parakeet-tdt")),
    *({"id": name} for name in ("clip-vit-l14", "all-minilm")),
    {"id": "nomic", "type": "embedding"},
    {"id": "sora", "architecture": {"output_modalities": ["video"]}},
    {"id": "seer", "type": "vlm"},
]


async def test_a_compatible_address_lists_each_chat_model_once() -> None:
    """What turns text into vectors, pictures or sound is left out; nobody searches unasked."""
    with FakeServer(lambda _: json_reply({"data": FOREIGN})) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-test"}
        async with aclosing(Transport()) as transport:
            listed = await ProviderRegistry(Environment({"test": env}), transport).models()
    found = [m for m in listed if m.available and m.id.startswith("openai")]
    assert [m.id for m in found] == [
        "openai:gpt-6-luna",
        *(f"openai-chat:{name}" for name in ("Llama-3.3-70B-Instruct", "e5x-chat", "qwen3-8b")),
        "openai-chat:seer",
    ]
    assert [m.id for m in found if m.capabilities.native_search] == ["openai:gpt-6-luna"]
