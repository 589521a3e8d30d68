"""One key for all addresses of a web page; which parameters only tell where a reader came from."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from posixpath import normpath
from unicodedata import normalize
from urllib.parse import unquote

_WEB = re.compile(r"(?i:https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
# Patterns without `compile` stay text until an address needs them: all take 2 ms to compile.
_TRACKING = (
    r"(?i)(?:utm|mtm|pk|hsa|stm|itm|matomo|pf_rd|_branch|wt)_\w+|wt\.\w+|at_(?:medium|campaign|custom\d?)|gclid|gclsrc|gad_\w+|gbraid|wbraid"
    r"|fbclid|fb_(?:action_\w+|source|ref)|msclkid|dclid|yclid|ysclid|ttclid|twclid|li_fat_id|srsltid"
    r"|igsh|igshid|mc_[ce]id|mkt_tok|_hs\w+|hsctatracking|_g[al]|ref_|ref_(?:src|url)|spm|scm|vero_\w+"
    r"|oly_(?:anon|enc)_id|cmpid|ocid|smid|trk|trkcampaign|guccounter|guce_\w+|__twitter_impression"
    r"|__hs\w+|s_kwcid|ef_id|mibextid|rdid|epik|wickedid|xtor|elqtrack\w*|ncid|icid|s_cid|_openstat"
    r"|rb_clickid|sxsrf|ved|usg|share_id|_bta_\w+|mkcid|mkevt|campid|nr_email_referer|isappinstalled"
    r"|amp_\w+|usqp|phpsessid|jsessionid"
)
# A word that names where a reader came from; codes and numbers name what the page is about.
_REFERRER = re.compile(r"ref=(?![A-Z0-9-]*[0-9][A-Z0-9-]*$)[\w.%:+/-]*|(?i:cmp)=[A-Za-z_]+")
# There `ref` is a branch or a version.
_CODE = re.compile(
    r"(?:^|[./])(?:github|gitlab|gitea|codeberg|bitbucket)\.|/(?:api|blob|contents|raw|repos|tree|-)/"
)
_AMP_QUERY = (
    r"(?i)amp(?:=(?:1|true)?)?|(?:outputtype|output|view)=(?:amp|mobile)"
    r"|mobile(?:=(?:1|true)|action=\w+)"
)
_AMP_PATH = re.compile(r"^/amp(?=/.)|(?<=[^/])/amp/?$|\.amp(?=\.html?$|$)")
AMP_VIEWER = re.compile(
    r"[^/]+\.cdn\.ampproject\.org/(?:c|v|wp)/(?:s/)?(.+)|(?:www\.)?google\.[a-z.]+/amp/(?:s/)?(.+)",
    re.DOTALL,
)
_VIDEO = re.compile(
    r"(?:youtu\.be|youtube(?:-nocookie)?\.com/(?:embed|live|shorts|v))/([\w-]{6,20})"
)
# Hosts and paths that lead to one page, and how it is known.
_TWINS = (
    (r"twitter\.com(?=/)", "x.com"),
    (r"dx\.doi\.org(?=/)", "doi.org"),
    (r"(?:old|new|np|i)\.reddit\.com(?=/)", "reddit.com"),
    (r"(?:redd\.it|reddit\.com(?:/r/\w+)?/comments)/(\w+)(?:/[^/]+)?$", r"redd.it/\1"),
    (r"((?:\w+\.)?stack(?:overflow|exchange)\.com)/q(?:uestions)?/(\d+)(?:/.*)?$", r"\1/q/\2"),
    (r"(amazon\.[a-z.]+)/(?:.*/)?(?:dp|gp/product)/(\w{10})(?:/.*)?$", r"\1/dp/\2"),
)
# There the path names the page, and no parameter does.
_NAMED = r"x\.com/\w+/status/\d+|redd\.it/\w+|amazon\.[a-z.]+/dp/\w{10}"
_INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$")
_RESERVED = re.compile(r"%(2[356f]|3[df])", re.IGNORECASE)
_SLASHES = re.compile(r"//+")


@lru_cache(maxsize=16_384)  # a chat meets its addresses again at each question
def url_key(url: str) -> str:
    """Returns one key for all addresses of a page; never open it.

    Its scheme, mobile and AMP versions, parameters for tracking and places on it do not count.
    """
    url = url.strip()
    found = _WEB.fullmatch(url if "://" in url else f"https://{url}")
    if found is None or found[1].count("[") != found[1].count("]"):
        return url if url.startswith(("library:", "attachment:")) else url.partition("#")[0]
    authority, path, query, fragment = found.groups()
    if "amp" in url and (viewed := AMP_VIEWER.fullmatch(authority.lower() + path)):
        authority, slash, path = (viewed[1] or viewed[2]).partition("/")
        path = slash + path
    place = _host(authority) + _path(path)
    pairs = sorted(_pairs(query, place)) if query else []
    if place == "youtube.com/watch":
        pairs = [pair for pair in pairs if pair.startswith("v=")]
    elif place.startswith("youtu") and (video := _VIDEO.fullmatch(place)):
        place, pairs = "youtube.com/watch", [f"v={video[1]}"]
    for known, form in _TWINS:
        place = re.sub(known, form, place) if re.match(known, place) else place
    place = place.lower() if place.startswith("doi.org/") else place
    pairs = [] if pairs and re.fullmatch(_NAMED, place) else pairs
    key = f"{place}?{'&'.join(pairs)}" if pairs else place
    key = key if key.isascii() else normalize("NFC", key)
    # Elsewhere a fragment is a place on the page; here it names another page.
    return f"{key}#{fragment}" if fragment and fragment[0] in "!/" and fragment[1:] else key


def _host(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    host = host.lower()
    if ":" in host:
        host = host.removesuffix(":").removesuffix(":80").removesuffix(":443")
    labels = host.rstrip(".").split(".")
    while len(labels) > 2 and labels[0] in ("www", "m", "mobile", "amp", "touch", "wap", "3g"):
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
    if "/." in path:
        path = normpath(path)
    if "." in path or "/amp" in path:
        path = _AMP_PATH.sub("", _INDEX.sub("/", path))
    return path.rstrip("/")


def _pairs(query: str, place: str) -> list[str]:
    """Returns the parameters that name the page, each in one spelling."""
    pairs = [pair for pair in query.split("&") if pair and not re.fullmatch(_AMP_QUERY, pair)]
    kept = (pair for pair in pairs if not is_tracking(pair, place))
    return [_unquoted(pair.replace("+", "%20")) for pair in kept]


def is_tracking(pair: str, place: str) -> bool:
    """Returns whether a parameter of an address tells only where its reader came from."""
    if re.fullmatch(_TRACKING, pair.partition("=")[0]):
        return True
    if pair in ("from=singlemessage", "from=groupmessage", "from=timeline"):  # WeChat
        return True
    if pair.startswith("si="):
        return "youtu" in place or "spotify.com/" in place
    return _REFERRER.fullmatch(pair) is not None and not _CODE.search(place)


def network_of(address: str) -> str:
    """Returns an IPv4 address as it is, an IPv6 address as its /64 network: all of it is one
    client's."""
    try:
        found = ip_address(address.partition("%")[0].strip("[] "))
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and not found.ipv4_mapped:
        return str(ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
