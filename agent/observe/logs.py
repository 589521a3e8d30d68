"""The structured log: one line a record, with its run's id, and without content.

Our own lines name kinds, counts and codes. Of a library's record only the literal words of its code
stay, of an exception its type and place. Every line passes the redactor last. `Instrumentation`
observes the log and the transport of a process by its settings.
"""

from __future__ import annotations

import gc
import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from searchloop.agent.errors import AgentError, ConfigError
from searchloop.agent.log import EventLog
from searchloop.agent.log.contract import Observer, Observers
from searchloop.agent.observe import RunLog, current
from searchloop.agent.observe.telemetry import telemetry
from searchloop.agent.settings import Settings
from searchloop.agent.settings.secrets import secrets_of
from searchloop.analysis.redaction import redacted

OURS = "searchloop"
FORMS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
_ASSIGNED = re.compile(
    r"(?i)((?:authorization|bearer|api[-_]?key|x-goog-api-key|token|password|secret)"
    r"[\"']?\s*[:=]\s*[\"']?(?:bearer\s+)?|bearer\s+)[\w.~+/=-]{6,}"
)
_SHAPES = re.compile(r"\b(?:sk|tvly|pplx|ghp|gho|hf|xox[abp])[-_][\w-]{8,}|\bAIza[\w-]{10,}")
_USERINFO = re.compile(r"(?<!\w)(\w+://)[^\s/@]+@")


class Redactor:
    """Removes secrets from a text, in the forms in which they turn up in messages."""

    def __init__(self, secrets: Callable[[], Iterable[str]]) -> None:
        """Calls `secrets` for each text: keys can be saved while the program runs."""
        self._secrets = secrets

    def known(self, text: str) -> str:
        """Returns the text without the secrets that we know."""
        return redacted(text, self._secrets())

    def __call__(self, text: str) -> str:
        """Returns the text without known secrets and without what looks like one."""
        text = self.known(text)
        text = _USERINFO.sub(r"\1[secret]@", text)
        return _SHAPES.sub("[secret]", _ASSIGNED.sub(r"\1[secret]", text))


class Formatter(logging.Formatter):
    """Formats a record as one line; line breaks in it are escaped."""

    def __init__(self, form: str, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._json = form == "json"
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        """Makes the line before the handler's lock is taken: secrets may have to be waited for."""
        record.line = self._line(record)
        return True

    def format(self, record: logging.LogRecord) -> str:
        line: str = record.__dict__["line"]
        return line

    def _line(self, record: logging.LogRecord) -> str:
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Any] = {
            "time": f"{whole}.{int(record.created % 1 * 1000):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._message(record),
        }
        if run_id := current.get():
            fields["run_id"] = run_id
        fields.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[1]:
            fields["error"] = " <- ".join(_places(record.exc_info[1]))
        if self._json:
            clean = {k: self._redact(v) if isinstance(v, str) else v for k, v in fields.items()}
            return json.dumps(clean, ensure_ascii=False, default=str)
        head = " ".join(str(fields.pop(name)) for name in ("time", "level", "logger", "message"))
        rest = "".join(f" {name}={value}" for name, value in fields.items())
        return self._redact(f"{head}{rest}".replace("\r", "\\r").replace("\n", "\\n"))

    def _message(self, record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] == OURS:
            return record.getMessage()
        # A message with arguments is the literal of a library's code; one without may be an
        # f-string that quotes anything. uvicorn's few are known to quote nothing.
        if record.args or record.name.startswith("uvicorn"):
            return str(record.msg).strip()
        return "(a message that may quote content)"


def _places(error: BaseException | None) -> Iterable[str]:
    """Yields type and place of an error and of its causes; our own errors keep their code."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        code = f"({error.code})" if isinstance(error, AgentError) else ""
        frames = traceback.extract_tb(error.__traceback__)[-12:]
        at = ", ".join(
            f"{'/'.join(Path(f.filename).parts[-2:])}:{f.lineno} {f.name}" for f in frames
        )
        yield f"{type(error).__qualname__}{code} at {at or 'no frame'}"
        error = error.__cause__ or error.__context__


def configure(
    env: Mapping[str, str], secrets: Callable[[], Iterable[str]], out: TextIO | None = None
) -> logging.Handler:
    """Sends all records of this process to `out`, stderr by default. Raises ConfigError."""
    form, level = _form_and_level(env)
    handler = logging.StreamHandler(out or sys.stderr)
    formatter = Formatter(form, Redactor(secrets))
    handler.setFormatter(formatter)
    handler.addFilter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(level.upper())
    return handler


def configure_if_asked(env: Mapping[str, str], secrets: Callable[[], Iterable[str]]) -> None:
    """Configures the log of a terminal command if the settings name one. Raises ConfigError."""
    if env.get("SEARCHLOOP_LOG"):
        configure(env, secrets)


def _form_and_level(env: Mapping[str, str]) -> tuple[str, str]:
    """Parses SEARCHLOOP_LOG: a form, a level, or both in either order. Raises ConfigError."""
    text = (env.get("SEARCHLOOP_LOG") or "").lower()
    words = [word.strip() for word in text.split(",") if word.strip()]
    forms, levels = ([w for w in words if w in known] for known in (FORMS, LEVELS))
    if len(forms) > 1 or len(levels) > 1 or len(forms) + len(levels) < len(words):
        raise ConfigError(
            "bad_log",
            f"SEARCHLOOP_LOG is {text[:40]!r}.",
            f"Write one of {', '.join(FORMS)}, and one of {', '.join(LEVELS)} for a level: "
            "SEARCHLOOP_LOG=json,info.",
        )
    return (forms or ["text"])[0], (levels or ["warning"])[0]


_FILES = 65_536


def be_a_server() -> None:
    """Makes room for many readers: open files, and no pauses to collect long-lived objects."""
    gc.freeze()
    try:  # usual systems start a program with room for 1,024 files and let it ask for more
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ImportError, OSError, ValueError):  # Windows; or a system that says no after all
        pass


class Instrumentation:
    """The observers of one process, `more` of the caller's among them. Raises ConfigError."""

    def __init__(self, settings: Settings, *more: Observer) -> None:
        self.telemetry = telemetry(settings.env, offline=settings.offline)
        spans = (self.telemetry,) if self.telemetry else ()
        redact = Redactor(lambda: secrets_in(settings)).known
        lines = (RunLog(),) if _form_and_level(settings.env)[1] in ("debug", "info") else ()
        self._observer = Observers(*lines, *more, *spans, redact=redact)
        self._settings = settings

    def log(self, where: Path | str | None = None) -> EventLog:
        """Opens the observed log of the settings, or another. Raises StoreError."""
        return EventLog(where or self._settings.store, observer=self._observer)

    def close(self) -> None:
        """Sends the spans that are waiting."""
        if self.telemetry:
            self.telemetry.close()


def secrets_in(settings: Settings) -> list[str]:
    """Returns the present value of every setting that is or holds a secret."""
    known = secrets_of(settings.env).values()
    return [value for value in (*known, settings.database) if value]
