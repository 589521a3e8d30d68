"""Where spans and numbers go: a collector that speaks OTLP over HTTP, named by the settings.

Off unless `SEARCHLOOP_OTEL_ENDPOINT` is set (extra `otel`); nothing of OpenTelemetry is imported
before that. https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

from agent.errors import ConfigError
from agent.settings import is_on
from agent.telemetry import Telemetry
from agent.wire import Origin

ENDPOINT, CONTENT = "SEARCHLOOP_OTEL_ENDPOINT", "SEARCHLOOP_OTEL_CONTENT"


def telemetry(env: Mapping[str, str], *, offline: bool) -> Telemetry | None:
    """Telemetry as the settings have it, None when it is off. Raises ConfigError."""
    endpoint = (env.get(ENDPOINT) or "").strip().rstrip("/")
    if not endpoint:
        return None
    address = urlsplit(endpoint)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ConfigError(
            "bad_otel",
            f"{ENDPOINT} is not an http:// or https:// address.",
            "Name your collector, for example http://127.0.0.1:4318.",
        )
    if offline and not Origin(address.scheme, address.hostname, address.port or 0).here:
        raise ConfigError(
            "offline",
            f"SEARCHLOOP_OFFLINE is on, and {ENDPOINT} is another machine.",
            "Unset one of the two.",
        )
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise ConfigError(
            "missing_extra",
            f"{ENDPOINT} is set, and OpenTelemetry is not installed.",
            "Install it with `pip install 'searchloop[otel]'`, or unset the setting.",
        )
    return _made(endpoint, content=is_on(env.get(CONTENT)))


def _made(endpoint: str, *, content: bool) -> Telemetry:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = Resource.create({"service.name": "searchloop"})
    spans = TracerProvider(resource=about, shutdown_on_exit=False)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{endpoint}/v1/metrics"))
    meters = MeterProvider([reader], resource=about, shutdown_on_exit=False)
    return Telemetry(spans, meters, content=content)
