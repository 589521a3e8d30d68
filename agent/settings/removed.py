"""Finds settings of earlier versions: a limit set for money must not vanish in silence."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from searchloop.agent.settings import Environment

_log = logging.getLogger(__name__)
_LIMIT = "SEARCHLOOP_MAX_"
_LIMITS = ("STEPS", "SEARCHES", "PAGES", "TOKENS", "SECONDS", "COST_USD")
_GONE = """
SEARCHLOOP_LOG_CONTENT SEARCHLOOP_OTEL_CONTENT SEARCHLOOP_MCP_SHARE SEARCHLOOP_SECRET_FILES
SEARCH_FANOUT SEARCH_SECONDS SEARCH_CACHE_SECONDS SEARCH_PAGE_SECONDS SEARCH_CACHE_MB SEARCH_RATES
SEARCH_CLIENT_RATE SEARCH_CONTEXT_SIZE SEARCH_CACHED_ONLY GEMINI_RESOLVE_REDIRECTS
OLLAMA_API_KEY_HOST OLLAMA_THINK"""
# What replaces a setting; empty where a fixed value does.
_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(_GONE.split(), ""),
    "SEARCHLOOP_LOG_LEVEL": "the level in SEARCHLOOP_LOG, for example SEARCHLOOP_LOG=text,info",
    "SEARCH_KEY_HEADER": "an entry of SEARCH_FIELDS, for example key_header=X-API-Key",
    "CRAWL4AI_TOKEN": "the token in the address, CRAWL4AI_URL=http://:TOKEN@HOST:11235",
    "OLLAMA_KEEP_ALIVE": "the same variable where Ollama itself starts",
}
_OF_OLLAMA = "OLLAMA_KEEP_ALIVE"  # in the environment it is meant for the server of Ollama


def removed_settings(env: Environment) -> dict[str, str]:
    """Returns a sentence for each removed setting that has a value, by its name."""
    found = {}
    limits = {name: value for name in _LIMITS if (value := env.get(_LIMIT + name))}
    together = ",".join(f"{name.lower()}={value.strip()}" for name, value in limits.items())
    for name in limits:
        found[_LIMIT + name] = f"this limit has no effect: write SEARCHLOOP_LIMITS={together}"
    for name, instead in _INSTEAD.items():
        if env.get(name) and (name, env.origin(name)) != (_OF_OLLAMA, "environment"):
            found[name] = f"has no effect: write {instead}" if instead else "has no effect any more"
    return found


def warn_of_removed(env: Environment) -> None:
    """Logs one warning that names every removed setting that has a value."""
    if found := removed_settings(env):
        said = "; ".join(f"{name} {sentence}" for name, sentence in found.items())
        _log.warning("removed settings are ignored: %s", said)
