"""The strict reading of URLs: tables by class, and properties over generated URLs."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.fetch.ip_addresses import canonical, is_public
from searchloop.search_backend.fetch.url_check import (
    MAX_URL,
    WEB_PORTS,
    check_redirect,
    check_url,
    host_of,
)
from searchloop.search_backend.types import FetchRefused, NotReachable
from tests.tables import each_row

ACCEPTED = {
    "http://example.com": "http://example.com/",
    "HTTPS://EXAMPLE.COM/Path": "https://example.com/Path",
    "https://example.com.": "https://example.com/",
    "http://example.com:/": "http://example.com/",
    "http://example.com:443/": "http://example.com:443/",
    "https://example.com:8443/a": "https://example.com:8443/a",
    "http://example.com:8000?x=1": "http://example.com:8000/?x=1",
    "http://example.com#top": "http://example.com/",
    "http://example.com/a?b=c#d?e": "http://example.com/a?b=c",
    "http://example.com/a/../b/./c": "http://example.com/a/../b/./c",
    "http://example.com/?u=http://127.0.0.1/": "http://example.com/?u=http://127.0.0.1/",
    "http://example.com/?a=[1]&b={2}|3": "http://example.com/?a=[1]&b=%7B2%7D|3",
    "http://example.com/100%": "http://example.com/100%",
    "http://example.com/%E2%9C%93%2f%00": "http://example.com/%E2%9C%93%2f%00",
    "http://example.com/ä/✓?ö=ü": "http://example.com/%C3%A4/%E2%9C%93?%C3%B6=%C3%BC",
    'http://example.com/"<>`': "http://example.com/%22%3C%3E%60",
    "http://example.com/\u200b\u202e": "http://example.com/%E2%80%8B%E2%80%AE",
    "http://r3---sn-4g5e6nz7.example.com/": "http://r3---sn-4g5e6nz7.example.com/",
    "http://127.0.0.1.example.com/": "http://127.0.0.1.example.com/",
    "http://localhost.example.com/": "http://localhost.example.com/",
    "http://" + "a" * 63 + ".com/": "http://" + "a" * 63 + ".com/",
    "http://bücher.example/": "http://xn--bcher-kva.example/",
    "http://カ・タ.example/": "http://xn--lckxb3k.example/",
    "http://bu\u0308cher.example/": "http://xn--bcher-kva.example/",
    "http://XN--BCHER-KVA.example/": "http://xn--bcher-kva.example/",
    "http://straße.example/": "http://xn--strae-oqa.example/",
    "http://موقع.مصر/": "http://xn--4gbrim.xn--wgbh1c/",
    "http://نامه\u200cای.example/": "http://xn--mgba3gch31f060k.example/",
    "http://аррӏе.com/": "http://xn--80ak6aa92e.com/",
    "http://[2606:4700:4700::1111]/": "http://[2606:4700:4700::1111]/",
    "http://[2606:4700:4700:0:0:0:0:1111]:8080/": "http://[2606:4700:4700::1111]:8080/",
    "http://[2A00:1450:4001:0830::200E]": "http://[2a00:1450:4001:830::200e]/",
}
# Not a web address, or one with more than one reading.
REFUSED = [
    # schemes and shape
    *("", "example.com", "//example.com/", "?q", "http:", "http:///example.com/", "http:/"),
    *("http:example.com", "http//example.com", "h ttp://example.com/", "ftp://example.com/"),
    *("file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "about:blank"),
    *("ws://example.com/", "mailto:a@b.example", "http+unix://%2Fvar%2Frun/", "http://../"),
    *("jar:http://example.com!/", "http://?x", "http://#x", "http://:80/", "ｈttp://example.com/"),
    # user names
    *("http://user@example.com/", "http://user:pass@example.com/", "http://@example.com/"),
    *("http://example.com@127.0.0.1/", "http://a@b@example.com/", "http://[::1]@example.com/"),
    # backslashes, controls, spaces
    *("http:\\\\example.com\\", "http://example.com\\@127.0.0.1/", "http://example.com/a\\b"),
    *(" http://example.com/", "http://example.com/\n", "http://exa mple.com/", "http://a.com/a b"),
    *("ht\ntp://example.com/", "http://exam\tple.com/", "http://127.0.0.1\n.com"),
    *("http://example.com/\r\nHost: 127.0.0.1\r\n\r\n", "http://example.com\x00.evil.example/"),
    *("http://example.com/\x00", "http://example.com/\x1f", "http://example.com/\x7f"),
    *("http://example.com/\x85", "http://a\xa0b.com/", "http://example.com/\u2028"),
    *("http://example.com/\u3000", "\ufeffhttp://example.com/", "http://example.com/\ud800"),
    # percent signs and other characters in hosts
    *("http://%65xample.com/", "http://127%2e0%2e0%2e1/", "http://example.com%00.evil.example/"),
    *("http://example.com%2f@127.0.0.1/", "http://%5b::1%5d/", "http://ex,ample.com/"),
    *("http://ex*mple.com/", "http://exa'mple.com/", "http://a;b.com/", "http://<example>.com/"),
    # labels
    *("http://example..com/", "http://.example.com/", "http://example.com../"),
    *("http://-example.com/", "http://example-.com/", "http://" + "a" * 64 + ".com/"),
    *("http://" + "a." * 126 + "example/", "http://xn--/", "http://xn--a.com/"),
    *("http://xn--99999999999.com/", "http://xn--127-0-0-1-.com/", "http://xn--ls8h=.la/"),
    *("http://\u0301a.com/", "http://a\u200cb.com/", "http://a\u200db.com/", "http://אa1.com/"),
    *("http://ex\u00adample.com/", "http://example\u200b.com/", "http://example\u2060.com/"),
    *("http://example.com\ufe0f/", "http://exa\u202emple.com/", "http://\U000e0061example.com/"),
    # signs that no registry may hand out
    *("http://☃.net/", "http://xn--n3h.net/", "http://i❤.example/"),
    # look-alikes of ASCII
    *(
        "http://ｅxample.com/",
        "http://example．com/",
        "http://example。com/",
        "http://example｡com/",
    ),
    *("http://①②⑦.⓪.⓪.①/", "http://１２７.0.0.1/", "http://example.com／@127.0.0.1/"),
    *("http://user＠example.com/", "http://example.com：80/", "http://ⓛocalhost/"),
    *("http://example.㏇/", "http://stra\u1e9ee.example/", "http://\u2132.example/"),
    *(
        "http://example.com℅.evil.example/",
        "http://\u212a.com/",
        "http://ﬁ.com/",
        "http://［::1］/",
    ),
    # IPv4 in other spellings
    *("http://127.1/", "http://2130706433/", "http://0/", "http://8.8.2056/", "http://0x7f.1/"),
    *("http://0X7F.0.0.0X1/", "http://0x/", "http://0177.0.0.1/", "http://127.0.0.01/"),
    *("http://127.0.0.1./", "http://127.0.0.1../", "http://127.0.0.1.1/", "http://8.8.8/"),
    *("http://256.0.0.1/", "http://example.com.1/", "http://a.0x1/", "http://-1/"),
    # IPv6 and brackets
    *("http://::1/", "http://[::1", "http://::1]/", "http://[]/", "http://[[::1]]/"),
    *("http://[::1]x/", "http://x[::1]/", "http://[example.com]/", "http://[8.8.8.8]:80/"),
    *("http://[v1.fe80::a]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/"),
    *("http://[2606:4700::1111 ]/", "http://[::127.1]/", "http://[1:2:3:4:5:6:7:8:9]/"),
    *("http://2606:4700:4700::1111/", "http://[2606:4700::1111]80/", "http://[2606:4700::1111]:a/"),
    # ports
    *("http://example.com:x/", "http://example.com:-80/", "http://example.com:8_0/"),
    *("http://example.com:080/", "http://example.com:0/", "http://example.com:80:80/"),
    *("http://example.com:99999999/", "http://example.com:８０/", "http://example.com:%38%30/"),
    # size
    *("http://example.com/" + "a" * MAX_URL, "http://example.com/" + "ä" * (MAX_URL // 2)),
    *("http://" + "a." * MAX_URL + "com/", "http://" + "a" * 100_000 + "/", "x" * 1_000_000),
]
# A host or port at which no public web server can be.
NOT_REACHABLE = [
    *("http://localhost/", "https://LOCALHOST:8443/", "http://localhost./", "http://a.localhost/"),
    *("http://localhost.localdomain/", "http://printer/", "http://com/", "http://lan./"),
    *("http://kubernetes.default.svc.cluster.local/", "http://METADATA.google.INTERNAL./"),
    *("http://host.docker.internal/", "http://router.lan/", "http://nas.home/"),
    *("http://x.home.arpa/", "http://printer.local/", "http://mail.corp/", "http://db.intranet/"),
    *("http://a.private/", "http://1.0.0.127.in-addr.arpa/", "http://expyuzz4wqqyqhjn.onion/"),
    *("http://nowhere.invalid/", "http://a.alt/", "http://例え/", "http://ipv4only.arpa/"),
    *("http://127.0.0.1:8080/", "http://0.0.0.0/", "http://10.0.0.1/", "http://192.168.1.1/admin"),
    *("http://169.254.169.254/latest/meta-data/", "http://100.64.0.1/", "http://255.255.255.255/"),
    *("http://[::1]:8080/", "http://[::]/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::8.8.8.8]"),
    *("http://[2002:7f00:1::]/", "http://[fe80::1]/", "http://[2001:4860::5efe:10.0.0.1]/"),
    *(f"http://example.com:{port}/" for port in (1, 22, 25, 53, 445, 2375, 6379, 65535, 65536)),
]


@each_row(("url", "canonical"), ACCEPTED.items(), ids=range(len(ACCEPTED)))
def test_ordinary_addresses_pass_in_one_canonical_form(url: str, canonical: str) -> None:
    """What people write passes, names become A-labels, the fragment stays here."""
    target = check_url(url)
    assert target.url == canonical
    assert check_url(target.url) == target


def test_a_user_name_is_told_apart() -> None:
    """Whoever pastes an address with a password reads that this is why."""
    with pytest.raises(FetchRefused, match="user name in front of the host"):
        check_url("https://ann:secret@example.com/")


@each_row("url", REFUSED, ids=range(len(REFUSED)))
def test_what_can_be_read_in_two_ways_is_refused(url: str) -> None:
    """Each form over which two programs have disagreed ends before anything is looked up."""
    with pytest.raises(FetchRefused) as caught:
        check_url(url)
    assert caught.value.code == "refused_url"
    assert caught.value.message.startswith("This address cannot be opened: ")
    assert caught.value.remedy


@each_row("url", NOT_REACHABLE)
def test_hosts_and_ports_that_are_not_of_the_web_look_alike(url: str) -> None:
    """Local names, special addresses and other ports give the error of a host that is not there."""
    with pytest.raises(NotReachable) as caught:
        check_url(url)
    assert caught.value.problem == NotReachable("elsewhere").problem
    assert caught.value.detail


def test_the_longest_address_passes_and_one_more_byte_does_not() -> None:
    """The cap counts bytes and is exact."""
    longest = "http://example.com/" + "a" * (MAX_URL - len("http://example.com/"))
    assert check_url(longest).url == longest
    with pytest.raises(FetchRefused):
        check_url(longest + "a")


@each_row(
    ("location", "leads_to"),
    [
        ("/b", "https://example.com:8443/b"),
        ("b?c", "https://example.com:8443/dir/b?c"),
        ("../b", "https://example.com:8443/b"),
        ("?c", "https://example.com:8443/dir/page?c"),
        ("#top", "https://example.com:8443/dir/page?q"),
        ("", "https://example.com:8443/dir/page?q"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example", "http://other.example/"),
        ("HTTP://Other.Example:8080/x#y", "http://other.example:8080/x"),
        ("/a:b", "https://example.com:8443/a:b"),
        ("/bücher", "https://example.com:8443/b%C3%BCcher"),
    ],
)
def test_redirects_are_read_relative_to_where_they_come_from(location: str, leads_to: str) -> None:
    """Relative, scheme-relative and absolute locations lead where browsers go."""
    base = check_url("https://example.com:8443/dir/page?q")
    assert check_redirect(base, location).url == leads_to


pieces = st.lists(
    st.sampled_from(
        [
            *("http", "https", "ftp", "file", ":", "//", "/", "///", "\\", "@", "#", "?", "[", "]"),
            "%",
            *("example", "localhost", "127", "0", "1", "0x7f", "017", ".", "..", "com", "local"),
            "www",
            *("80", "8080", "22", "::1", "::ffff:", "2606:4700::1111", "fe80::1", "%25", "%2e"),
            "%00",
            *("user", ":pass", " ", "\t", "\r\n", "\x00", "。", "．", "／", "＠", "ß", "ü", "例"),
            *("xn--", "①"),
            *("\u200b", "\u00ad", "-", "_", "~", "|", "http://example.com", "//127.0.0.1", ";"),
            *("&", "="),
        ]
    ),
    max_size=9,
).map("".join)
urls = st.one_of(
    pieces,
    pieces.map(lambda rest: "http://" + rest),
    pieces.map(lambda rest: "https://example.com" + rest),
    st.tuples(pieces, pieces).map(lambda two: f"http://{two[0]}.com{two[1]}"),
    st.text(max_size=20).map(lambda rest: "http://" + rest),
)
HOST = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)+"
)


def reached(url: str) -> str | None:
    """The host that an HTTP client would reach; None for none."""
    try:
        host = httpx2.URL(url).raw_host.decode().lower().removesuffix(".")
    except (httpx2.InvalidURL, UnicodeError):
        return None
    return canonical(host) or host


@given(urls)
def test_whatever_passes_has_one_reading(url: str) -> None:
    """Passed: the host is a plain public one, the URL is its own canonical form, and the standard
    library and an HTTP client read the same host and port out of what was given."""
    try:
        target = check_url(url)
    except FetchRefused:
        assert host_of(url) is None or reached(url) in (host_of(url), None)
        return
    assert host_of(url) == target.host
    assert target.scheme in ("http", "https")
    assert target.port in WEB_PORTS
    assert is_public(target.host) if target.is_address else HOST.fullmatch(target.host)
    assert not target.is_address or target.host.count(".") == 3 or ":" in target.host
    assert target.url.isascii()
    assert not set(target.url) & set(' \\\t\r\n"<>`#')
    assert check_url(target.url) == target
    again = urlsplit(target.url)
    assert (again.hostname, again.port or {"http": 80, "https": 443}[again.scheme]) == (
        target.host,
        target.port,
    )
    assert reached(url) in (target.host, None)


# Signs that look like "/", ".", ":", "@", "?" or "#", or strike through what stands before them.
SIGNS = (
    "\u2044\u2215\u29f8\u2571\u0338\u2cc6\u1735\u29f6\u2afd\u3033\u2027\u2024\u00b7\u0701\u0702\u2236\ua789\u02d0"
    "\u05c3\ufe55\u0589\ufe6b\u2013\u2010\u2043\u037e\u2049\uff03\u2216\u29f5\u201a\u2022"
)


@each_row("sign", SIGNS)
def test_a_sign_that_looks_like_part_of_an_address_is_in_no_name(sign: str) -> None:
    """`good.example⁄path.evil.example` is a name of evil.example: nobody sees that."""
    hosts = [f"good{sign}path.evil.example", f"good.example{sign}evil.example"]
    hosts.append("xn--" + f"good{sign}path".encode("punycode").decode() + ".evil.example")
    for host in hosts:
        with pytest.raises(FetchRefused):
            check_url(f"http://{host}/")
