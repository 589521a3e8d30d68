"""Who watches this process, as the settings have it, and the log and transport that are watched.

The same for the server, the command line and the library: structured log, OpenTelemetry, and what
`SEARCHLOOP_TRACE` keeps of what providers answer.
"""

from __future__ import annotations

from agent.collector import telemetry
from agent.known_secrets import secrets_of
from agent.logs import Redactor, RunLog
from agent.observing import ObservedLog, ObservedTransport, Observer, Observers
from agent.settings import Settings, is_on


class Watch:
    """Made once for a process; `more` are observers of the caller's. Raises ConfigError."""

    def __init__(self, settings: Settings, *more: Observer) -> None:
        self.telemetry = telemetry(settings.env, offline=settings.offline)
        told = (self.telemetry,) if self.telemetry else ()
        self._observer = Observers(RunLog(), *more, *told)
        self._settings = settings

    def log(self) -> ObservedLog:
        """The log of the settings, watched. Raises StoreError."""
        return ObservedLog(self._settings.store, self._observer)

    def transport(self) -> ObservedTransport:
        """A way to providers, watched."""
        settings = self._settings
        recording = is_on(settings.env.get("SEARCHLOOP_TRACE"))
        redact = Redactor(lambda: secrets_in(settings)).known if recording else None
        return ObservedTransport(self._observer, offline=settings.offline, redact=redact)

    def close(self) -> None:
        """Sends what is waiting to be told."""
        if self.telemetry:
            self.telemetry.close()


def secrets_in(settings: Settings) -> list[str]:
    """Every value that is a secret or holds one, as it is now."""
    known = secrets_of(settings.env).values()
    return [value for value in (*known, settings.database) if value]
