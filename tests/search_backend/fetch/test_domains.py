"""Domain rules: exact on label borders, whatever the spelling."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.fetch.host_check import Rules, covers, parse_rules
from searchloop.search_backend.fetch.url_check import LOCAL_NAMES
from searchloop.search_backend.search.merge import keep
from searchloop.search_backend.types import Query, SearchBackendError, SearchResult
from tests.tables import each_row


def url_passes(url: str, allowed: Iterable[str], blocked: Iterable[str]) -> bool:
    """True if these rules let `url` through."""
    return Rules(tuple(allowed), tuple(blocked)).passes_url(url)


LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True).filter(
    lambda label: not label.startswith("xn--") and label[2:4] != "--"
)
# A number at the end is an address, or nothing.
LAST = LABEL.filter(lambda label: label[0].isalpha() and label not in LOCAL_NAMES)
HOST = st.tuples(st.lists(LABEL, max_size=3), LAST).map(
    lambda parts: ".".join([*parts[0], parts[1]])
)


@given(HOST, HOST)
def test_a_host_passes_iff_it_is_the_rule_or_lies_below_it(rule: str, host: str) -> None:
    """The suffix counts on label borders only."""
    expected = host.split(".")[-len(rule.split(".")) :] == rule.split(".")
    assert covers(rule, host) is expected
    assert covers(rule, f"{host}.{rule}")
    assert not covers(rule, f"x{rule}") or rule == f"x{rule}"


@given(st.lists(HOST, max_size=3), st.lists(HOST, max_size=3), HOST)
def test_rules_within_rules_pass_what_both_pass(
    outer: list[str], inner: list[str], host: str
) -> None:
    """The settings and a request both hold; nothing widens either."""
    narrow, wide = Rules(tuple(inner)), Rules(tuple(outer))
    try:
        both = narrow.within(wide)
    except SearchBackendError:
        assert not (narrow.passes(host) and wide.passes(host))
        return
    assert both.passes(host) == (narrow.passes(host) and wide.passes(host))


def test_results_are_shown_by_their_ascii_names() -> None:
    """A look-alike looks like itself, and an address with two readings is no result."""
    found = [
        SearchResult("a", "https://ex\u0430mple.org:8080/ü?ex\u0430mple.org", "", "x"),
        SearchResult("b", "https://good.example\\@evil.example/", "", "x"),
        SearchResult("c", "https://user@good.example/", "", "x"),
        SearchResult("d", "library://docs/a.md", "", "x"),
        SearchResult("e", "https://example.org/%C3%BC", "", "x"),
        SearchResult("f", "https://[2606:4700:0::1111]:8443/ü", "", "x"),
    ]
    kept = keep(found, Query("q"))
    assert [r.url for r in kept.results] == [
        "https://xn--exmple-4nf.org:8080/ü?ex\u0430mple.org",
        "library://docs/a.md",
        "https://example.org/%C3%BC",
        "https://[2606:4700::1111]:8443/ü",
    ]
    assert kept.outside == 0
    kept = keep(found, Query("q", allowed_domains=("example.org",)))
    assert ([r.title for r in kept.results], kept.outside) == (["e"], 3)


def test_library_documents_are_on_no_domain() -> None:
    """An allow list keeps them out, a block list does not touch them."""
    assert url_passes("library://docs/a.md", (), ("docs",))
    assert not url_passes("library://docs/a.md", ("docs",), ())


# Each name, and other ways to write it.
NAMES = {
    # RFC 1123, RFC 4343 and the root's dot: letters, digits, hyphens; case means nothing.
    "example.org": ["Example.ORG", "example.org.", " example.org\n"],
    "_dmarc.3com.example": ["_DMARC.3com.example."],
    "a--b.1b": ["A--B.1b"],
    "co.uk": ["CO.UK"],
    f"{'a' * 63}.org": [f"{'A' * 63}.org."],
    # UTS #46, non-transitional: U-labels and A-labels are one, and sharp s is not ss.
    "xn--bcher-kva.example": [
        "b\u00fccher.example",
        "BU\u0308CHER.Example.",
        "XN--BCHER-KVA.example",
    ],
    "xn--fa-hia.de": ["fa\u00df.de"],
    "fass.de": ["FASS.de"],
    "xn--3xa.gr": ["\u03c2.gr"],
    "xn--e1afmkfd.xn--p1ai": ["\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444"],
    "xn--tckwer46pncbk91h.jp": ["\u65e5\u672c\u8a9e\u30b3\u30e0.jp"],
    "xn--80ak6aa92e.com": ["\u0430\u0440\u0440\u04cf\u0435.com"],
    "xn--pple-43d.com": ["XN--PPLE-43D.com"],
    "1.2.3.4": [" 1.2.3.4 "],
}
# What is said of a rule, and the rules of which it is said.
NO_NAMES = {
    "is not a domain": [
        *("", "  ", "a.org,b.org", "a.org b.org", "a.org;b.org"),
        *("*.example.org", "*", "ex*.org", ".example.org"),
        *("https://example.org", "example.org/a", "example.org:443", "#a", "u@a.org"),
        *("example.org?q", "2606:4700::1111", "[::1]"),
        *("-a.example", "a-.example", "a..example", "example.org..", "ex%61mple.org"),
        *(f"{'a' * 64}.org", f"{'a.' * 127}org", "xn--a-", "xn--zzzzzzz99999"),
        # Numbers that some programs take for an address, and others for another one.
        *("0x7f000001", "2130706433", "127.1", "010.0.0.1", "a.123", "a.0x1"),
        # What looks like ASCII, cannot be seen, or may not stand there (RFC 5892, RFC 5893).
        "\u200bexample.org",
        *("example\u3002org", "\uff45xample.org", "\u24d4xample.org", "\u017f.example"),
        *("exam\u00adple.org", "a\u200b.org", "a\u200d.org", "\u0301a.example"),
        *("1\u05d0.example", "stra\u1e9ee.example"),
    ],
    "a name that is not of the public web": ["localhost", "printer.local", "1.home.arpa"],
    "an address that is not of the public web": [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
    ],
}


@each_row("name", NAMES)
def test_a_name_is_one_rule_however_it_is_written(name: str) -> None:
    """In every form that the standards know, and given back as it was made."""
    for text in (name, *NAMES[name]):
        assert parse_rules(["ok.example", text], "blocked_domains")[1] == name
        assert not url_passes(f"https://{text.strip()}:443/x", (), (name,))


@each_row("words", NO_NAMES)
def test_what_is_no_name_is_refused_with_what_to_write(words: str) -> None:
    """With its place in the list."""
    for text in NO_NAMES[words]:
        with pytest.raises(SearchBackendError) as told:
            parse_rules(["ok.example", text], "blocked_domains")
        assert "blocked_domains[1]" in told.value.message
        assert words in f"{told.value.message} {told.value.remedy}", text


@each_row(
    ("urls", "inside"),
    [
        (("https://example.org", "HTTPS://EXAMPLE.org./a", "http://a.b.example.org:8080?x"), True),
        (("https://notexample.org/", "https://example.org.evil.example/"), False),
        (("https://evil.example/example.org", "https://evil.example#.example.org"), False),
        # More than one reading: neither let through nor past a block.
        (("https://example.org@evil.example/", "https://evil.example@example.org/"), None),
        (
            ("https://example.org\\@evil.example/", "https://example%2eorg/", "http:example.org"),
            None,
        ),
        (("https://example.org%00.evil.example/", "https://exa\nmple.org/"), None),
        (
            ("https://example\u3002org/", "https://\uff45xample.org/", "https://example.org../"),
            None,
        ),
        (("https://[fe80::1%25eth0]/", "https://0x1.2.3.4/", "https://16909060/"), None),
    ],
)
def test_the_forms_of_an_address_that_the_standards_know(
    urls: tuple[str, ...], inside: bool | None
) -> None:
    """Below the rule on the border of a label, outside, or no address at all."""
    rule = ("example.org",)
    for url in urls:
        passes = (url_passes(url, rule, ()), not url_passes(url, (), rule))
        assert passes == ((False, True) if inside is None else (inside, inside)), url
