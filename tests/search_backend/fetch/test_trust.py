"""Certificates of the environment that cannot be used: one sentence, from engines and pages."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchloop.search_backend.fetch.client import run, system_trust
from searchloop.search_backend.fetch.engine_client import EngineHttp
from searchloop.search_backend.fetch.http import FetchLimits
from searchloop.search_backend.plugin import HttpRequest
from searchloop.search_backend.types import EngineError, FetchFailed, SettingError
from tests.ports import closed_port
from tests.search_backend.hostile import DATA, Internet


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing that was trusted before, or will be after, is remembered."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    system_trust.cache_clear()
    yield
    system_trust.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("SSL_CERT_FILE", f"{DATA}/none.pem", "no such file or directory"),
        ("SSL_CERT_FILE", str(DATA), "is a directory"),
        ("SSL_CERT_FILE", __file__, "no certificate in it"),
        ("SSL_CERT_DIR", f"{__file__}/a:{__file__}/b", "no such folder"),
    ],
)
def test_the_setting_is_named(
    name: str, value: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is sent, and with what to do; it is no fault of a server or the network."""
    monkeypatch.setenv(name, value)
    said = f"{name} names {value!r}, which cannot be used ({why})."
    port = closed_port()
    with pytest.raises(EngineError) as refused:
        run(EngineHttp().send(HttpRequest("GET", f"https://127.0.0.1:{port}/"), "Tea"), timeout=60)
    assert (refused.value.kind, refused.value.message) == ("config", said)
    assert refused.value.remedy == f"Correct {name}, or unset it."
    net = Internet(port)
    limits = FetchLimits(seconds=30, failure_step=0)
    with pytest.raises(FetchFailed) as caught:
        net.fetch("https://example.com/", limits=limits)
    assert (caught.value.code, caught.value.message) == ("tls", said)


def test_a_file_that_is_mended_counts_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No restart is needed, and a good file is trusted."""
    place = tmp_path / "ca.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(place))
    with pytest.raises(SettingError):
        system_trust()
    place.write_bytes((DATA / "ca.pem").read_bytes())
    assert isinstance(system_trust(), ssl.SSLContext)
    assert system_trust().cert_store_stats()["x509_ca"] == 1
