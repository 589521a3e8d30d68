"""The tables of what models can do: whole, and read by the longest prefix."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchloop.agent import providers
from searchloop.agent.providers._models import ModelTable
from searchloop.agent.types import Capabilities, ModelInfo
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
    entry = tomllib.loads(path.read_text("utf-8"))["models"][prefix]
    table = ModelTable(str(path), lambda able, **rest: (able, rest))
    able, rest = table.of(f"{prefix}\0")
    known = {name: getattr(able, name) for name in Capabilities.__dataclass_fields__} | rest
    assert entry.items() - {("is", entry.get("is"))} <= known.items()


# What keeps a model away -> the setting that it waits for.
WAITS = {
    ("openai:gpt-5", "OPENAI_API_KEY"): "OPENAI_API_KEY",
    ("gemini:flash", "OPENAI_API_KEY"): "",
    ("openai:gpt-5", "INVALID_KEY"): "",
    ("openai:gpt-5", "UNAUTHORIZED"): "",
    ("openai:gpt-5", "denied"): "",
    ("openai:gpt-5", "NO."): "",
    ("openai-chat:", "NOT FOUND"): "",
    ("ollama:qwen3:8b", None): "",
}


@each_row("model, missing", WAITS)
def test_a_word_of_a_server_is_no_setting(model: str, missing: str | None) -> None:
    """Only what the provider declares is: neither capitals nor the lack of blanks tell."""
    lacking = ModelInfo(model, available=False, missing=missing)
    assert providers.unset(lacking) == WAITS[model, missing]
