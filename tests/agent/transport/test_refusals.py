"""Refusals are worded once, no key is quoted, and retries never wait longer than a minute."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ProviderError
from searchloop.agent.transport.exchange import FAULTS, Endpoint
from searchloop.agent.transport.refusals import Delays, Refusal, parse_retry_after, quoted
from tests.tables import each_row

KEY = "abc123-unlike-any-shape"
HOME = "https://api.vendor.example/v1"


@given(before=st.text(max_size=300), after=st.text(max_size=300))
def test_a_key_is_never_quoted(before: str, after: str) -> None:
    """Wherever it stands in the server's words, and however long they are."""
    assert KEY not in quoted(f"{before}{KEY}{after}", KEY)


def test_every_refusal_names_the_next_step() -> None:
    """Message, remedy and status are there, and what waiting helps with says so."""
    refusal = Refusal("Vendor", " It says: no.", 418)
    words = {"key": "k", "setting": "S", "why": "w", "api": "the API", "ends": "/v1"}
    errors = [refusal.error(code, **words) for code in FAULTS["refusals"]]
    assert len({error.code for error in errors}) == len(errors)
    assert all(e.message.endswith(".") and e.remedy and e.status == 418 for e in errors)
    assert [e.code for e in errors if e.retryable] == [
        *("rate_limited", "server_error", "tool_call_slip"),
    ]


@each_row(
    ("base", "official"),
    [
        (HOME, True),
        ("https://API.vendor.example:443/v2/", True),
        ("http://api.vendor.example/v1", False),
        ("https://api.vendor.example.evil.example/v1", False),
        ("https://api.vendor.example@evil.example/v1", False),
        ("not a url", False),
    ],
)
def test_only_the_vendors_origin_is_the_vendor(base: str, official: bool) -> None:
    """Scheme, host and port; another server is called by its host."""
    endpoint = Endpoint(base, vendor="Vendor", home=HOME, setting="VENDOR_BASE_URL")
    assert endpoint.official is official
    assert (endpoint.name == "Vendor") is official
    lost = ProviderError("unreachable", "Nothing answers.", "Wait.")
    assert ("VENDOR_BASE_URL" in endpoint.explain(lost).remedy) is not official


NOW = 1_700_000_000.0


@each_row(
    ("luck", "asked", "waits"),
    [
        (1.0, [None, None, None], [0.5, 1.0, None]),  # the second is up to twice the first
        (0.3, [7.5], [7.5]),  # a server that names a time is believed
        (0.3, [61.0], [None]),  # and given up where that is more than a minute
        (0.3, [40.0, 40.0], [40.0, None]),  # in all
        (0.3, [0.0, 0.0, 0.0], [0.0, 0.0, None]),  # and after three tries
    ],
)
def test_waits_grow_and_end(luck: float, asked: list[Any], waits: list[Any]) -> None:
    """What is waited before each try; None gives up."""
    delays = Delays(lambda: luck)
    assert [delays.next(each) for each in asked] == waits


@each_row(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        *(({"retry-after": odd}, None) for odd in ("-4", "nan", "inf", "tomorrow", "")),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds and dates are read; nonsense is as if nothing was said."""
    assert parse_retry_after(headers, NOW) == seconds
