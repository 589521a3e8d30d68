"""What servers refuse is worded once: the key is never quoted, the next step is always named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from searchloop.agent.errors import ProviderError
from searchloop.agent.transport.exchange import FAULTS, Endpoint
from searchloop.agent.transport.refusals import Refusal, quoted
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
