"""Reads Ollama's errors and words ours: what happened, and how the user mends it.

An error is `{"error": text}`, with a status or as the last line of a stream.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from searchloop.agent.errors import ProviderError
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
    if not isinstance(data, dict):
        return Fault(_short(json.dumps(data)), status)
    error = data.get("error", "")
    if isinstance(error, dict):
        error = error.get("message") or json.dumps(error)
    link = data.get("signin_url")
    code = data.get("status", data.get("status_code"))
    return Fault(
        _short(error if isinstance(error, str) else json.dumps(error)),
        status if status is not None else code if isinstance(code, int) else None,
        link if isinstance(link, str) and link.startswith("https://") else None,
    )


# code and pattern; the first that matches "STATUS text" counts.
_PATTERNS = (
    # After these words come lines of the runner's log, old ones too: they do not tell the cause.
    ("model_crashed", r"error was encountered while running the model"),
    ("unknown_model", r"""model\s+['"]?([^'"\s]+)['"]?\s+(?:was )?not found"""),
    ("no_tools", r"(\S+) does not support tools"),
    ("no_thinking", r"(\S+) does not support thinking"),
    ("no_chat", r"(\S+) does not support chat"),
    ("unauthorized", r"^401 |^\w+ unauthorized$"),
    ("cloud_disabled", r"cloud is disabled"),
    ("forbidden", r"^403 "),
    ("usage_limit", r"usage limit|reached your [^.]*limit"),
    ("rate_limited", r"^429 "),
    ("busy", r"^503 |server busy"),
    (
        "out_of_memory",
        r"more system memory|out of (?:device )?memory|Malloc failed|unable to allocate"
        r"|failed to allocate|allocation failed|insufficient memory|not enough memory",
    ),
    (
        "tool_call_slip",
        r"^(?:None|500|502) .*(?:pars(?:e|ing) (?:tool call|JSON|XML)|invalid character '"
        r"|unexpected end of JSON|XML syntax error|tool call.*(?:invalid|malformed)"
        r"|failed to parse (?:input|tool))",
    ),
    ("model_crashed", r"(?:process|runner).*(?:terminated|no longer running|stopped)"),
    (
        "context_too_long",
        r"context (?:length|size|window)|available context|exceed_context|input after truncation"
        r"|prompt is (?:longer|too long)|input (?:is )?too long",
    ),
    ("not_ollama", r"^40[45] "),
    ("server_error", r"^(?:None|40[89]|5\d\d) "),
    ("bad_request", ""),
)
_RETRYABLE = frozenset({"rate_limited", "busy", "tool_call_slip", "model_crashed", "server_error"})
_LIMIT = (
    "Ollama's cloud set a limit: {text}",
    "Wait until the limit is lifted, or pick a model that runs on this machine.",
)
# code: (message, remedy)
_WORDS = {
    "unknown_model": ("Ollama at {base} has no model {name!r}.", "{names}"),
    "no_tools": (
        "The model {name} cannot call tools.",
        "Pick a model that can (for example qwen3:8b), or switch web search off.",
    ),
    "no_thinking": (
        "The model {name} cannot think aloud.",
        "Switch thinking off, or pick a model that has it (for example qwen3:8b).",
    ),
    "no_chat": (
        "The model {name} cannot chat; it is made for something else.",
        "Pick a chat model, for example qwen3:8b.",
    ),
    "unauthorized": ("Ollama at {host} wants a sign-in.", "{sign_in}"),
    "cloud_disabled": (
        "This model runs in Ollama's cloud, which is switched off on that server.",
        "Pick a model that runs on this machine, or remove OLLAMA_NO_CLOUD from the server.",
    ),
    "forbidden": ("Ollama at {host} refused the request: {text}", NOT_OLLAMA),
    "usage_limit": _LIMIT,
    "rate_limited": _LIMIT,
    "busy": (
        "Ollama is busy with other requests.",
        "Try again in a moment; OLLAMA_MAX_QUEUE on the server sets how many may wait.",
    ),
    "out_of_memory": (
        "The model does not fit into memory: {text}",
        "Pick a smaller model, or set a smaller OLLAMA_CONTEXT_LENGTH.",
    ),
    "tool_call_slip": (
        "The model wrote a tool call that Ollama could not read: {text}",
        "Ask again; if it happens often, pick a model that is better at calling tools.",
    ),
    "model_crashed": (
        "The model stopped working: {text}",
        "Ask again; if it happens twice, look at the server's log or pick a smaller model.",
    ),
    "context_too_long": (
        "The conversation no longer fits the model's window{window}: {text}",
        "Start a new session, or give the model a larger window, for example "
        "OLLAMA_CONTEXT_LENGTH={larger}.",
    ),
    "not_ollama": (
        "What answers at {base} is not Ollama: {text}",
        "Set OLLAMA_HOST to the server itself, without /v1 or /api at the end.",
    ),
    "server_error": (
        "Ollama at {host} answered: {text}",
        "Try again; if it stays, look at the server's log.",
    ),
    "bad_request": ("Ollama at {host} answered: {text}", "Try another model."),
}


def provider_error(fault: Fault, config: Config, installed: Sequence[str] = ()) -> ProviderError:
    """Makes the error for `fault`. Servers tell one 400 or 500 from another by their text.

    `installed` lists the models, for the error of an unknown one.
    """
    said = f"{fault.status} {fault.text}"
    searches = ((code, re.search(p, said, re.IGNORECASE)) for code, p in _PATTERNS)
    code, found = next((code, found) for code, found in searches if found)
    name = found[1].strip("\"'").rpartition("/")[2] if found.re.groups else ""
    if code == "unknown_model":
        name = found[1]
    words = {
        "text": sentence(fault.text) or f"status {fault.status}, without a reason.",
        "name": name,
        "names": _get_model(name, config, installed),
        "sign_in": _sign_in(fault, config),
        "host": config.address.hostname,
        "base": config.address.base,
        "window": f" of {config.num_ctx} tokens" if config.num_ctx else "",
        "larger": max(16384, 2 * (config.num_ctx or 0)),
    }
    message, remedy = (text.format(**words) for text in _WORDS[code])
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


# Faults of the connection: code: (message, remedy)
_TRANSPORT = {
    "unreachable": (
        "Ollama does not answer at {base}.",
        "Start it with `ollama serve`, or set OLLAMA_HOST to where it runs.",
    ),
    "timeout": (
        "Ollama at {base} took too long.",
        "The model may still be loading: try again, or pick a smaller one.",
    ),
    "connection_lost": (
        "Ollama at {base} closed the connection before it had answered.",
        "Ask again; if it happens twice, look at the server's log (it may be out of memory).",
    ),
    "tls": (
        "No safe connection to {base} could be made.",
        "Check the certificate, or write http:// in OLLAMA_HOST if that server has none.",
    ),
}


def explain(error: ProviderError, config: Config) -> ProviderError:
    """Words a transport error for Ollama; returns other errors unchanged."""
    if error.code not in _TRANSPORT:
        return error
    message, remedy = _TRANSPORT[error.code]
    if error.code == "unreachable" and config.address.cloud:
        remedy = "Check this machine's connection, or use a model that runs on it."
    error.message, error.remedy = message.format(base=config.address.base), remedy
    error.args = (error.message,)
    return error


def _short(text: str) -> str:
    return " ".join(text.split())[:_READ]
