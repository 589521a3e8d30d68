"""The structured log: one line a record, with the run it belongs to, and without content.

`SEARCHLOOP_LOG` is `text` or `json`; `SEARCHLOOP_LOG_LEVEL` holds for our own loggers. Questions,
answers, queries, addresses of pages and keys are in no line: our own lines say only what kind of
thing happened; what a library says of it may quote anything, so of its records only the words that
stand in its code are kept, and of an exception its type and where it came from. `SEARCHLOOP_LOG_
CONTENT=1` keeps the rest. Secrets are taken out of whatever is left, tracebacks included: here is
the sink, so nothing goes round it.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO
from urllib.parse import quote

from agent.errors import AgentError, ConfigError
from agent.events import Event
from agent.observing import Asked
from agent.running import current
from agent.settings import is_on

OURS = ("agent", "web", "cli", "search_backend", "searchloop")
FORMS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
_LEAST = 8  # characters of a secret that can be told from a word
_ASSIGNED = re.compile(
    r"(?i)((?:authorization|bearer|api[-_]?key|x-goog-api-key|token|password|secret)"
    r"[\"']?\s*[:=]\s*[\"']?(?:bearer\s+)?|bearer\s+)[\w.~+/=-]{6,}"
)
_SHAPES = re.compile(r"\b(?:sk|tvly|pplx|ghp|gho|hf|xox[abp])[-_][\w-]{8,}|\bAIza[\w-]{10,}")
_USERINFO = re.compile(r"(\w+://)[^\s/@]+@")

_run = logging.getLogger("searchloop.run")


class Redactor:
    """Takes secrets out of a text, in the forms in which they turn up in messages."""

    def __init__(self, secrets: Callable[[], Iterable[str]]) -> None:
        """`secrets` is asked each time: keys can be saved while the program runs."""
        self._secrets = secrets
        self._known: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def known(self, text: str) -> str:
        """The text without the secrets that we know."""
        known = frozenset(secret for secret in self._secrets() if len(secret) >= _LEAST)
        if known != self._known:
            self._known, self._pattern = known, _pattern(known)
        return self._pattern.sub("[secret]", text) if self._pattern else text

    def __call__(self, text: str) -> str:
        """The text without them, and without what looks like one."""
        text = self.known(text)
        text = _USERINFO.sub(r"\1[secret]@", text)
        return _SHAPES.sub("[secret]", _ASSIGNED.sub(r"\1[secret]", text))


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Each secret plain, URL-encoded, in base64 at any offset, or from its first letters on."""
    found: set[str] = set()
    for secret in secrets:
        found |= {re.escape(form) for form in (secret, quote(secret, safe=""))}
        found.add(re.escape(secret[:_LEAST]) + r"[\w.~+/=-]*")
        for skip in range(3):  # without the characters that depend on what stands beside it
            coded = base64.b64encode(b"\0" * skip + secret.encode()).decode().rstrip("=")
            inside = coded[(0, 2, 3)[skip] : -1]
            for form in {inside, inside.replace("+", "-").replace("/", "_")}:
                found.add(rf"[\w+/-]?{re.escape(form)}[\w+/=-]*")
    return re.compile("|".join(sorted(found, key=len, reverse=True))) if found else None


class Formatter(logging.Formatter):
    """One record as one line; control characters cannot begin another."""

    def __init__(self, form: str, redact: Callable[[str], str], *, content: bool = False) -> None:
        super().__init__()
        self._json = form == "json"
        self._redact = redact
        self._content = content

    def filter(self, record: logging.LogRecord) -> bool:
        """Makes the line before the handler's lock is taken: secrets may have to be waited for."""
        record.line = self._line(record)
        return True

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        line: str = record.__dict__["line"]
        return line

    def _line(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._message(record),
        }
        running = current.get()
        if running:
            fields["run_id"] = running.run_id
        fields.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[1]:
            fields["error"] = self._trace(record.exc_info[1])
        if self._json:
            clean = {k: self._redact(v) if isinstance(v, str) else v for k, v in fields.items()}
            return json.dumps(clean, ensure_ascii=False, default=str)
        head = " ".join(str(fields.pop(name)) for name in ("time", "level", "logger", "message"))
        rest = "".join(f" {name}={value}" for name, value in fields.items())
        return self._redact(f"{head}{rest}".replace("\r", "\\r").replace("\n", "\\n"))

    def _message(self, record: logging.LogRecord) -> str:
        if self._content or record.name.partition(".")[0] in OURS:
            return record.getMessage()
        # The words in a library's code; a text made elsewhere is told from them by having no
        # arguments, and uvicorn's few are known to quote nothing.
        if record.args or record.name.startswith("uvicorn"):
            return str(record.msg).strip()
        return "(a message that may quote content; SEARCHLOOP_LOG_CONTENT=1 shows it)"

    def _trace(self, error: BaseException) -> str:
        if self._content:
            return "".join(traceback.format_exception(error)).rstrip()
        return " <- ".join(_places(error))


def _places(error: BaseException | None) -> Iterable[str]:
    """Type and place of an error and of those behind it; our own errors keep their code."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        code = f"({error.code})" if isinstance(error, AgentError) else ""
        frames = traceback.extract_tb(error.__traceback__)[-12:]
        at = ", ".join(f"{_file(f.filename)}:{f.lineno} {f.name}" for f in frames)
        yield f"{type(error).__qualname__}{code} at {at or 'no frame'}"
        error = error.__cause__ or error.__context__


def _file(name: str) -> str:
    return "/".join(name.replace("\\", "/").split("/")[-2:])


def _time(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def configure(
    env: Mapping[str, str], secrets: Callable[[], Iterable[str]], out: TextIO | None = None
) -> logging.Handler:
    """Sends all records of this process there (stderr), as `env` says. Raises ConfigError."""
    form = _choice(env, "SEARCHLOOP_LOG", FORMS, "text")
    level = _choice(env, "SEARCHLOOP_LOG_LEVEL", LEVELS, "warning")
    handler = logging.StreamHandler(out or sys.stderr)
    content = is_on(env.get("SEARCHLOOP_LOG_CONTENT"))
    formatter = Formatter(form, Redactor(secrets), content=content)
    handler.setFormatter(formatter)
    handler.addFilter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(level.upper())
    return handler


def configure_if_asked(env: Mapping[str, str], secrets: Callable[[], Iterable[str]]) -> None:
    """For a command at the terminal: a log only if the settings name one. Raises ConfigError."""
    if env.get("SEARCHLOOP_LOG") or env.get("SEARCHLOOP_LOG_LEVEL"):
        configure(env, secrets)


def _choice(env: Mapping[str, str], name: str, choices: Sequence[str], default: str) -> str:
    value = (env.get(name) or default).strip().lower()
    if value not in choices:
        raise ConfigError(
            "bad_log", f"{name} is {value[:40]!r}.", f"Choose one of {', '.join(choices)}."
        )
    return value


_KEPT: Mapping[str, tuple[str, ...]] = {
    "run_started": ("model", "mode", "search", "search_path"),
    "run_resumed": ("takeovers",),
    "run_finished": ("model", "reason", "search_path", "limit"),
    "search_finished": ("by", "status"),
    "page_opened": ("status",),
    "tool_call": ("call_id", "effect"),
    "tool_result": ("call_id", "is_error"),
    "approval_requested": ("call_id", "effect"),
    "approval_decided": ("call_id", "decision"),
    "notice": ("code",),
}
_COUNTS = ("input_tokens", "output_tokens", "searches", "pages", "seconds")


class RunLog:
    """An observer that writes a line for what happens in a run: kinds, counts and codes."""

    def stored(self, session_id: str, events: Sequence[Event], seconds: float) -> None:
        """See `Observer.stored`."""
        if not _run.isEnabledFor(logging.INFO):
            return
        for event in events:
            kept = _KEPT.get(event.type)
            if kept is None:
                continue
            data = event.data
            fields = {name: data[name] for name in kept if data.get(name) is not None}
            if "run_id" in data:
                fields = {"run_id": data["run_id"], "session_id": session_id, **fields}
            usage = data.get("usage") if event.type == "run_finished" else None
            fields.update({n: usage[n] for n in _COUNTS if usage and usage.get(n) is not None})
            if event.type == "run_finished" and data.get("error"):
                fields["code"] = data["error"]["code"]
            _run.info(event.type, extra={"fields": fields})

    def lost(self, session_id: str) -> None:
        """See `Observer.lost`."""
        _run.warning("run_lost", extra={"fields": {"session_id": session_id}})

    def asked(self, asked: Asked) -> None:
        """See `Observer.asked`."""
        level = logging.DEBUG if asked.problem is None else logging.INFO
        if _run.isEnabledFor(level):
            fields: dict[str, Any] = {
                "provider": asked.provider,
                "seconds": round(asked.seconds, 3),
            }
            if asked.problem:
                fields["code"] = asked.problem
            _run.log(level, "provider_asked", extra={"fields": fields})
