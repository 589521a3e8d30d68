"""Reads Ollama's errors and words ours: what happened, and how the user mends it.

An error is `{"error": text}`, with a status or as the last line of a stream. errors.toml holds the
patterns and our words.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from searchloop.agent.errors import ProviderError
from searchloop.agent.providers._wire import error_in
from searchloop.agent.providers.ollama.config import Config
from searchloop.agent.transport.exchange import document_of
from searchloop.agent.transport.refusals import sentence

_READ = 4096  # characters that are searched for the cause
NOT_OLLAMA = "Check OLLAMA_HOST and what stands before that server."


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as the server sent it: its sentence, and its status (None inside a stream)."""

    text: str
    status: int | None = None
    signin_url: str | None = None


def read_fault(body: bytes | Any, status: int | None = None) -> Fault:
    """Reads the error in a body (bytes, or a parsed line); never raises."""
    data = document_of(body) if isinstance(body, bytes) else body
    if data is None and isinstance(body, bytes):
        return Fault(_short(body.decode("utf-8", "replace")), status)
    details = error_in(data, failed=True) or {}
    said = details.get("message") or ("" if isinstance(data, dict) else json.dumps(data))
    link, code = details.get("signin_url"), details.get("status", details.get("status_code"))
    return Fault(
        _short(said),
        status if status is not None else code if isinstance(code, int) else None,
        link if isinstance(link, str) and link.startswith("https://") else None,
    )


_RETRYABLE = frozenset({"rate_limited", "busy", "tool_call_slip", "model_crashed", "server_error"})


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("errors.toml").read_text("utf-8"))


def provider_error(fault: Fault, config: Config, installed: Sequence[str] = ()) -> ProviderError:
    """Makes the error for `fault`. Servers tell one 400 or 500 from another by their text.

    `installed` lists the models, for the error of an unknown one.
    """
    said = f"{fault.status} {fault.text}"
    searches = ((code, re.search(p, said, re.IGNORECASE)) for code, p in _words()["patterns"])
    code, found = next((code, found) for code, found in searches if found)
    name = found[1].strip("\"'").rpartition("/")[2] if found.re.groups else ""
    if code == "unknown_model":
        name = found[1]
    words = {
        "text": sentence(fault.text) or f"status {fault.status}, without a reason.",
        "name": name,
        "names": _get_model(name, config, installed),
        "sign_in": _sign_in(fault, config),
        "check": NOT_OLLAMA,
        "host": config.address.hostname,
        "base": config.address.base,
        "window": f" of {config.num_ctx} tokens" if config.num_ctx else "",
        "larger": max(16384, 2 * (config.num_ctx or 0)),
    }
    message, remedy = (text.format(**words) for text in _words()["answers"][code])
    error = ProviderError(code, message, remedy, status=fault.status)
    error.retryable = code in _RETRYABLE
    return error


def _get_model(name: str, config: Config, installed: Sequence[str]) -> str:
    if config.address.cloud:
        return "See `searchloop models` for the names that this account can use."
    listed = f", or pick one that is there: {', '.join(installed[:8])}" if installed else ""
    return f"Get it with `ollama pull {name}`{listed}."


def _sign_in(fault: Fault, config: Config) -> str:
    if fault.signin_url:
        return f"Sign in with `ollama signin`, or open {fault.signin_url} ."
    if config.has_key and not config.headers:
        return (
            "OLLAMA_API_KEY is for ollama.com and was not sent. Write a name and password for this "
            f"server into its address: OLLAMA_HOST=https://NAME:PASSWORD@{config.address.hostname}."
        )
    if config.has_key:
        return "Check OLLAMA_API_KEY: it was refused."
    return "Sign in with `ollama signin`, or set OLLAMA_API_KEY."


def cloud_disabled(config: Config) -> ProviderError:
    """Makes the error of a cloud model on a server whose cloud is switched off."""
    return provider_error(Fault("cloud is disabled"), config)


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


def _short(text: str) -> str:
    return " ".join(text.split())[:_READ]
