"""What Ollama says when something is wrong, in our words and with who must act.

Its errors are `{"error": text}` whether they come with a status or as the last line of a stream,
and the texts are the only way to tell one 400 or 500 from another.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agent.errors import ProviderError
from agent.providers.ollama.config import Config

_CONTEXT = re.compile(
    r"context (?:length|size|window)|available context|exceed_context|prompt is (?:longer|too long)"
    r"|input (?:is )?too long|input after truncation",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"""model\s+['"]?([^'"\s]+)['"]?\s+(?:was )?not found""", re.IGNORECASE)
_MEMORY = re.compile(
    r"more system memory|out of (?:device )?memory|Malloc failed|unable to allocate"
    r"|failed to allocate|allocation failed|insufficient memory|not enough memory",
    re.IGNORECASE,
)
_SLIP = re.compile(
    r"pars(?:e|ing) (?:tool call|JSON|XML)|invalid character '|unexpected end of JSON"
    r"|XML syntax error|tool call.*(?:invalid|malformed)|failed to parse (?:input|tool)",
    re.IGNORECASE,
)
_CRASH = re.compile(r"(?:process|runner).*(?:terminated|no longer running|stopped)", re.IGNORECASE)
_LIMIT = re.compile(r"usage limit|reached your [^.]*limit", re.IGNORECASE)
_QUOTED = 300


@dataclass(frozen=True, slots=True)
class Fault:
    """What came back: `text` is the server's own sentence, `status` None inside a stream."""

    text: str
    status: int | None = None
    signin_url: str | None = None
    retry_after: float | None = None


def read_fault(body: bytes | Any, status: int | None = None) -> Fault:
    """The error in a body (bytes, or a line already parsed); never raises."""
    data = body
    if isinstance(body, bytes):
        raw = body.decode("utf-8", "replace")
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError):
            return Fault(_short(raw), status)
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


def provider_error(fault: Fault, config: Config, installed: Sequence[str] = ()) -> ProviderError:
    """The first reading that fits. What nobody foresaw is quoted."""
    for read in _READINGS:
        error = read(fault, config, installed)
        if error is not None:
            break
    else:
        error = _unforeseen(fault, config)
    error.status = fault.status
    error.retry_after = fault.retry_after
    return error


def _lacking(fault: Fault, config: Config, installed: Sequence[str]) -> ProviderError | None:
    found = re.search(r"(\S+) does not support (tools|thinking|chat)", fault.text)
    if not found:
        return None
    name = found[1].strip("\"'").rpartition("/")[2]
    match found[2]:
        case "tools":
            return ProviderError(
                "no_tools",
                f"The model {name} cannot call tools.",
                "Pick a model that can (for example qwen3:8b), or switch web search off.",
            )
        case "thinking":
            return ProviderError(
                "no_thinking",
                f"The model {name} cannot think aloud.",
                "Switch thinking off, or pick a model that has it (for example qwen3:8b).",
            )
    return ProviderError(
        "no_chat",
        f"The model {name} cannot chat; it is made for something else.",
        "Pick a chat model, for example qwen3:8b.",
    )


def _unknown_model(fault: Fault, config: Config, installed: Sequence[str]) -> ProviderError | None:
    found = _NOT_FOUND.search(fault.text)
    if not found:
        return None
    name, where = found[1], config.address.base
    if config.address.cloud:
        remedy = "See `searchloop models` for the names that this account can use."
    else:
        remedy = f"Get it with `ollama pull {name}`"
        remedy += f", or pick one that is there: {', '.join(installed[:8])}." if installed else "."
    return ProviderError("unknown_model", f"Ollama at {where} has no model {name!r}.", remedy)


def _context(fault: Fault, config: Config, installed: Sequence[str]) -> ProviderError | None:
    if not _CONTEXT.search(fault.text):
        return None
    window = f" of {config.num_ctx} tokens" if config.num_ctx else ""
    return ProviderError(
        "context_too_long",
        f"The conversation no longer fits the model's window{window}: {fault.text}",
        "Start a new session, or give the model a larger window, for example "
        f"OLLAMA_CONTEXT_LENGTH={max(16384, 2 * (config.num_ctx or 0))}.",
    )


def _account(fault: Fault, config: Config, installed: Sequence[str]) -> ProviderError | None:
    host, text = config.address.hostname, fault.text
    if fault.status == 401 or text.lower() == "unauthorized":
        remedy = "Sign in with `ollama signin`, or set OLLAMA_API_KEY."
        if fault.signin_url:
            remedy = f"Sign in with `ollama signin`, or open {fault.signin_url} ."
        elif config.has_key and not config.headers:
            remedy = (
                "OLLAMA_API_KEY is kept for ollama.com and was not sent. If it is meant for this "
                f"server, use https and set OLLAMA_API_KEY_HOST={host}."
            )
        elif config.has_key:
            remedy = "Check OLLAMA_API_KEY: it was refused."
        return ProviderError("unauthorized", f"Ollama at {host} wants a sign-in.", remedy)
    if "cloud is disabled" in text.lower():
        return cloud_disabled()
    if fault.status == 403:
        return ProviderError(
            "forbidden",
            f"Ollama at {host} refused the request: {text}",
            "Check OLLAMA_HOST and what stands before that server.",
        )
    return None


def cloud_disabled() -> ProviderError:
    """What a server says of a cloud model when its cloud is switched off."""
    return ProviderError(
        "cloud_disabled",
        "This model runs in Ollama's cloud, which is switched off on that server.",
        "Pick a model that runs on this machine, or remove OLLAMA_NO_CLOUD from the server.",
    )


def _busy(fault: Fault, config: Config, installed: Sequence[str]) -> ProviderError | None:
    if fault.status == 429 or _LIMIT.search(fault.text):
        spent = bool(_LIMIT.search(fault.text))
        return ProviderError(
            "usage_limit" if spent else "rate_limited",
            f"Ollama's cloud set a limit: {fault.text}" if fault.text else "Too many requests.",
            "Wait until the limit is lifted, or pick a model that runs on this machine.",
            retryable=not spent,
        )
    if fault.status == 503 or "server busy" in fault.text:
        return ProviderError(
            "busy",
            "Ollama is busy with other requests.",
            "Try again in a moment; OLLAMA_MAX_QUEUE on the server sets how many may wait.",
            retryable=True,
        )
    return None


def _failed(fault: Fault, config: Config, installed: Sequence[str]) -> ProviderError | None:
    if _MEMORY.search(fault.text):
        return ProviderError(
            "out_of_memory",
            f"The model does not fit into memory: {fault.text}",
            "Pick a smaller model, or set a smaller OLLAMA_CONTEXT_LENGTH.",
        )
    if fault.status in {None, 500, 502} and _SLIP.search(fault.text):
        return ProviderError(
            "tool_call_slip",
            f"The model wrote a tool call that Ollama could not read: {fault.text}",
            "Ask again; if it happens often, pick a model that is better at calling tools.",
            retryable=True,
        )
    if _CRASH.search(fault.text):
        return ProviderError(
            "model_crashed",
            f"The model stopped working: {fault.text}",
            "Ask again; if it happens twice, look at the server's log or pick a smaller model.",
            retryable=True,
        )
    return None


def _wrong_place(fault: Fault, config: Config, installed: Sequence[str]) -> ProviderError | None:
    if fault.status not in {404, 405}:
        return None
    return ProviderError(
        "not_ollama",
        f"What answers at {config.address.base} is not Ollama: {fault.text or fault.status}",
        "Set OLLAMA_HOST to the server itself, without /v1 or /api at the end.",
    )


def _unforeseen(fault: Fault, config: Config) -> ProviderError:
    broken = fault.status is None or fault.status >= 500
    said = fault.text or f"status {fault.status}, without a reason"
    return ProviderError(
        "server_error" if broken else "bad_request",
        f"Ollama at {config.address.hostname} answered: {said}",
        "Try again; if it stays, look at the server's log." if broken else "Try another model.",
        retryable=broken,
    )


Reading = Callable[[Fault, Config, Sequence[str]], ProviderError | None]
_READINGS: tuple[Reading, ...] = (
    _unknown_model,
    _lacking,
    _account,
    _busy,
    _failed,
    _context,
    _wrong_place,
)


def explain(error: ProviderError, config: Config) -> ProviderError:
    """A transport error with what to do about it here; others unchanged."""
    where, said = config.address.base, _SAID.get(error.code)
    if said is None:
        return error
    message, remedy = said
    if error.code == "unreachable" and config.address.cloud:
        remedy = "Check this machine's connection, or use a model that runs on it."
    return type(error)(
        error.code,
        message.format(where=where),
        remedy,
        status=error.status,
        retryable=error.retryable,
        retry_after=error.retry_after,
    )


_SAID = {
    "unreachable": (
        "Ollama does not answer at {where}.",
        "Start it with `ollama serve`, or set OLLAMA_HOST to where it runs.",
    ),
    "timeout": (
        "Ollama at {where} took too long.",
        "The model may still be loading: try again, or pick a smaller one.",
    ),
    "connection_lost": (
        "Ollama at {where} closed the connection before it had answered.",
        "Ask again; if it happens twice, look at the server's log (it may be out of memory).",
    ),
    "tls": (
        "No safe connection to {where} could be made.",
        "Check the certificate, or write http:// in OLLAMA_HOST if that server has none.",
    ),
}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED else f"{line[:_QUOTED]}..."
