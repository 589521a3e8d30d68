"""Instruments the log and the transport of a process by its settings."""

from __future__ import annotations

from searchloop.agent.observe import ObservedLog, ObservedTransport, Observer, Observers
from searchloop.agent.observe.logs import Redactor, RunLog
from searchloop.agent.observe.telemetry import telemetry
from searchloop.agent.settings import Settings, is_on
from searchloop.agent.settings.secrets import secrets_of


class Instrumentation:
    """The observers of one process, `more` of the caller's among them. Raises ConfigError."""

    def __init__(self, settings: Settings, *more: Observer) -> None:
        self.telemetry = telemetry(settings.env, offline=settings.offline)
        spans = (self.telemetry,) if self.telemetry else ()
        self._observer = Observers(RunLog(), *more, *spans)
        self._settings = settings

    def log(self) -> ObservedLog:
        """Opens the observed log of the settings. Raises StoreError."""
        redact = Redactor(lambda: secrets_in(self._settings)).known
        return ObservedLog(self._settings.store, self._observer, redact)

    def transport(self, settings: Settings | None = None) -> ObservedTransport:
        """Makes an observed transport to providers, with the settings of a person if given."""
        settings = settings or self._settings
        recording = is_on(settings.env.get("SEARCHLOOP_TRACE"))
        redact = Redactor(lambda: secrets_in(settings)).known if recording else None
        return ObservedTransport(self._observer, offline=settings.offline, redact=redact)

    def close(self) -> None:
        """Sends the spans and numbers that are waiting."""
        if self.telemetry:
            self.telemetry.close()


def secrets_in(settings: Settings) -> list[str]:
    """Returns the present value of every setting that is or holds a secret."""
    known = secrets_of(settings.env).values()
    return [value for value in (*known, settings.database) if value]
