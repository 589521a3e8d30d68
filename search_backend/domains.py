"""Domain rules: one implementation for search results, pages and every redirect.

A rule is a host name; it covers that host and the hosts below it, never a longer name that
happens to end alike. Rules and hosts are compared in their canonical ASCII form, so case, a
trailing dot and international spelling make no difference. A block always wins over an allow.
A host is what `urls.host_of` reads; an address that can be read in two ways is no result.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from search_backend.addresses import Block, canonical, is_public, parse, unmapped, why_refused
from search_backend.clean import invisible
from search_backend.errors import FetchRefused, SearchBackendError
from search_backend.names import to_ascii
from search_backend.urls import LOCAL_NAMES, host_of, with_host

MOST_RULES = 100
# Plain names below a top-level domain of letters, and nothing in the rest to stumble over.
_EASY = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?!localhost\b)[a-z]{2,24}(?:[/?#][!-\[\]-~]*)?"
)
_WEB = re.compile(r"https?:", re.IGNORECASE)
# What may stand in one label: one script, or Latin beside those of East Asia (UTS #39 5.2, highly
# restrictive).
_TOGETHER = frozenset(
    {
        *("LATIN", "CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"),
        *("BOPOMOFO", "HANGUL", "MODIFIER"),
    }
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Canonical host names: where results and pages may come from, and where never."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def passes(self, host: str) -> bool:
        """Whether the canonical `host` is inside."""
        return host_filter(self.allowed, self.blocked)(host)

    def passes_url(self, url: str) -> bool:
        """Whether a page at `url` may be shown. One with no host on the web passes no allow
        list."""
        return url_passes(url, self.allowed, self.blocked)

    def within(self, outer: Rules) -> Rules:
        """What both let through. Raises SearchBackendError when that is nothing."""
        allowed = self.allowed or outer.allowed
        if self.allowed and outer.allowed:
            pairs = [(mine, theirs) for mine in self.allowed for theirs in outer.allowed]
            narrow = [mine for mine, theirs in pairs if covers(theirs, mine)]
            narrow += [theirs for mine, theirs in pairs if covers(mine, theirs)]
            allowed = tuple(dict.fromkeys(narrow))
            if not allowed:
                raise SearchBackendError(
                    "bad_domain",
                    "None of the domains asked for is inside SEARCH_ALLOWED_DOMAINS.",
                    "Ask for one of: " + ", ".join(outer.allowed[:10]) + ".",
                )
        return Rules(allowed, tuple(dict.fromkeys(outer.blocked + self.blocked)))


ANYWHERE = Rules()


def parse_rules(raw: Sequence[str], name: str) -> tuple[str, ...]:
    """Canonical rules. Raises SearchBackendError(code "bad_domain") with the index of a bad one."""
    if len(raw) > MOST_RULES:
        raise SearchBackendError(
            "bad_domain", f"{name} has more than {MOST_RULES} entries.", "Shorten the list."
        )
    return tuple(_rule(text, f"{name}[{at}]") for at, text in enumerate(raw))


def _rule(text: str, place: str) -> str:
    host = _ipv6(text.strip()) or to_ascii(text.strip())
    if host and (scripts := _mixed(text)):
        raise SearchBackendError(
            "bad_domain",
            f"{place} mixes letters of {' and '.join(scripts)} that look alike: {host!r}.",
            f"Write it in one script, or as {host} if that is the name meant.",
        )
    # A number at the end makes it an address in dotted form, or nothing that any host is called.
    address = canonical(host or "")
    if host and (address or host_of(f"http://{host}/") == host):
        if is_public(host) if address else host.rpartition(".")[2] not in LOCAL_NAMES:
            return host
        what = "an address" if address else "a name"
        raise SearchBackendError(
            "bad_domain",
            f"{place} is {what} that is not of the public web, where no page is opened: {host!r}.",
            "Take it out; it would change nothing.",
        )
    why, hint = _why_not(text.strip())
    raise SearchBackendError("bad_domain", f"{place} is not a domain: {text[:100]!r}{why}.", hint)


def _ipv6(text: str) -> str | None:
    """The canonical form of an IPv6 address, with or without brackets; one that stands for an IPv4
    address is that one. None for anything else, and for an address with a zone."""
    bare = text[1:-1] if text[:1] + text[-1:] == "[]" else text
    address = host_of(f"http://[{bare}]/") if bare.count(":") > 1 else None
    return unmapped(address) if address else None


def _why_not(text: str) -> tuple[str, str]:
    """(what is wrong with it, what to write instead)."""
    if not text:
        return " is empty", "Write a host name such as example.org, or leave the entry out."
    if "*" in text:
        return "", "Leave the star out: example.org covers the names below it as well."
    if re.search(r"[/:@?#]", text):
        return "", "Write the host name alone, without scheme, port and path: example.org."
    if re.search(r"[\s,;]", text):
        return "", "Give each host name an entry of its own."
    if text.startswith("."):
        return "", "Leave the dot in front out: example.org covers the names below it as well."
    if not text.isascii():
        return (
            " holds a character that is not used in host names",
            "Write it anew, letter by letter, or as its A-labels (xn--...).",
        )
    return "", "Write a host name such as example.org; it covers the names below it as well."


def _mixed(name: str) -> list[str]:
    """The scripts of a label that holds letters which nobody writes side by side."""
    for label in re.split(r"[.\u3002]", name):
        letters = [char for char in label if unicodedata.category(char).startswith("L")]
        found = {unicodedata.name(char, "?").split()[0] for char in letters}
        if len(found) > 1 and not found <= _TOGETHER:
            return sorted(script.title() for script in found)
    return []


def covers(rule: str, host: str) -> bool:
    """Whether the canonical `host` is the rule's or lies below it."""
    return host == rule or host.endswith("." + rule)


def host_filter(allowed: Sequence[str], blocked: Sequence[str]) -> Callable[[str], bool]:
    """A test for canonical hosts under these rules."""

    def passes(host: str) -> bool:
        host = unmapped(host)
        if any(covers(rule, host) for rule in blocked):
            return False
        return not allowed or any(covers(rule, host) for rule in allowed)

    return passes


def url_passes(url: str, allowed: Sequence[str], blocked: Sequence[str]) -> bool:
    """Whether a result may stay. One that has no host on the web passes no allow list."""
    host = host_of(url)
    if host is None:
        return not allowed and not _WEB.match(url)
    return host_filter(allowed, blocked)(host)


def plain_url(url: str, allow: Sequence[Block] = ()) -> str | None:
    """`url` as it is shown: a host in other letters than ASCII as the A-labels that it stands for,
    so that a look-alike looks like itself. None for what can be read in two ways, holds characters
    that nobody sees, or names this machine or an address that is not public nor in `allow`."""
    if len(url) <= 253 and _EASY.fullmatch(url) and "xn--" not in url:
        return url  # nearly every one: a hundred in a search, and each costs
    host = host_of(url)
    if host is None:
        return None if _WEB.match(url) else url
    if host.rpartition(".")[2] == "localhost" or (parse(host) and why_refused(host, allow=allow)):
        return None
    shown = url if url.isascii() else with_host(url, host)
    return None if invisible(shown) else shown


def refuse_outside(host: str, rules: Callable[[str], bool] | None) -> None:
    """Raises FetchRefused(refused_domain) when the rules do not let `host` through."""
    if rules and not rules(host):
        raise FetchRefused(
            "refused_domain",
            f"The domain rules do not allow {host}.",
            "Use a page of an allowed domain, or change the rules.",
        )
