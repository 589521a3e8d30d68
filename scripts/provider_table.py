"""Write the README's table of providers from what the providers say of themselves.

usage: python scripts/provider_table.py [--check]

With --check nothing is written; the exit code is 1 when the table in README.md is stale.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from searchloop.agent.providers import load, names
from searchloop.agent.settings import Environment
from searchloop.agent.transport.transport import Transport
from searchloop.agent.types import ModelInfo

DECIDES = "systemone"  # its models answer no questions of people
README = Path(__file__).resolve().parent.parent / "README.md"
START, END = "<!-- providers -->\n", "<!-- /providers -->"
HEAD = (
    "| models | needs | own web search | reads pages | beside other tools | citations | thinking "
    "| history sent back as |\n|---|---|---|---|---|---|---|---|\n"
)


class Features(NamedTuple):
    """What the table says of a provider beside what its known models can do.

    `replay` says how history is sent back; `searches` and `thinks` are set where the models are not
    known beforehand.
    """

    needs: str
    pages: str = "ours"
    citations: str = "numbers of ours, quotes checked"
    replay: str = "text and calls"
    searches: str | None = None
    thinks: str | None = None


FEATURES = {
    "anthropic": Features(
        needs="ANTHROPIC_API_KEY",
        pages="its own tool",
        citations="quoted passages, by paragraph",
        replay="raw blocks, byte-equal",
    ),
    "builtin": Features("nothing"),
    "gemini": Features(
        needs="GEMINI_API_KEY",
        pages="its own tool",
        citations="passages, with spans",
        replay="raw parts, byte-equal",
    ),
    "ollama": Features("a running Ollama", thinks="as the model does"),
    "openai": Features(
        needs="OPENAI_API_KEY",
        pages="by its search",
        citations="links in the text, with spans",
        replay="raw items, byte-equal",
    ),
    "openai-chat": Features(
        needs="a server; OPENAI_CHAT_BASE_URL",
        citations="links in the text, with spans",
        searches="search models",
        thinks="as the server sends it",
    ),
    "xai": Features(
        needs="XAI_API_KEY",
        pages="by its search",
        citations="links in the text, with spans",
        replay="raw items, byte-equal",
    ),
}


def main(arguments: list[str]) -> int:
    """0 when the table is as it should be, now or already."""
    text = README.read_text("utf-8")
    before, rest = text.split(START)
    after = rest.split(END)[1]
    fresh = f"{before}{START}{table()}{END}{after}"
    if fresh == text:
        return 0
    if "--check" in arguments:
        print("README.md: the table of providers is stale; run python scripts/provider_table.py")
        return 1
    README.write_text(fresh, "utf-8")
    return 0


def table() -> str:
    """The rows, by provider."""
    return HEAD + "".join(row(name) for name in names() if name != DECIDES)


def row(name: str) -> str:
    """One provider: what its known models can do, and what it says of all of them."""
    features = FEATURES[name]
    models = asyncio.run(models_of(name))
    cells = (
        f"`{name}:...`",
        features.needs,
        features.searches or share(m.capabilities.native_search for m in models),
        features.pages,
        share(m.capabilities.tools_with_native_search for m in searching(models)),
        features.citations,
        features.thinks or share(m.capabilities.thinking for m in models),
        features.replay,
    )
    return f"| {' | '.join(cells)} |\n"


async def models_of(name: str) -> list[ModelInfo]:
    """Returns the models that a provider knows without asking a server."""
    transport = Transport()
    try:
        offline = Environment({"default": {"SEARCHLOOP_OFFLINE": "1"}})
        return await load(name, offline, transport).models()
    finally:
        await transport.aclose()


def searching(models: Iterable[ModelInfo]) -> list[ModelInfo]:
    """The models that search by themselves."""
    return [m for m in models if m.capabilities.native_search]


def share(answers: Iterable[bool]) -> str:
    """yes, no, or some models."""
    known = set(answers)
    if not known or known == {False}:
        return "-"
    return "yes" if known == {True} else "some models"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
