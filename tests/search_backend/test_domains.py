"""Domain rules: exact on label borders, whatever the spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_backend.domains import covers, host_filter, parse_rules, url_passes
from search_backend.errors import SearchBackendError

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True).filter(
    lambda label: not label.startswith("xn--") and label[2:4] != "--"
)
HOST = st.lists(LABEL, min_size=1, max_size=4).map(".".join)


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
    ],
)
def test_a_bad_rule_is_refused_with_its_place(bad: str, hint: str) -> None:
    """No rule is silently dead."""
    with pytest.raises(SearchBackendError, match=r"allowed_domains\[1\]") as refused:
        parse_rules(["example.com", bad], "allowed_domains")
    assert hint in refused.value.remedy


def test_library_documents_are_on_no_domain() -> None:
    """An allow list keeps them out, a block list does not touch them."""
    assert url_passes("library://docs/a.md", (), ("docs",))
    assert not url_passes("library://docs/a.md", ("docs",), ())
