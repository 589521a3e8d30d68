"""Domain rules: exact on label borders, whatever the spelling."""

from __future__ import annotations

import ipaddress
import unicodedata

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_backend.domains import Rules, covers, host_filter, parse_rules, url_passes
from search_backend.errors import SearchBackendError
from search_backend.merge import keep
from search_backend.types import Query, SearchResult
from search_backend.urls import LOCAL_NAMES, host_of

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True).filter(
    lambda label: not label.startswith("xn--") and label[2:4] != "--"
)
# A number at the end is an address, or nothing.
LAST = LABEL.filter(lambda label: label[0].isalpha() and label not in LOCAL_NAMES)
HOST = st.tuples(st.lists(LABEL, max_size=3), LAST).map(
    lambda parts: ".".join([*parts[0], parts[1]])
)
# Pieces of which two programs have made different hosts before.
PIECES = st.sampled_from(
    [
        *(
            "http://",
            "https://",
            "HTTP://",
            "//",
            "\\",
            "@",
            "user:pw@",
            ":",
            ":80",
            ":0443",
            "/",
            "?",
        ),
        *("#", "/p", " ", "\t", "%61", "%2e", ".", "..", "。", "．", "-", "_", "[", "]", "[::1]"),
        *(
            "[2606::1]",
            "[::ffff:1.2.3.4]",
            "127.0.0.1",
            "1.2.3.4",
            "0x7f.1",
            "010.0.0.1",
            "a.example",
        ),
        *("EXAMPLE.org", "ß", "bücher", "é", "e\u0301", "xn--", "xn--bcher-kva", "ⓐ", "\u200d"),
        *("\u00ad", "א1", "\u0430", "K", "ſ", "İ", "ı"),
    ]
)
URL = st.tuples(
    st.sampled_from(["http://", "https://", ""]), st.lists(PIECES, min_size=1, max_size=6)
)


@given(HOST, HOST)
def test_a_host_passes_iff_it_is_the_rule_or_lies_below_it(rule: str, host: str) -> None:
    """The suffix counts on label borders only."""
    expected = host.split(".")[-len(rule.split(".")) :] == rule.split(".")
    assert covers(rule, host) is expected
    assert covers(rule, f"{host}.{rule}")
    assert not covers(rule, f"x{rule}") or rule == f"x{rule}"


@given(HOST, st.lists(HOST, max_size=3), st.lists(HOST, max_size=3), HOST)
def test_one_more_blocked_domain_never_lets_more_through(
    host: str, allowed: list[str], blocked: list[str], extra: str
) -> None:
    """A block list only ever narrows."""
    if host_filter(allowed, [*blocked, extra])(host):
        assert host_filter(allowed, blocked)(host)


@given(HOST, HOST, st.booleans(), st.sampled_from(["", "."]))
def test_spelling_does_not_matter(rule: str, host: str, upper: bool, dot: str) -> None:
    """Case and one trailing dot make no difference, in rules and in addresses."""
    spelled = (host.upper() if upper else host) + dot
    rules = parse_rules([rule], "allowed_domains")
    shouted = parse_rules([rule.upper() + dot], "allowed_domains")
    assert shouted == rules
    assert url_passes(f"https://{spelled}/x", rules, ()) is url_passes(
        f"https://{host}/", rules, ()
    )


def test_international_names_are_one_name() -> None:
    """The Unicode form and the ASCII form of a name are the same rule."""
    rules = parse_rules(["bücher.example"], "blocked_domains")
    assert rules == ("xn--bcher-kva.example",)
    assert not url_passes("https://www.xn--bcher-kva.example/", (), rules)
    assert not url_passes("https://Bücher.example/", (), rules)
    # Cyrillic letters in place of Latin ones make another name.
    assert not url_passes("https://ex\u0430mple.org/", ("example.org",), ())


@pytest.mark.parametrize(
    ("bad", "hint"),
    [
        ("*.example.org", "star"),
        ("https://example.org/x", "without scheme"),
        ("exa mple.org", "host name"),
        ("", "host name"),
        ("example..org", "host name"),
        ("example.org:443", "without scheme"),
        (".example.org", "dot in front"),
        ("user@example.org", "host name alone"),
        ("example.org?q", "host name alone"),
        ("example。org", "letter by letter"),
        ("\u200bexample.org", "letter by letter"),
        ("localhost", "change nothing"),
        ("printer.local", "change nothing"),
        ("010.0.0.1", "host name"),
        ("127.1", "host name"),
        ("[::1]", "without scheme"),
    ],
)
def test_a_bad_rule_is_refused_with_its_place(bad: str, hint: str) -> None:
    """No rule is silently dead."""
    with pytest.raises(SearchBackendError, match=r"allowed_domains\[1\]") as refused:
        parse_rules(["example.com", bad], "allowed_domains")
    assert hint in refused.value.remedy


@given(URL.map(lambda parts: parts[0] + "".join(parts[1])))
def test_the_host_is_what_the_http_client_would_reach(url: str) -> None:
    """Where another reader of addresses comes to another host, ours comes to none."""
    host = host_of(url)
    try:
        theirs = httpx2.URL(url).raw_host.decode().lower().removesuffix(".")
    except httpx2.InvalidURL:
        return
    assert host is None or _address(host) == _address(theirs)


def _address(host: str) -> object:
    """A literal as the address it is, however it is spelled; a name as it stands."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return host


@given(HOST, st.sampled_from(["http", "https", "HTTPS"]), st.sampled_from(["", ":8080", "."]))
def test_ordinary_addresses_have_a_host(host: str, scheme: str, after: str) -> None:
    """The refusals above leave what people use."""
    assert host_of(f"{scheme}://{host}{after}/a/b?q=1&r=%20#x") == host


@given(st.sampled_from(["bücher", "日本語", "例え", "παράδειγμα", "пример"]), st.booleans(), HOST)
def test_international_spelling_does_not_matter(label: str, decomposed: bool, host: str) -> None:
    """U-labels, A-labels, and either Unicode form of one name pass the same rules."""
    name = f"{label}.{host}"
    spelled = unicodedata.normalize("NFD" if decomposed else "NFC", name)
    (rule,) = parse_rules([spelled], "blocked_domains")
    assert rule.startswith("xn--")
    for one in (name, spelled, rule, rule.upper() + "."):
        assert host_of(f"https://{one}/") == rule
        assert not url_passes(f"https://www.{one}/", (), (rule,))


def test_a_rule_of_letters_that_look_alike_is_refused() -> None:
    """Cyrillic among Latin is a trap or a slip; its A-label can be meant, and says what it is."""
    with pytest.raises(SearchBackendError, match="Cyrillic and Latin") as refused:
        parse_rules(["ok.example", "ex\u0430mple.org"], "allowed_domains")
    assert "allowed_domains[1]" in refused.value.message
    assert "xn--exmple-4nf.org" in refused.value.remedy
    assert parse_rules(["xn--exmple-4nf.org"], "x") == ("xn--exmple-4nf.org",)
    assert parse_rules(["ソニーsony.example", "ab日本.example"], "x")


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
    ]
    kept = keep(found, Query("q"))
    assert [r.url for r in kept.results] == [
        "https://xn--exmple-4nf.org:8080/ü?ex\u0430mple.org",
        "library://docs/a.md",
        "https://example.org/%C3%BC",
    ]
    assert kept.outside == 0
    kept = keep(found, Query("q", allowed_domains=("example.org",)))
    assert ([r.title for r in kept.results], kept.outside) == (["e"], 2)


def test_library_documents_are_on_no_domain() -> None:
    """An allow list keeps them out, a block list does not touch them."""
    assert url_passes("library://docs/a.md", (), ("docs",))
    assert not url_passes("library://docs/a.md", ("docs",), ())
