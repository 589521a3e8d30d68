"""Applies the rules of a query to results, tells pages apart, and cleans what is shown."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from urllib.parse import unquote

from searchloop.search_backend.fetch.host_check import ANYWHERE, Rules, plain_url
from searchloop.search_backend.fetch.ip_addresses import Network
from searchloop.search_backend.text.clean import invisible, one_line
from searchloop.search_backend.types import Filtered, Query, SearchResult

_WEB = re.compile(r"(?i:https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_TRACKING = re.compile(
    r"(?:utm|mtm|pk|hsa|stm)_\w+|at_(?:medium|campaign|custom\d?)|gclid|gclsrc|gad_\w+|gbraid|wbraid"
    r"|fbclid|fb_(?:action_\w+|source|ref)|msclkid|dclid|yclid|ysclid|ttclid|twclid|li_fat_id|srsltid"
    r"|igsh|igshid|mc_[ce]id|mkt_tok|_hs\w+|hsctatracking|_g[al]|ref_|ref_(?:src|url)|spm|scm|vero_\w+"
    r"|oly_(?:anon|enc)_id|cmpid|ocid|smid|trk|trkcampaign|guccounter|guce_\w+|__twitter_impression",
    re.IGNORECASE,
)
# A word that names where a reader came from; codes and numbers name what the page is about.
_REFERRER = re.compile(r"ref=(?![A-Z0-9-]*[0-9][A-Z0-9-]*$)[\w.%:+/-]*")
# There `ref` is a branch or a version.
_CODE = re.compile(
    r"(?:^|[./])(?:github|gitlab|gitea|codeberg|bitbucket)\.|/(?:api|blob|contents|raw|repos|tree|-)/"
)
_AMP_QUERY = re.compile(r"amp(?:=(?:1|true)?)?|(?:outputtype|output)=amp", re.IGNORECASE)
_AMP_PATH = re.compile(r"(?<=[^/])/amp/?$|\.amp(?=\.html?$|$)")
_AMP_VIEWER = re.compile(
    r"[^/]+\.cdn\.ampproject\.org/(?:c|v|wp)/(?:s/)?(.+)|(?:www\.)?google\.[a-z.]+/amp/(?:s/)?(.+)",
    re.DOTALL,
)
_VIDEO = re.compile(
    r"(?:youtu\.be|youtube(?:-nocookie)?\.com/(?:embed|live|shorts|v))/([\w-]{6,20})"
)
_INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$")
_RESERVED = re.compile(r"%(2[356f]|3[df])", re.IGNORECASE)
_SLASHES = re.compile(r"//+")


def canonical_key(url: str) -> str:
    """Returns one key for all addresses of a page; never open it.

    Its scheme, mobile and AMP versions, parameters for tracking and places on it do not count.
    agent/search/source_numbers.py has the same rule.
    """
    found = _WEB.fullmatch(url.strip())
    if found is None or found[1].count("[") != found[1].count("]"):
        return url.strip()
    authority, path, query, fragment = found.groups()
    if "amp" in url and (viewed := _AMP_VIEWER.fullmatch(authority.lower() + path)):
        authority, slash, path = (viewed[1] or viewed[2]).partition("/")
        path = slash + path
    place = _host(authority) + _path(path)
    pairs = sorted(_pairs(query, place)) if query else []
    if place == "youtube.com/watch":
        pairs = [pair for pair in pairs if pair.startswith("v=")]
    elif place.startswith("youtu") and (video := _VIDEO.fullmatch(place)):
        place, pairs = "youtube.com/watch", [f"v={video[1]}"]
    key = f"{place}?{'&'.join(pairs)}" if pairs else place
    # Elsewhere a fragment is a place on the page; here it names another page.
    return f"{key}#{fragment}" if fragment and fragment[0] in "!/" and fragment[1:] else key


def _host(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    host = host.lower()
    if ":" in host:
        host = host.removesuffix(":").removesuffix(":80").removesuffix(":443")
    labels = host.rstrip(".").split(".")
    while len(labels) > 2 and labels[0] in ("www", "m", "mobile", "amp"):
        del labels[0]
    if len(labels) > 3 and labels[1] == "m":  # en.m.wikipedia.org
        del labels[1]
    if "xn--" in host:
        labels = [_decoded(label) for label in labels]
    return f"{user}{at}{'.'.join(labels)}"


def _decoded(label: str) -> str:
    try:
        return label[4:].encode().decode("punycode") if label.startswith("xn--") else label
    except (UnicodeError, OverflowError):
        return label


def _unquoted(text: str) -> str:
    """Decodes all but what separates parts, or two different pages would look alike."""
    text = _RESERVED.sub(lambda found: f"%25{found[1].lower()}", text)
    return unquote(text, errors="surrogateescape")


def _path(path: str) -> str:
    if "%" in path or "//" in path:
        path = _SLASHES.sub("/", _unquoted(path))
    if "." in path or "/amp" in path:
        path = _AMP_PATH.sub("", _INDEX.sub("/", path))
    return path.rstrip("/")


def _pairs(query: str, place: str) -> list[str]:
    """Returns the parameters that name the page, each in one spelling."""
    pairs = [pair for pair in query.split("&") if pair and not _AMP_QUERY.fullmatch(pair)]
    kept = (pair for pair in pairs if not _is_tracking(pair, place))
    return [_unquoted(pair.replace("+", "%20")) for pair in kept]


def _is_tracking(pair: str, place: str) -> bool:
    """Returns whether a parameter of an address tells only where its reader came from."""
    if _TRACKING.fullmatch(pair.partition("=")[0]):
        return True
    if pair.startswith("si="):
        return "youtu" in place or "spotify.com/" in place
    return _REFERRER.fullmatch(pair) is not None and not _CODE.search(place)


# Addresses with the address of another page inside: in their path (archives, readers) or as a
# parameter (redirects).
_INSIDE = re.compile(
    r"https?://[^?#]*?/(https?:/{1,2}[^/].*)"
    r"|https?://[^#]*[?&](?:q|u|url|uddg|to|target|dest)=(https?(?::|%3a)(?:/|%2f){2}[^&#]+)",
    re.IGNORECASE | re.DOTALL,
)
_TRANSLATED = re.compile(r"https?://([^/?#]+)\.translate\.goog(?=[/?#:]|$)", re.IGNORECASE)


def _shown(url: str) -> str:
    """Returns the address of the page that is seen at `url`: a copy, a viewer, a redirect."""
    if found := _TRANSLATED.match(url):
        return "https://" + found[1].replace("--", "\0").replace("-", ".").replace("\0", "-")
    if found := _INSIDE.match(url):
        return unquote(found[1] or found[2]).replace(":/", "://", 1).replace(":///", "://", 1)
    if "amp" in url and (viewed := _AMP_VIEWER.fullmatch(url.partition("://")[2])):
        return f"https://{viewed[1] or viewed[2]}"
    return url


LONGEST_TITLE = 300
LONGEST_SNIPPET = 2_000
_DAYS = {"d": 1, "w": 7, "m": 31, "y": 366}


@dataclass(frozen=True, slots=True)
class Checked:
    """The results that pass, and the numbers of those outside the domains, too old, or with an
    unusable address."""

    results: tuple[SearchResult, ...] = ()
    outside: int = 0
    stale: int = 0
    unusable: int = 0


def keep(
    found: Sequence[SearchResult],
    query: Query,
    respected: Container[str] = ("time_range",),
    today: date | None = None,
    allow: Sequence[Network] = (),
) -> Checked:
    """Removes results outside the rules of `query`; the engine has `respected` some already.

    An address with two readings, of this machine or of a private network outside `allow` is
    unusable; a non-ASCII host is shown by its A-labels. A result without a date is never too old.
    """
    readable = [
        result if shown == result.url else replace(result, url=shown)
        for result in found
        if (shown := plain_url(result.url, allow)) is not None
    ]
    rules = Rules(query.allowed_domains, query.blocked_domains)
    inside = readable
    if rules != ANYWHERE:
        blocked = Rules((), query.blocked_domains)
        inside = [
            r for r in readable if rules.passes_url(r.url) and blocked.passes_url(_shown(r.url))
        ]
    fresh = inside
    if query.time_range and "time_range" not in respected:
        # A day more, for places where it is still yesterday.
        days = timedelta(days=_DAYS[query.time_range] + 1)
        oldest = ((today or datetime.now(UTC).date()) - days).isoformat()
        fresh = [result for result in inside if (result.published or oldest) >= oldest]
    outside, stale = len(readable) - len(inside), len(inside) - len(fresh)
    return Checked(tuple(fresh), outside, stale, len(found) - len(readable))


def filtered(query: Query, outside: int, stale: int) -> Filtered | None:
    """Names the rules that removed results; None if none did."""
    rules = [("allowed_domains", query.allowed_domains), ("blocked_domains", query.blocked_domains)]
    told = [f"{name}={','.join(r)}" for name, r in rules if r] if outside else []
    told += [f"time_range={query.time_range}"] if stale else []
    return Filtered("; ".join(told), outside + stale) if told else None


def cleaned(result: SearchResult) -> SearchResult:
    """Returns `result` without what nobody should see, on one line each."""
    return SearchResult(
        one_line(result.title, LONGEST_TITLE) or result.url,
        result.url,
        one_line(result.snippet, LONGEST_SNIPPET),
        result.source,
        result.published,
        result.invisible + invisible(result.title) + invisible(result.snippet),
    )
