"""Ollama's errors in our words: what happened, and how the user mends it.

An error is `{"error": text}`, with a status or as the last line of a stream. errors.toml holds the
patterns and our words.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.transport.refusals import sentence
from searchloop.analysis.told import did_you_mean

_READ = 4096  # characters that are searched for the cause
NOT_OLLAMA = "Check OLLAMA_HOST and what stands before that server."
_RETRYABLE = frozenset({"rate_limited", "busy", "tool_call_slip", "model_crashed", "server_error"})


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("errors.toml").read_text("utf-8"))


def worded(
    details: Mapping[str, Any], status: int | None, config: Config, installed: Sequence[str]
) -> ProviderError:
    """Makes the error of an error object. Servers tell one 400 or 500 from another by their text.

    `installed` lists the models, for the error of an unknown one.
    """
    text = " ".join(str(details.get("message") or "").split())[:_READ]
    searches = (
        (code, re.search(pattern, f"{status} {text}", re.IGNORECASE))
        for code, pattern in _words()["patterns"]
    )
    code, found = next((code, found) for code, found in searches if found)
    name = found[1] if found.re.groups else ""
    if code != "unknown_model":
        name = name.strip("\"'").rpartition("/")[2]
    words = {
        "text": sentence(text) or f"status {status}, without a reason.",
        "name": name,
        "names": _get_model(name, config, installed),
        "sign_in": _sign_in(str(details.get("signin_url") or ""), config),
        "check": NOT_OLLAMA,
        "host": config.address.host,
        "base": config.address.base,
        "window": f" of {config.num_ctx} tokens" if config.num_ctx else "",
        "larger": max(16384, 2 * (config.num_ctx or 0)),
    }
    message, remedy = (text.format(**words) for text in _words()["answers"][code])
    return ProviderError(code, message, remedy, status=status, retryable=code in _RETRYABLE)


def explain(error: ProviderError, config: Config) -> ProviderError:
    """Words a transport error for Ollama; returns other errors unchanged."""
    if error.code not in (words := _words()["transport"]):
        return error
    message, remedy = words[error.code]
    if error.code == "unreachable" and config.address.cloud:
        remedy = "Check this machine's connection, or use a model that runs on it."
    error.message, error.remedy = message.format(base=config.address.base), remedy
    error.args = (error.message,)
    return error


def _get_model(name: str, config: Config, installed: Sequence[str]) -> str:
    if config.address.cloud:
        return "See `searchloop models` for the names that this account can use."
    listed = f", or pick one that is there: {', '.join(installed[:8])}" if installed else ""
    return f"{did_you_mean(name, installed)}Get it with `ollama pull {name}`{listed}."


def _sign_in(link: str, config: Config) -> str:
    if link.startswith("https://"):
        return f"Sign in with `ollama signin`, or open {link} ."
    if config.has_key and not config.headers:
        return (
            "OLLAMA_API_KEY is for ollama.com and was not sent. Write a name and password for this "
            f"server into its address: OLLAMA_HOST=https://NAME:PASSWORD@{config.address.host}."
        )
    return "Sign in with `ollama signin`, or set a valid OLLAMA_API_KEY."
